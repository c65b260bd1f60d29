"""PodPlaces: the folders and files of the server that a run's pod is brought, or that are fetched from it.

    files.json    in the folder of the run, written before its pod is created

The backend makes it; `file_exchange.py` uses it. A run without that file has nothing to exchange.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from trainshed.disk.regular_file import read_regular, write_regular

_NAME = "files.json"
_MOST = 64 * 1024  # bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class PodPlaces:
    code: str = ""  # the folder of code; each is empty where there is none
    layer: str = ""  # the folder with what is installed on top of its image
    gcs: str = ""  # the folder of its view, for /gcs
    report: str = ""  # the file of its reports
    waits: bool = False  # its program may not begin before all that it is brought is there

    def __bool__(self) -> bool:
        return bool(self.code or self.layer or self.gcs or self.report)

    @property
    def fetched(self) -> str:
        """The roots in a pod that programs change and the server wants."""
        return " ".join([*(["gcs"] if self.gcs else []), *(["report"] if self.report else [])])

    def write(self, folder: str) -> None:
        write_regular(f"{folder}/.{_NAME}", json.dumps(asdict(self)).encode())
        Path(folder, f".{_NAME}").rename(Path(folder, _NAME))


def read_pod_places(folder: str) -> PodPlaces:
    try:
        return PodPlaces(**json.loads(read_regular(f"{folder}/{_NAME}", _MOST)))
    except (OSError, ValueError, TypeError):
        return PodPlaces()

"""Files for what replicas write, in a folder that exists: for backends that a test makes without stores."""

from pathlib import Path

from trainshed.core.names import ReplicaName
from trainshed.core.ports import Sink


class FolderRunFiles:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def output(self, name: ReplicaName) -> Sink:
        place = f"{self._folder}/{name.job}.{name.pool}-{name.index}"
        return Sink(stdout=f"{place}.out", stderr=f"{place}.err")

    def report(self, name: ReplicaName) -> str:
        """None: nobody would read it."""
        return ""

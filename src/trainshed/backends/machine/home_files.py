"""Files in the home of a backend: a text that is made once, and the folder of a job that is removed whole.

The backends of containers and of clusters call it, from a thread where it may take long. Both steps are
atomic: a crash leaves no half of a text and no half of a job.
"""

import contextlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from trainshed.disk.regular_file import write_regular


def made_once(path: Path, make: Callable[[], str]) -> str:
    """The text of the file, which is made where it is not there."""
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        draft = path.with_name(f".{path.name}")
        write_regular(draft, make().encode())
        draft.rename(path)
        return path.read_text().strip()


def remove_job_folder(folder: Path, trash: Path) -> None:
    removed = trash / f"{folder.name}-{os.urandom(4).hex()}"
    with contextlib.suppress(FileNotFoundError):
        folder.rename(removed)
    shutil.rmtree(removed, ignore_errors=True)

"""The files of a run that have values of secrets: written before its program starts, removed with its end.

The starters of processes and containers write them, and `KnownRun` removes them. They are in a folder of
their own in the run's. It has nothing else, and no other user of the machine may look into it.
"""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from trainshed.disk.regular_file import open_regular, write_regular

OWN, ANYBODY = 0o400, 0o444  # the second inside of a folder that is closed to others


def secrets_folder(run: str) -> str:
    """The folder of a run's secret files, given that of the run."""
    return f"{run}/secrets"


def write_secret_files(
    run: str, contents: Mapping[str, str], *, owner: tuple[int, int] | None = None, mode: int = OWN
) -> None:
    """Write them anew, and give them to the owner, given the folder of a run that has not begun."""
    remove_secret_files(run)
    folder = secrets_folder(run)
    Path(folder).mkdir(0o700)
    for name, content in contents.items():
        path = f"{folder}/{name}"
        write_regular(path, content.encode())
        handle = open_regular(path)
        try:
            os.fchmod(handle, mode)
            if owner is not None:
                os.fchown(handle, *owner)
        finally:
            os.close(handle)
    if mode == ANYBODY:
        Path(folder).chmod(0o755)
    if owner is not None:
        os.chown(folder, *owner)


def remove_secret_files(run: str) -> None:
    """May be repeated. Most runs have none."""
    folder = secrets_folder(run)
    if os.path.lexists(folder):
        shutil.rmtree(folder, ignore_errors=True)

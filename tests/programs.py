"""Our programs in C, compiled once for all tests of a run: to compile them takes as long as many a test.

    prebuilt_programs()      # the folder; an image of the server has one like it beside its code

The first of all workers that asks makes it. Where there is no C compiler it stays empty.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from trainshed.backends.machine.compiled import prebuild

_FOLDER = "PYTEST_PROGRAMS"


def make_folder() -> Callable[[], None]:
    """For the process that starts all workers; what removes the folder at the end."""
    folder = os.environ[_FOLDER] = tempfile.mkdtemp(prefix="ts-programs-")
    Path(folder).chmod(0o755)  # for jobs of other users
    return lambda: shutil.rmtree(folder, ignore_errors=True)


def prebuilt_programs() -> Path:
    folder = Path(os.environ[_FOLDER])
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / ".complete").exists():
            prebuild(folder)
            (folder / ".complete").touch()
    return folder

"""How many bytes a replica has printed so far, for the hang watch: it only needs to know whether that grows.

It reads nothing and keeps nothing; what is not there has printed nothing.
"""

import os
from pathlib import Path

from trainshed.core.logs import OutputStream
from trainshed.core.names import ReplicaName
from trainshed.logs.file import path_of


def printed(home: Path, name: ReplicaName) -> int:
    """The bytes of both streams of all runs of this name."""
    return sum(_size(path_of(f"{home}/{name.job}", name, stream)) for stream in OutputStream)


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size  # noqa: PTH116 - of every replica, again and again
    except OSError:
        return 0

"""The mark of a file that others replace or write while the server runs: who has read it compares marks."""

from pathlib import Path
from typing import TypeAlias

FileMark: TypeAlias = tuple[int, int, int]


def file_mark(path: Path) -> FileMark | None:
    """Differs once the file was replaced or written; None where there is none."""
    try:
        about = path.stat()
    except OSError:
        return None
    return about.st_ino, about.st_mtime_ns, about.st_size

"""Which bytes of a log file are gone: one range, recorded beside the file before anything is freed.

The range begins and ends at line boundaries and only ever grows. It is written to a temporary name and
renamed, so that it is there as a whole or not at all.
"""

import struct
from dataclasses import dataclass
from pathlib import Path

from trainshed.disk.regular_file import read_regular, write_regular

FULL_DISK = -1  # in place of a quota: the disk was almost full
_RECORD = struct.Struct("<qqq")


@dataclass(frozen=True, slots=True)
class Drop:
    head: int  # the first byte that is gone
    cut: int  # the first byte that is there again
    quota: int  # which the job was over, or FULL_DISK; 0: the program itself emptied the file

    @property
    def size(self) -> int:
        return self.cut - self.head

    @property
    def marker(self) -> str:
        if self.quota == FULL_DISK:
            return f"[trainshed: {self.size} bytes of output dropped here: the server's disk was almost full]"
        if self.quota:
            return (
                f"[trainshed: {self.size} bytes of output dropped here: "
                f"the job is over its log quota of {self.quota} bytes]"
            )
        return f"[trainshed: {self.size} bytes of output are gone here: the program emptied its output file]"


def load(path: str) -> Drop | None:
    try:
        data = read_regular(path, _RECORD.size)
    except OSError:
        return None
    return Drop(*_RECORD.unpack(data)) if len(data) == _RECORD.size else None


def save(path: str, drop: Drop) -> None:
    fresh = Path(f"{path}.new")
    write_regular(fresh, _RECORD.pack(drop.head, drop.cut, drop.quota))
    fresh.replace(path)

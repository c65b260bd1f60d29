"""What the programs themselves wrote down (program.py): their starts, their ends, and whom they met."""

import fcntl
import json
import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    what: str  # start, end, twice (the same run lives already), together (with another run of its job)
    run: str  # job.attempt.pool.index.restart
    pid: int
    at: int
    code: int | None = None
    signal: int | None = None
    lines: int = 0
    other: str = ""

    @property
    def job(self) -> str:
        return self.run.rsplit(".", 4)[0]

    @property
    def attempt(self) -> int:
        return int(self.run.rsplit(".", 4)[1])

    @property
    def restart(self) -> int:
        return int(self.run.rsplit(".", 4)[4])

    @property
    def replica(self) -> str:
        _, _, pool, index, _ = self.run.rsplit(".", 4)
        return f"{pool}.{index}"


def read_notes(folder: Path) -> list[Note]:
    try:
        text = (folder / "runs").read_text()
    except FileNotFoundError:
        return []
    return [Note(**json.loads(line)) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def held_locks(folder: Path) -> list[str]:
    """The runs of which something still lives: a lock is held as long as any process that inherited it."""
    held: list[str] = []
    for path in sorted((folder / "locks").glob("*/*")):
        file = os.open(path, os.O_RDWR)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            held.append(f"{path.parent.name}.{path.name}")
        finally:
            os.close(file)
    return held

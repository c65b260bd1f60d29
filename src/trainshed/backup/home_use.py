"""Whether a server uses a home: by the lock of its database, and by the processes of this machine.

A server whose jobs are in PostgreSQL holds no lock in the home, and one whose home was removed under it holds
one that nobody finds. Both are seen among the processes.
"""

import os
from contextlib import suppress
from pathlib import Path

from trainshed.backup.contents import DATABASE
from trainshed.store.lock import owner_of


def server_of(home: Path) -> str:
    """The pid of a server that uses this home; empty if there is none."""
    return lock_owner(home) or _running(home)


def lock_owner(home: Path) -> str:
    """Who has the jobs' database of the home; empty if nobody has."""
    return owner_of(home / f"{DATABASE}.lock")


def _running(home: Path) -> str:
    with suppress(OSError):
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with suppress(OSError):
                words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
                if "trainshed.server" in words and _home_in(words, pid) == home.resolve():
                    return pid
    return ""


def _home_in(words: list[str], pid: str) -> Path | None:
    for flag, value in zip(words, [*words[1:], ""], strict=True):
        if flag == "--home":
            # As the server saw it, whose working directory may be another.
            return Path(os.readlink(f"/proc/{pid}/cwd"), value).resolve()
    return None

"""The server's home on the disk: made at the first start, closed to other users at each.

`serving` calls it. Each folder of the home is closed by itself, so it does not matter how open the files in
it are: programs in containers, whatever user they are, get theirs by mounts. The umask stays what it was,
because programs of jobs inherit it. Files that others put into the home are never touched.
"""

import logging
from pathlib import Path
from stat import S_IMODE, S_ISDIR, S_ISLNK, S_ISVTX

from trainshed.core.errors import Unavailable
from trainshed.settings import RESTORING

log = logging.getLogger(__name__)

OTHERS = 0o077
# Not `hatch`: containers of any user mount it as it is.
FOLDERS = frozenset(
    {
        "buckets",
        "code",
        "containers",
        "gcloud",
        "logs",
        "metrics",
        "run",
        "runtimes",
        "s3",
        "secrets",
        "spool",
        "tls",
    }
)
# The part of the name before the first dot, of all that a server or its owner puts into a home.
_NAMES = FOLDERS | {"hatch", "token", "job-secret", "clock", "server", "trainshed", "lost+found"}


def make_home(home: Path) -> None:
    """A new one is nothing that a repository or a submitted folder around it should take along."""
    try:
        home.mkdir(parents=True, mode=0o700)
    except FileExistsError:
        if not home.is_dir():
            raise
        if (home / RESTORING).exists():
            sentence = f"A restore into {home} was broken off. Remove it, then restore again."
            raise Unavailable(sentence) from None
        return
    (home / ".gitignore").write_text("*\n")


def close_home(home: Path) -> None:
    """Close the home and its folders to other users. Raises Unavailable where a folder cannot be closed."""
    names = {path.name for path in home.iterdir()}
    for name in sorted(names & FOLDERS):
        _close_folder(home / name)
    mode = home.stat().st_mode
    if not mode & OTHERS:
        return
    if mode & S_ISVTX or any(name != ".gitignore" and name.split(".")[0] not in _NAMES for name in names):
        why = "it has files that are not the server's"
        log.warning("The home %s stays open to others (mode %03o): %s", home, mode & 0o777, why)
        return
    try:
        home.chmod(S_IMODE(mode) & ~OTHERS)
    except OSError as error:
        # All that is in it is closed by itself.
        log.warning("The home %s stays open to others (mode %03o): %s", home, mode & 0o777, error.strerror)


def _close_folder(folder: Path) -> None:
    mode = folder.lstat().st_mode
    if S_ISLNK(mode) or not S_ISDIR(mode) or not mode & OTHERS:
        return  # where a link leads is the owner's own arrangement
    try:
        folder.chmod(S_IMODE(mode) & ~OTHERS)
    except OSError as error:
        raise Unavailable(
            f"Other users can look into {folder} (mode {mode & 0o777:03o}), and that cannot be changed: "
            f"{error.strerror}. Run `chmod 700 {folder}` as its owner, or start the server as that user."
        ) from error

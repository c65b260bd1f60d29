"""The server's home on the disk: made at the first start, closed to other users at each.

`serving` calls it. Where jobs run as other users (--run-as), these may come through the home to what is
theirs, and see no names. Each folder of the home is closed by itself, so it does not matter how open the
files in it are: programs in containers, whatever user they are, get theirs by mounts. The umask stays what
it was, because programs of jobs inherit it. Files that others put into the home are never touched.
"""

import logging
from pathlib import Path
from stat import S_IMODE, S_ISDIR, S_ISLNK, S_ISVTX

from trainshed.core.errors import Unavailable
from trainshed.settings.table import RESTORING

log = logging.getLogger(__name__)

OTHERS = 0o077
# Not `hatch`: containers of any user mount it as it is.
FOLDERS = frozenset(
    {
        "audit",
        "buckets",
        "code",
        "containers",
        "gcloud",
        "kubernetes",
        "logs",
        "metrics",
        "notices",
        "run",
        "runtimes",
        "s3",
        "secrets",
        "spool",
        "tls",
    }
)
# Jobs of other users find in them: their folders, environments, certificates, and the files they report into.
_WAYS = ("run", "runtimes", "tls", "metrics", "metrics/.reports")
_WAY = 0o711
# The part of the name before the first dot, of all that a server or its owner puts into a home.
_NAMES = FOLDERS | {
    "hatch",
    "token",
    "job-secret",
    "secret-key",
    "accounts",
    "token-uses",
    "ended-sessions",
    "shares",
    "login",
    "clock",
    "server",
    "trainshed",
    "lost+found",
}


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


def close_home(home: Path, *, ways: bool = False) -> None:
    """Close the home and its folders to other users. Raises Unavailable where a folder cannot be closed.

    With `ways` jobs of other users may come through to what is theirs. They cannot look into its other
    folders, nor into files that were there at the start; those that come later have no secrets.
    """
    names = {path.name for path in home.iterdir()}
    for name in sorted(names & FOLDERS):
        # Never closed for a moment: jobs may be running.
        _close_folder(home / name, OTHERS & ~_WAY if ways and name in _WAYS else OTHERS)
    if ways:
        _open_ways(home)
        return
    mode = home.stat().st_mode
    if not mode & OTHERS:
        return
    if mode & S_ISVTX or any(not _is_ours(name) for name in names):
        why = "it has files that are not the server's"
        log.warning("The home %s stays open to others (mode %03o): %s", home, mode & 0o777, why)
        return
    try:
        home.chmod(S_IMODE(mode) & ~OTHERS)
    except OSError as error:
        # All that is in it is closed by itself.
        log.warning("The home %s stays open to others (mode %03o): %s", home, mode & 0o777, error.strerror)


def _is_ours(name: str) -> bool:
    return name == ".gitignore" or name.split(".", maxsplit=1)[0] in _NAMES


def _open_ways(home: Path) -> None:
    for path in sorted(home.iterdir()):
        mode = path.lstat().st_mode
        if path.name in (*_WAYS, ".gitignore", "hatch") or S_ISLNK(mode) or not mode & OTHERS:
            continue
        if not _is_ours(path.name):
            raise Unavailable(
                f"Jobs that run as other users could get to {path} (mode {mode & 0o777:03o}), which is not "
                f"the server's. Run `chmod go-rwx {path}`, or move it out of the home."
            )
        path.chmod(S_IMODE(mode) & ~OTHERS)
    for name in _WAYS:
        (home / name).mkdir(mode=0o700, exist_ok=True)
        (home / name).chmod(_WAY)
    home.chmod(_WAY)


def _close_folder(folder: Path, closed: int) -> None:
    mode = folder.lstat().st_mode
    if S_ISLNK(mode) or not S_ISDIR(mode) or not mode & closed:
        return  # where a link leads is the owner's own arrangement
    try:
        folder.chmod(S_IMODE(mode) & ~closed)
    except OSError as error:
        raise Unavailable(
            f"Other users can look into {folder} (mode {mode & 0o777:03o}), and that cannot be changed: "
            f"{error.strerror}. Run `chmod 700 {folder}` as its owner, or start the server as that user."
        ) from error

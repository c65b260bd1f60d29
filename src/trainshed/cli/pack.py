"""Which files belong to a program: what git tracks or would, else what is there and not ignored.

It lists and looks, and reads no contents. Never part of it: .git, virtual environments, `__pycache__`,
sockets, devices. A link stays a link; one that leads out of the folder is refused: nothing would be there.
"""

import os
import stat

from trainshed.cli.trouble import EarlyError

TYPE_CHECKING = False  # the module typing takes longer to import than a job takes to submit
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from trainshed.cli.ignored import Patterns

IGNORING = (".gitignore", ".trainshedignore")
NEVER = (".git", "__pycache__")
ENVIRONMENT = "pyvenv.cfg"  # the file that makes a folder a virtual environment
NAMED = 10  # files named in an error
FOREIGN = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_PREFIX",
)  # set inside of hooks, of another repository
GIT = ("git", "-C", "", "ls-files", "-z", "--cached", "--others", "--exclude-standard")


class FolderListing:
    """The files of a folder, being listed: git works while we do other things; `paths` waits for it."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._git = _Git(root) if git_above(root) else None

    def paths(self, include: "Sequence[str]" = (), exclude: "Sequence[str]" = (), *named: str) -> list[str]:
        """The paths, relative, in order. Those `named` are among them whatever is ignored."""
        listed = self._git.listed() if self._git else None
        chosen = set(_walked(self._root, IGNORING) if listed is None else self._kept(listed))
        if include:
            wanted = _patterns(include)
            chosen.update(path for path in _walked(self._root, ()) if wanted.holds(path))
        if exclude:
            unwanted = _patterns(exclude)
            chosen = {path for path in chosen if not unwanted.holds(path)}
        chosen.update(_direct(self._root, path) if "/" in path else path for path in named)
        return sorted(chosen)  # which is the order of their bytes, in UTF-8

    def _kept(self, listed: list[str]) -> "Iterable[str]":
        """Of what git lists, what is part of the program; a repository inside is listed by its own git."""
        environments = tuple(
            path.removesuffix(ENVIRONMENT) for path in listed if path.endswith("/" + ENVIRONMENT)
        )
        ours = _read_patterns(self._root, "", (".trainshedignore",))
        for path in listed:
            if path.startswith(environments) or not set(NEVER).isdisjoint(path.split("/")):
                continue
            if ours and any(patterns.holds(path) for patterns in ours):
                continue
            if path == "./":  # a submodule that is not checked out: of it git says no more
                yield from _walked(self._root, IGNORING)
            elif path.endswith("/") or _is_folder(f"{self._root}/{path}"):
                inner = path.rstrip("/")
                if not os.path.lexists(f"{self._root}/{inner}/{ENVIRONMENT}"):
                    within = (f"{inner}/{item}" for item in FolderListing(f"{self._root}/{inner}").paths())
                    yield from (item for item in within if not any(patterns.holds(item) for patterns in ours))
            else:
                yield path


def git_above(folder: str) -> str:
    """The top of the git work tree a folder is in; "" where it is in none."""
    while not os.path.lexists(f"{folder}/.git"):
        parent = os.path.dirname(folder)
        if parent == folder:
            return ""
        folder = parent
    return folder


class _Git:
    """`git ls-files`, started at once and read later. Where git cannot, None is listed, and we walk."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._out, end = os.pipe()
        argv = [root if word == "" else word for word in GIT]
        actions = [(os.POSIX_SPAWN_DUP2, end, 1), (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0)]
        environ = {name: value for name, value in os.environ.items() if name not in FOREIGN}
        environ["GIT_OPTIONAL_LOCKS"] = "0"
        try:
            self._pid = os.posix_spawnp(argv[0], argv, environ, file_actions=actions)
        except OSError:
            self._pid = 0
        os.close(end)

    def listed(self) -> list[str] | None:
        pieces: list[bytes] = []
        while piece := os.read(self._out, 1 << 16):
            pieces.append(piece)
        os.close(self._out)
        if not self._pid or os.waitpid(self._pid, 0)[1]:
            return None
        return [os.fsdecode(path) for path in b"".join(pieces).split(b"\0") if path]


def _walked(root: str, ignoring: "Sequence[str]") -> "Iterable[str]":
    """Every file below a folder that no file of the names in `ignoring` excludes."""
    waiting: list[tuple[str, list[Patterns]]] = [("", [])]
    while waiting:
        base, patterns = waiting.pop()
        patterns = [*patterns, *_read_patterns(root, base, ignoring)]
        for entry in _entries(f"{root}/{base}"):
            path = base + entry.name
            is_folder = entry.is_dir(follow_symlinks=False)
            if entry.name in NEVER or _is_ignored(path, is_folder, patterns):
                continue
            if not is_folder:
                yield path
            elif not os.path.lexists(f"{root}/{path}/{ENVIRONMENT}"):
                waiting.append((f"{path}/", patterns))


def _entries(folder: str) -> "list[os.DirEntry[str]]":
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError as error:
        raise EarlyError(f"cannot read the folder {folder}: {error.strerror}", [_fix("it")]) from error


def _is_ignored(path: str, is_folder: bool, patterns: "list[Patterns]") -> bool:
    for pattern in reversed(patterns):
        if (result := pattern.verdict(path, is_folder=is_folder)) is not None:
            return result
    return False


def _read_patterns(root: str, base: str, names: "Sequence[str]") -> "list[Patterns]":
    result: list[Patterns] = []
    for name in names:
        try:
            with open(f"{root}/{base}{name}", encoding="utf-8", errors="surrogateescape") as file:
                lines = file.readlines()
        except OSError:
            continue
        result.append(_patterns(lines, base))
    return result


def _patterns(lines: "Iterable[str]", base: str = "") -> "Patterns":
    from trainshed.cli.ignored import Patterns  # brings regular expressions along, which few folders need

    return Patterns(lines, base)


def look(root: str, paths: "Iterable[str]") -> list[tuple[str, os.stat_result]]:
    """Each path with its stat: regular files and links, as they are now. What is gone by now is left out."""
    result: list[tuple[str, os.stat_result]] = []
    wrong: list[str] = []
    linked: dict[str, bool] = {"": False}  # whether a folder is reached through a link
    for path in paths:
        if _is_linked(root, os.path.dirname(path), linked):
            continue  # tracked, and its folder has become a link since: what is there is not the folder's
        try:
            seen = os.lstat(f"{root}/{path}")
        except OSError:
            continue  # tracked and deleted, or deleted just now
        if not (stat.S_ISREG(seen.st_mode) or stat.S_ISLNK(seen.st_mode)):
            continue
        if stat.S_ISLNK(seen.st_mode) and (problem := _astray(root, path)):
            if not os.path.lexists(f"{root}/{path}/{ENVIRONMENT}"):
                wrong.append(problem)
            continue
        if not path.isascii() and any("\ud800" <= character <= "\udfff" for character in path):
            wrong.append(f"{path!a} has a name that is not UTF-8: rename it, or leave it out with --exclude")
            continue
        result.append((path, seen))
    if wrong:
        more = [f"and {len(wrong) - NAMED} more"] if len(wrong) > NAMED else []
        raise EarlyError("some files cannot be sent", [*wrong[:NAMED], *more])
    return result


def _astray(root: str, path: str) -> str:
    """What is wrong with a link that leads out of the folder; "" where it does not."""
    target = os.readlink(f"{root}/{path}")
    inner = os.path.normpath(os.path.join(os.path.dirname(path), target))
    # As written, and as it is: through other links it may lead elsewhere than it reads.
    end = os.path.relpath(os.path.realpath(f"{root}/{path}"), os.path.realpath(root))
    if not os.path.isabs(target) and not any(f"{place}/".startswith("../") for place in (inner, end)):
        return ""
    return f"{path} is a link that leads out of the folder, to {target}: {_fix(path)}, or copy what it means"


def _is_linked(root: str, folder: str, known: dict[str, bool]) -> bool:
    if folder not in known:
        known[folder] = os.path.islink(f"{root}/{folder}") or _is_linked(root, os.path.dirname(folder), known)
    return known[folder]


def _direct(root: str, path: str) -> str:
    """A file's path without links on the way to it: below a link nothing can be kept."""
    folder = os.path.realpath(f"{root}/{os.path.dirname(path)}")
    direct = os.path.relpath(f"{folder}/{os.path.basename(path)}", os.path.realpath(root))
    return path if direct.startswith("../") else direct


def _is_folder(path: str) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False


def _fix(path: str) -> str:
    return f"leave {path} out with --exclude"

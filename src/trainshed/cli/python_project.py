"""A package that its owner describes: setup.py, setup.cfg or pyproject.toml beside it. That builds it.

It runs in a copy, so that nothing it writes is left in the person's folder; by the first Python here that has
what it needs. What cannot be built is told with the build's own last lines.
"""

import configparser
import shutil
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

from trainshed.cli import archive
from trainshed.cli.failure import CommandFailed
from trainshed.cli.trouble import EarlyError
from trainshed.client import Json

PLAIN = "setuptools.build_meta:__legacy__"  # the one meant where none is named
MOST = 1 << 30  # bytes copied: more beside a package is data that belongs into a bucket
TOLD = 15  # lines of a failed build
MISSING = 3
BUILD = """
import importlib, sys
backend, out, *paths = sys.argv[1:]
sys.path[:0] = paths
module, _, name = backend.partition(":")
try:
    found = importlib.import_module(module)
except ImportError as error:
    print(error)
    sys.exit(3)
for part in filter(None, name.split(".")):
    found = getattr(found, part)
found.build_sdist(out)
"""


@dataclass(frozen=True, slots=True)
class Project:
    folder: Path
    files: tuple[str, ...]  # those that describe it
    backend: str
    paths: tuple[str, ...] = ()  # where the backend is, if it is part of the project


def project_at(folder: Path) -> Project | None:
    """The description in a folder; None where there is none, though tools may keep settings there."""
    table = _table(folder / "pyproject.toml")
    files = [name for name in ("setup.py",) if (folder / name).is_file()]
    if _describes(folder / "setup.cfg"):
        files.append("setup.cfg")
    if "project" in table or "build-system" in table:
        files.append("pyproject.toml")
    if not files:
        return None
    system: Json = table.get("build-system") or {}
    paths = tuple(str(path) for path in system.get("backend-path") or ())
    return Project(folder, tuple(files), str(system.get("build-backend") or PLAIN), paths)


def sdist(project: Project, into: Path) -> Path:
    """The distribution as it is built, in `into`."""
    with tempfile.TemporaryDirectory(prefix="trainshed-build-") as scratch:
        copy = Path(scratch, "project")
        try:
            _copy(project.folder, "", copy)
        except EarlyError as error:
            raise CommandFailed(error.message, error.details) from error
        _run(project, copy, into)
    made = next(iter(sorted(into.iterdir())), None)
    if made is None:
        raise CommandFailed(f"{_described(project)} built nothing")
    return made


def build(project: Project, package: Path, into: Path) -> Path:
    """The distribution, in `into`; its bytes follow from its files alone."""
    with tempfile.TemporaryDirectory(prefix="trainshed-build-") as scratch:
        copy, out = Path(scratch, "project"), Path(scratch, "out")
        out.mkdir()
        try:
            _copy(project.folder, package.name, copy)
        except EarlyError as error:
            raise CommandFailed(error.message, error.details) from error
        _run(project, copy, out)
        made = next(iter(sorted(out.iterdir())), None)
        if made is None:
            raise CommandFailed(f"{_described(project)} built nothing")
        result = into / made.name
        if made.name.endswith(".tar.gz"):
            archive.rewrite(made, result)
            if not any(name.endswith(f"/{package.name}/__init__.py") for name in archive.names(result)):
                raise CommandFailed(
                    f"{_described(project)} leaves out the package {package.name}",
                    ["name it among its packages, or move the package to a folder of its own"],
                )
        else:
            shutil.copy(made, result)
        return result


def _run(project: Project, copy: Path, out: Path) -> None:
    paths = [str(copy / path) for path in project.paths]
    output: list[str] = []
    for python in _pythons():
        done = subprocess.run(
            [python, "-B", "-c", BUILD, project.backend, str(out), *paths],
            cwd=copy,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode == 0:
            return
        output = done.stdout.splitlines()
        if done.returncode != MISSING:
            raise CommandFailed(
                f"{_described(project)} cannot be built", [f"  {line}" for line in output[-TOLD:]]
            )
    needed = project.backend.partition(":")[0].partition(".")[0]
    raise CommandFailed(
        f"{_described(project)} needs {needed} to be built, which no Python here has",
        [
            *output[-1:],
            f"install it: pip install {needed}",
            "or build the package elsewhere and give it with --packages",
        ],
    )


def _pythons() -> list[str]:
    candidates = (sys.executable, shutil.which("python3"), shutil.which("python"))
    return list(dict.fromkeys(filter(None, candidates)))


def _copy(folder: Path, package: str, into: Path) -> None:
    """What git tracks or would, and the package whole, where one is named."""
    from trainshed.cli.pack import FolderListing

    left = MOST
    for path in FolderListing(str(folder)).paths(include=[f"/{package}/**"] if package else ()):
        source, target = folder / path, into / path
        if not source.is_file():
            continue
        left -= source.stat().st_size
        if left < 0:
            raise CommandFailed(
                f"{folder} holds more than {MOST >> 30} GiB beside the package",
                ["leave data out with a .gitignore, or give a built package with --packages"],
            )
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)


def _table(path: Path) -> Json:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise CommandFailed(f"cannot read {path}: {error}") from error


def _describes(path: Path) -> bool:
    if not path.is_file():
        return False
    config = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        config.read(path, encoding="utf-8")
    except (configparser.Error, UnicodeDecodeError) as error:
        raise CommandFailed(f"cannot read {path}: {' '.join(str(error).split())}") from error
    return config.has_section("metadata") or config.has_section("options")


def _described(project: Project) -> str:
    return f"{project.folder / project.files[0]}"

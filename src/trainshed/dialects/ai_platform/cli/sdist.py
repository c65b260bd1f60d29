"""A package's folder as a source distribution, for `--package-path`: nothing but Python is needed here.

Nothing is written into the person's folder. Where they describe the package themselves beside it (setup.py
and its successors), `cli/python_project.py` lets that speak; else all that is in the folder goes in, with a
setup.py that says so. Unlike gcloud's, it takes along packages inside the package, and data such as .json and
.txt.
"""

import glob
import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from trainshed.cli import archive
from trainshed.cli.failure import CommandFailed

VERSION = "0.0.0"
INIT = "__init__.py"
LEFT_OUT = ("__pycache__",)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")

SETUP = """from setuptools import setup

setup(
    name={name!r},
    version={version!r},
    packages={packages!r},
    package_data={data!r},
)
"""
ABOUT = """Metadata-Version: 2.1
Name: {name}
Version: {version}
"""


def package_at(path: str) -> Path:
    """The folder, once it is known to be a package. Raises Failure in gcloud's words where it is none."""
    folder = Path(os.path.abspath(path))  # noqa: PTH100 - not resolved: a link's name is the package's
    if not folder.is_dir():
        raise CommandFailed(f"Source directory [{path}] is not a directory.")
    if not (folder / INIT).is_file():
        raise CommandFailed(
            f"[{path}] is not a valid Python package because it does not contain an `{INIT}` file. "
            "Please create one and try again."
        )
    if not _NAME.fullmatch(folder.name) or not folder.name.strip("_-"):
        raise CommandFailed(
            f"[{folder.name}] cannot be a package's name: ASCII letters, digits and _ can; rename it"
        )
    return folder


def write(package: Path, into: Path) -> Path:
    """The distribution of a package that nobody describes."""
    files = dict(sorted(_files(package)))
    if odd := [name for name in files if not _is_text(name)]:
        raise CommandFailed(f"[{odd[0]!a}] has a name that is not UTF-8: rename it")
    name = package.name.strip("_-")
    top = f"{name}-{VERSION}"
    packages, data = _layout(package.name, files)
    setup = SETUP.format(name=name, version=VERSION, packages=packages, data=data)
    about = ABOUT.format(name=name, version=VERSION)
    made = into / f"{top}.tar.gz"
    entries: list[archive.Entry] = [(f"{top}/PKG-INFO", about.encode()), (f"{top}/setup.py", setup.encode())]
    entries += [(f"{top}/{package.name}/{inner}", path) for inner, path in files.items()]
    archive.write(entries, made)
    return made


def _files(package: Path) -> Iterator[tuple[str, Path]]:
    """Each file by its path below the package. Links are followed, but never in a circle."""
    waiting: list[tuple[str, Path, tuple[str, ...]]] = [("", package, (os.path.realpath(package),))]
    while waiting:
        below, folder, above = waiting.pop()
        try:
            entries = list(folder.iterdir())
        except OSError as error:
            raise CommandFailed(f"cannot read the folder {folder}: {error.strerror}") from error
        for entry in entries:
            if entry.name in LEFT_OUT or entry.suffix in (".pyc", ".pyo"):
                continue
            if entry.is_file():
                yield below + entry.name, entry
            elif entry.is_dir() and not entry.name.startswith("."):
                real = os.path.realpath(entry)
                circle = real in above
                waiting += [] if circle else [(f"{below}{entry.name}/", entry, (*above, real))]


def _layout(name: str, files: dict[str, Path]) -> tuple[list[str], dict[str, list[str]]]:
    """The packages by their dotted names; and of each, what is in it that is no module of its own."""
    packages = {""}  # by path below the top
    for inner in sorted(files, key=lambda path: path.count("/")):
        folder = str(PurePosixPath(inner).parent)
        above, _, last = folder.rpartition("/")
        if inner.endswith(f"/{INIT}") and above in packages and last.isidentifier():
            packages.add(folder)
    data: dict[str, list[str]] = {}
    for inner in files:
        folder = str(PurePosixPath(inner).parent).removeprefix(".")
        if folder in packages and inner.endswith(".py"):
            continue
        while folder not in packages:
            folder = folder.rpartition("/")[0]
        within = inner.removeprefix(f"{folder}/" if folder else "")
        data.setdefault(_dotted(name, folder), []).append(glob.escape(within))
    return [_dotted(name, folder) for folder in sorted(packages)], data


def _dotted(name: str, folder: str) -> str:
    return ".".join((name, *filter(None, folder.split("/"))))


def _is_text(name: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in name)

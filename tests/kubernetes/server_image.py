"""An image of the server without a registry: this machine's Python and tools, and the package as it is here.

Tests of deploy/ run it in a cluster. It has what deploy/Containerfile puts into one: Trainshed with what it
needs for Kubernetes and PostgreSQL, and its C programs, prebuilt. It has no compiler.
"""

import importlib.metadata
import io
import tarfile
import tempfile
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from scripts.base_image import libraries, placed
from scripts.cluster_parts.image import BASE_PATH, pack, write_base
from trainshed.backends.machine.compiled import PREBUILT, prebuild

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "trainshed"
SITE = "opt/trainshed"
EXTRAS = ("kubernetes", "postgres")
COMMAND = "#!/usr/local/bin/python3\nfrom trainshed.cli.main import main\nmain()\n"


def pack_server(archive: Path, name: str) -> None:
    """Write the image as an archive that `scripts/cluster load` takes."""
    with tempfile.TemporaryDirectory(prefix="server-", dir=archive.parent) as folder:
        layer = Path(folder, "layer.tar")
        write_base(layer)
        with tarfile.open(layer, "a") as tar:
            _add_packages(tar)
            _add_trainshed(tar, Path(folder, "prebuilt"))
        config = {"Env": [BASE_PATH, f"PYTHONPATH=/{SITE}"], "User": "10001:10001"}
        pack(layer, archive, name, {**config, "Entrypoint": ["trainshed"]})


def _add_packages(tar: tarfile.TarFile) -> None:
    linked: list[str] = []
    for package in _needed():
        for file in package.files or ():
            path = Path(str(package.locate_file(file)))
            if ".." in file.parts or not path.is_file() or path.suffix == ".pyc":
                continue  # its commands: the server starts none of them by name
            tar.add(path, f"{SITE}/{file}")
            linked += [str(path)] if ".so" in path.name else []
    # Again what the image has already, which changes nothing.
    for library in set(libraries(linked)):
        if not library.startswith(str(ROOT)) and "site-packages" not in library:
            tar.add(library, placed(library))


def _needed() -> Iterator[importlib.metadata.Distribution]:
    """What pyproject.toml asks for, with all that these require."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    texts: list[str] = [*project["dependencies"], *(text for name in EXTRAS for text in extras[name])]
    waiting = _counting(texts, ("",))
    seen: set[tuple[str, frozenset[str]]] = set()
    given: set[str] = set()
    while waiting:
        wanted = waiting.pop()
        name = canonicalize_name(wanted.name)
        key = (name, frozenset(wanted.extras))
        if key in seen:
            continue
        seen.add(key)
        package = importlib.metadata.distribution(name)
        waiting += _counting(package.requires or (), ("", *wanted.extras))
        if name not in given:
            given.add(name)
            yield package


def _counting(texts: Iterable[str], extras: tuple[str, ...]) -> list[Requirement]:
    """Those that count on this machine with these extras."""
    return [
        row
        for row in map(Requirement, texts)
        if row.marker is None or any(row.marker.evaluate({"extra": extra}) for extra in extras)
    ]


def _add_trainshed(tar: tarfile.TarFile, prebuilt: Path) -> None:
    failures = prebuild(prebuilt)
    assert not failures, f"these cannot be compiled: {failures}"
    tar.add(PACKAGE, f"{SITE}/trainshed", filter=_source)
    tar.add(prebuilt, f"{SITE}/{PREBUILT.relative_to(PACKAGE.parent)}")
    info = tarfile.TarInfo("usr/local/bin/trainshed")
    info.size, info.mode = len(COMMAND), 0o755
    tar.addfile(info, io.BytesIO(COMMAND.encode()))


def _source(info: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if "__pycache__" in info.name or "/prebuilt" in info.name else info

"""Setuptools for building source distributions where no index can be reached: the server's own.

It is pure Python, so it builds in the interpreter of any runtime. Linked into a folder of its own, a build
sees it and nothing else of the server's packages. It never installs anything.
"""

import os
import re
from pathlib import Path

NAMES = frozenset({"setuptools", "wheel"})  # what it stands in for; it makes wheels by itself since 70.1
OLDEST_PYTHON = (3, 9)

_FIRST = (70, 1)
_PARTS = ("setuptools", "pkg_resources", "_distutils_hack")


def can_build(needs: list[str], python: str) -> bool:
    """Whether this is all that building takes, with an interpreter of that version."""
    return NAMES.issuperset(needs) and _numbers(python) >= OLDEST_PYTHON


def lay_out(folder: Path) -> Path | None:
    """The folder for PYTHONPATH; None where the server has no setuptools that would do. It blocks."""
    if not (own := parts()):
        return None
    tools = folder / own[-1].name.removesuffix(".dist-info").partition("-")[2]
    tools.mkdir(mode=0o700, parents=True, exist_ok=True)
    for part in own:
        fresh = tools / f"{part.name}.{os.urandom(4).hex()}"
        fresh.symlink_to(part)
        fresh.replace(tools / part.name)  # another build may be using the one that is there
    return tools


def parts() -> list[Path]:
    """The folders that make up the server's own setuptools, what tells its version last. It blocks."""
    from importlib.metadata import PackageNotFoundError, distribution  # slow to import, and rarely needed

    try:
        setuptools = distribution("setuptools")
    except PackageNotFoundError:
        return []
    if _numbers(setuptools.version) < _FIRST:
        return []
    at = Path(str(setuptools.locate_file("")))
    names = (*_PARTS, f"setuptools-{setuptools.version}.dist-info")
    return [at / name for name in names if (at / name).is_dir()]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])

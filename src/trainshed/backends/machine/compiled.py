"""Compiles small C programs of ours, once, where there is a C compiler; caches them by source and machine.

Backends call it. Such a program exits with 2 when run without arguments, which proves that it runs here. It
never leaves a half-made program behind. An image of the server has no compiler: whoever builds it runs

    python -m trainshed.backends.machine.compiled

which makes all of them beside this file, where servers look first.
"""

import hashlib
import logging
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

_log = logging.getLogger(__name__)
_USAGE = 2
_INCLUDED = re.compile(rb'^#include "([^"]+)"', re.MULTILINE)
PREBUILT = Path(__file__).with_name("prebuilt")  # what was compiled when an image was built
_BACKENDS = Path(__file__).parents[1]


def compiled(
    source: Path, tools: Path, compiler: str = "cc", kinds: Sequence[Sequence[str]] = (("-static",),)
) -> Path | None:
    """The program: prebuilt, from `tools`, or fresh, of the first kind that can be made; else None."""
    name = _name(source)
    for path in (PREBUILT / name, tools / name):
        if _runs(path):
            return path
    path = tools / name
    return path if _compile(source, path, compiler, kinds) and _runs(path) else None


def prebuild(folder: Path = PREBUILT) -> list[str]:
    """Compile all programs of the backends, static, into the folder; the names of those that cannot be."""
    folder.mkdir(exist_ok=True)
    sources = sorted(_BACKENDS.glob("*/*.c"))
    kinds = (("-static", "-s"),)
    return [source.name for source in sources if compiled(source, folder, kinds=kinds) is None]


def _name(source: Path) -> str:
    """By its content: a program of another version or for another machine is never taken for it."""
    made_of = platform.machine().encode() + _whole(source)
    return f"{source.stem}-{hashlib.sha256(made_of).hexdigest()[:16]}"


def _whole(source: Path) -> bytes:
    """The source with all of ours that it includes."""
    text = source.read_bytes()
    return text + b"".join(_whole(source.parent / part.decode()) for part in _INCLUDED.findall(text))


def _runs(path: Path) -> bool:
    if not path.exists():
        return False
    return subprocess.run([path], check=False, capture_output=True).returncode == _USAGE


def _compile(source: Path, path: Path, compiler: str, kinds: Sequence[Sequence[str]]) -> bool:
    program = shutil.which(compiler)
    if program is None:
        return False
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        for extra in kinds:
            done = subprocess.run(
                [program, "-O2", *extra, "-o", draft, source], check=False, capture_output=True, text=True
            )
            if done.returncode == 0:
                draft.rename(path)
                return True
            _log.info("compiling %s with %s failed: %s", source.name, list(extra), done.stderr.strip())
    finally:
        draft.unlink(missing_ok=True)
    return False


if __name__ == "__main__":
    if failures := prebuild():
        sys.exit(f"error: these cannot be compiled: {', '.join(failures)}. Is there a C compiler `cc`?")

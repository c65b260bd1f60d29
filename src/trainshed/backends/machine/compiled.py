"""Compiles small C programs of ours, once, where there is a C compiler; caches them by source and machine.

Backends call it. Such a program exits with 2 when run without arguments, which proves that it runs here. It
never leaves a half-made program behind.
"""

import hashlib
import logging
import os
import platform
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

_log = logging.getLogger(__name__)
_USAGE = 2


def compiled(
    source: Path, tools: Path, compiler: str = "cc", kinds: Sequence[Sequence[str]] = (("-static",),)
) -> Path | None:
    """The program, from `tools` or fresh, of the first kind that can be made; None where none can."""
    text = source.read_bytes()
    name = f"{source.stem}-{hashlib.sha256(platform.machine().encode() + text).hexdigest()[:16]}"
    path = tools / name
    return path if _runs(path) or (_compile(source, path, compiler, kinds) and _runs(path)) else None


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

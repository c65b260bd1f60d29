"""The interpreters of this machine: `python3.X` on PATH, each tried: a name may lead nowhere."""

import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from trainshed.core.supplies.runtime import PLAIN
from trainshed.runtimes.recipe import Interpreter

MINORS = range(8, 20)
_ASK = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"


def own() -> Interpreter:
    return Interpreter(path=sys.executable, version=f"{sys.version_info.major}.{sys.version_info.minor}")


def may_be(image: str) -> bool:
    """Whether the image is a plain interpreter of a version whose name leads somewhere here. A quick look."""
    name, _, version = image.partition(":")
    known = name == PLAIN and version in {f"3.{minor}" for minor in MINORS}
    return known and shutil.which(f"python{version}") is not None


def others() -> dict[str, Interpreter]:
    """Those of other versions than ours that run and can make environments. Blocking: for a thread."""
    names = [f"3.{minor}" for minor in MINORS if minor != sys.version_info.minor]
    paths = [(name, path) for name in names if (path := shutil.which(f"python{name}"))]
    if not paths:
        return {}
    with ThreadPoolExecutor(max_workers=2) as pool:
        answers = pool.map(_version, (path for _, path in paths))
        return {
            name: Interpreter(path=path, version=name)
            for (name, path), answer in zip(paths, answers, strict=True)
            if answer == name
        }


def _version(path: str) -> str:
    try:
        done = subprocess.run(
            [path, "-I", "-c", _ASK], capture_output=True, text=True, timeout=20, check=False, cwd="/"
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()

"""Makes a virtual environment with pip in it, as `python -m venv` does, but in half a second instead of five.

    python3 -I make_environment.py FOLDER [--without-pip]

Build runs it with the interpreter that the environment is for: any from 3.8 on. venv has pip install pip.
Here the wheels that come with the interpreter are unpacked: they hold nothing but packages. Where they are
not found, venv does it in its own way.
"""

import compileall
import ensurepip
import sys
import venv
import zipfile
from pathlib import Path

# What ensurepip installs. Programs of Python 3.11 may count on setuptools.
PARTS = ("pip", "setuptools") if sys.version_info < (3, 12) else ("pip",)


def main(folder: str, *options: str) -> None:
    wants_pip = "--without-pip" not in options
    wheels = _wheels() if wants_pip else ()
    venv.create(folder, symlinks=True, with_pip=wants_pip and not wheels)
    if wheels:
        [packages] = Path(folder).glob("lib/python*/site-packages")
        for wheel in wheels:
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(packages)
        # Every start of the interpreter imports this of setuptools, and jobs may not write here.
        compileall.compile_dir(packages / "_distutils_hack", quiet=2)


def _wheels() -> "tuple[Path, ...]":
    """Those of all parts, or none. A distribution may keep them in a folder of its own."""
    folders = [getattr(ensurepip, "_WHEEL_PKG_DIR", None), Path(ensurepip.__file__).with_name("_bundled")]
    result: list[Path] = []
    for part in PARTS:
        wheels = [path for folder in folders if folder for path in Path(folder).glob(f"{part}-*.whl")]
        result += wheels[:1]
    return tuple(result) if len(result) == len(PARTS) else ()


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Writes this machine's Python, shell and core tools as a tar file: a base image with no network.

    python3 scripts/base_image.py |
        podman import --change 'ENV PATH=/usr/local/bin:/usr/bin:/bin' - localhost/python:3

For tests of containers, and for people without a registry. The interpreter keeps its place, so that what it
was compiled with holds; /usr/local/bin/python3 leads there. What is left out: site-packages, the test
suite of the standard library, and everything that only builds extensions.
"""

import io
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Iterator
from pathlib import Path

TOOLS = """sh bash env cat ls cp mv rm mkdir chmod sleep true false echo id stat head tail dd df sort tr wc
sync touch tty stty hostname uname printenv printf date seq kill ps grep sed"""
EMPTIED = "libdl.so.2 libpthread.so.0 librt.so.1"
LEFT_OUT = """__pycache__ site-packages test tests idlelib lib2to3 ensurepip tkinter turtledemo"""
FILES = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n",
    "etc/group": "root:x:0:\nnogroup:x:65534:\n",
    "etc/nsswitch.conf": "hosts: files dns\n",
}


def main() -> None:
    with tarfile.open(fileobj=sys.stdout.buffer, mode="w|") as tar:
        for name in ("proc", "sys", "dev", "root", "etc", "tmp", "var/tmp", "usr/local/bin"):
            add_folder(tar, name, 0o1777 if name.endswith("tmp") else 0o755)
        for name, text in FILES.items():
            add_text(tar, name, text)
        for link in ("bin", "sbin", "lib"):  # one /usr, as Debian has it
            add_link(tar, link, f"usr/{link}")
        for name, path in sorted({placed(path): path for path in collect()}.items()):
            tar.add(path, arcname=name, recursive=False)
        python = os.path.realpath(sys.executable)
        for name in ("python", "python3"):
            add_link(tar, f"usr/local/bin/{name}", python)


def collect() -> set[str]:
    """Every file of the image: tools, the interpreter, its library, and what they are linked with."""
    tools = [found for name in TOOLS.split() if (found := shutil.which(name, path="/usr/bin:/bin:/usr/sbin"))]
    python, library = os.path.realpath(sys.executable), Path(sysconfig.get_paths()["stdlib"])
    files = {*tools, *map(os.path.realpath, tools), python}  # sh is a link to what it is here
    for folder, folders, names in os.walk(library):
        folders[:] = [one for one in folders if one not in LEFT_OUT.split() and not one.startswith("config-")]
        files |= {f"{folder}/{name}" for name in names if not name.endswith((".a", ".pyc"))}
    linked = [path for path in files if path in {*tools, python} or path.endswith(".so")]
    return files | set(libraries(linked)) | by_name()


def libraries(programs: list[str]) -> Iterator[str]:
    told = subprocess.run(["ldd", *programs], check=False, capture_output=True, text=True).stdout
    for line in told.splitlines():
        words = line.split()
        path = words[2] if len(words) > 2 and words[1] == "=>" else words[0] if words else ""
        if path.startswith("/") and not path.endswith(":"):
            yield path  # by the name it is looked for, whatever that links to
            yield os.path.realpath(path)


def by_name() -> set[str]:
    """What no linker tells of: name services, which are loaded by name, and the shells of libraries that the
    C library has taken in: those of a GPU's driver still ask for them.
    """
    libc = next(path for path in libraries([os.path.realpath(sys.executable)]) if "/libc.so" in path)
    folder = Path(os.path.realpath(libc)).parent
    found = [*folder.glob("libnss_*.so.2"), *(folder / name for name in EMPTIED.split())]
    return {str(path) for path in found if path.exists()}


def placed(path: str) -> str:
    first = path.split("/", 2)[1]
    return f"usr{path}" if first in ("bin", "sbin", "lib") else path.lstrip("/")


def add_folder(tar: tarfile.TarFile, name: str, mode: int) -> None:
    info = tarfile.TarInfo(name)
    info.type, info.mode = tarfile.DIRTYPE, mode
    tar.addfile(info)


def add_link(tar: tarfile.TarFile, name: str, target: str) -> None:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = tarfile.SYMTYPE, target
    tar.addfile(info)


def add_text(tar: tarfile.TarFile, name: str, text: str) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(text), 0o644
    tar.addfile(info, io.BytesIO(text.encode()))


if __name__ == "__main__":
    main()

"""Packages for tests, made here: honest source distributions and wheels, and every kind of hostile one."""

import io
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Mapping

TASK = "import sys, trainer\nprint(trainer.version, *sys.argv[1:], flush=True)\n"
SETUP = """from setuptools import find_packages, setup
setup(name={name!r}, version={version!r}, packages=find_packages(), install_requires={needs!r})
"""


def files(name: str = "trainer", version: str = "0.1", *, task: str = TASK, needs: tuple[str, ...] = ()):
    """What lies in a folder that `python setup.py sdist` is run in: a package with a module `task`."""
    return {
        "setup.py": SETUP.format(name=name, version=version, needs=list(needs)),
        f"{name}/__init__.py": f"version = {version!r}\n",
        f"{name}/task.py": task,
    }


def sdist(content: Mapping[str, str] | None = None, top: str = "trainer-0.1/") -> bytes:
    """A .tar.gz as gcloud, the SDK and setuptools make it."""
    return tar({f"{top}{path}": text for path, text in (content or files()).items()})


def tar(content: Mapping[str, str], *members: tarfile.TarInfo) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for path, text in content.items():
            info = tarfile.TarInfo(path)
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))
        for member in members:
            archive.addfile(member)
    return made.getvalue()


def zipped(content: Mapping[str, str], *modes: tuple[str, int]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, text in content.items():
            archive.writestr(path, text)
        for path, mode in modes:
            info = zipfile.ZipInfo(path)
            info.external_attr = mode << 16
            archive.writestr(info, "/etc/passwd")
    return made.getvalue()


def wheel(
    name: str = "trainer", version: str = "0.1", *, needs: tuple[str, ...] = (), commands: str = ""
) -> bytes:
    info = f"{name}-{version}.dist-info"
    told = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    content = {path: text for path, text in files(name, version).items() if path != "setup.py"}
    content |= {
        f"{info}/METADATA": told + "".join(f"Requires-Dist: {one}\n" for one in needs),
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[console_scripts]\n{commands}\n",
    }
    record = "".join(f"{path},,\n" for path in (*content, f"{info}/RECORD"))
    return zipped({**content, f"{info}/RECORD": record})


def _member(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def _bomb() -> bytes:
    """64 MiB of zeros, told truly, in a few kilobytes."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("t/setup.py", "")
        archive.writestr("t/zeros", bytes(64 << 20))
    return made.getvalue()


def _tar_bomb(size: int) -> bytes:
    """A header that tells of more than follows, as nobody would unpack before believing it."""
    info = tarfile.TarInfo("t/zeros")
    info.size = size
    packer = zlib.compressobj(1, wbits=31)
    return packer.compress(info.tobuf() + bytes(1 << 20)) + packer.flush()


def _endless_header() -> bytes:
    """A header of headers that would have to be read whole into memory: 4 GiB of it, by its own word."""
    info = tarfile.TarInfo("t/pax")
    info.type, info.size = tarfile.XHDTYPE, 4 << 30
    packer = zlib.compressobj(1, wbits=31)
    head = packer.compress(info.tobuf())
    return head + b"".join(packer.compress(bytes(1 << 20)) for _ in range(560)) + packer.flush()


_OK = {"t/setup.py": ""}
HOSTILE: dict[str, tuple[str, Callable[[], bytes], str]] = {
    "a name that climbs": ("t.tar.gz", lambda: tar({**_OK, "t/../../evil": "x"}), "leads outside"),
    "an absolute name": ("t.tar.gz", lambda: tar({**_OK, "/tmp/evil": "x"}), "absolute name"),
    "a symbolic link": (
        "t.tar.gz",
        lambda: tar(_OK, _member("t/l", tarfile.SYMTYPE, "/etc/passwd")),
        "a link",
    ),
    "a hard link": ("t.tar.gz", lambda: tar(_OK, _member("t/l", tarfile.LNKTYPE, "/etc/passwd")), "a link"),
    "a device": ("t.tar.gz", lambda: tar(_OK, _member("t/null", tarfile.CHRTYPE)), "neither a file nor"),
    "a block device": ("t.tar.gz", lambda: tar(_OK, _member("t/sda", tarfile.BLKTYPE)), "neither a file nor"),
    "a pipe": ("t.tar.gz", lambda: tar(_OK, _member("t/pipe", tarfile.FIFOTYPE)), "neither a file nor"),
    "a tar bomb": ("t.tar.gz", lambda: _tar_bomb(1 << 32), "times its size"),
    "a tar larger than any": ("t.tar.gz", lambda: _tar_bomb(1 << 40), "would unpack to more than"),
    "a header without end": ("t.tar.gz", _endless_header, "takes more memory"),
    "no archive at all": ("t.tar.gz", lambda: b"hello", "no whole gzipped tar"),
    "half an archive": ("t.tar.gz", lambda: sdist()[:200], "no whole gzipped tar"),
    "nothing": ("t.tar.gz", lambda: b"", "no whole gzipped tar"),
    "no Python package": ("t.tar.gz", lambda: tar({"t/readme": "x"}), "neither setup.py nor pyproject.toml"),
    "a zip that climbs": ("t.zip", lambda: zipped({**_OK, "../evil": "x"}), "leads outside"),
    "a zip of backslashes": ("t.zip", lambda: zipped({**_OK, "t\\..\\..\\evil": "x"}), "leads outside"),
    "a zip of absolute names": ("t.zip", lambda: zipped({**_OK, "/tmp/evil": "x"}), "absolute name"),
    "a drive": ("t.zip", lambda: zipped({**_OK, "C:/evil": "x"}), "absolute name"),
    "a zipped link": ("t.zip", lambda: zipped(_OK, ("t/l", stat.S_IFLNK | 0o777)), "a link"),
    "a zipped device": ("t.zip", lambda: zipped(_OK, ("t/d", stat.S_IFCHR | 0o666)), "neither a file nor"),
    "a zip bomb": ("t.zip", _bomb, "times its size"),
    "a tar by the name of a zip": ("t.zip", sdist, "no whole zip"),
    "half a zip": ("t.zip", lambda: zipped(files())[:100], "no whole zip"),
    "a wheel that is none": ("t-1-py3-none-any.whl", lambda: zipped(_OK), "no wheel"),
    "a wheel that climbs": ("t-1-py3-none-any.whl", lambda: zipped({"../t.py": ""}), "leads outside"),
    "a command that climbs": (
        "t-1-py3-none-any.whl",
        lambda: wheel(commands="../../evil = t:m"),
        "a command named",
    ),
}

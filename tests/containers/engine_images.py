"""The base image of tests: made once for each checkout, in .images, a store that engines only read."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from tests.containers.engine_guard import unmount
from tests.live import PATIENCE

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / ".images"
BASE = "localhost/python:3"  # this machine's Python, shell and core tools: scripts/base_image.py


def base_store() -> Path:
    """The folder of the read-only store with the base image, made where it is not there yet."""
    script = ROOT / "scripts" / "base_image.py"
    made_of = script.read_bytes() + f"{sys.version}{os.path.realpath(sys.executable)}".encode()
    made_of += sysconfig.get_platform().encode()
    store = IMAGES / hashlib.sha256(made_of).hexdigest()[:12]
    if store.exists():
        return store
    IMAGES.mkdir(exist_ok=True)
    with (IMAGES / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not store.exists():
            make_store(store, script)
    return store


def make_store(store: Path, script: Path) -> None:
    part = store.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="pod-", dir=on_disk(), ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / "containers.conf").write_text(f'[engine]\ntmp_dir = "{folder}/state"\nlock_type = "file"\n')
        env = os.environ | {"CONTAINERS_CONF": f"{folder}/containers.conf"}
        places = ["--root", str(part), "--runroot", f"{folder}/run", "--storage-driver", "overlay"]
        change = ["--change", "ENV PATH=/usr/local/bin:/usr/bin:/bin"]
        with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE) as tar:
            done = subprocess.run(
                ["podman", *places, "import", *change, "-", BASE],
                env=env,
                stdin=tar.stdout,
                capture_output=True,
                text=True,
                check=False,
                timeout=5 * PATIENCE,
            )
        unmount(folder)
    unmount(part)
    assert done.returncode == 0 and tar.returncode == 0, f"no base image could be made: {done.stderr}"
    part.rename(store)


def on_disk() -> str:
    """A folder for temporary files that is not kept in memory."""
    kinds = {words[1]: words[2] for words in map(str.split, Path("/proc/mounts").read_text().splitlines())}
    place = tempfile.gettempdir()
    return "/var/tmp" if kinds.get(place) == "tmpfs" else place

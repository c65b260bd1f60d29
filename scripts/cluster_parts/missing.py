"""What keeps this machine from running or building a cluster, in one sentence that tests can skip with.

It tries what the cluster will do instead of guessing from the machine's kind. It leaves nothing behind.
"""

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

from scripts.cluster_parts import packages
from scripts.cluster_parts.groups import trees
from scripts.cluster_parts.place import ARCHITECTURES, Programs

TO_RUN = {
    "ip": "iproute2",
    "nsenter": "util-linux",
    "unshare": "util-linux",
    "mount": "mount",
    "openssl": "openssl",
}
TO_BUILD = {
    "apt-get": "apt",
    "dpkg-deb": "dpkg",
    "dpkg-source": "dpkg-dev",
    "gcc": "gcc libc6-dev",
    "make": "make",
    "bash": "bash",
}
PLACES = "/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin"


def to_run(programs: Programs) -> str | None:
    """None where a cluster can be started."""
    if reason := _machine() or _programs(TO_RUN) or _namespaces() or _groups():
        return reason
    if not programs.folder.is_dir():
        return f"no Kubernetes in {programs.folder}; `make cluster` builds it, once, in about ten minutes"
    return None


def to_remove() -> str | None:
    """None where whatever was started can be removed."""
    return _machine() or (None if os.getuid() == 0 else "a cluster is root's: only root can remove it")


def to_build() -> str | None:
    """None where Kubernetes can be built, as far as can be told without the network."""
    return _machine() or _programs(TO_BUILD) or packages.why_not()


def _machine() -> str | None:
    if sys.platform != "linux" or platform.machine() not in ARCHITECTURES:
        return f"a cluster needs Linux on {' or '.join(ARCHITECTURES)}, and this is {platform.platform()}"
    return None


def _programs(wanted: dict[str, str]) -> str | None:
    path = f"{os.environ.get('PATH', '')}:{PLACES}"
    lacking = [name for name in wanted if shutil.which(name, path=path) is None]
    packages = " ".join(dict.fromkeys(wanted[name] for name in lacking))
    return f"not here: {', '.join(lacking)} (Debian: apt install {packages})" if lacking else None


def _namespaces() -> str | None:
    if os.getuid() != 0:
        return "a cluster needs root: it makes network namespaces, mounts and control groups"
    words = [
        "unshare",
        "--net",
        "--mount",
        "--pid",
        "--fork",
        "--mount-proc",
        "ip",
        "link",
        "add",
        "probe",
        "type",
    ]
    for kind in (["bridge"], ["veth", "peer", "name", "probe2"]):
        done = subprocess.run([*words, *kind], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return f"no namespace with a {kind[0]} can be made here: {done.stderr.strip()}"
    return None


def _groups() -> str | None:
    roots = trees()
    lacking = [name for name in ("memory", "cpu", "pids") if not any(_has(root, name) for root in roots)]
    if lacking:
        return f"no control groups for {', '.join(lacking)} are mounted below /sys/fs/cgroup"
    closed = [str(root) for root in roots if not os.access(root, os.W_OK)]
    return f"control groups cannot be made in {closed[0]}" if closed else None


def _has(root: Path, controller: str) -> bool:
    unified = root / "cgroup.controllers"
    if unified.exists():
        return controller in unified.read_text().split()
    return controller in root.name.split(",")

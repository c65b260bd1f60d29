"""The first process of a node, in network, mount, process and other namespaces of its own.

It takes the machine's mounts out of sight, gives the node a /run and a /var of its own, and starts
containerd, the kubelet and the proxy again whenever one ends, as an init system does. It ends with kill
-9, and all of the node with it.
"""

import json
import os
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

# Kubelets write these, and they are the whole machine's: in the node they are files with the wanted values.
SHARED_SETTINGS = {"vm/overcommit_memory": "1", "kernel/panic": "10", "kernel/panic_on_oops": "1"}
KEPT = ("/proc", "/sys", "/dev")
HIDDEN = ("/run", "/var")


def be_node(file: Path) -> None:
    node = json.loads(file.read_text())
    separate(node["folder"], node["seen"])
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    programs = {name: node[name] for name in ("containerd", "kubelet", "proxy")}
    pids = {_start(node, "containerd", programs): "containerd"}
    _wait_for(lambda: _connect(socket.AF_UNIX, node["socket"]))
    _import_pause(node)
    _wait_for(lambda: _connect(socket.AF_INET, tuple(node["api"])))
    for name in ("kubelet", "proxy"):
        pids[_start(node, name, programs)] = name
    while True:
        pid, status = os.wait()
        if name := pids.pop(pid, None):
            print(f"{node['name']}: {name} ended with {os.waitstatus_to_exitcode(status)}", flush=True)
            time.sleep(1)
            pids[_start(node, name, programs)] = name


def separate(folder: str, seen: list[str]) -> None:
    """The mounts of this process are copies of the machine's, and no change travels between them.

    A copy keeps what is mounted busy, also after its owner has unmounted it. So what nobody needs here goes.
    """
    table = Path("/proc/self/mountinfo").read_text().splitlines()
    places = [row.split()[4].encode().decode("unicode_escape") for row in table]
    for place in sorted(places, key=len, reverse=True):
        if place != "/" and not _below(place, KEPT) and not any(_below(path, (place,)) for path in seen):
            subprocess.run(["umount", "--lazy", place], check=False, capture_output=True)
    handles = {path: os.open(path, os.O_PATH) for path in seen if _below(path, HIDDEN)}
    own = os.open(f"{folder}/var", os.O_PATH)
    _mount("--types", "tmpfs", "--options", "mode=755", "tmpfs", "/run")
    _bind(own, "/var")
    for path, handle in handles.items():
        Path(path).mkdir(parents=True, exist_ok=True)
        _bind(handle, path)
    for name in ("lib", "log", "tmp", "lib/kubelet"):
        Path("/var", name).mkdir(exist_ok=True)
    if not Path("/var/run").is_symlink():
        Path("/var/run").symlink_to("/run")
    for name, value in SHARED_SETTINGS.items():
        copy = Path("/run", name.replace("/", "."))
        copy.write_text(f"{value}\n")
        _mount("--bind", str(copy), f"/proc/sys/{name}")
    _mount("--make-rshared", "/")


def _below(path: str, tops: tuple[str, ...]) -> bool:
    return any(path == top or path.startswith(f"{top}/") for top in tops)


def _mount(*words: str) -> None:
    subprocess.run(["mount", *words], check=True)


def _bind(handle: int, path: str) -> None:
    """Of a folder that is open: its own path may be hidden by now, so nobody may look for it there."""
    words = ["mount", "--no-canonicalize", "--bind", f"/proc/self/fd/{handle}", path]
    subprocess.run(words, check=True, pass_fds=(handle,))


def _start(node: Any, name: str, programs: dict[str, list[str]]) -> int:
    with Path(node["logs"], f"{node['name']}-{name}.log").open("ab") as log:
        return subprocess.Popen(programs[name], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/").pid


def _import_pause(node: Any) -> None:
    name, archive = node["pause"]
    ctr = ["ctr", "--namespace=k8s.io", "images"]
    listed = subprocess.run([*ctr, "list", "--quiet"], capture_output=True, text=True, check=True).stdout
    if name not in listed.split():
        subprocess.run([*ctr, "import", archive], check=True)


def _connect(family: int, address: Any) -> bool:
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.settimeout(1)
        try:
            probe.connect(address)
        except OSError:
            return False
        return True


def _wait_for(answers: Any) -> None:
    """For ever: whoever started the node gives up where it takes too long."""
    while not answers():
        time.sleep(0.05)

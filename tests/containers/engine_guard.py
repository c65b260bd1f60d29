"""Ends an engine of tests, however their run ends: `python -m tests.containers.engine_guard FOLDER SLOT`.

It waits on its standard input, which whoever started it holds, and then leaves nothing of the engine in that
folder: no container, mount, network or file. It may assume that everything the engine started either bears
the folder's path or has its root in it.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.live import PATIENCE, bearing

NAMESPACES = Path("/run/netns")


def main(folder: Path, slot: int) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    while sys.stdin.buffer.read(1):
        pass
    env = os.environ | {
        "CONTAINERS_CONF": f"{folder}/containers.conf",
        "CONTAINERS_STORAGE_CONF": f"{folder}/storage.conf",
    }
    for words in (["rm", "--all", "--force", "--time", "0"], ["network", "prune", "--force"]):
        with contextlib.suppress(subprocess.TimeoutExpired, OSError):
            subprocess.run(["podman", *words], env=env, capture_output=True, check=False, timeout=PATIENCE)
    end_all(lambda: {*bearing(folder), *boxed(folder)}, folder)
    forget_networks(slot)
    shutil.rmtree(folder, ignore_errors=True)


def end_all(find: Callable[[], set[int]], folder: Path) -> None:
    """Kill all that is found until nothing is, and unmount everything below the folder."""
    deadline = time.monotonic() + PATIENCE
    while left := find():
        for pid in sorted(left):  # older ones first: nobody lives to tell how its child ended
            forget_namespace(pid)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        assert time.monotonic() < deadline, f"processes {left} of {folder} cannot be ended"
        time.sleep(0.05)
    forget_boxes(folder)
    unmount(folder)


def engine_made(folder: Path) -> set[int]:
    """What the engine started: containers, and the programs that watch over them."""
    return {*(pid for pid in bearing(folder) if called(pid) in ("conmon", "podman", "runc")), *boxed(folder)}


def called(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def boxed(folder: Path) -> Iterator[int]:
    """The processes inside containers: they bear nothing of the engine, but their root lies in it."""
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            table = Path(f"/proc/{entry}/mountinfo").read_text()
            root = next((line for line in table.splitlines() if line.split()[4] == "/"), "")
            if f"upperdir={folder}/" in root:
                yield int(entry)


# ---- what outlives them


def groups_of(container: str) -> list[Path]:
    """Its control groups, and those of what watches over it; in one tree or in one for each controller."""
    top = Path("/sys/fs/cgroup")
    return [
        group
        for parent in ("libpod_parent", "*/libpod_parent")
        for group in top.glob(f"{parent}/libpod*{container}")
    ]


def forget_boxes(folder: Path) -> None:
    """What the runtime keeps of dead containers, and their groups in the kernel."""
    for box in folder.glob("graph/overlay-containers/*/userdata"):
        _said("runc", "delete", "--force", box.parent.name)
        for group in groups_of(box.parent.name):
            with contextlib.suppress(OSError):
                group.rmdir()


def mounted(folder: Path) -> list[str]:
    """What is mounted below the folder, the deepest first."""
    places = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    return sorted((one for one in places if one.startswith(f"{folder}/")), key=len, reverse=True)


def unmount(folder: Path) -> None:
    for place in mounted(folder):
        subprocess.run(["umount", "--lazy", place], check=False, capture_output=True)


def forget_namespace(pid: int) -> None:
    """Engines keep the network of a container by its name: that would outlive the container."""
    with contextlib.suppress(OSError):
        own = os.stat(f"/proc/{pid}/ns/net").st_ino
        if own == os.stat("/proc/self/ns/net").st_ino:
            return
        for name in NAMESPACES.iterdir():
            if name.stat().st_ino == own:
                subprocess.run(["umount", "--lazy", str(name)], check=False, capture_output=True)
                name.unlink()


def delete_bridges(byte: int) -> str:
    """Those with an address in 10.BYTE.0.0/16. How the text of a command shows an address of theirs."""
    ours = f" 10.{byte}."
    for line in _said("ip", "-o", "-4", "address").splitlines():
        if ours in line:
            _said("ip", "link", "delete", line.split()[1])
    return ours


def forget_networks(slot: int) -> None:
    """Bridges and packet rules of containers that were not ended by their engine."""
    ours = delete_bridges(second_byte(slot))
    for table in ("nat", "filter"):
        rules = _iptables(table, "-S").splitlines()
        mine = [rule for rule in rules if ours in rule]
        for rule in mine:
            _iptables(table, "-D", *rule.replace('"', "").split()[1:])
        chains = {word for rule in mine for word in rule.split() if word.startswith("NETAVARK-")}
        for chain in chains - {"NETAVARK-HOSTPORT-MASQ", "NETAVARK-HOSTPORT-DNAT"}:
            _iptables(table, "-F", chain)
            _iptables(table, "-X", chain)


def _iptables(table: str, *words: str) -> str:
    return _said("iptables", "-w", "-t", table, *words)


def _said(*words: str) -> str:
    with contextlib.suppress(FileNotFoundError):  # without it there can be nothing to remove
        return subprocess.run(words, capture_output=True, text=True, check=False, timeout=PATIENCE).stdout
    return ""


def second_byte(slot: int) -> int:
    """Of the addresses that belong to the engine with this number."""
    return 211 + slot


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))

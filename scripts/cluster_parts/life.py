"""The life of a cluster: up, down, and what is asked in between. One command at a time for each folder.

`up` leaves a cluster that is ready for pods, or none. `down` needs no record of what `up` did: it finds
processes by their environment, the network by the alias of its link, and groups and namespaces by their
names. So it also removes what is left of an `up` that was killed.
"""

import contextlib
import fcntl
import json
import shutil
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from scripts.cluster_parts import certificates, control_plane, groups, names, network, node
from scripts.cluster_parts.api import Api
from scripts.cluster_parts.image import BASE
from scripts.cluster_parts.place import Addresses, Place, Programs
from scripts.cluster_parts.processes import end, running

PATIENCE = 180.0  # seconds that anything may take on a busy machine
RECORD = "cluster.json"


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Alone with the folder. The lock lies beside it, because `down` removes the folder."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def write_record(place: Place, whole: bool) -> None:
    """Whole: `up` came to its end with it."""
    settings = {
        "whole": whole,
        "slot": place.addresses.slot,
        "nodes": place.nodes,
        "programs": str(place.programs.folder),
    }
    settings |= {"node_grace": place.node_grace, "eviction": place.eviction}
    part = place.folder / f"{RECORD}.part"
    part.write_text(json.dumps(settings))
    part.rename(place.folder / RECORD)


def _record(folder: Path) -> dict[str, Any]:
    try:
        return json.loads((folder / RECORD).read_text())
    except FileNotFoundError:
        return {}


def find(folder: Path) -> Place | None:
    """The cluster that was started in this folder."""
    settings = _record(folder)
    if not settings:
        return None
    return Place(
        folder=folder,
        programs=Programs(Path(settings["programs"])),
        addresses=Addresses(settings["slot"]),
        nodes=settings["nodes"],
        node_grace=settings["node_grace"],
        eviction=settings["eviction"],
    )


def admin(place: Place) -> Api:
    return Api(place.addresses.api, place.certificates)


def is_ready(place: Place) -> bool:
    try:
        return admin(place).get("/readyz", timeout=5).ok and _nodes_ready(place)
    except OSError:
        return False


# ---- up


def up(folder: Path, programs: Programs, nodes: int, node_grace: int | None, eviction: int | None) -> Place:
    """Of a cluster that is there already, only what does not run is started: somebody may be using it."""
    place = find(folder)
    if place is not None and _record(folder).get("whole") and running(folder, "etcd"):
        for number in place.numbers():
            network.join(place, number)
        _start(place)
        return place
    down(folder)
    folder.mkdir(parents=True, mode=0o700)
    place = Place(folder, programs, network.claim(folder), nodes, node_grace, eviction)
    write_record(place, whole=False)
    try:
        certificates.make(place)
        network.make(place)
        for number in place.numbers():
            node.write_files(place, number)
        _start(place)
    except BaseException:
        stop(folder)  # the logs stay
        raise
    write_record(place, whole=True)
    return place


def _start(place: Place) -> None:
    begun, parts = time.monotonic(), {}
    present = set(running(place.folder).values())

    def start(part: str, begin: Callable[[], "subprocess.Popen[bytes] | None"]) -> None:
        if part not in present and (process := begin()) is not None:
            parts[part] = process

    def wait(what: str, happens: Callable[[], bool]) -> None:
        _wait(place, parts, what, happens)
        print(f"cluster: {what} after {time.monotonic() - begun:.1f} s", flush=True)

    api = admin(place)
    start("etcd", lambda: control_plane.etcd(place))
    start("apiserver", lambda: control_plane.apiserver(place))
    for number in place.numbers():
        start(node.name_of(number), partial(node.switch_on, place, number))
    wait("the API server answers", lambda: api.get("/readyz", timeout=5).ok)
    start("controller-manager", lambda: control_plane.controller_manager(place))
    start("scheduler", lambda: control_plane.scheduler(place))
    start("names", lambda: control_plane.names(place))
    start("registry", lambda: control_plane.registry(place))
    wait("all nodes are ready", lambda: _nodes_ready(place))
    wait("pods are accepted", lambda: _accepts_pods(api))
    wait("names resolve", lambda: _resolves(place))


def _wait(
    place: Place, parts: dict[str, "subprocess.Popen[bytes]"], what: str, happens: Callable[[], bool]
) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        with contextlib.suppress(OSError):
            if happens():
                return
        ended = [part for part, process in parts.items() if process.poll() is not None]
        if ended or time.monotonic() > deadline:
            part = ended[0] if ended else "apiserver"
            why = f"{part} ended" if ended else f"not within {PATIENCE:.0f} s: {what}"
            last = place.log(part).read_text(errors="replace").splitlines()[-15:]
            raise SystemExit("\n".join([f"cluster: {why}; logs are in {place.folder}/logs", *last]))
        time.sleep(0.1)


def _nodes_ready(place: Place) -> bool:
    ready = [row for row in _nodes(admin(place)) if condition(row) == "True"]
    return len(ready) == place.nodes


def _nodes(api: Api) -> list[Any]:
    answer = api.get("/api/v1/nodes", timeout=10)
    return answer.body["items"] if answer.ok else []


def condition(row: Any, kind: str = "Ready") -> str:
    conditions = row.get("status", {}).get("conditions") or []
    return next((one["status"] for one in conditions if one["type"] == kind), "Unknown")


def _accepts_pods(api: Api) -> bool:
    """Pods are refused before their account has a token, and wait before the nodes have lost their taints."""
    account = api.get("/api/v1/namespaces/default/serviceaccounts/default")
    has_token = account.ok and bool(account.body.get("secrets"))
    return has_token and not any(row["spec"].get("taints") for row in _nodes(api))


def _resolves(place: Place) -> bool:
    labels = ["kubernetes", "default", *names.ZONE]
    name = b"".join(bytes([len(label)]) + label.encode() for label in labels) + b"\0"
    query = struct.pack(">HHHHHH", 1, 0x0100, 1, 0, 0, 0) + name + struct.pack(">HH", 1, 1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.settimeout(1)
        asking.sendto(query, (place.addresses.control, 53))
        return socket.inet_aton(place.addresses.first_service) in asking.recv(512)


# ---- down


def stop(folder: Path) -> None:
    """Leaves the files and nothing else."""
    end(folder)
    for addresses in network.claimed(folder):
        groups.remove(addresses)
    network.remove(folder)


def down(folder: Path) -> None:
    stop(folder)
    for line in reversed(Path("/proc/mounts").read_text().splitlines()):
        if line.split()[1].startswith(f"{folder}/"):
            network.run("umount", "--lazy", line.split()[1])
    if folder.exists():
        shutil.rmtree(folder)


def load(place: Place, archive: Path) -> None:
    for number in place.numbers():
        node.load(place, number, archive)


def report(place: Place) -> str:
    """What `up` and `status` print."""
    lines = [f"KUBECONFIG={place.kubeconfig}", f"kubectl: {place.programs.path('kubectl')}"]
    if running(place.folder, "registry"):
        lines.append(f"registry: {place.addresses.registry} (http)")
    lines.append(f"pods reach this machine at {place.addresses.machine}; image after `load`: {BASE}")
    return "\n".join(lines)


def states(place: Place) -> Iterator[str]:
    """One line for each part and node."""
    parts = sorted(set(running(place.folder).values()))
    yield f"runs: {', '.join(parts)}"
    try:
        rows = _nodes(admin(place))
    except OSError as reason:
        yield f"the API server does not answer: {reason}"
        rows = []
    for row in rows:
        name = row["metadata"]["name"]
        number = int(name.removeprefix("node"))
        power = "on" if name in parts else "off"
        cable = "cut" if network.is_cut(place, number) else "joined"
        yield f"{name}: {power}, {cable}, Ready={condition(row)}"

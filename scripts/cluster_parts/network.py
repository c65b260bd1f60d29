"""The network of a cluster: one namespace for each node and one for the control plane, wired by a bridge in
the latter.

On the machine itself there is one end of a virtual cable and its routes. That end bears the folder of its
cluster as its alias: it is made first and removed last, so whoever has it has the slot, with all names and
addresses of that slot.
"""

import ipaddress
import json
import os
import subprocess
from pathlib import Path

from scripts.cluster_parts.place import SLOTS, Addresses, Place

BRIDGE = "lan"


def run(*words: str, check: bool = True) -> str:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if check and done.returncode != 0:
        raise SystemExit(f"cluster: {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


def _succeeds(*words: str) -> bool:
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


def claim(folder: Path) -> Addresses:
    """A slot that no other cluster has and whose addresses lead nowhere on this machine yet."""
    draft = f"tshed-{os.getpid()}"
    run("ip", "link", "add", draft, "type", "veth", "peer", "name", f"{draft}p")
    run("ip", "link", "set", draft, "alias", alias(folder))
    for slot in range(SLOTS):
        addresses = Addresses(slot)
        # Two links cannot have the same name: the kernel decides who has the slot.
        if not _in_use(addresses) and _succeeds("ip", "link", "set", draft, "name", addresses.link):
            run("ip", "link", "set", f"{draft}p", "name", f"{addresses.link}p")
            return addresses
    run("ip", "link", "delete", draft)
    raise SystemExit(f"cluster: all {SLOTS} ranges of addresses are in use (10.100.0.0 to 10.149.255.255)")


def _links(folder: Path) -> list[str]:
    links = json.loads(run("ip", "-json", "link", "show") or "[]")
    return [link["ifname"] for link in links if link.get("ifalias") == alias(folder)]


def claimed(folder: Path) -> list[Addresses]:
    """The slots that the cluster in this folder has."""
    names = _links(folder)
    return [addresses for addresses in map(Addresses, range(SLOTS)) if addresses.link in names]


def alias(folder: Path) -> str:
    return f"trainshed cluster {str(folder)[-200:]}"  # the kernel keeps 255 characters


def _in_use(addresses: Addresses) -> bool:
    wanted = [ipaddress.ip_network(text) for text in addresses.ranges()]
    routes = [row["dst"] for row in json.loads(run("ip", "-json", "-4", "route", "show") or "[]")]
    taken = [ipaddress.ip_network(text) for text in routes if text != "default"]
    return any(one.overlaps(other) for one in wanted for other in taken)


def make(place: Place) -> None:
    """The control plane's namespace with the bridge, the machine's cable into it, and the nodes."""
    addresses, own = place.addresses, place.addresses.namespace
    run("ip", "netns", "add", own)
    run("ip", "link", "set", f"{addresses.link}p", "netns", own)
    inside = ["ip", "-n", own]
    run(*inside, "link", "add", BRIDGE, "type", "bridge")
    run(*inside, "link", "set", f"{addresses.link}p", "name", "machine")
    run(*inside, "link", "set", "machine", "master", BRIDGE, "up")
    run(*inside, "addr", "add", f"{addresses.control}/24", "dev", BRIDGE)
    run(*inside, "link", "set", BRIDGE, "up")
    run(*inside, "link", "set", "lo", "up")
    run(*inside, "route", "add", "unreachable", "default")
    run("ip", "addr", "add", f"{addresses.machine}/24", "dev", addresses.link)
    run("ip", "link", "set", addresses.link, "up")
    for number in place.numbers():
        make_node(place, number)
    # Services are reached through the first node, by its rules for packets.
    run("ip", "route", "add", addresses.services, "via", addresses.node(1), "dev", addresses.link)


def make_node(place: Place, number: int) -> None:
    addresses = place.addresses
    namespace, control = addresses.node_namespace(number), addresses.namespace
    run("ip", "netns", "add", namespace)
    cable = ["type", "veth", "peer", "name", "eth0", "netns", namespace]
    run("ip", "-n", control, "link", "add", f"node{number}", *cable)
    run("ip", "-n", control, "link", "set", f"node{number}", "master", BRIDGE, "up")
    inside = ["ip", "-n", namespace]
    run(*inside, "addr", "add", f"{addresses.node(number)}/24", "dev", "eth0")
    run(*inside, "link", "set", "eth0", "up")
    run(*inside, "link", "set", "lo", "up")
    # Kubelets look for the servers of clouds: with no way out they find at once that there are none.
    run(*inside, "route", "add", "unreachable", "default")
    pods, gateway = addresses.pods_of(number), addresses.node(number)
    for other in place.numbers():
        if other != number:
            path = ["via", addresses.node(other), "dev", "eth0"]
            run(*inside, "route", "add", addresses.pods_of(other), *path)
    run("ip", "-n", control, "route", "add", pods, "via", gateway, "dev", BRIDGE)
    run("ip", "route", "add", pods, "via", gateway, "dev", addresses.link)


def cut(place: Place, number: int) -> None:
    """The node's cable is pulled: it has its link and its addresses, and no packet arrives anywhere."""
    run("ip", "-n", place.addresses.namespace, "link", "set", f"node{number}", "nomaster")


def join(place: Place, number: int) -> None:
    run("ip", "-n", place.addresses.namespace, "link", "set", f"node{number}", "master", BRIDGE)


def is_cut(place: Place, number: int) -> bool:
    shown = run("ip", "-json", "-n", place.addresses.namespace, "link", "show", f"node{number}", check=False)
    return not any("master" in row for row in json.loads(shown or "[]"))


def remove(folder: Path) -> None:
    """All of it; the machine's end last."""
    for addresses in claimed(folder):
        names = [path.name for path in Path("/run/netns").glob(f"{addresses.namespace}-node*")]
        for name in [*names, addresses.namespace]:
            if Path("/run/netns", name).exists():
                run("ip", "netns", "delete", name)
    for link in _links(folder):
        run("ip", "link", "delete", link, check=False)  # the kernel may have been faster

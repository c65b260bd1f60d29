"""Where a cluster keeps its files, where its programs lie, and which addresses it has.

All other parts take these values and make up no path or address of their own. Nothing here changes the
machine.
"""

import os
import platform
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VERSION = "1.20.2"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}  # as Debian and Go call them
SLOTS = 10  # clusters at once on one machine
MOST_NODES = 9
# In the environment of each process of a cluster: the folder of that cluster, and the part of it.
OWNER = "TRAINSHED_PROCESS_OF_CLUSTER"
PART = "TRAINSHED_PART_OF_CLUSTER"


def architecture() -> str:
    return ARCHITECTURES.get(platform.machine(), platform.machine())


def state_folder() -> Path:
    return Path(os.environ.get("TRAINSHED_CLUSTER_FOLDER") or ROOT / ".cluster").absolute()


def cache_folder() -> Path:
    if chosen := os.environ.get("TRAINSHED_KUBERNETES_CACHE"):
        return Path(chosen).absolute()
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return caches / "trainshed" / f"kubernetes-{VERSION}-{architecture()}"


@dataclass(frozen=True, slots=True)
class Programs:
    """The folder that `scripts/cluster build` makes: bin is compiled, tools are unpacked packages."""

    folder: Path

    def path(self, name: str) -> str:
        return str(self.folder / "bin" / name)

    @property
    def plugins(self) -> Path:
        return self.folder / "tools" / "usr" / "lib" / "cni"

    @property
    def pause_image(self) -> Path:
        return self.folder / "pause.tar"

    def environment(self) -> dict[str, str]:
        """What a process needs to find these programs and their libraries before those of the machine."""
        tools = self.folder / "tools"
        places = [self.folder / "bin", *(tools / name for name in ("usr/bin", "usr/sbin", "bin", "sbin"))]
        system = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"]
        libraries = [*tools.glob("usr/lib/*-linux-gnu"), *tools.glob("lib/*-linux-gnu")]
        found = {
            "PATH": ":".join([*map(str, places), *system]),
            "LD_LIBRARY_PATH": ":".join(map(str, libraries)),
            "HOME": "/root",
            "ETCD_UNSUPPORTED_ARCH": architecture(),  # etcd 3.4 wants to be asked on anything but amd64
        }
        extensions = [str(place) for place in tools.glob("usr/lib/*-linux-gnu/xtables")]
        return found | ({"XTABLES_LIBDIR": extensions[0]} if extensions else {})


@dataclass(frozen=True, slots=True)
class Addresses:
    """Names and addresses of one cluster. No two clusters of a machine have the same slot."""

    slot: int

    @property
    def link(self) -> str:
        """The machine's own end of the cluster's network."""
        return f"tshed{self.slot}"

    @property
    def namespace(self) -> str:
        """The network namespace of the control plane; the nodes are wired together in it."""
        return f"tshed{self.slot}"

    @property
    def group(self) -> str:
        return f"tshed-cluster-{self.slot}"

    @property
    def machine(self) -> str:
        return f"10.{140 + self.slot}.0.1"

    @property
    def control(self) -> str:
        return f"10.{140 + self.slot}.0.2"

    @property
    def services(self) -> str:
        return f"10.{120 + self.slot}.0.0/16"

    @property
    def first_service(self) -> str:
        """Kubernetes gives it to its own API."""
        return f"10.{120 + self.slot}.0.1"

    @property
    def pods(self) -> str:
        return f"10.{100 + self.slot}.0.0/16"

    @property
    def registry(self) -> str:
        return f"{self.control}:5000"

    @property
    def machine_registry(self) -> str:
        """Where a registry of a test may listen, from which pods take images too."""
        return f"{self.machine}:5001"

    @property
    def api(self) -> str:
        return f"https://{self.control}:6443"

    def ranges(self) -> list[str]:
        return [f"10.{140 + self.slot}.0.0/24", self.services, self.pods]

    def node_namespace(self, number: int) -> str:
        return f"tshed{self.slot}-node{number}"

    def node(self, number: int) -> str:
        return f"10.{140 + self.slot}.0.{10 + number}"

    def pods_of(self, number: int) -> str:
        return f"10.{100 + self.slot}.{number}.0/24"


@dataclass(frozen=True, slots=True)
class Place:
    """One cluster: its folder, programs and addresses, its nodes, and how it treats lost ones."""

    folder: Path
    programs: Programs
    addresses: Addresses
    nodes: int
    node_grace: int | None = None  # seconds; None leaves it to Kubernetes
    eviction: int | None = None

    @property
    def certificates(self) -> Path:
        return self.folder / "certificates"

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "kubeconfig"

    def numbers(self) -> range:
        return range(1, self.nodes + 1)

    def of_node(self, number: int) -> Path:
        return self.folder / f"node{number}"

    def log(self, part: str) -> Path:
        return self.folder / "logs" / f"{part}.log"

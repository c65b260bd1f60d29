"""A Launch as the body by which an engine makes its container. Pure.

It may assume that names are safe (the backend checks). It never looks at the machine or the engine: what it
needs of them comes in a Frame. Nothing a job says can make a container privileged, share a namespace of the
host's or see the engine's socket: no field of a Launch leads there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from trainshed.backends.container.specgen import CDI
from trainshed.core.image import ImageConfig
from trainshed.core.launch import Launch
from trainshed.core.limits import memory_limit
from trainshed.core.names import RunKey

INSIDE = "/.trainshed"
LABEL = "trainshed"
_DROPPED = ("AUDIT_WRITE", "MKNOD", "NET_RAW", "SETFCAP")
PYTHON = "python3"  # the image's interpreter; the init finds one that has the other name too
_PERIOD = 100_000  # microseconds
PIDS = 4096  # and more for many CPUs: a program has threads for each
PIDS_PER_CPU = 1024
_WEIGHT = 1024  # of one CPU, as engines count
_LEAST_WEIGHT, _MOST_WEIGHT = 2, 262_144


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    source: str
    target: str
    read_only: bool = False
    options: Mapping[str, object] = field(default_factory=dict[str, object])  # further fields of the engine's


@dataclass(frozen=True, slots=True, kw_only=True)
class RunMounts:
    """What a container is given beside its image: folders, variables, where it starts."""

    mounts: tuple[Mount, ...] = ()
    binds: tuple[str, ...] = ()  # as the engine writes them, where a Mount cannot say it
    env: Mapping[str, str] = field(default_factory=dict[str, str])  # weaker than the job's own
    workdir: str = ""  # the image's where empty
    command: tuple[str, ...] = ()  # before the arguments, where the job has no command of its own
    hatches: tuple[int, ...] = ()  # ports of its loopback that lead to this machine's
    hosts: Mapping[str, str] = field(default_factory=dict[str, str])  # further addresses by name
    quota: int = 0  # bytes of its own file system, where the engine can hold it to them
    note: str = ""  # a sentence on how it was started


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerFrame:
    """What rendering needs to know of the backend."""

    home: str  # its id: by this label its containers are known
    init: str
    record: str
    podman: bool
    network: str
    address: str = ""  # the replica's own; the engine's choice where empty
    hosts: Mapping[str, str] = field(default_factory=dict[str, str])  # address by name
    parent: str = ""  # the cgroup that holds all of its job to what they share; none where empty


def container_name(home: str, key: RunKey) -> str:
    return f"{LABEL}-{home}-{key}"


def render(
    launch: Launch, image: ImageConfig, frame: ContainerFrame, furnishing: RunMounts
) -> dict[str, object]:
    key, place = launch.key, launch.placement
    endpoint = {"IPAMConfig": {"IPv4Address": frame.address}} if frame.address else {}
    body: dict[str, object] = {
        "Image": image.id,
        "Entrypoint": [f"{INSIDE}/init", *(("--hold",) if launch.held else ()), *_hatches(furnishing)],
        "Cmd": list(words(launch, image, furnishing)),
        "Env": [f"{name}={value}" for name, value in _env(launch, image, furnishing).items()],
        "User": image.user,
        "WorkingDir": furnishing.workdir or image.workdir or "/",
        "Labels": {
            f"{LABEL}.home": frame.home,
            f"{LABEL}.job": key.name.job,
            f"{LABEL}.run": str(key),
        },
        "Tty": False,
        "OpenStdin": False,
        "HostConfig": _host(launch, frame, furnishing),
        "NetworkingConfig": {"EndpointsConfig": {frame.network: endpoint}},
    }
    if place.host in launch.peers:
        body["Hostname"] = place.host
    return body


def _hatches(furnishing: RunMounts) -> tuple[str, ...]:
    return tuple(word for port in furnishing.hatches for word in ("--hatch", str(port)))


def words(launch: Launch, image: ImageConfig, furnishing: RunMounts) -> tuple[str, ...]:
    """What is run: a command replaces the image's entry point, and either one the image's own arguments."""
    if launch.module:
        return (PYTHON, "-m", launch.module, *launch.args)
    if launch.command:
        return (*launch.command, *launch.args)
    if furnishing.command:
        return (*furnishing.command, *launch.args)
    return (*image.entrypoint, *(launch.args or image.command))


def _env(launch: Launch, image: ImageConfig, furnishing: RunMounts) -> dict[str, str]:
    env = {"PYTHONUNBUFFERED": "1"}  # into a file Python would hold lines back, and a follower see nothing
    env |= image.env
    env |= furnishing.env
    env |= launch.env
    # Images made for NVIDIA's runtime say "all", which would be the machine's.
    env["NVIDIA_VISIBLE_DEVICES"] = ",".join(launch.placement.gpus) or "void"
    env["TRAINSHED_RUN"] = str(launch.key)
    return env


def _host(launch: Launch, frame: ContainerFrame, furnishing: RunMounts) -> dict[str, object]:
    place = launch.placement
    memory = memory_limit(place, launch.room).most
    own = (
        Mount(source=frame.init, target=f"{INSIDE}/init", read_only=True),
        Mount(source=frame.record, target=f"{INSIDE}/record"),
        Mount(source=launch.stdout, target=f"{INSIDE}/out"),
        Mount(source=launch.stderr, target=f"{INSIDE}/err"),
    )
    return {
        "Binds": list(furnishing.binds),
        "Mounts": [mounted(mount) for mount in (*own, *furnishing.mounts)],
        "NetworkMode": frame.network,
        "ExtraHosts": [f"{name}:{address}" for name, address in {**frame.hosts, **furnishing.hosts}.items()],
        "Memory": memory,
        "MemorySwap": memory,  # of both together: no swap
        **_processors(launch),
        **({"CgroupParent": frame.parent} if frame.parent else {}),
        "PidsLimit": max(PIDS, round(max(place.cpus, launch.room.cpus if launch.room else 0) * PIDS_PER_CPU)),
        "ShmSize": memory // 2,
        **walls(),
        **_gpus(place.gpus, frame.podman),
        # Below 1024 only root may listen; Docker lets everybody in its containers.
        **({"Sysctls": {"net.ipv4.ip_unprivileged_port_start": "0"}} if furnishing.hosts else {}),
        **({"StorageOpt": {"size": str(furnishing.quota)}} if furnishing.quota else {}),
    }


def _processors(launch: Launch) -> dict[str, object]:
    """A quota of time; of what the job's replicas share all may be used by one, and the weights decide."""
    # As a share of time: Docker gives no more processors than there are, whatever `up --cpus` says.
    cpus, room = launch.placement.cpus, launch.room
    if room is None or not room.cpus:
        return {"CpuPeriod": _PERIOD, "CpuQuota": round(max(cpus, 0.01) * _PERIOD)}
    weight = min(max(round(cpus * _WEIGHT), _LEAST_WEIGHT), _MOST_WEIGHT)
    quota = round(max(room.cpus, 0.01) * _PERIOD)
    return {"CpuPeriod": _PERIOD, "CpuQuota": quota, "CpuShares": weight}


def walls() -> dict[str, object]:
    """What holds for every container of ours, whatever runs in it; its output is in files, not in a log."""
    return {
        "CapDrop": list(_DROPPED),
        "SecurityOpt": ["no-new-privileges"],
        "Privileged": False,
        "AutoRemove": False,
        "RestartPolicy": {"Name": "no"},
        "LogConfig": {"Type": "none", "Config": {}},
    }


def _gpus(gpus: Sequence[str], podman: bool) -> dict[str, object]:
    if not gpus:
        return {}
    driver, names = (CDI, [f"nvidia.com/gpu={gpu}" for gpu in gpus]) if podman else ("nvidia", list(gpus))
    return {"DeviceRequests": [{"Driver": driver, "DeviceIDs": names, "Capabilities": [["gpu"]]}]}


def mounted(mount: Mount) -> dict[str, object]:
    return {
        "Type": "bind",
        "Source": mount.source,
        "Target": mount.target,
        "ReadOnly": mount.read_only,
        **mount.options,
    }

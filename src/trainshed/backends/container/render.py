"""Turns a Launch into the body with which an engine creates its container. Pure.

The starter and the installer call it with names that the backend has checked. Podman's compatible API knows
no CDI devices, so for those `spec` translates the body into Podman's own form. All it needs to know of the
machine and the engine comes in a ContainerFrame. No field of a Launch can make a container privileged,
share a namespace of the host or mount the engine's socket.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trainshed.backends.machine.image_config import command_line
from trainshed.core.jobs.launch import Launch
from trainshed.core.jobs.limits import memory_limit
from trainshed.core.jobs.secret import env_with_files
from trainshed.core.names import RunKey
from trainshed.core.ports import Sink
from trainshed.core.supplies.image import ImageConfig

INSIDE = "/.trainshed"
SECRETS = "/trainshed/secrets"  # where programs find the secrets that are files
REMOTE = f"{INSIDE}/remote"  # the init by another name: what starts programs in other replicas
LABEL = "trainshed"
_DROPPED = ("AUDIT_WRITE", "MKNOD", "NET_RAW", "SETFCAP")
_PERIOD = 100_000  # microseconds
_UNLIMITED = -1
_WEIGHT = 1024  # of one CPU, as engines count
_LEAST_WEIGHT, _MOST_WEIGHT = 2, 262_144
CDI = "cdi"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    source: str
    target: str
    read_only: bool = False
    options: Mapping[str, object] = field(default_factory=dict[str, object])  # further fields for the engine


@dataclass(frozen=True, slots=True, kw_only=True)
class RunMounts:
    """What a container is given beside its image: folders, variables, where it starts."""

    mounts: tuple[Mount, ...] = ()
    binds: tuple[str, ...] = ()  # in the engine's own syntax, where a Mount cannot express it
    env: Mapping[str, str] = field(default_factory=dict[str, str])  # weaker than the job's own
    workdir: str = ""  # the image's where empty
    command: tuple[str, ...] = ()  # before the arguments, where the job has no command of its own
    loopback_ports: tuple[int, ...] = ()  # ports of its loopback that lead to this machine's
    hosts: Mapping[str, str] = field(default_factory=dict[str, str])  # further addresses by name
    quota: int = 0  # bytes of its own file system, where the engine can enforce them
    note: str = ""  # a sentence on how it was started


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerFrame:
    """What rendering needs to know of the backend."""

    home: str  # its id, the label of its containers
    init: str
    record: str
    podman: bool
    network: str
    secrets: str = ""  # the folder of its secret files
    address: str = ""  # of the replica; the engine chooses where empty
    hosts: Mapping[str, str] = field(default_factory=dict[str, str])  # address by name
    processes: int = 0  # that it may have; 0: no limit
    parent: str = ""  # the cgroup of the job (limits.py); none where empty
    output: Sink | None = None  # the files for its output; None where it is only shown what would be created


def container_name(home: str, key: RunKey) -> str:
    return f"{LABEL}-{home}-{key}"


def render(
    launch: Launch, image: ImageConfig, frame: ContainerFrame, run_mounts: RunMounts
) -> dict[str, object]:
    key, place = launch.key, launch.placement
    endpoint = {"IPAMConfig": {"IPv4Address": frame.address}} if frame.address else {}
    body: dict[str, object] = {
        "Image": image.id,
        "Entrypoint": [
            f"{INSIDE}/init",
            *(("--hold",) if launch.held else ()),
            *_loopback_options(run_mounts),
        ],
        "Cmd": list(command_line(launch, image, run_mounts.command)),
        "Env": [f"{name}={value}" for name, value in _env(launch, image, run_mounts).items()],
        "User": image.user,
        "WorkingDir": run_mounts.workdir or image.workdir or "/",
        "Labels": {
            f"{LABEL}.home": frame.home,
            f"{LABEL}.job": key.name.job,
            f"{LABEL}.run": str(key),
        },
        "Tty": False,
        "OpenStdin": False,
        "HostConfig": _host(launch, frame, run_mounts),
        "NetworkingConfig": {"EndpointsConfig": {frame.network: endpoint}},
    }
    if place.host in launch.peers:
        body["Hostname"] = place.host
    return body


def _loopback_options(run_mounts: RunMounts) -> tuple[str, ...]:
    return tuple(word for port in run_mounts.loopback_ports for word in ("--hatch", str(port)))


def _env(launch: Launch, image: ImageConfig, run_mounts: RunMounts) -> dict[str, str]:
    env = {"PYTHONUNBUFFERED": "1"}  # else Python would buffer lines, and a follower see nothing
    env |= image.env
    env |= run_mounts.env
    env |= env_with_files(launch, SECRETS)
    # Images made for NVIDIA's runtime set "all", which would be all of the machine's.
    env["NVIDIA_VISIBLE_DEVICES"] = ",".join(launch.placement.gpus) or "void"
    env["TRAINSHED_RUN"] = str(launch.key)
    return env


def _host(launch: Launch, frame: ContainerFrame, run_mounts: RunMounts) -> dict[str, object]:
    memory = memory_limit(launch.placement, launch.room).most
    own = (
        Mount(source=frame.init, target=f"{INSIDE}/init", read_only=True),
        *((Mount(source=frame.init, target=REMOTE, read_only=True),) if launch.remote else ()),
        Mount(source=frame.record, target=f"{INSIDE}/record"),
        *((Mount(source=frame.secrets, target=SECRETS, read_only=True),) if launch.secret_files else ()),
        *_output_mounts(frame.output),
    )
    return {
        "Binds": list(run_mounts.binds),
        "Mounts": [mounted(mount) for mount in (*own, *run_mounts.mounts)],
        "NetworkMode": frame.network,
        "ExtraHosts": [f"{name}:{address}" for name, address in {**frame.hosts, **run_mounts.hosts}.items()],
        "Memory": memory,
        "MemorySwap": memory,  # memory and swap together: no swap
        **_processors(launch),
        **({"CgroupParent": frame.parent} if frame.parent else {}),
        "PidsLimit": frame.processes or _UNLIMITED,  # threads count too
        "ShmSize": memory // 2,
        **security_options(),
        **_gpus(launch.placement.gpus, frame.podman),
        # Docker lets every user in its containers listen below 1024; Podman needs this.
        **({"Sysctls": {"net.ipv4.ip_unprivileged_port_start": "0"}} if run_mounts.hosts else {}),
        **({"StorageOpt": {"size": str(run_mounts.quota)}} if run_mounts.quota else {}),
    }


def _output_mounts(output: Sink | None) -> tuple[Mount, ...]:
    if output is None:
        return ()
    return (
        Mount(source=output.stdout, target=f"{INSIDE}/out"),
        Mount(source=output.stderr, target=f"{INSIDE}/err"),
    )


def _processors(launch: Launch) -> dict[str, object]:
    """A quota of CPU time; each replica may use all that the job's replicas share, by weight."""
    # A quota, because Docker refuses more CPUs than the machine has, also where `up --cpus` says more.
    cpus, room = launch.placement.cpus, launch.room
    if room is None or not room.cpus:
        return {"CpuPeriod": _PERIOD, "CpuQuota": round(max(cpus, 0.01) * _PERIOD)}
    weight = min(max(round(cpus * _WEIGHT), _LEAST_WEIGHT), _MOST_WEIGHT)
    quota = round(max(room.cpus, 0.01) * _PERIOD)
    return {"CpuPeriod": _PERIOD, "CpuQuota": quota, "CpuShares": weight}


def security_options() -> dict[str, object]:
    """Options of every container of ours. Its output goes to files, not to the engine's log."""
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


def devices(body: Mapping[str, Any]) -> list[str]:
    """The CDI devices a body asks for, by their names."""
    requests: Sequence[Mapping[str, Any]] = body["HostConfig"].get("DeviceRequests") or ()
    return [str(name) for request in requests if request["Driver"] == CDI for name in request["DeviceIDs"]]


def without_secrets(body: Mapping[str, Any], names: frozenset[str]) -> Mapping[str, Any]:
    """The body for a file of the run, which has no values of secrets."""
    if not names:
        return body
    return {**body, "Env": [word for word in body["Env"] if word.partition("=")[0] not in names]}


def spec(name: str, body: Mapping[str, Any]) -> dict[str, object]:
    host: Mapping[str, Any] = body["HostConfig"]
    mounts: Sequence[Mapping[str, Any]] = host["Mounts"]
    endpoints: Mapping[str, Mapping[str, Any]] = body["NetworkingConfig"]["EndpointsConfig"]
    made: dict[str, object] = {
        "name": name,
        "image": body["Image"],
        "entrypoint": body["Entrypoint"],
        "command": body["Cmd"],
        "env": dict(word.split("=", 1) for word in body["Env"]),
        "user": body["User"],
        "work_dir": body["WorkingDir"],
        "labels": body["Labels"],
        "mounts": [_bind(mount) for mount in mounts if mount["Type"] == "bind"],
        "volumes": [_volume(mount) for mount in mounts if mount["Type"] == "volume"],
        "netns": {"nsmode": "bridge"},
        "Networks": {net: _endpoint(endpoint) for net, endpoint in endpoints.items()},
        "hostadd": host["ExtraHosts"],
        "resource_limits": {
            "memory": {"limit": host["Memory"], "swap": host["MemorySwap"]},
            "cpu": {
                "quota": host["CpuQuota"],
                "period": host["CpuPeriod"],
                **({"shares": host["CpuShares"]} if "CpuShares" in host else {}),
            },
            "pids": {"limit": host["PidsLimit"]},
        },
        "shm_size": host["ShmSize"],
        "cap_drop": host["CapDrop"],
        "no_new_privileges": True,
        "restart_policy": "no",
        "log_configuration": {"driver": host["LogConfig"]["Type"]},
        "devices": [{"path": device} for device in devices(body)],
    }
    if "Hostname" in body:
        made["hostname"] = body["Hostname"]
    if "CgroupParent" in host:
        made["cgroup_parent"] = host["CgroupParent"]
    if "StorageOpt" in host:
        made["storage_opts"] = host["StorageOpt"]
    return made


def _bind(mount: Mapping[str, Any]) -> dict[str, object]:
    options = ["rbind", "ro" if mount["ReadOnly"] else "rw"]
    return {"type": "bind", "source": mount["Source"], "destination": mount["Target"], "options": options}


def _volume(mount: Mapping[str, Any]) -> dict[str, object]:
    return {"Name": mount["Source"], "Dest": mount["Target"], "Options": ["nocopy"]}


def _endpoint(endpoint: Mapping[str, Any]) -> dict[str, object]:
    address = endpoint.get("IPAMConfig", {}).get("IPv4Address")
    return {"static_ips": [address]} if address else {}

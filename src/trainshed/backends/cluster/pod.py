"""The objects of a job as Kubernetes takes them: a pod for each run, a service for its names, a secret. Pure.

The backend creates what this renders. A pod has one container, which runs our init (pod_init.c) from a
ConfigMap, so any image will do. Names, labels and the finalizer are decided here and nowhere else.
"""

import base64
import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from trainshed.backends.cluster.grouping import ALONE, Grouping
from trainshed.backends.cluster.objects import Object, part, parts
from trainshed.backends.cluster.pod_hosts import has_file, hosts_maker, hosts_mount, hosts_volume, own_names
from trainshed.backends.cluster.pod_mounts import FILES_VOLUME, env_of, files_mounts
from trainshed.backends.cluster.pod_places import PodPlaces
from trainshed.backends.cluster.pod_template import GPU, NOTHING_MORE, PodTemplate
from trainshed.backends.cluster.pod_variables import SECRETS, PodVariables, file_key, literal
from trainshed.backends.machine.image_config import command_line
from trainshed.core.jobs.launch import Launch
from trainshed.core.jobs.limits import memory_limit
from trainshed.core.jobs.nfs import NfsMount
from trainshed.core.names import RunKey
from trainshed.core.queue.place import EPSILON
from trainshed.core.supplies.image import ImageConfig

GROUP = "trainshed.dev"
HOME, JOB, TASK, RUN = f"{GROUP}/home", f"{GROUP}/job", f"{GROUP}/task", f"{GROUP}/run"
FINALIZER = f"{GROUP}/exit-status"  # keeps a pod until its end is stored here
PORT = 45_990  # of the init
HOLD_SECONDS = 600  # for which an ended pod waits for a server that takes its output
CONTAINER = "replica"
_BIN, RUN_FOLDER = "/.trainshed/bin", "/.trainshed/run"
REMOTE = f"{_BIN}/remote"  # the init by another name: what starts programs in other replicas
INIT_MOUNT: Object = {"name": "init", "mountPath": _BIN, "readOnly": True}
_SAFE = re.compile(r"[a-z0-9]([-a-z0-9]{0,50}[a-z0-9])?")
UNKNOWN = ImageConfig(id="")


def is_safe(job: str) -> bool:
    """Whether the id can be part of Kubernetes' names."""
    return _SAFE.fullmatch(job) is not None


def job_object(home: str, job: str) -> str:
    """The name of the job's service and of its secret."""
    return f"ts-{home}-{job}" if not job[:1].isalpha() else f"{job}-{home}"


def pod_name(home: str, key: RunKey) -> str:
    name = key.name
    return f"{job_object(home, name.job)}-{name.attempt}-{name.task}-{key.run}"


def labels(home: str, job: str) -> dict[str, str]:
    return {HOME: home, JOB: job, "app.kubernetes.io/managed-by": "trainshed"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PodReach:
    """What a pod needs for its programs to reach the server (pod_reach.py)."""

    ports: tuple[int, ...] = ()  # of its loopback, that lead to the server
    hosts: Mapping[str, str] = field(default_factory=dict[str, str])  # further addresses by name
    roots: str = ""  # the ConfigMap with certificates to trust; none where empty
    low_ports: bool = False  # any user is to listen below 1024
    shared: frozenset[str] = frozenset()  # variables whose values are secret, and those of the whole job


NOWHERE = PodReach()


@dataclass(frozen=True, slots=True, kw_only=True)
class PodFrame:
    """What a pod needs beside the launch."""

    home: str  # the server's id
    init: str  # the ConfigMap with the init
    namespace: str
    domain: str = "cluster.local"  # of the cluster
    image: ImageConfig = UNKNOWN  # where the job leaves the command to it
    reach: PodReach = NOWHERE
    files: PodPlaces = field(default_factory=PodPlaces)  # that it is brought or that are fetched
    template: PodTemplate = NOTHING_MORE
    grouping: Grouping = ALONE
    common: Mapping[str, str] = field(default_factory=dict[str, str])  # variables that its peers have too
    elsewhere: Object = field(default_factory=Object)  # its affinity where Kubernetes chooses its node


def pod_variables(launch: Launch, frame: PodFrame) -> PodVariables:
    service = job_object(frame.home, launch.key.name.job)
    domain = f"{service}.{frame.namespace}.svc.{frame.domain}"
    return PodVariables(
        launch=launch, secret=service, domain=domain, shared=frame.reach.shared, common=frame.common
    )


def render_pod(launch: Launch, frame: PodFrame, *, anywhere: bool = False) -> Object:
    """For the node of its placement, or for one that Kubernetes chooses, among those of its type of GPU.

    Kueue chooses among kinds of nodes, and counts pods that are meant for different nodes as different roles,
    of which a group has eight at most. So a pod that waits in a queue of Kueue is meant for none.
    """
    key, place, group = launch.key, launch.placement, frame.grouping
    affinity = frame.elsewhere if anywhere or group.queue else on_node(place.node)
    variables = pod_variables(launch, frame)
    volumes, mounts = _volumes(launch, frame)
    init = [f"{_BIN}/init", str(PORT), str(HOLD_SECONDS), str(_grace(launch))]
    container: Object = {
        "name": CONTAINER,
        "image": launch.image,
        "imagePullPolicy": "IfNotPresent",
        "command": [*init, *_options(launch, frame)],
        "args": [literal(word) for word in command_line(launch, frame.image)],
        "env": variables.render() + env_of(launch, frame.files),
        "resources": _resources(launch),
        "volumeMounts": mounts,
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "securityContext": {"allowPrivilegeEscalation": False},
    }
    pod: Object = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": pod_name(frame.home, key),
            "labels": {
                **labels(frame.home, key.name.job),
                TASK: key.name.task,
                RUN: str(key.run),
                **group.labels,
            },
            "annotations": {RUN: str(key), **group.annotations},
            "finalizers": [FINALIZER],
        },
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "hostname": key.name.task,
            "subdomain": variables.secret,
            # So that the others of the job are found by the names of their tasks alone.
            "dnsConfig": {"searches": [variables.domain]},
            # The init kills a program that takes longer, and stays until its output is fetched.
            "terminationGracePeriodSeconds": _grace(launch) + HOLD_SECONDS,
            **({"affinity": affinity} if affinity else {}),
            **_network(launch, frame.reach),
            **group.spec,
            **({"initContainers": [hosts_maker(launch.image, INIT_MOUNT)]} if has_file(launch) else {}),
            "containers": [container],
            "volumes": volumes,
        },
    }
    return frame.template.added_to(pod, uses_gpus=bool(place.gpus))


def _grace(launch: Launch) -> int:
    return max(int(launch.grace.total_seconds()), 1)


def _options(launch: Launch, frame: PodFrame) -> list[str]:
    """A replica without peers waits for nobody, and one that is brought nothing for no files."""
    ways = [word for port in frame.reach.ports for word in ("--tunnel", str(port))]
    begins = len(launch.peers) < 2 and not frame.files.waits
    flags = {"--begin": begins, "--hold": launch.held}
    apart = ["--apart"] if launch.isolated else []
    return [*(flag for flag, is_set in flags.items() if is_set), *ways, *apart]


def _network(launch: Launch, reach: PodReach) -> Object:
    names: dict[str, list[str]] = {}
    hosts = {} if has_file(launch) else {**reach.hosts, **dict.fromkeys(own_names(launch), "127.0.0.1")}
    for name, address in hosts.items():
        names.setdefault(address, []).append(name)
    aliases = [{"ip": address, "hostnames": hosts} for address, hosts in names.items()]
    low = {"sysctls": [{"name": "net.ipv4.ip_unprivileged_port_start", "value": "0"}]}
    return {
        **({"hostAliases": aliases} if aliases else {}),
        **({"securityContext": low} if reach.low_ports else {}),
    }


def _volumes(launch: Launch, frame: PodFrame) -> tuple[list[Object], list[Object]]:
    """What is mounted into the container, and where."""
    volumes: list[Object] = [
        init_volume(frame.init, remote=launch.remote is not None),
        {"name": "run", "emptyDir": {}},
        {"name": "memory", "emptyDir": {"medium": "Memory"}},
        FILES_VOLUME,
    ]
    mounts: list[Object] = [
        INIT_MOUNT,
        {"name": "run", "mountPath": RUN_FOLDER},
        {"name": "memory", "mountPath": "/dev/shm"},
        *files_mounts(frame.files),
    ]
    if has_file(launch):
        volumes.append(hosts_volume())
        mounts.append(hosts_mount())
    if launch.secret_files:
        volumes.append(_secrets_volume(launch, frame))
        mounts.append({"name": "secrets", "mountPath": SECRETS, "readOnly": True})
    if frame.reach.roots:
        volumes.append({"name": "roots", "configMap": {"name": frame.reach.roots}})
        mounts.append(
            {"name": "roots", "mountPath": "/.trainshed/roots.pem", "subPath": "roots.pem", "readOnly": True}
        )
    for number, path in enumerate(launch.scratch):
        volumes.append({"name": f"scratch-{number}", "emptyDir": {}})
        mounts.append({"name": f"scratch-{number}", "mountPath": path})
    for number, mount in enumerate(launch.nfs):
        volumes.append({"name": f"nfs-{number}", "nfs": _nfs(mount)})
        mounts.append({"name": f"nfs-{number}", "mountPath": mount.target, "readOnly": mount.read_only})
    return volumes, mounts


def _secrets_volume(launch: Launch, frame: PodFrame) -> Object:
    """In memory of the node, for this pod alone."""
    items = [{"key": file_key(name), "path": name} for name in sorted(launch.secret_files)]
    secret = job_object(frame.home, launch.key.name.job)
    # Kubernetes gives the files to root, whoever the program is.
    return {"name": "secrets", "secret": {"secretName": secret, "defaultMode": 0o444, "items": items}}


def render_service(home: str, job: str) -> Object:
    """The names of the job's replicas, also of those that are not ready yet."""
    name = job_object(home, job)
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "labels": labels(home, job)},
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": {HOME: home, JOB: job},
        },
    }


def render_policy(home: str, job: str) -> Object:
    """Keeps the pods of a job apart: they reach each other and the cluster's names, and nobody else.

    Their init may be reached by anybody: it answers nobody without the token, and the server may be anywhere.
    """
    peers = {"podSelector": {"matchLabels": {HOME: home, JOB: job}}}
    names = [{"protocol": protocol, "port": 53} for protocol in ("UDP", "TCP")]
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": job_object(home, job), "labels": labels(home, job)},
        "spec": {
            **peers,
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [{"from": [peers]}, {"ports": [{"protocol": "TCP", "port": PORT}]}],
            "egress": [{"to": [peers]}, {"ports": names}],
        },
    }


def render_secret(home: str, job: str, values: Mapping[str, str]) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": job_object(home, job), "labels": labels(home, job)},
        "type": "Opaque",
        "stringData": dict(values),
    }


def render_init(home: str, program: bytes) -> Object:
    """The ConfigMap of the init, named after its content."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": _init_name(program), "labels": {HOME: home}},
        "binaryData": {"init": base64.b64encode(program).decode()},
    }


def init_volume(name: str, *, remote: bool = False) -> Object:
    """`remote`: under its other name, too."""
    items = [{"key": "init", "path": path} for path in ("init", "remote")] if remote else []
    source = {"name": name, "defaultMode": 0o555, **({"items": items} if items else {})}
    return {"name": "init", "configMap": source}


def _init_name(program: bytes) -> str:
    return f"trainshed-init-{hashlib.sha256(program).hexdigest()[:16]}"


def _resources(launch: Launch) -> Object:
    place, memory = launch.placement, memory_limit(launch.placement, launch.room)
    # Rounded down: three thirds of a node's CPUs must not be more than it has. Shares of a CPU are floats.
    limits: Object = {"cpu": f"{max(int(place.cpus * 1000 + EPSILON), 1)}m", "memory": str(memory.most)}
    if place.gpus:
        limits[GPU] = str(len(place.gpus))
    return {"limits": limits, "requests": {**limits, "memory": str(min(memory.most, place.memory))}}


def on_node(node: str) -> Object:
    """By the scheduler: a pod with `nodeName` would skip it, and with it the checks of what is free."""
    return node_affinity([{"matchFields": [_named(node, "In")]}])


def not_on(node: str) -> Object:
    """What a term of an affinity says to avoid a node."""
    return _named(node, "NotIn")


def _named(node: str, operator: str) -> Object:
    return {"key": "metadata.name", "operator": operator, "values": [node]}


def meant_node(pod: Object) -> str:
    """The only node on which a pod of ours may be placed; empty where Kubernetes chooses."""
    return next(_nodes_named(pod, "In"), "")


def avoided_nodes(pod: Object) -> tuple[str, ...]:
    """Those on which Kubernetes may not place it."""
    return tuple(sorted(set(_nodes_named(pod, "NotIn"))))


def _nodes_named(pod: Object, operator: str) -> Iterator[str]:
    affinity = part(part(part(pod, "spec"), "affinity"), "nodeAffinity")
    for term in parts(part(affinity, "requiredDuringSchedulingIgnoredDuringExecution"), "nodeSelectorTerms"):
        for row in parts(term, "matchFields"):
            if row["operator"] == operator:
                yield str(row["values"][0])


def node_affinity(terms: list[Object]) -> Object:
    """To the nodes that one of the terms is true of."""
    required = {"nodeSelectorTerms": terms}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def _nfs(mount: NfsMount) -> Object:
    return {"server": mount.server, "path": mount.path, "readOnly": mount.read_only}

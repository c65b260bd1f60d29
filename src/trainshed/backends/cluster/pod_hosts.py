"""Names of other tools in pods: the file of names that a pod has of its own. Pure.

`pod.py` renders it, and the run supervisor tells the init what it is to hold. A replica without peers has its
names from Kubernetes (`hostAliases`). With peers nobody knows addresses before all pods are there: they come
with the word to begin (pod_hosts.h), and again when a replica has moved.
"""

from trainshed.backends.cluster.objects import Object
from trainshed.core.jobs.launch import Launch

_VOLUME, _FOLDER = "hosts", "/.trainshed/hosts"
_LEAST = {"cpu": "1m", "memory": "16Mi"}


def own_names(launch: Launch) -> tuple[str, ...]:
    """The further names of the replica."""
    names = dict(zip(launch.peers, launch.names, strict=False))
    return names.get(launch.placement.host, ())


def has_file(launch: Launch) -> bool:
    return len(launch.peers) > 1 and any(launch.names)


def hosts_volume() -> Object:
    return {"name": _VOLUME, "emptyDir": {}}


def hosts_mount() -> Object:
    """Where something is mounted, Kubernetes leaves the file alone."""
    return {"name": _VOLUME, "mountPath": "/etc/hosts", "subPath": "hosts"}


def hosts_maker(image: str, init: Object) -> Object:
    """The init container that makes the file, as the user who will change it."""
    return {
        "name": "hosts",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": [f"{init['mountPath']}/init", "--touch", f"{_FOLDER}/hosts"],
        "resources": {"limits": _LEAST, "requests": _LEAST},
        "volumeMounts": [init, {"name": _VOLUME, "mountPath": _FOLDER}],
        "securityContext": {"allowPrivilegeEscalation": False},
    }

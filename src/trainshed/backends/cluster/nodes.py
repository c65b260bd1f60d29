"""The nodes of a cluster as our scheduler sees them: what pods of others leave free. Pure.

`backend.py` calls it with the objects it keeps up to date. Nodes that take no pods of ours are left out.
"""

from collections.abc import Callable, Collection, Iterable, Mapping

from trainshed.backends.cluster.objects import Object, part, parts
from trainshed.backends.cluster.pod import HOME, node_affinity, not_on
from trainshed.backends.cluster.pod_template import GPU, NOTHING_MORE, PodTemplate
from trainshed.core.queue.fleet import Node

_FACTORS = {
    "n": 1e-9, "u": 1e-6, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18,
    "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60,
}  # fmt: skip
_KINDS = ("nvidia.com/gpu.product", "cloud.google.com/gke-accelerator", "accelerator")  # labels
_ENDED = ("Succeeded", "Failed")


def quantity(text: object) -> float:
    """A number as Kubernetes writes it: 250m, 16Gi, 4."""
    word = str(text or 0)
    for suffix in sorted(_FACTORS, key=len, reverse=True):
        if word.endswith(suffix):
            return float(word.removesuffix(suffix)) * _FACTORS[suffix]
    return float(word)


def slim_pod(pod: Object) -> Object:
    """What is needed of a pod to know what it takes of its node: whole ones fill the memory."""
    meta, spec = part(pod, "metadata"), part(pod, "spec")
    return {
        "metadata": {
            "name": meta["name"],
            "namespace": meta.get("namespace"),
            "resourceVersion": meta.get("resourceVersion"),
            "labels": {HOME: part(meta, "labels").get(HOME)},
        },
        "node": spec.get("nodeName"),
        "is_ended": part(pod, "status").get("phase") in _ENDED,
        "takes": requested(spec),
    }


def requested(spec: Object) -> dict[str, float]:
    """What the scheduler counts for a pod: the most that its containers take at a time, and its overhead."""
    running: dict[str, float] = {}  # of those that stay: containers, and init containers that are sidecars
    most: dict[str, float] = {}
    inits = [(item, item.get("restartPolicy") == "Always") for item in parts(spec, "initContainers")]
    for container, stays in (*inits, *((item, True) for item in parts(spec, "containers"))):
        for name, value in part(part(container, "resources"), "requests").items():
            together = running.get(name, 0.0) + quantity(value)
            most[name] = max(most.get(name, 0.0), together)
            if stays:
                running[name] = together
    for name, value in part(part(spec, "resources"), "requests").items():  # of the pod as a whole
        most[name] = quantity(value)
    for name, value in part(spec, "overhead").items():
        most[name] = most.get(name, 0.0) + quantity(value)
    return most


def nodes_of(
    nodes: Iterable[Object], pods: Iterable[Object], home: str, template: PodTemplate = NOTHING_MORE
) -> tuple[Node, ...]:
    """`pods` are slim. Those of this home are not counted: our own scheduler knows them."""
    taken: dict[str, dict[str, float]] = {}
    for pod in pods:
        if pod["node"] and not pod["is_ended"] and pod["metadata"]["labels"].get(HOME) != home:
            sums = taken.setdefault(pod["node"], {})
            for name, value in pod["takes"].items():
                sums[name] = sums.get(name, 0.0) + value
    offered = [
        _node(item, taken.get(item["metadata"]["name"], {}), only_gpus=template.is_kept_for_gpus(item))
        for item in nodes
        if template.is_taken_by(item)
    ]
    return tuple(sorted(offered, key=lambda node: node.name))


def elsewhere(nodes: Iterable[Object], is_meant: Callable[[str], bool], avoided: Collection[str]) -> Object:
    """The affinity of a pod to the nodes whose label names a type that is meant; to all where none has it.

    Never to those that are avoided.
    """
    values: dict[str, set[str]] = {}
    for item in nodes:
        labels = part(part(item, "metadata"), "labels")
        name = _gpu_label(labels)
        if name and is_meant(str(labels[name])):
            values.setdefault(name, set()).add(str(labels[name]))
    others = {"matchFields": [not_on(node) for node in avoided]} if avoided else {}
    terms = [
        {"matchExpressions": [{"key": name, "operator": "In", "values": sorted(values[name])}], **others}
        for name in sorted(values)
    ]
    return node_affinity(terms or [others]) if terms or others else {}


def _gpu_label(labels: Mapping[str, object]) -> str:
    """The label that names the type of a node's GPUs; empty where it has none."""
    return next((name for name in _KINDS if name in labels), "")


def _node(item: Object, taken: Mapping[str, float], *, only_gpus: bool) -> Node:
    meta, status = part(item, "metadata"), part(item, "status")
    offers, labels = part(status, "allocatable"), part(meta, "labels")
    free = {
        name: max(quantity(offers.get(name)) - taken.get(name, 0.0), 0.0) for name in ("cpu", "memory", GPU)
    }
    addresses = {a.get("type"): a.get("address") for a in parts(status, "addresses")}
    gpus = int(free[GPU])
    return Node(
        name=str(meta["name"]),
        host=str(addresses.get("InternalIP") or meta["name"]),
        cpus=free["cpu"],
        memory=int(free["memory"]),
        gpus=tuple(map(str, range(gpus))),
        gpu_kind=str(labels.get(_gpu_label(labels), "")) if gpus else "",
        only_gpus=only_gpus,
    )

"""PodTemplate: what an administrator gives to all pods of jobs, and which nodes take these pods. Pure.

The assembly reads one from the file of the setting `pod_template`, which looks like a part of a pod. Who
renders pods adds it; who counts nodes asks whether they take such pods.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from trainshed.backends.cluster.objects import Object, part, parts

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}  # as Kubernetes calls them
GPU = "nvidia.com/gpu"  # the resource, and by custom the taint of nodes that are kept for it
_TEXTS = ("priorityClassName", "runtimeClassName", "schedulerName", "serviceAccountName")
_LISTS = ("tolerations", "imagePullSecrets")
_SPEC = (*_TEXTS, *_LISTS, "nodeSelector")
_METADATA = ("labels", "annotations")
_OURS = "trainshed.dev/"  # labels by which the server finds its pods
_BLOCKING = ("NoSchedule", "NoExecute")
_FOR_GPUS: Object = {"key": GPU, "operator": "Exists"}


class TemplateFault(Exception):
    """What is wrong with a template: a sentence for each field."""


@dataclass(frozen=True, slots=True)
class PodTemplate:
    spec: Mapping[str, Any] = field(default_factory=dict[str, Any])
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    annotations: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def account(self) -> str:
        return str(self.spec.get("serviceAccountName") or "default")

    @property
    def pull_secrets(self) -> tuple[str, ...]:
        return tuple(str(row.get("name")) for row in parts(self.spec, "imagePullSecrets"))

    def for_machine(self, machine: str) -> "PodTemplate":
        """For nodes that run what is compiled on a server with this processor: the init of pods."""
        own = {"kubernetes.io/os": "linux", "kubernetes.io/arch": ARCHITECTURES.get(machine, machine)}
        return replace(self, spec={**self.spec, "nodeSelector": {**part(self.spec, "nodeSelector"), **own}})

    def added_to(self, pod: Object, *, uses_gpus: bool) -> Object:
        """The pod with all of it. One that uses GPUs may go to nodes that are kept for these."""
        meta, spec = pod["metadata"], pod["spec"]
        more: Object = dict(self.spec)
        if uses_gpus:
            more["tolerations"] = [*parts(more, "tolerations"), _FOR_GPUS]
        meta = {**meta, "labels": {**self.labels, **part(meta, "labels")}}
        if self.annotations or "annotations" in meta:
            meta["annotations"] = {**self.annotations, **part(meta, "annotations")}
        return {**pod, "metadata": meta, "spec": {**spec, **more}}

    def is_taken_by(self, node: Object) -> bool:
        """Whether the node takes pods with it: all of them, or those with GPUs."""
        spec, status = part(node, "spec"), part(node, "status")
        conditions = parts(status, "conditions")
        is_ready = any(row.get("type") == "Ready" and row.get("status") == "True" for row in conditions)
        labels = part(part(node, "metadata"), "labels")
        is_chosen = all(labels.get(name) == value for name, value in part(self.spec, "nodeSelector").items())
        is_open = all(taint.get("key") == GPU for taint in self._shut_by(node))
        return is_ready and is_chosen and is_open and not spec.get("unschedulable")

    def is_kept_for_gpus(self, node: Object) -> bool:
        return any(self._shut_by(node))

    def _shut_by(self, node: Object) -> Iterator[Object]:
        """The taints that keep its pods away."""
        for taint in parts(part(node, "spec"), "taints"):
            tolerations = parts(self.spec, "tolerations")
            if taint.get("effect") in _BLOCKING and not any(_is_borne(taint, row) for row in tolerations):
                yield taint


NOTHING_MORE = PodTemplate()


def _is_borne(taint: Object, toleration: Object) -> bool:
    is_any = toleration.get("operator") == "Exists"
    key, effect = toleration.get("key") or "", toleration.get("effect") or ""
    is_same_key = key == taint.get("key") or (not key and is_any)
    is_same_value = is_any or (toleration.get("value") or "") == (taint.get("value") or "")
    return is_same_key and is_same_value and effect in ("", taint.get("effect"))


def parse_template(fields: Mapping[str, Any]) -> PodTemplate:
    """From {metadata: {labels, annotations}, spec: {…}}. TemplateFault with every fault."""
    faults = [*_unknown("", fields, ("metadata", "spec"))]
    for name, known in (("metadata", _METADATA), ("spec", _SPEC)):
        if isinstance(fields.get(name, {}), Mapping):
            faults += _unknown(f"{name}.", part(fields, name), known)
        else:
            faults.append(f"{name} has to hold fields.")
    if not faults:
        faults = [*_faults(part(fields, "metadata"), part(fields, "spec"))]
    if faults:
        raise TemplateFault(" ".join(faults))
    meta = part(fields, "metadata")
    return PodTemplate(part(fields, "spec"), part(meta, "labels"), part(meta, "annotations"))


def _unknown(path: str, fields: Mapping[str, Any], known: tuple[str, ...]) -> Iterator[str]:
    for name in fields:
        if name not in known:
            yield f"{path}{name} is not known: it may have {', '.join(known)}."


def _faults(meta: Object, spec: Object) -> Iterator[str]:
    maps = [(f"metadata.{name}", meta.get(name, {})) for name in _METADATA]
    for path, value in (*maps, ("spec.nodeSelector", spec.get("nodeSelector", {}))):
        texts = cast(dict[Any, Any], value) if isinstance(value, dict) else None
        if texts is None or not all(isinstance(text, str) for text in (*texts, *texts.values())):
            yield f"{path} has to hold names and texts: put numbers and true in quotes."
        else:
            yield from (f"{path}.{name} is the server's own." for name in texts if name.startswith(_OURS))
    for name in _TEXTS:
        if not isinstance(spec.get(name, ""), str):
            yield f"spec.{name} has to be a text, not {spec[name]!r}."
    for name in _LISTS:
        rows = spec.get(name, [])
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in cast(list[Any], rows)):
            yield f"spec.{name} has to be a list of fields."

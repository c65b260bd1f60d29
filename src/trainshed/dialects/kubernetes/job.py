"""Converts a Kubernetes Pod or Job to the body of a customJob. For `manifest.py`. Pure.

Containers become pools, `parallelism` and `completions` become replicas, and the restart policy becomes a
restart rule. Faults are collected with their path in the manifest. Each ignored field gives a note. The
document may have any shape: `shape.py` reports wrong types, and this module skips those fields.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from trainshed.core.machine import Catalogue
from trainshed.core.secret import is_secret_name
from trainshed.dialects.kubernetes.machine import (
    ALIYUN,
    GPU_TYPE,
    INSTANCE_TYPE,
    SELECTORS,
    USE_SPECS,
    machine_of,
)
from trainshed.dialects.kubernetes.shape import number, part, parts, text, texts
from trainshed.dialects.kubernetes.volume import PodVolumes
from trainshed.wire.faults import Faults
from trainshed.wire.labels import check_labels
from trainshed.wire.pool import LARGEST_PROGRAM
from trainshed.wire.scalars import shown

IMAGE_CACHE, SPOT = f"{ALIYUN}eci-image-cache", f"{ALIYUN}eci-spot-strategy"
_HONOURED = frozenset({GPU_TYPE, INSTANCE_TYPE, USE_SPECS, IMAGE_CACHE, SPOT})
_SPOTS = {"SpotAsPriceGo": "SPOT", "SpotWithPriceLimit": "SPOT", "NoSpot": ""}
RETRIES = 6  # Kubernetes' own backoffLimit
MOST_RESTARTS = 1000  # a Pod is restarted for ever
LONGEST_BACKOFF = "300s"  # Kubernetes' own
DRAIN = "86400s"  # every replica of a Job ends by itself
POOLS = "job_spec.worker_pool_specs"

_REFERENCE = re.compile(r"\$\$|\$\(([^()]*)\)")


@dataclass(slots=True)
class Wanted:
    """A customJob's body, the manifest path of each of its parts, and notes on differences."""

    body: dict[str, Any]
    origins: dict[str, str] = field(default_factory=dict[str, str])
    notes: list[str] = field(default_factory=list[str])
    is_indexed: bool = False  # replicas get their number as JOB_COMPLETION_INDEX


def convert(document: Mapping[str, Any], catalogue: Catalogue, faults: Faults) -> Wanted:
    """The requested job. Valid only if no faults were recorded."""
    is_job = document.get("kind") == "Job"
    spec, where = part(document, "spec"), "spec"
    pod, inside = (part(part(spec, "template"), "spec"), "spec.template.spec") if is_job else (spec, where)
    wanted = Wanted({"displayName": text(part(document, "metadata"), "name")})
    labels = dict(_labels(document, wanted.notes))
    if labels:
        wanted.body["labels"] = labels
    annotations = _annotations(document, is_job, wanted.notes)
    replicas = _replicas(spec, faults) if is_job else 1
    containers = parts(pod, "containers")
    if not containers:
        faults.add(f"{inside}.containers", "is required: at least one container.")
    _note_selector(part(pod, "nodeSelector"), inside, wanted.notes)
    volumes = PodVolumes(pod, inside, faults)
    pools: list[dict[str, Any]] = []
    for at, container in enumerate(containers):
        path = f"{inside}.containers[{at}]"
        wanted.origins |= _origins(f"{POOLS}[{at}]", path)
        machine = machine_of(container, annotations, part(pod, "nodeSelector"), catalogue, path, faults)
        wanted.notes += machine.notes
        pool: dict[str, Any] = {"machineSpec": machine.spec, "replicaCount": replicas}
        pool["containerSpec"] = _program(container, document, path, faults, wanted.notes)
        pool |= {"diskSpec": machine.disk} if machine.disk else {}
        pool |= volumes.of(container, path, f"{POOLS}[{at}]")
        pools.append(pool)
    wanted.origins |= volumes.origins
    if len(containers) > 1:
        wanted.notes.append(
            f"{inside}.containers: each is a replica with an address of its own, not reached as localhost; "
            f"the job has succeeded when {text(containers[0], 'name') or 'the first'} has."
        )
    wanted.is_indexed = is_job and text(spec, "completionMode") == "Indexed"
    if replicas > 1:
        wanted.notes.append("The job has succeeded when its first replica has; the others have a day to end.")
    scheduling = _scheduling(document, pod, inside, faults, wanted)
    if replicas > 1 or len(containers) > 1:
        scheduling["drainDuration"] = DRAIN
    if strategy := _strategy(annotations, faults):
        scheduling["strategy"] = strategy
    wanted.body["jobSpec"] = {"workerPoolSpecs": pools, "scheduling": scheduling}
    return wanted


def _labels(document: Mapping[str, Any], notes: list[str]) -> Iterator[tuple[str, str]]:
    """The labels that are valid for a job."""
    for key, value in part(part(document, "metadata"), "labels").items():
        faults = Faults("")
        check_labels({key: str(value)}, "labels", faults)
        if faults.under("labels"):
            notes.append(f"metadata.labels.{key} is ignored: labels are small letters, digits, _ and -.")
        else:
            yield key, str(value)


def _annotations(document: Mapping[str, Any], is_job: bool, notes: list[str]) -> Mapping[str, Any]:
    """The manifest's annotations, overridden by those of a Job's template."""
    own = part(part(document, "metadata"), "annotations")
    inner = part(part(part(part(document, "spec"), "template"), "metadata"), "annotations")
    result = {**own, **inner} if is_job else own
    for name in result:
        if name.startswith(ALIYUN) and name not in _HONOURED:
            notes.append(f"metadata.annotations.{name} is ignored: it is for Alibaba's machines.")
    return result


def _note_selector(selector: Mapping[str, Any], inside: str, notes: list[str]) -> None:
    for name in selector:
        if name not in SELECTORS:
            notes.append(f"{inside}.nodeSelector.{name} is ignored: the server chooses where a job runs.")


def _replicas(spec: Mapping[str, Any], faults: Faults) -> int:
    wide, whole = number(spec, "parallelism"), number(spec, "completions")
    for name, count in (("parallelism", wide), ("completions", whole)):
        if count is not None and count < 1:
            faults.add(f"spec.{name}", f"must be at least 1, not {count}.")
            return 1
    mode = text(spec, "completionMode")
    if mode not in ("", "Indexed", "NonIndexed"):
        faults.add("spec.completionMode", f"must be Indexed or NonIndexed, not {shown(mode)}.")
    if whole is None:
        return wide or 1
    if (wide or 1) < whole:
        sentence = f"must be {whole}, as completions is: all replicas of a job run at the same time."
        faults.add("spec.parallelism", sentence)
    return whole


def _scheduling(
    document: Mapping[str, Any], pod: Mapping[str, Any], inside: str, faults: Faults, wanted: Wanted
) -> dict[str, Any]:
    is_job, spec, result = inside != "spec", part(document, "spec"), dict[str, Any]()
    policy = text(pod, "restartPolicy")
    if policy == "Always" or (policy not in ("", "Never", "OnFailure")):
        why = "" if policy == "Always" else f", not {shown(policy)}"
        faults.add(f"{inside}.restartPolicy", f"must be Never or OnFailure{why}: a job is to end.")
    elif not policy and is_job:
        faults.add(f"{inside}.restartPolicy", "is required: Never or OnFailure.")
    elif not policy:
        wanted.notes.append("spec.restartPolicy is not there; it is read as OnFailure: a job is to end.")
    limit = number(spec, "backoffLimit") if is_job else MOST_RESTARTS
    limit = RETRIES if limit is None else limit
    if not 0 <= limit <= MOST_RESTARTS:
        faults.add("spec.backoffLimit", f"must be between 0 and {MOST_RESTARTS}, not {limit}.")
    if (policy == "Never" and not is_job) or not limit:
        result["disableRetries"] = True
    else:
        result["restartRule"] = {
            "retryExitCodes": ["1-255"],
            "maxReplicaRestarts": limit,
            "maxJobRetries": 0,
            "maxBackoff": LONGEST_BACKOFF,
        }
    for source, path in ((pod, inside), *(((spec, "spec"),) if is_job else ())):
        if (seconds := number(source, "activeDeadlineSeconds")) is not None:
            if seconds < 1:
                faults.add(f"{path}.activeDeadlineSeconds", f"must be at least 1, not {seconds}.")
            result["timeout"] = f"{seconds}s"
            wanted.origins["job_spec.scheduling.timeout"] = f"{path}.activeDeadlineSeconds"
    if (grace := number(pod, "terminationGracePeriodSeconds")) is not None:
        result["gracePeriod"] = f"{grace}s"
        wanted.origins["job_spec.scheduling.grace_period"] = f"{inside}.terminationGracePeriodSeconds"
    return result


def _strategy(annotations: Mapping[str, Any], faults: Faults) -> str:
    strategy = text(annotations, SPOT)
    if strategy and strategy not in _SPOTS:
        faults.add(
            f"metadata.annotations.{SPOT}", f"must be one of {', '.join(_SPOTS)}, not {shown(strategy)}."
        )
    return _SPOTS.get(strategy, "")


def _program(
    container: Mapping[str, Any], document: Mapping[str, Any], path: str, faults: Faults, notes: list[str]
) -> dict[str, Any]:
    references = References()
    for at, variable in enumerate(parts(container, "env")):
        name, where = text(variable, "name"), f"{path}.env[{at}]"
        if "valueFrom" in variable:
            references.env[name] = _field(part(variable, "valueFrom"), document, f"{where}.valueFrom", faults)
        else:
            if is_secret_name(name) or references.names_secret(text(variable, "value")):
                references.secrets.add(name)
            references.env[name] = references.expand(text(variable, "value"))
    result: dict[str, Any] = {"imageUri": text(container, "image")}
    for name in ("command", "args"):
        if words := texts(container, name):
            result[name] = [references.expand(word) for word in words]
            if any(map(references.names_secret, words)):
                notes.append(
                    f"{path}.{name} has a secret in it and is shown: let the program read the variable."
                )
    if references.left < 0:
        faults.add(path, f"has more than {LARGEST_PROGRAM} bytes once each $(NAME) is replaced by its value.")
    if references.env:
        result["env"] = [
            {"name": name, "value": value, **({"secret": True} if name in references.secrets else {})}
            for name, value in references.env.items()
        ]
    return result


def _field(source: Mapping[str, Any], document: Mapping[str, Any], path: str, faults: Faults) -> str:
    """The value of a `fieldRef` to the manifest's own metadata."""
    asked, metadata = text(part(source, "fieldRef"), "fieldPath"), part(document, "metadata")
    if asked == "metadata.name":
        return text(metadata, "name")
    if asked == "metadata.namespace":
        return text(metadata, "namespace") or "default"
    if match := re.fullmatch(r"metadata\.(labels|annotations)\['([^']+)'\]", asked):
        return text(part(metadata, match[1]), match[2])
    if "fieldRef" in source:
        sentence = f"cannot be had: {shown(asked)}; metadata.name, namespace, labels and annotations can."
        faults.add(f"{path}.fieldRef.fieldPath", sentence)
    return ""


@dataclass(slots=True)
class References:
    """The variables of a container so far, and how much text they may still become where they are named.

    A few variables that name one another twice would else be more text than there is memory.
    """

    env: dict[str, str] = field(default_factory=dict[str, str])
    secrets: set[str] = field(default_factory=set[str])  # the names of those that are secrets
    left: int = LARGEST_PROGRAM  # below 0: nothing is replaced any more

    def names_secret(self, value: str) -> bool:
        return any(match[1] in self.secrets for match in _REFERENCE.finditer(value))

    def expand(self, value: str) -> str:
        """`$(NAME)` is the variable's value where there is one; `$$(NAME)` is `$(NAME)`."""
        if "$" not in value:
            return value
        self.left -= sum(len(self.env.get(match[1] or "", "")) for match in _REFERENCE.finditer(value))
        if self.left < 0:
            return value
        return _REFERENCE.sub(lambda m: "$" if m[1] is None else self.env.get(m[1], m[0]), value)


def _origins(pool: str, path: str) -> dict[str, str]:
    return {
        f"{pool}.container_spec.image_uri": f"{path}.image",
        f"{pool}.container_spec": path,
        f"{pool}.machine_spec": f"{path}.resources",
        f"{pool}.disk_spec": f"{path}.resources",
        f"{pool}.nfs_mounts": f"{path}.volumeMounts",
        f"{pool}.scratch_dirs": f"{path}.volumeMounts",
        f"{pool}.replica_count": "spec.completions",
        pool: path,
    }


def plain(value: object) -> Any:
    """The JSON value without empty members, so that equivalent manifests compare equal."""
    if isinstance(value, Mapping):
        kept = {str(k): plain(v) for k, v in cast("Mapping[object, object]", value).items()}
        return {name: item for name, item in kept.items() if item not in (None, {}, [])}
    if isinstance(value, list):
        return [plain(item) for item in cast("list[object]", value)]
    return value

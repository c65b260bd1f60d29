"""Converts a Kubernetes Pod or Job to the body of a customJob. For `manifest.py`. Pure.

Containers become pools, `parallelism` and `completions` become replicas, and the restart policy becomes a
restart rule. `pod.py` reads the Pod. The document may have any shape: `shape.py` reports wrong types, and
this module skips those fields.
"""

from collections.abc import Mapping
from typing import Any, cast

from trainshed.core.queue.machine import Catalogue
from trainshed.dialects.kubernetes.pod import SPOT, PodFields, PodReader, Wanted, annotations_of, job_body
from trainshed.dialects.kubernetes.shape import number, part, parts, text
from trainshed.wire.faults import Faults
from trainshed.wire.scalars import shown

_SPOTS = {"SpotAsPriceGo": "SPOT", "SpotWithPriceLimit": "SPOT", "NoSpot": ""}
RETRIES = 6  # Kubernetes' own backoffLimit
MOST_RESTARTS = 1000  # a Pod is restarted for ever
LONGEST_BACKOFF = "300s"  # Kubernetes' own
DRAIN = "86400s"  # every replica of a Job ends by itself


def convert(document: Mapping[str, Any], catalogue: Catalogue, faults: Faults) -> Wanted:
    """The requested job. Valid only if no faults were recorded."""
    is_job = document.get("kind") == "Job"
    spec, metadata, where = part(document, "spec"), part(document, "metadata"), "spec"
    template = part(spec if is_job else {}, "template")
    pod, inside = (part(template, "spec"), "spec.template.spec") if is_job else (spec, where)
    notes: list[str] = []
    wanted = Wanted(job_body(document, notes), notes=notes)
    annotations = annotations_of(document, template, notes)
    replicas = replicas_of(spec, "spec", faults) if is_job else 1
    fields = PodFields(
        name=text(metadata, "name"),
        namespace=text(metadata, "namespace"),
        labels=part(metadata, "labels"),
        annotations=part(metadata, "annotations"),
    )
    reader = PodReader(
        pod=pod,
        path=inside,
        annotations=annotations,
        fields=fields,
        catalogue=catalogue,
        faults=faults,
        wanted=wanted,
    )
    pools = list(reader.pools(0, replicas, "spec.completions"))
    if len(pools) > 1:
        first = text(parts(pod, "containers")[0], "name") or "the first"
        notes.append(
            f"{inside}.containers: each is a replica with an address of its own, not reached as localhost; "
            f"the job has succeeded when {first} has."
        )
    wanted.is_indexed = is_job and text(spec, "completionMode") == "Indexed"
    if replicas > 1:
        notes.append("The job has succeeded when its first replica has; the others have a day to end.")
    scheduling = _scheduling(document, pod, inside, faults, wanted)
    if replicas > 1 or len(pools) > 1:
        scheduling["drainDuration"] = DRAIN
    if strategy := strategy_of(annotations, faults):
        scheduling["strategy"] = strategy
    wanted.body["jobSpec"] = {"workerPoolSpecs": pools, "scheduling": scheduling}
    return wanted


def replicas_of(spec: Mapping[str, Any], path: str, faults: Faults) -> int:
    """How many Pods a Job runs. `path` is the path of the Job's spec."""
    wide, whole = number(spec, "parallelism"), number(spec, "completions")
    for name, count in (("parallelism", wide), ("completions", whole)):
        if count is not None and count < 1:
            faults.add(f"{path}.{name}", f"must be at least 1, not {count}.")
            return 1
    mode = text(spec, "completionMode")
    if mode not in ("", "Indexed", "NonIndexed"):
        faults.add(f"{path}.completionMode", f"must be Indexed or NonIndexed, not {shown(mode)}.")
    if whole is None:
        return wide or 1
    if (wide or 1) < whole:
        sentence = f"must be {whole}, as completions is: all replicas of a job run at the same time."
        faults.add(f"{path}.parallelism", sentence)
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
    result |= restart_rule(0 if policy == "Never" and not is_job else limit)
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


def restart_rule(restarts: int, retries: int = 0, codes: str = "1-255") -> dict[str, Any]:
    """So many restarts of each replica, then so many of the whole job, after these exit codes."""
    if not restarts and not retries:
        return {"disableRetries": True}
    rule = {"retryExitCodes": [codes], "maxReplicaRestarts": restarts, "maxJobRetries": retries}
    return {"restartRule": {**rule, "maxBackoff": LONGEST_BACKOFF}}


def strategy_of(annotations: Mapping[str, Any], faults: Faults) -> str:
    strategy = text(annotations, SPOT)
    if strategy and strategy not in _SPOTS:
        faults.add(
            f"metadata.annotations.{SPOT}", f"must be one of {', '.join(_SPOTS)}, not {shown(strategy)}."
        )
    return _SPOTS.get(strategy, "")


def plain(value: object) -> Any:
    """The JSON value without empty members, so that equivalent manifests compare equal."""
    if isinstance(value, Mapping):
        kept = {str(k): plain(v) for k, v in cast("Mapping[object, object]", value).items()}
        return {name: item for name, item in kept.items() if item not in (None, {}, [])}
    if isinstance(value, list):
        return [plain(item) for item in cast("list[object]", value)]
    return value

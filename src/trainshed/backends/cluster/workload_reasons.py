"""Why Kueue does not let a pod start: from the pod's gate and its Workload to a typed reason. Pure.

`pod_reasons.py` calls it for a pod that has no node yet. A Workload is what Kueue makes of a group of pods;
its conditions say how far it is. Wordings of older and newer Kueues are known here.
"""

import re

from trainshed.backends.cluster.grouping import GATE, grouping_of
from trainshed.backends.cluster.objects import Object, part, parts
from trainshed.core.event import Reason
from trainshed.core.jobs.launch import QUEUE_LABEL
from trainshed.core.obstacle import Obstacle

_WRONG_REASON = "Misconfigured"
_WRONG_WORDS = re.compile(r"(?:LocalQueue|ClusterQueue) \S* ?(?:doesn't exist|is terminating or missing)")
_NOTHING: Object = {}
_NO_WORDS = "it does not say why"


def is_gated(pod: Object) -> bool:
    """Whether Kueue holds the pod back."""
    return any(gate.get("name") == GATE for gate in parts(part(pod, "spec"), "schedulingGates"))


def slim_workload(workload: Object) -> Object:
    """What is needed of one."""
    meta = part(workload, "metadata")
    return {
        "metadata": {name: meta[name] for name in ("name", "resourceVersion") if name in meta},
        "spec": {"active": part(workload, "spec").get("active", True)},
        "status": {"conditions": parts(part(workload, "status"), "conditions")},
    }


def queue_obstacle(pod: Object, workload: Object | None, compose: str = "") -> Obstacle | None:
    """None where Kueue does not hold it back. `compose` is why Kueue could not make a Workload."""
    queue = str(part(part(pod, "metadata"), "labels").get(QUEUE_LABEL) or "")
    if workload is None:
        return _unseen(queue, compose) if is_gated(pod) else None
    if _condition(workload, "Admitted").get("status") == "True":
        return None
    if part(workload, "spec").get("active") is False:
        words = str(_condition(workload, "Evicted").get("message") or "somebody switched it off")
        return Obstacle(
            reason=Reason.WAITS_IN_CLUSTER_QUEUE,
            message=_sentence(f"Kueue has deactivated its Workload in queue {queue}: {words}"),
            remedy=f"Set spec.active of the Workload to true: kubectl edit workload {grouping_of(pod).name}.",
        )
    reserved = _condition(workload, "QuotaReserved")
    words = str(reserved.get("message") or "")
    if reserved.get("status") == "True":
        words = str(_condition(workload, "Admitted").get("message") or "admission checks have not passed")
        return Obstacle(
            reason=Reason.WAITS_IN_CLUSTER_QUEUE,
            message=_sentence(f"Kueue has reserved quota in queue {queue} and not admitted it yet: {words}"),
            remedy=f"It starts when the checks have passed: {_look(pod)}.",
        )
    if reserved.get("reason") == _WRONG_REASON or _WRONG_WORDS.search(words):
        return Obstacle(
            reason=Reason.CLUSTER_QUEUE_UNUSABLE,
            message=_sentence(f"Kueue cannot queue it in queue {queue}: {words or _NO_WORDS}"),
            remedy=missing_remedy(queue),
        )
    if not words:
        return _unseen(queue, "")
    return Obstacle(
        reason=Reason.WAITS_IN_CLUSTER_QUEUE,
        message=_sentence(f"Kueue has not admitted it in queue {queue}: {words}"),
        remedy=(
            f"It starts when queue {queue} has room: kubectl describe localqueue {queue}. "
            "Ask for less, or have its quota raised."
        ),
    )


def missing_remedy(queue: str) -> str:
    return f"Name a LocalQueue that is there (kubectl get localqueues), or have {queue} made."


def _unseen(queue: str, compose: str) -> Obstacle:
    where = f"queue {queue}" if queue else "this namespace"
    words = f"Kueue makes no Workload of its pods: {compose}" if compose else "Kueue has not looked at it yet"
    return Obstacle(
        reason=Reason.WAITS_IN_CLUSTER_QUEUE,
        message=_sentence(f"Its pod waits for Kueue, which manages {where}. {words}"),
        remedy="It starts by itself, unless Kueue does not run: kubectl -n kueue-system get pods.",
    )


def _look(pod: Object) -> str:
    return f"kubectl describe workload {grouping_of(pod).name}"


def _condition(workload: Object, kind: str) -> Object:
    conditions = parts(part(workload, "status"), "conditions")
    return next((row for row in conditions if row.get("type") == kind), _NOTHING)


def _sentence(words: str) -> str:
    text = " ".join(words.split())
    return text if text.endswith((".", "!", "?")) else f"{text}."

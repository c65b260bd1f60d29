"""Who ended a pod that was not ours to end, and why: a sentence from what Kubernetes says of it. Pure.

`pod_state.py` calls it. A replica that was interrupted starts again without using up its restarts, so a limit
that the pod itself has exceeded is no interruption. Wordings of Kubernetes from 1.20 to today are known here.
"""

from trainshed.backends.cluster.objects import Object, part, parts

# By the reason of the condition DisruptionTarget, which newer versions set before they end a pod.
_DISRUPTIONS = {
    "PreemptionByScheduler": "Kubernetes preempted it for a pod with a higher priority",
    "PreemptionByKubeScheduler": "Kubernetes preempted it for a pod with a higher priority",
    "DeletionByTaintManager": "Kubernetes moved it away from its node because of a taint",
    "EvictionByEvictionAPI": "it was evicted, as for a drain of its node",
    "DeletionByPodGC": "its node is gone",
    "TerminationByKubelet": "its node ended it",
}
# The condition that Kueue sets before it ends a pod, and how its reasons begin.
_BY_KUEUE = "TerminationTarget"
_KUEUES = {
    "WorkloadEvicted": "Kueue evicted it from its queue",
    "WorkloadDeleted": "Kueue ended it because somebody deleted its Workload",
    "NotAdmitted": "Kueue ended it because its Workload is not admitted any more",
    "NoMatchingWorkload": "Kueue ended it because no Workload fits its pods",
}
# By the reason of a pod that has failed. None of these is the program's doing.
_FAILURES = {
    "Evicted": "its node evicted it",
    "Preempting": "its node preempted it for a critical pod",
    "Preempted": "Kubernetes preempted it for a pod with a higher priority",
    "NodeLost": "its node is lost",
    "Shutdown": "its node was shut down",
    "NodeShutdown": "its node was shut down",
    "Terminated": "its node was shut down",
    "NodeAffinity": "its node no longer takes it",
    "UnexpectedAdmissionError": "its node did not take it",
}
_NO_ROOM = "OutOf"  # OutOfcpu, OutOfmemory and the like: the node had less than the scheduler knew
_LOCAL_LIMITS = (
    "exceeds the total limit of containers",
    "local ephemeral storage limit",
    "exceeds the limit",
)


def interruption_of(pod: Object) -> str:
    """Empty where nobody has interrupted it."""
    status = part(pod, "status")
    reason, message = str(status.get("reason") or ""), str(status.get("message") or "")
    if over_disk(pod):
        return ""
    for condition in parts(status, "conditions"):
        if condition.get("type") == "DisruptionTarget" and condition.get("status") == "True":
            word = str(condition.get("reason") or "")
            known = _DISRUPTIONS.get(word, f"Kubernetes ended it ({word})")
            return _sentence(known, str(condition.get("message") or ""))
        if condition.get("type") == _BY_KUEUE and condition.get("status") == "True":
            word = str(condition.get("reason") or "")
            known = next((text for start, text in _KUEUES.items() if word.startswith(start)), "")
            return _sentence(known or f"Kueue ended it ({word})", str(condition.get("message") or ""))
    if reason in _FAILURES:
        return _sentence(_FAILURES[reason], message)
    if reason.startswith(_NO_ROOM):
        return _sentence("its node had no room for it", message or reason)
    return "Somebody deleted its pod." if "deletionTimestamp" in part(pod, "metadata") else ""


def over_disk(pod: Object) -> str:
    """A sentence, where its node evicted it because it filled more disk than it may."""
    status = part(pod, "status")
    message = str(status.get("message") or "").strip()
    is_over = status.get("reason") == "Evicted" and any(words in message for words in _LOCAL_LIMITS)
    return message if is_over else ""


def _sentence(words: str, message: str) -> str:
    text = f"{words[:1].upper()}{words[1:]}"
    message = " ".join(message.split()).rstrip(".")
    return f"{text}: {message}." if message else f"{text}."

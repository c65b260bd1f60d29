"""What a pod object says of its run: whether its init is there, how it ended, why it does not start. Pure.

The backend calls it with objects of the API. It reads every field with care: versions from 1.20 to today
leave out different ones.
"""

from dataclasses import dataclass
from datetime import datetime

from trainshed.backends.cluster.api import Object, part, parts
from trainshed.backends.cluster.pod import CONTAINER

# What the kubelet says of a container that waits, and does so again and again.
_NEVER = frozenset(
    {"ErrImageNeverPull", "InvalidImageName", "CreateContainerConfigError", "CreateContainerError"}
)
_PULLING = frozenset({"ErrImagePull", "ImagePullBackOff", "RegistryUnavailable"})


@dataclass(frozen=True, slots=True, kw_only=True)
class PodState:
    node: str = ""
    address: str = ""  # of the pod; empty: it has none yet
    is_running: bool = False  # its container
    is_over: bool = False  # its container has ended, or the pod failed without one
    record: str = ""  # what the init left
    out_of_memory: bool = False  # Kubernetes says that the kernel killed it for want of memory
    is_evicted: bool = False
    is_leaving: bool = False  # somebody has deleted it
    pull_failure: str = ""  # the registry's words
    waits_for: str = ""  # why it does not run yet, a sentence
    ended_at: datetime | None = None

    @property
    def has_not_begun(self) -> bool:
        """Whether its container has not been started, as far as Kubernetes has said."""
        return not self.is_running and not self.is_over


def state_of(pod: Object) -> PodState:
    status, metadata = part(pod, "status"), part(pod, "metadata")
    ours = [item for item in parts(status, "containerStatuses") if item.get("name") == CONTAINER]
    state = part(ours[0], "state") if ours else {}
    terminated, waiting = part(state, "terminated"), part(state, "waiting")
    return PodState(
        node=str(part(pod, "spec").get("nodeName") or ""),
        address=str(status.get("podIP") or ""),
        is_running="running" in state,
        is_over=bool(terminated) or status.get("phase") in ("Failed", "Succeeded"),
        record=str(terminated.get("message") or ""),
        out_of_memory=terminated.get("reason") == "OOMKilled",
        is_evicted=status.get("reason") == "Evicted",
        is_leaving="deletionTimestamp" in metadata,
        pull_failure=_pull_failure(waiting),
        waits_for=_waits_for(status, waiting),
        ended_at=_moment(terminated.get("finishedAt")),
    )


def _pull_failure(waiting: Object) -> str:
    if waiting.get("reason") not in _PULLING | _NEVER:
        return ""
    return str(waiting.get("message") or waiting.get("reason"))


def _waits_for(status: Object, waiting: Object) -> str:
    for condition in parts(status, "conditions"):
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return f"Kubernetes cannot place it: {condition.get('message') or condition.get('reason')}"
    match waiting.get("reason"):
        case None:
            return "" if status.get("phase") == "Running" else "Kubernetes has not placed it yet."
        case "ContainerCreating" | "PodInitializing":
            return "Its image is being pulled and its volumes are being mounted."
        case reason:
            return f"{reason}: {waiting.get('message') or 'Kubernetes says no more.'}"


def _moment(text: object) -> datetime | None:
    try:
        return datetime.fromisoformat(str(text)) if text else None
    except ValueError:
        return None

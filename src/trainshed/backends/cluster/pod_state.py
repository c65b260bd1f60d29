"""What a pod object says of its run: whether its init is there, how it ended, why it does not start. Pure.

The backend calls it with objects of the API. It reads every field with care: versions from 1.20 to today
leave out different ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from trainshed.backends.cluster.nodes import requested
from trainshed.backends.cluster.objects import Object, part, parts
from trainshed.backends.cluster.pod import CONTAINER, avoided_nodes, meant_node
from trainshed.backends.cluster.pod_interruptions import interruption_of, over_disk
from trainshed.backends.cluster.pod_reasons import PodEvent, obstacle_of
from trainshed.backends.cluster.workload_reasons import is_gated
from trainshed.core.obstacle import PATIENCE, Obstacle, Patience

# What the kubelet says of a container that waits, and does so again and again.
_NEVER = frozenset(
    {"ErrImageNeverPull", "InvalidImageName", "CreateContainerConfigError", "CreateContainerError"}
)
_PULLING = frozenset({"ErrImagePull", "ImagePullBackOff", "RegistryUnavailable"})
_STARTED = frozenset({"Completed", "Error", "OOMKilled"})  # reasons of containers that have run
_MOST_WORDS = 300  # characters of a message


@dataclass(frozen=True, slots=True, kw_only=True)
class PodState:
    node: str = ""
    address: str = ""  # of the pod; empty: it has none yet
    is_running: bool = False  # its container
    is_over: bool = False  # its container has ended, or the pod failed without one
    record: str = ""  # what the init left
    out_of_memory: bool = False  # Kubernetes says that the kernel killed it for want of memory
    interruption: str = ""  # who else ended it and why, a sentence
    over_disk: str = ""  # a sentence, where it was ended because it filled more disk than it may
    is_leaving: bool = False  # somebody has deleted it
    deleted_at: datetime | None = None  # then: to the second, or a little earlier
    is_gated: bool = False  # Kueue holds it back
    pull_failure: str = ""  # the registry's words
    obstacle: Obstacle | None = None  # why it does not run yet
    ended_at: datetime | None = None
    ended_as: str = ""  # what Kubernetes says of the end of its container, a sentence

    @property
    def shows(self) -> tuple[Obstacle | None, str]:
        """What people see of it before its program begins."""
        return self.obstacle, self.node

    @property
    def waits_for(self) -> str:
        """Why it does not run yet, a sentence."""
        return "" if self.obstacle is None else self.obstacle.message

    @property
    def has_not_begun(self) -> bool:
        """Whether its container has not been started, as far as Kubernetes has said."""
        return not self.is_running and not self.is_over


def slim_own_pod(pod: Object) -> Object:
    """What is needed of a pod of ours: that of a large gang has the names of all the others in its spec."""
    meta = part(pod, "metadata")
    kept = (
        "name",
        "namespace",
        "labels",
        "resourceVersion",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    )
    return {
        "metadata": {name: meta[name] for name in kept if name in meta},
        "spec": {name: part(pod, "spec").get(name) for name in ("nodeName", "schedulingGates")},
        "status": part(pod, "status"),
        "takes": requested(part(pod, "spec")),
        "meant": meant_node(pod),
        "avoided": avoided_nodes(pod),
    }


def state_of(
    pod: Object,
    events: Sequence[PodEvent] = (),
    patience: Patience = PATIENCE,
    workload: Object | None = None,
) -> PodState:
    """`events` are those of the pod, the oldest first; `workload` is what Kueue made of its group."""
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
        interruption=interruption_of(pod),
        over_disk=over_disk(pod),
        is_leaving="deletionTimestamp" in metadata,
        deleted_at=_deleted_at(metadata),
        is_gated=is_gated(pod),
        pull_failure=_pull_failure(waiting),
        obstacle=obstacle_of(pod, state, events, patience, workload),
        ended_at=_moment(terminated.get("finishedAt")),
        ended_as=_words_of_end(terminated),
    )


def _words_of_end(terminated: Object) -> str:
    if not terminated:
        return ""
    reason, status = str(terminated.get("reason") or "no reason"), terminated.get("exitCode")
    words = f"Kubernetes says that its container ended with {reason}, exit status {status}"
    # Where it was started, the message is what the init left.
    message = "" if reason in _STARTED else " ".join(str(terminated.get("message") or "").split())
    return f"{words}: {message[:_MOST_WORDS]}." if message else f"{words}."


def _pull_failure(waiting: Object) -> str:
    if waiting.get("reason") not in _PULLING | _NEVER:
        return ""
    return str(waiting.get("message") or waiting.get("reason"))


def _deleted_at(metadata: Object) -> datetime | None:
    """Kubernetes says until when the pod has time."""
    until = _moment(metadata.get("deletionTimestamp"))
    return until and until - timedelta(seconds=int(metadata.get("deletionGracePeriodSeconds") or 0))


def _moment(text: object) -> datetime | None:
    try:
        return datetime.fromisoformat(str(text)) if text else None
    except ValueError:
        return None

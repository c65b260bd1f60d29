"""Why a pod does not start: a table from its conditions, its container and its events to a reason. Pure.

`pod_state.py` calls it for each pod that has not begun, `backend.py` for a pod that the API server does not
take. Sentences say how many nodes are in the way for what, and have the words of the scheduler, the registry,
the kubelet or the webhook. Wordings of Kubernetes from 1.20 to today are known here and nowhere else.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from trainshed.backends.cluster.api import ApiFault
from trainshed.backends.cluster.objects import Object, part, parts
from trainshed.backends.cluster.workload_reasons import queue_obstacle
from trainshed.core.errors import Hindered, Unavailable
from trainshed.core.event import Reason
from trainshed.core.obstacle import PATIENCE, Obstacle, Patience

_PULLING = frozenset(
    {"ErrImagePull", "ImagePullBackOff", "RegistryUnavailable", "InvalidImageName", "ErrImageNeverPull"}
)
_MOUNTING = frozenset({"FailedMount", "FailedAttachVolume", "FailedMapVolume"})
_MISSING = re.compile(
    r"""(?:(secret|configmap)s? "([^"]+)" not found|couldn't find key (\S+) in (\w+) (\S+))"""
)
_NODES = re.compile(r"^\s*0/(\d+) nodes are available: (.*)$", re.DOTALL)
# What else the scheduler has tried, after the reasons of the nodes.
_TRIED = re.compile(r"\.?\s*(?:preemption: |no new claims to deallocate).*$", re.DOTALL)
_TAINT = re.compile(r"^(?:untolerated )?taints? (\{.*\})")
_COUNTED = re.compile(r"(?:^|, )(\d+) (.*?)(?=, \d+ |$)", re.DOTALL)
_SCALING = ("TriggeredScaleUp", "NotTriggerScaleUp")
_CONDITION = "Kubernetes cannot place it"


@dataclass(frozen=True, slots=True)
class PodEvent:
    """What Kubernetes noted about a pod."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class _Finding:
    """Nodes that cannot take a pod, and what would change that."""

    words: str
    remedy: str


def obstacle_of(
    pod: Object,
    container: Object,
    events: Sequence[PodEvent] = (),
    patience: Patience = PATIENCE,
    workload: Object | None = None,
) -> Obstacle | None:
    """Of a pod whose program has not begun. `container` is its container's state; old events come first.

    `workload` is what Kueue made of its group. None where its container runs or has ended.
    """
    if "running" in container or "terminated" in container:
        return None
    obstacle = (
        _unplaced(pod, events, workload)
        or _container(part(container, "waiting"), events)
        or _placed(pod, events)
    )
    return None if obstacle is None else replace(obstacle, patience=patience.get(obstacle.reason))


def hindered(fault: ApiFault, what: str, patience: Patience = PATIENCE) -> Unavailable:
    """Why an object could not be created: an obstacle where it was refused; else it may go well later."""
    is_race = fault.reason == "Conflict"  # pods of a gang that are counted against a quota at the same time
    if is_race or (fault.passing and "webhook" not in fault.message):
        return fault.as_unavailable(what)
    words = f"{what}: {fault.message}"
    if "exceeded quota" in fault.message or "failed quota" in fault.message:
        reason, remedy = (
            Reason.QUOTA_EXCEEDED,
            "It starts when others in the namespace end. Ask for less, or have the ResourceQuota raised: "
            "kubectl describe resourcequota.",
        )
    elif "webhook" in fault.message:
        reason, remedy = Reason.CREATION_REFUSED, "Ask who runs that webhook what it wants of pods."
    elif "cannot create resource" in fault.message:
        reason, remedy = (
            Reason.CREATION_REFUSED,
            "Give the account of the server that right.",
        )
    else:
        reason, remedy = Reason.CREATION_REFUSED, "Change what the cluster's words name, in the job or there."
    return Hindered(
        Obstacle(reason=reason, message=_sentence(words), remedy=remedy, patience=patience.get(reason))
    )


# Before it has a node


def _unplaced(pod: Object, events: Sequence[PodEvent], workload: Object | None) -> Obstacle | None:
    if part(pod, "spec").get("nodeName"):
        return None
    queued = queue_obstacle(pod, workload, _last(events, "ErrWorkloadCompose"))
    if queued is not None:
        return queued
    message = ""
    for condition in parts(part(pod, "status"), "conditions"):
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            message = str(condition.get("message") or condition.get("reason") or "")
    message = message or _last(events, "FailedScheduling")
    if not message:
        return Obstacle(
            reason=Reason.STARTING,
            message="Kubernetes has not placed it yet.",
            remedy="It is placed by itself, unless no scheduler runs.",
        )
    words, remedy = _unschedulable(message)
    scaling = next((event for event in reversed(events) if event.reason in _SCALING), None)
    if scaling is not None and scaling.reason == "TriggeredScaleUp":
        return Obstacle(
            reason=Reason.SCALING_UP,
            message=_sentence(f"The cluster's autoscaler adds nodes for it: {scaling.message}"),
            remedy="It starts when they are there.",
        )
    if scaling is not None:
        words = f"{words.rstrip('.')}; the autoscaler cannot help: {scaling.message}"
    return Obstacle(reason=Reason.UNSCHEDULABLE, message=_sentence(words), remedy=remedy)


def _unschedulable(message: str) -> tuple[str, str]:
    """The scheduler's words, with how many nodes are in the way for what; and what would change it."""
    match = _NODES.match(message)
    if match is None:
        return f"{_CONDITION}: {message}", _other_remedy(message)
    total, rest = match.group(1), _TRIED.sub("", match.group(2)).strip().rstrip(".")
    findings = [_finding(int(count), words) for count, words in _COUNTED.findall(rest)]
    if not findings:
        return f"{_CONDITION}: {message}", _other_remedy(message)
    noun = "its only node" if total == "1" else f"{total} nodes"
    listed = "; ".join(finding.words for finding in findings)
    remedies = dict.fromkeys(finding.remedy for finding in findings if finding.remedy)
    return f"{_CONDITION}. Of {noun} in the cluster: {listed}.", " ".join(remedies)


def _finding(count: int, words: str) -> _Finding:
    noun, has, lacks = ("node", "has", "lacks") if count == 1 else ("nodes", "have", "lack")
    words = words.strip().rstrip(",.")
    if words.startswith("Insufficient "):
        name = words.removeprefix("Insufficient ")
        free = f"Ask for less {name}, wait until others end, or add nodes."
        return _Finding(f"{count} {lacks} free {name}", free)
    words = words.removeprefix("node(s) ").removeprefix("had ")
    if (taint := _TAINT.match(words)) is not None:
        key = taint.group(1).strip("{}").partition(":")[0]
        text = f"{count} {has} the taint {taint.group(1)}"
        return _Finding(text, f"Take the taint off where it is not needed: kubectl taint nodes NODE {key}-")
    if words.startswith("were unschedulable"):
        return _Finding(f"{count} {has} been cordoned", "Let pods onto them again: kubectl uncordon NODE.")
    if words.startswith(("didn't match", "did not match")):
        what = words.partition("match ")[2].removeprefix("Pod's ").removeprefix("the ").rstrip(",")
        return _Finding(f"{count} {noun} {'is' if count == 1 else 'are'} not meant by its {what}", "")
    if words.startswith("Too many pods"):
        return _Finding(f"{count} {has} as many pods as allowed", "Wait until others end, or add nodes.")
    return _Finding(f"{count} {noun}: {words}", _other_remedy(words))


def _other_remedy(words: str) -> str:
    if "persistentvolumeclaim" in words.lower():
        return "See to the volume: kubectl describe pvc."
    return ""


# On its node


def _container(waiting: Object, events: Sequence[PodEvent]) -> Obstacle | None:
    reason, words = str(waiting.get("reason") or ""), str(waiting.get("message") or "")
    if reason in _PULLING:
        # While the kubelet backs off, older ones say only that.
        pull_words = _last(events, "Failed", containing="pull image")
        words = pull_words if (not words or words.startswith("Back-off")) and pull_words else words
        return Obstacle(
            reason=Reason.IMAGE_UNAVAILABLE,
            message=_sentence(f"Its image cannot be pulled ({reason}): {words or 'Kubernetes says no more'}"),
            remedy="Check the image's name and tag, and the namespace's imagePullSecrets. Nodes try again.",
        )
    if reason in ("CreateContainerConfigError", "CreateContainerError", "RunContainerError"):
        return _missing(words) or Obstacle(
            reason=Reason.LAUNCH_FAILED,
            message=_sentence(f"Its container cannot be started ({reason}): {words or 'no more is said'}"),
            remedy="Correct what the message names.",
        )
    return None


def _placed(pod: Object, events: Sequence[PodEvent]) -> Obstacle | None:
    if part(pod, "status").get("phase") in ("Failed", "Succeeded"):
        return None
    for event in reversed(events):
        if event.reason in ("Pulling", "Pulled"):  # what was in the way before is not any more
            break
        if event.reason in _MOUNTING:
            return _missing(event.message) or Obstacle(
                reason=Reason.MOUNT_FAILED,
                message=_sentence(f"A volume of it cannot be mounted: {event.message}"),
                remedy="See to the volume or to its server. The node tries again by itself.",
            )
        if event.reason in ("FailedCreatePodSandBox", "NetworkNotReady"):
            return Obstacle(
                reason=Reason.LAUNCH_FAILED,
                message=_sentence(f"Its node cannot make a place for it: {event.message}"),
                remedy="The node tries again by itself. See to its network and its container runtime.",
            )
    return Obstacle(
        reason=Reason.STARTING,
        message="Its image is being pulled and its volumes are being mounted.",
        remedy="It starts by itself.",
    )


def _missing(words: str) -> Obstacle | None:
    match = _MISSING.search(words)
    if match is None:
        return None
    kind, name = match.group(1), match.group(2)
    if kind:
        what = f"{'Secret' if kind == 'secret' else 'ConfigMap'} {name} is not there"
    else:
        what = f"{match.group(4)} {match.group(5)} has no key {match.group(3)}"
    return Obstacle(
        reason=Reason.CONFIG_MISSING,
        message=_sentence(f"{what}: {words}"),
        remedy="Make it again, and the pod starts by itself; or cancel the job and submit it again.",
    )


def _last(events: Sequence[PodEvent], reason: str, containing: str = "") -> str:
    return next((e.message for e in reversed(events) if e.reason == reason and containing in e.message), "")


def _sentence(words: str) -> str:
    text = " ".join(words.split())
    return text if text.endswith((".", "!", "?")) else f"{text}."

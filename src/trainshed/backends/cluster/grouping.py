"""Groups of pods: what makes Kueue or Kubernetes' own scheduler treat the pods of an attempt as one. Pure.

`cluster_queues.py` chooses the grouping of a run, `pod.py` writes it into the pod, `job_objects.py` removes
what stands for it in the cluster. Words of Kueue and of PodGroup stand here and in `workload_reasons.py`.
"""

import hashlib
from dataclasses import dataclass

from trainshed.backends.cluster.objects import Object, part
from trainshed.core.jobs.launch import QUEUE_LABEL
from trainshed.core.names import ReplicaName

KUEUE = "kueue.x-k8s.io"
GATE = f"{KUEUE}/admission"  # Kueue puts it on pods that it has not admitted
MANAGED = f"{KUEUE}/managed"  # label and finalizer of pods that Kueue looks after
GROUP_NAME = f"{KUEUE}/pod-group-name"
_TOTAL_COUNT = f"{KUEUE}/pod-group-total-count"
POD_GROUP = "trainshed.dev/pod-group"  # label of pods that refer to a PodGroup
_LONGEST = 63  # characters of a label's value


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """Of a run's pod. With a queue it is Kueue's, without one a PodGroup; without a name there is none."""

    name: str = ""  # also that of the Workload or of the PodGroup
    queue: str = ""  # a LocalQueue
    count: int = 1  # pods of the attempt; 0: nobody has decided yet how they are grouped

    @property
    def labels(self) -> dict[str, str]:
        if self.queue:
            return {QUEUE_LABEL: self.queue, GROUP_NAME: self.name}
        return {POD_GROUP: self.name} if self.name else {}

    @property
    def annotations(self) -> dict[str, str]:
        return {_TOTAL_COUNT: str(self.count)} if self.queue else {}

    @property
    def spec(self) -> Object:
        return {"schedulingGroup": {"podGroupName": self.name}} if self.name and not self.queue else {}


ALONE = Grouping()
UNDECIDED = Grouping(count=0)


def group_name(base: str, name: ReplicaName) -> str:
    """One for each attempt of a job. `base` is the name of the job's service."""
    text = f"{base}-{name.attempt}"
    if len(text) <= _LONGEST:
        return text
    return f"ts-{hashlib.sha256(base.encode()).hexdigest()[:16]}-{name.attempt}"


def grouping_of(pod: Object) -> Grouping:
    """Of a pod that is there."""
    labels = part(part(pod, "metadata"), "labels")
    if labels.get(QUEUE_LABEL) and labels.get(GROUP_NAME):
        return Grouping(name=str(labels[GROUP_NAME]), queue=str(labels[QUEUE_LABEL]))
    return Grouping(name=str(labels.get(POD_GROUP) or ""))


def unmanaged_note(grouping: Grouping, pod: Object) -> str:
    """A sentence, where Kueue let a pod pass that was to wait in its queue."""
    if not grouping.queue or part(part(pod, "metadata"), "labels").get(MANAGED):
        return ""
    return (
        f"Kueue did not take its pod into queue {grouping.queue}: its integration of pods is off, "
        "or does not cover this namespace."
    )


def render_pod_group(grouping: Grouping, labels: dict[str, str]) -> Object:
    """All pods of the gang are placed, or none."""
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": grouping.name, "labels": labels},
        "spec": {"schedulingPolicy": {"gang": {"minCount": grouping.count}}},
    }

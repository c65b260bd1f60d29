"""What the doctor says of a cluster: answers of its API to findings, with the command that mends each. Pure.

`checks.py` asks, and calls this with what it was answered.
"""

import re
import shlex
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from trainshed.backends.cluster.api import ApiFault
from trainshed.backends.cluster.nodes import quantity
from trainshed.backends.cluster.objects import Object, part, parts
from trainshed.backends.cluster.pod_template import ARCHITECTURES, GPU, NOTHING_MORE, PodTemplate
from trainshed.backends.cluster.rights import LEASES, Reach, Right
from trainshed.core.checkup import Finding, Grade

LEAST = (1, 20)
DEFAULT = "default"  # the storage class that the cluster has chosen
_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"


@dataclass(frozen=True, slots=True)
class RightsHolder:
    """For whom rights are asked, and where jobs are to run."""

    namespace: str
    account: str = ""  # NAMESPACE:NAME of a service account; empty where a kubeconfig says who asks

    @property
    def subject(self) -> str:
        """As `kubectl create rolebinding` takes it."""
        return f"--serviceaccount={self.account}" if self.account else "--user=YOUR-USER"


def version(answer: Object) -> Finding:
    text = str(answer.get("gitVersion") or "an unknown version")
    numbers = re.match(r"v?(\d+)\.(\d+)", text)
    if numbers is None or (int(numbers[1]), int(numbers[2])) >= LEAST:
        return Finding(what="version", grade=Grade.OK, sentence=f"Kubernetes {text}")
    least = ".".join(map(str, LEAST))
    sentence = f"Kubernetes {text} is older than {least}"
    return Finding(
        what="version",
        grade=Grade.MISSING,
        sentence=sentence,
        remedy=f"upgrade the cluster to {least} or newer",
    )


def unreachable(fault: ApiFault) -> Finding:
    if fault.status in (401, 403):
        remedy = "renew the credentials of the kubeconfig, and try: kubectl auth can-i list pods"
    else:
        remedy = "check the address and the network: kubectl cluster-info"
    return Finding(what="API", grade=Grade.MISSING, sentence=fault.message, remedy=remedy)


def right(wanted: Right, refused: Collection[str], who: RightsHolder) -> Finding:
    """`refused` are the verbs that the cluster does not allow."""
    place = who.namespace if wanted.reach is Reach.NAMESPACE else ""
    where = f"namespace {place}" if place else str(wanted.reach)
    what = f"right {wanted.resource}"
    if not refused:
        sentence = f"{', '.join(wanted.verbs)} {wanted.resource} in {where}"
        return Finding(what=what, grade=Grade.OK, sentence=sentence)
    verbs = [verb for verb in wanted.verbs if verb in refused]
    sentence = f"it may not {', '.join(verbs)} {wanted.resource} in {where}"
    if wanted.is_optional:
        sentence += f": {wanted.without}"
    return Finding(
        what=what,
        grade=Grade.WARNING if wanted.is_optional else Grade.MISSING,
        sentence=sentence,
        remedy=_grant(wanted, verbs, who),
    )


def _grant(wanted: Right, verbs: Sequence[str], who: RightsHolder) -> str:
    words = wanted.resource.split("/") + wanted.group.split(".")[:1]
    name = "-".join(filter(None, ["trainshed", *words]))  # one for each right
    resource = f"{wanted.resource}.{wanted.group}" if wanted.group else wanted.resource
    rule = f"--verb={','.join(verbs)} --resource={resource}"
    if wanted.reach is Reach.CLUSTER:
        return (
            f"kubectl create clusterrole {name} {rule} && "
            f"kubectl create clusterrolebinding {name} --clusterrole={name} {who.subject}"
        )
    place = f"-n {LEASES if wanted.reach is Reach.NODE_LEASES else who.namespace}"
    return (
        f"kubectl {place} create role {name} {rule} && "
        f"kubectl {place} create rolebinding {name} --role={name} {who.subject}"
    )


def admission(fault: ApiFault | None, namespace: str) -> Finding:
    """What became of a pod like that of a job, which the API server only pretended to create."""
    if fault is None:
        sentence = f"namespace {namespace} takes pods of jobs"
        return Finding(what="namespace", grade=Grade.OK, sentence=sentence)
    if fault.is_missing:
        sentence = f"there is no namespace {namespace}"
        remedy = f"kubectl create namespace {shlex.quote(namespace)}"
        return Finding(what="namespace", grade=Grade.MISSING, sentence=sentence, remedy=remedy)
    if fault.reason == "Forbidden" and "cannot create resource" in fault.message:
        sentence = "whether it takes pods is not known without the right to create them"
        return Finding(
            what="namespace", grade=Grade.WARNING, sentence=sentence, remedy="see the rights above"
        )
    return Finding(
        what="namespace",
        grade=Grade.MISSING,
        sentence=f"a pod of a job is refused: {fault.message}",
        remedy=f"kubectl -n {namespace} get resourcequota,limitrange; look for admission policies",
    )


def no_kueue(queue: str) -> Finding:
    return Finding(
        what="queue",
        grade=Grade.MISSING,
        sentence=f"jobs are to wait in queue {queue} of Kueue, which is not installed",
        remedy="have Kueue installed, with its integration of pods switched on, or leave --kueue-queue out",
    )


def unusable_queue(queue: str, namespace: str, fault: ApiFault) -> Finding:
    if not fault.is_missing:
        return unseen("queue", fault)
    sentence = f"Kueue has no LocalQueue {queue} in namespace {namespace}"
    remedy = f"kubectl -n {namespace} get localqueues"
    return Finding(what="queue", grade=Grade.MISSING, sentence=sentence, remedy=remedy)


def queue(local: Object, is_managed: bool) -> Finding:
    """`is_managed`: Kueue would make a pod wait."""
    name = str(part(local, "metadata")["name"])
    where = f"LocalQueue {name} of ClusterQueue {part(local, 'spec').get('clusterQueue')}"
    conditions = parts(part(local, "status"), "conditions")
    stopped = [row for row in conditions if row.get("type") == "Active" and row.get("status") == "False"]
    if stopped:
        return Finding(
            what="queue",
            grade=Grade.MISSING,
            sentence=f"{where} is not active: {stopped[0].get('message') or 'it does not say why'}",
            remedy=f"kubectl describe localqueue {name}",
        )
    if not is_managed:
        return Finding(
            what="queue",
            grade=Grade.WARNING,
            sentence=f"{where} is active, but Kueue lets pods of this namespace start without waiting in it",
            remedy="add pod to integrations.frameworks of Kueue's configuration, and have "
            "managedJobsNamespaceSelector cover the namespace",
        )
    return Finding(what="queue", grade=Grade.OK, sentence=f"{where} is active")


def nodes(items: Sequence[Object], machine: str, template: PodTemplate = NOTHING_MORE) -> Finding:
    """`machine` is the processor of the server, as the kernel calls it."""
    own = ARCHITECTURES.get(machine, machine)
    ready = [item for item in items if template.is_taken_by(item)]
    fitting = [item for item in ready if _architecture(item) == own]
    if fitting:
        others = len(items) - len(fitting)
        text = f"{len(fitting)} of {len(items)} nodes take pods of jobs"
        if not others:
            return Finding(what="nodes", grade=Grade.OK, sentence=text)
        why = "the others are not ready, are tainted or cordoned, or have another architecture"
        return Finding(
            what="nodes", grade=Grade.WARNING, sentence=f"{text}: {why}", remedy="kubectl get nodes -o wide"
        )
    if ready:
        kinds = ", ".join(sorted({_architecture(item) for item in ready}))
        sentence = f"all nodes are {kinds}, and the server is {own}: the init of pods would not run there"
        return Finding(
            what="nodes",
            grade=Grade.MISSING,
            sentence=sentence,
            remedy=f"run the server on {kinds}, or add nodes",
        )
    sentence = f"no node takes pods: {len(items)} are there, not ready, tainted or cordoned"
    return Finding(what="nodes", grade=Grade.MISSING, sentence=sentence, remedy="kubectl describe nodes")


def architecture(items: Sequence[Object], name: str) -> str:
    """Of the node of that name; empty where it is not known."""
    return next((_architecture(item) for item in items if part(item, "metadata").get("name") == name), "")


def pulled(image: str, failure: str, node: str, image_is_for: Collection[str]) -> Finding:
    """`failure`: why it was not pulled. `node`: the architecture of the node that tried."""
    where = f"a node with {node}" if node else "a node"
    kinds = " and ".join(sorted(image_is_for))
    if image_is_for and node and node not in image_is_for:
        return Finding(
            what="image",
            grade=Grade.MISSING,
            sentence=f"{image} is for {kinds}, and {where} is where pods of jobs go",
            remedy=f"build the image for {node} too: docker buildx build --platform linux/{node}",
        )
    if not failure:
        return Finding(what="image", grade=Grade.OK, sentence=f"{where} has pulled {image}")
    remedy = "check its name; for a private registry: kubectl create secret docker-registry"
    tried = f" ({where} tried)" if node else ""
    return Finding(what="image", grade=Grade.MISSING, sentence=f"{image}: {failure}{tried}", remedy=remedy)


def _architecture(node: Object) -> str:
    return str(part(part(node, "status"), "nodeInfo").get("architecture") or "")


def gpus(items: Sequence[Object]) -> Finding:
    counts = [quantity(part(part(item, "status"), "allocatable").get(GPU)) for item in items]
    if total := int(sum(counts)):
        having = sum(1 for count in counts if count)
        return Finding(what="GPUs", grade=Grade.OK, sentence=f"{total} on {having} nodes")
    return Finding(what="GPUs", grade=Grade.OK, sentence=f"none: no node offers {GPU}")


def storage(items: Sequence[Object], wanted: str) -> Finding:
    """For the claim of the chart. `wanted` is DEFAULT for the cluster's own class."""
    names = [str(part(item, "metadata")["name"]) for item in items]
    standard = [
        str(part(item, "metadata")["name"])
        for item in items
        if part(part(item, "metadata"), "annotations").get(_DEFAULT_CLASS) == "true"
    ]
    known = f"there are {', '.join(names)}" if names else "there is none"
    if wanted != DEFAULT and wanted not in names:
        return Finding(
            what="storage",
            grade=Grade.MISSING,
            sentence=f"there is no storage class {wanted}: {known}",
            remedy="kubectl get storageclass",
        )
    if wanted != DEFAULT or standard:
        name = standard[0] if wanted == DEFAULT else wanted
        return Finding(what="storage", grade=Grade.OK, sentence=f"storage class {name}")
    return Finding(
        what="storage",
        grade=Grade.MISSING,
        sentence=f"no storage class is the default, so a claim that names none waits for ever; {known}",
        remedy="name one in volume.storageClass of the chart, or make a volume and a claim by hand",
    )


def names(services: Sequence[Object]) -> Finding:
    if services:
        name = part(services[0], "metadata").get("name")
        return Finding(what="DNS", grade=Grade.OK, sentence=f"service {name} in kube-system")
    return Finding(
        what="DNS",
        grade=Grade.WARNING,
        sentence="no service of kube-system has the label k8s-app=kube-dns: replicas may not find each other",
        remedy="kubectl -n kube-system get pods -l k8s-app=kube-dns",
    )


def unseen(what: str, fault: ApiFault) -> Finding:
    """Something that an administrator sees, and this identity does not."""
    sentence = f"not looked at: {fault.message}"
    return Finding(what=what, grade=Grade.WARNING, sentence=sentence, remedy="run doctor as an administrator")

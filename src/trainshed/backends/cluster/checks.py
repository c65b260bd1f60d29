"""Asks a cluster for all that a server needs of it. `trainshed doctor --kubernetes` runs it.

Nothing is changed: rights are asked for, and a pod is created only as a trial (dryRun). With an image one
pod is made that pulls it, and removed. Every question ends, and one that fails is a finding like the others.
"""

import asyncio
import base64
import contextlib
import json
import platform
import socket
import uuid
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

from lightkube.config.kubeconfig import SERVICE_ACCOUNT

from trainshed.backends.cluster import check_words as words
from trainshed.backends.cluster.api import ApiFault, ClusterApi
from trainshed.backends.cluster.grouping import MANAGED, Grouping
from trainshed.backends.cluster.images import PULLED
from trainshed.backends.cluster.objects import Object, part, parts
from trainshed.backends.cluster.pod import CONTAINER, PORT
from trainshed.backends.cluster.pod_state import state_of
from trainshed.backends.cluster.pod_template import NOTHING_MORE, PodTemplate
from trainshed.backends.cluster.registry import RegistryClient, RegistryFault
from trainshed.backends.cluster.rights import LEASES, QUEUE_RIGHTS, RIGHTS, Reach, Right
from trainshed.backends.machine.compiled import compiled
from trainshed.core.checkup import Finding, Grade
from trainshed.core.supplies.image import Reference, parse

_INIT = Path(__file__).with_name("pod_init.c")
_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_PULL = 120.0  # seconds for a small image
_LEAST = {"cpu": "1m", "memory": "16Mi"}
_CONNECT = 2.0  # seconds


async def check_cluster(
    api: ClusterApi,
    tools: Path,
    *,
    image: str = "",
    storage_class: str = "",
    template: PodTemplate = NOTHING_MORE,
    queue: str = "",
) -> AsyncGenerator[Finding]:
    """Each finding as soon as it is known. `tools` is where the init is compiled, `queue` one of Kueue."""
    try:
        yield words.version(await api.ask("GET", "/version"))
        who = words.RightsHolder(api.namespace, _account())
        refused = await _refused(api, (*RIGHTS, *QUEUE_RIGHTS) if queue else RIGHTS)
    except ApiFault as fault:
        yield words.unreachable(fault)
        return
    for right, verbs in refused.items():
        yield words.right(right, verbs, who)
    ours = template.for_machine(platform.machine())
    yield await _admission(api, ours)
    if queue:
        yield await _queue(api, queue, ours)
    items: Sequence[Object] = ()
    try:
        items = parts(await api.list("nodes"), "items")
        yield words.nodes(items, platform.machine(), template)
        yield words.gpus(items)
    except ApiFault as fault:
        yield words.unseen("nodes", fault)
    yield await _names(api)
    if storage_class:
        yield await _storage(api, storage_class)
    yield await asyncio.to_thread(_init, tools)
    yield await _reach(
        api, may_forward=not any(verbs for right, verbs in refused.items() if "/" in right.resource)
    )
    if image:
        yield await _pulled(api, image, ours, items)


def _account() -> str:
    """NAMESPACE:NAME of the service account whose token is mounted; empty outside of pods."""
    try:
        payload = Path(SERVICE_ACCOUNT, "token").read_text().split(".")[1]
        subject = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))["sub"]
    except (OSError, ValueError, LookupError, TypeError):
        return ""
    return str(subject).removeprefix("system:serviceaccount:")


async def _refused(api: ClusterApi, wanted: Sequence[Right]) -> dict[Right, set[str]]:
    """The verbs that the cluster does not allow, of each right to something that it has."""
    answer = await api.ask("GET", "/apis")
    served = {"", *(str(group.get("name")) for group in parts(answer, "groups"))}
    rights = [right for right in wanted if right.group in served]
    if not await api.serves("podgroups"):
        rights = [right for right in rights if right.resource != "podgroups"]

    async def is_allowed(right: Right, verb: str) -> bool:
        places = {Reach.NAMESPACE: api.namespace, Reach.NODE_LEASES: LEASES, Reach.CLUSTER: ""}
        resource, _, sub = right.resource.partition("/")
        asked = {"namespace": places[right.reach], "verb": verb, "group": right.group, "resource": resource}
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {**asked, **({"subresource": sub} if sub else {})}},
        }
        return bool(part(await api.ask("POST", _REVIEWS, body=review), "status").get("allowed"))

    pairs = [(right, verb) for right in rights for verb in right.verbs]
    answers = await asyncio.gather(*(is_allowed(right, verb) for right, verb in pairs))
    refused: dict[Right, set[str]] = {right: set() for right in rights}
    for (right, verb), allowed in zip(pairs, answers, strict=True):
        if not allowed:
            refused[right].add(verb)
    return refused


async def _admission(api: ClusterApi, template: PodTemplate) -> Finding:
    """Whether a pod would be taken: by the namespace, its quota, and whoever else has a say."""
    try:
        body = trial_pod("trainshed-doctor", "localhost/none", template)
        await api.ask("POST", api.path("pods"), params={"dryRun": "All"}, body=body)
    except ApiFault as fault:
        return words.admission(fault, api.namespace)
    return words.admission(None, api.namespace)


async def _queue(api: ClusterApi, queue: str, template: PodTemplate) -> Finding:
    """Whether Kueue has that queue, and would make a pod wait in it."""
    try:
        if not await api.serves("localqueues"):
            return words.no_kueue(queue)
        local = await api.get("localqueues", queue)
        group = Grouping(name="trainshed-doctor", queue=queue)
        body = trial_pod("trainshed-doctor", "localhost/none", template)
        for name, more in (("labels", group.labels), ("annotations", group.annotations)):
            body["metadata"][name] = {**part(body["metadata"], name), **more}
        pod = await api.ask("POST", api.path("pods"), params={"dryRun": "All"}, body=body)
    except ApiFault as fault:
        return words.unusable_queue(queue, api.namespace, fault)
    return words.queue(local, bool(part(part(pod, "metadata"), "labels").get(MANAGED)))


async def _names(api: ClusterApi) -> Finding:
    if _account():  # inside, the name of the API itself must resolve
        try:
            await asyncio.to_thread(socket.getaddrinfo, "kubernetes.default.svc", 443)
        except OSError as error:
            remedy = "kubectl -n kube-system get pods -l k8s-app=kube-dns"
            sentence = f"kubernetes.default.svc does not resolve in this pod: {error}"
            return Finding(what="DNS", grade=Grade.MISSING, sentence=sentence, remedy=remedy)
        return Finding(what="DNS", grade=Grade.OK, sentence="names of services resolve in this pod")
    try:
        path = "/api/v1/namespaces/kube-system/services"
        answer = await api.ask("GET", path, params={"labelSelector": "k8s-app=kube-dns"})
    except ApiFault as fault:
        return words.unseen("DNS", fault)
    return words.names(parts(answer, "items"))


async def _storage(api: ClusterApi, wanted: str) -> Finding:
    try:
        answer = await api.ask("GET", "/apis/storage.k8s.io/v1/storageclasses")
    except ApiFault as fault:
        return words.unseen("storage", fault)
    return words.storage(parts(answer, "items"), wanted)


def _init(tools: Path) -> Finding:
    if compiled(_INIT, tools, kinds=(("-static", "-s"),)) is not None:
        return Finding(what="init", grade=Grade.OK, sentence="the init of pods is there")
    return Finding(
        what="init",
        grade=Grade.MISSING,
        sentence="the init of pods cannot be compiled here",
        remedy="apt-get install gcc libc6-dev",
    )


async def _reach(api: ClusterApi, *, may_forward: bool) -> Finding:
    """Whether pods' addresses lead there from here: one that refuses a connection has been reached."""
    with contextlib.suppress(ApiFault):
        running = [
            str(part(pod, "status")["podIP"])
            for pod in parts(await api.list("pods", everywhere=True), "items")
            if part(pod, "status").get("podIP") and part(pod, "status").get("phase") == "Running"
            if not part(pod, "spec").get("hostNetwork")
        ]
        for address in running[:3]:
            if await asyncio.to_thread(_answers, address):
                return Finding(what="reach", grade=Grade.OK, sentence="pods are reached by their addresses")
        if not running:
            return Finding(what="reach", grade=Grade.OK, sentence="no pod runs now to try a connection with")
    if may_forward:
        sentence = "pods' addresses do not lead there from here: connections go through the API server"
        return Finding(what="reach", grade=Grade.OK, sentence=sentence)
    return Finding(
        what="reach",
        grade=Grade.MISSING,
        sentence="pods are reached neither by their addresses nor through the API server",
        remedy="grant pods/portforward (above), or run the server in the cluster",
    )


def _answers(address: str) -> bool:
    try:
        with socket.create_connection((address, PORT), _CONNECT):
            return True
    except ConnectionRefusedError:
        return True
    except OSError:
        return False


async def _pulled(api: ClusterApi, image: str, template: PodTemplate, nodes: Sequence[Object]) -> Finding:
    name, node = f"trainshed-doctor-{uuid.uuid4().hex[:8]}", ""
    state, why, is_there = None, "", False
    try:
        await api.create("pods", trial_pod(name, image, template))
        async with asyncio.timeout(_PULL):
            while not is_there and not why:
                state = state_of(await api.get("pods", name))
                node, why = state.node, state.pull_failure
                is_there = state.is_running or state.is_over
                if not is_there and not why:
                    await asyncio.sleep(0.5)
    except ApiFault as fault:
        why = fault.message
    except TimeoutError:
        why = f"not within {_PULL:.0f} s. {state.waits_for if state else ''}".strip()
    finally:
        with contextlib.suppress(ApiFault):
            await api.delete("pods", name, grace=0)
    return words.pulled(image, why, words.architecture(nodes, node), await _architectures(image))


async def _architectures(image: str) -> frozenset[str]:
    """Those that the image is for; none where its registry does not tell everybody."""

    async def nobody(_: Reference) -> None:
        return None

    try:
        return await RegistryClient(nobody).architectures(parse(image))
    except (RegistryFault, ValueError):
        return frozenset()


def trial_pod(name: str, image: str, template: PodTemplate) -> Object:
    """A small pod that goes where pods of jobs go."""
    container = {
        "name": CONTAINER,
        "image": image,
        "command": ["true"],
        "resources": {"limits": _LEAST, "requests": _LEAST},
    }
    pod: Object = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {PULLED: "doctor"}},
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 0,
            "containers": [container],
        },
    }
    return template.added_to(pod, uses_gpus=False)

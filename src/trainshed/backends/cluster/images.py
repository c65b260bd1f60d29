"""Images on the nodes of a cluster: whether one is there, and pulled to a node before a job starts.

The backend asks it for each job. An image is there when a node says that it has it, or when a pod with it has
started. Else a small pod is made whose only purpose is that its node pulls the image: so a job whose image
cannot be pulled fails with the registry's words before any of its replicas holds a place. Where a job leaves
the command to its image, the registry is asked for that first (registry.py), and all replicas of the job run
the very image that it described. All calls come from one event loop. It never removes an image.
"""

import asyncio
import contextlib
import hashlib
from collections.abc import Callable
from dataclasses import dataclass

from trainshed.backends.cluster.api import ApiFault, ClusterApi
from trainshed.backends.cluster.objects import Object, part, parts
from trainshed.backends.cluster.pod import CONTAINER, HOME, INIT_MOUNT, init_volume, on_node
from trainshed.backends.cluster.pod_reasons import hindered
from trainshed.backends.cluster.pod_state import PodState, state_of
from trainshed.backends.cluster.pod_template import NOTHING_MORE, PodTemplate
from trainshed.backends.cluster.registry import RegistryClient, RegistryFault, RegistryImage
from trainshed.core.errors import Hindered, Unavailable
from trainshed.core.event import Reason
from trainshed.core.jobs.readiness import (
    READY,
    PreparationKind,
    PreparationProgress,
    Readiness,
    ReadinessState,
)
from trainshed.core.jobs.verdict import Cause, Verdict
from trainshed.core.supplies.image import Reference, parse
from trainshed.preparation import Preparation, Preparations, remember

PULLED = "trainshed.dev/image"  # label of a pod that only pulls
_ONCE = "It is pulled to a node and kept there; the job starts by itself then."
_PATIENCE = 600.0  # seconds in which a pull that fails for now may succeed
_FRESH = 600.0  # seconds for which a registry's word on a tag counts: some count who asks
_AGAIN = 5.0  # seconds between two looks whether a quota has a place for a pod
_LEAST = {"cpu": "1m", "memory": "16Mi"}
# Words of registries and runtimes that will not change by themselves.
_FINAL = (
    "not found",
    "manifest unknown",
    "unauthorized",
    "authorization failed",
    "denied",
    "403",
    "invalid reference",
    "no match for platform",
    "ErrImageNeverPull",
    "InvalidImageName",
)
ADVICE = (
    "Check its name and tag. If it is private, give the registry's credentials to the namespace: "
    "`kubectl create secret docker-registry`, and name it under imagePullSecrets of its service account "
    "`default`."
)
_GATED = "Kueue holds back the pod that pulls it, as it manages all pods of the namespace"
_SAY_COMMAND = "Name the program: `command` in the containerSpec. Then nobody has to ask the registry."


@dataclass(slots=True, eq=False, kw_only=True)
class ImagePull(Preparation):
    reference: Reference

    @property
    def title(self) -> str:
        return self.reference.familiar

    def readiness(self) -> Readiness:
        message = f"Image {self.title} is brought to a node: {self.progress}."
        return Readiness(standing=ReadinessState.PREPARING, message=message, remedy=_ONCE)


class ClusterImages:
    def __init__(
        self,
        api: ClusterApi,
        home: str,
        hint: Callable[[str], None],
        registry: RegistryClient,
        template: PodTemplate = NOTHING_MORE,
    ) -> None:
        self._api, self._home, self._registry, self.template = api, home, registry, template
        self._architectures: dict[str, str] = {}  # by node
        self._read: dict[str, tuple[float, RegistryImage]] = {}  # when, and what, by canonical name
        self._pinned: dict[tuple[str, str], RegistryImage] = {}  # by canonical name and job
        self._on_nodes: dict[str, frozenset[str]] = {}  # names of images by node
        self._started: set[str] = set()  # canonical names with which pods have started
        # By canonical name, and whether its own command is wanted.
        self.pulls = Preparations[tuple[str, bool], ImagePull](hint)
        self._states: dict[str, PodState | None] = {}  # of pods that pull, by name
        self._news = asyncio.Event()
        self.init = ""  # the ConfigMap with the init, once it is there

    async def close(self) -> None:
        await self.pulls.close()

    def node_changed(self, node: Object, is_gone: bool) -> None:
        name = str(node["metadata"]["name"])
        images = [] if is_gone else parts(part(node, "status"), "images")
        self._on_nodes[name] = frozenset(str(tag) for image in images for tag in image.get("names") or ())
        system = part(part(node, "status"), "nodeInfo")
        self._architectures[name] = "" if is_gone else str(system.get("architecture") or "")

    def pod_changed(self, pod: Object, is_gone: bool) -> None:
        name = str(pod["metadata"]["name"])
        if name in self._states:
            self._states[name] = None if is_gone else state_of(pod)
            self._news.set()

    def readiness(self, image: str, job: str = "", *, runs_itself: bool = False) -> Readiness:
        """`runs_itself`: the job leaves the command to the image."""
        reference = parse(image)
        key = (reference.canonical, runs_itself)
        if (outcome := self.pulls.outcome(key, job)) is not None:
            return outcome
        pinned = self._pinned.get((reference.canonical, job))
        if self._is_there(pinned.reference if pinned and runs_itself else reference) and (
            pinned is not None or not runs_itself or not job
        ):
            return READY
        pull = self.pulls.going.get(key)
        if pull is None and job:
            work = self._prepare_itself if runs_itself else self._pull_named
            pull = self.pulls.begin(key, ImagePull(reference=reference), lambda it: work(it, image))
        if pull is None:
            message = f"Image {reference.familiar} is on no node: it is pulled first."
            return Readiness(standing=ReadinessState.PREPARING, message=message, remedy=_ONCE)
        if job:
            pull.jobs.add(job)
        return pull.readiness()

    def pinned(self, image: str, job: str) -> RegistryImage | None:
        """What its registry said of it for this job, where somebody has asked."""
        return self._pinned.get((parse(image).canonical, job))

    async def resolve(self, image: str, job: str) -> RegistryImage:
        """What its registry says of it; the same for all replicas of the job. Raises Unavailable."""
        if (pinned := self.pinned(image, job)) is not None:
            return pinned
        reference = parse(image)
        try:
            pinned = await self._ask(reference)
        except RegistryFault as fault:
            raise Unavailable(f"{_unread(reference, fault)} {_SAY_COMMAND}") from fault
        remember(self._pinned, (reference.canonical, job), pinned)
        return pinned

    def preparing(self) -> tuple[PreparationProgress, ...]:
        return self.pulls.under_way(PreparationKind.IMAGE)

    def _is_there(self, reference: Reference) -> bool:
        if reference.canonical in self._started:
            return True
        return any(place in names for names in self._on_nodes.values() for place in reference.places)

    async def _prepare_itself(self, pull: ImagePull, image: str) -> Readiness | None:
        """Read what the image runs, then see to it that a node has exactly that image."""
        pull.begin("its registry is asked what it runs")
        try:
            known = await self._ask(pull.reference)
        except RegistryFault as fault:
            return _unreadable(pull.reference, fault)
        if not known.config.entrypoint and not known.config.command:
            return _without_program(pull.reference)
        if not self._is_there(known.reference):
            failure = await self._pull(pull, known.reference.canonical)
            if failure is not None:
                return failure
            self._started.add(known.reference.canonical)
        for job in pull.jobs:
            remember(self._pinned, (pull.reference.canonical, job), known)
        return None

    async def _ask(self, reference: Reference) -> RegistryImage:
        now = asyncio.get_running_loop().time()
        at, known = self._read.get(reference.canonical, (0.0, None))
        if known is not None and (reference.digest or now < at + _FRESH):
            return known
        nodes = frozenset(filter(None, self._architectures.values()))
        known = await self._registry.read(reference, nodes)
        remember(self._read, reference.canonical, (now, known))
        return known

    async def _pull_named(self, pull: ImagePull, image: str) -> Readiness | None:
        failure = await self._pull(pull, image)
        if failure is None:
            self._started.add(pull.reference.canonical)
        return failure

    async def _pull(self, pull: ImagePull, image: str) -> Readiness | None:
        pull.begin("a pod with it is created")

        def tell(words: str) -> None:
            pull.sentence = words

        try:
            async with asyncio.timeout(_PATIENCE):
                failure = await self.start_with(image, tell)
        except TimeoutError:
            return _failure(
                pull.reference, f"it was not there after {_PATIENCE / 60:.0f} minutes: {pull.sentence}"
            )
        except ApiFault as fault:
            return _failure(pull.reference, fault.message)
        return _failure(pull.reference, failure) if failure else None

    async def start_with(self, image: str, tell: Callable[[str], None], node: str = "") -> str:
        """Start a small pod with the image: on this node, as it is in its registry now, or on any node.

        Empty once it has started. Else words that will not change by themselves; `tell` gets the others.
        """
        digest = hashlib.sha256(f"{image} {node}".encode()).hexdigest()[:12]
        name = f"trainshed-pull-{self._home}-{digest}"
        self._states[name] = None
        try:
            while self._states[name] is None:
                self._states[name] = await self._create(name, self._pod(name, image, node), tell)
            while True:
                self._news.clear()
                state = self._states[name]
                if state is None:
                    raise ApiFault(404, "", "somebody deleted the pod that pulls it")
                if state.is_running or state.is_over:
                    return ""
                if state.is_gated:  # the job's own pods pull it then, and say why they cannot
                    return _GATED if node else ""
                if is_final(state.pull_failure):
                    return state.pull_failure
                if words := state.pull_failure or state.waits_for.rstrip("."):
                    tell(words)
                await self._news.wait()
        finally:
            self._states.pop(name, None)
            with contextlib.suppress(ApiFault):
                await self._api.delete("pods", name, grace=0)

    async def _create(self, name: str, body: Object, tell: Callable[[str], None]) -> PodState | None:
        """The state of the pod that pulls; None, a moment later, where a quota has no place for it."""
        try:
            return state_of(await self._api.create("pods", body))
        except ApiFault as fault:
            if fault.is_there_already:
                return state_of(await self._api.get("pods", name))
            error = hindered(fault, "The pod that pulls it cannot be created")
            if not isinstance(error, Hindered) or error.obstacle.reason is not Reason.QUOTA_EXCEEDED:
                raise
            tell(error.message.rstrip("."))
            await asyncio.sleep(_AGAIN)
            return None

    def _pod(self, name: str, image: str, node: str) -> Object:
        pod: Object = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "labels": {HOME: self._home, PULLED: "pull"}},
            "spec": {
                "restartPolicy": "Never",
                "automountServiceAccountToken": False,
                "terminationGracePeriodSeconds": 0,
                **({"affinity": on_node(node)} if node else {}),
                "containers": [
                    {
                        "name": CONTAINER,
                        "image": image,
                        "imagePullPolicy": "Always" if node else "IfNotPresent",
                        "command": [f"{INIT_MOUNT['mountPath']}/init"],  # without arguments it ends at once
                        "resources": {"limits": _LEAST, "requests": _LEAST},
                        "volumeMounts": [INIT_MOUNT],
                    }
                ],
                "volumes": [init_volume(self.init)],
            },
        }
        return self.template.added_to(pod, uses_gpus=True)  # the job may: the image is to be there too


def is_final(words: str) -> bool:
    """Whether these words of a registry or a runtime will not change by themselves."""
    return any(word in words for word in _FINAL)


def _failure(reference: Reference, words: str) -> Readiness:
    summary = f"Image {reference.familiar} could not be pulled: {words}"
    verdict = Verdict(
        cause=Cause.NO_SUCH_IMAGE, summary=summary, lines=(summary,), advice=ADVICE, retry_may_help=True
    )
    return Readiness(
        standing=ReadinessState.FAILED,
        message=f"Image {reference.familiar} could not be pulled.",
        remedy=verdict.advice,
        verdict=verdict,
    )


def _unread(reference: Reference, fault: RegistryFault) -> str:
    return (
        f"The job leaves its command to image {reference.familiar}, whose registry does not tell it: {fault}."
    )


def _unreadable(reference: Reference, fault: RegistryFault) -> Readiness:
    summary = _unread(reference, fault)
    cause = {0: Cause.NETWORK_ERROR, 404: Cause.NO_SUCH_IMAGE}.get(fault.status, Cause.PERMISSION)
    verdict = Verdict(
        cause=cause, summary=summary, lines=(summary,), advice=_SAY_COMMAND, retry_may_help=True
    )
    return Readiness(standing=ReadinessState.FAILED, message=summary, remedy=_SAY_COMMAND, verdict=verdict)


def _without_program(reference: Reference) -> Readiness:
    summary = f"The job leaves its command to image {reference.familiar}, which has none."
    verdict = Verdict(cause=Cause.UNKNOWN, summary=summary, lines=(summary,), advice=_SAY_COMMAND)
    return Readiness(standing=ReadinessState.FAILED, message=summary, remedy=_SAY_COMMAND, verdict=verdict)

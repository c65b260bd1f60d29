"""Images on the nodes of a cluster: whether one is there, and pulled to a node before a job starts.

The backend asks it for each job. An image is there when a node says that it has it, or when a pod with it has
started. Else a small pod is made whose only purpose is that its node pulls the image: so a job whose image
cannot be pulled fails with the registry's words before any of its replicas holds a place. All calls come from
one event loop. It never removes an image.
"""

import asyncio
import contextlib
import hashlib
from collections.abc import Callable
from dataclasses import dataclass

from trainshed.backends.cluster.api import ApiFault, ClusterApi, Object, part, parts
from trainshed.backends.cluster.pod import CONTAINER, HOME, INIT_MOUNT, init_volume
from trainshed.backends.cluster.pod_state import PodState, state_of
from trainshed.core.image import Reference, parse
from trainshed.core.readiness import READY, PreparationKind, PreparationProgress, Readiness, ReadinessState
from trainshed.core.verdict import Cause, Verdict
from trainshed.preparation import Preparation, Preparations

PULLED = "trainshed.dev/image"  # label of a pod that only pulls
_ONCE = "It is pulled to a node and kept there; the job starts by itself then."
_PATIENCE = 600.0  # seconds in which a pull that fails for now may succeed
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
_ADVICE = (
    "Check its name and tag. If it is private, give the registry's credentials to the namespace: "
    "`kubectl create secret docker-registry`, and name it under imagePullSecrets of its service account "
    "`default`."
)


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
    def __init__(self, api: ClusterApi, home: str, hint: Callable[[str], None]) -> None:
        self._api, self._home = api, home
        self._on_nodes: dict[str, frozenset[str]] = {}  # names of images by node
        self._started: set[str] = set()  # canonical names with which pods have started
        self.pulls = Preparations[str, ImagePull](hint)
        self._states: dict[str, PodState | None] = {}  # of pods that pull, by name
        self._news = asyncio.Event()
        self.init = ""  # the ConfigMap with the init, once it is there

    async def close(self) -> None:
        await self.pulls.close()

    def node_changed(self, node: Object, is_gone: bool) -> None:
        name = str(node["metadata"]["name"])
        images = [] if is_gone else parts(part(node, "status"), "images")
        self._on_nodes[name] = frozenset(str(tag) for image in images for tag in image.get("names") or ())

    def pod_changed(self, pod: Object, is_gone: bool) -> None:
        name = str(pod["metadata"]["name"])
        if name in self._states:
            self._states[name] = None if is_gone else state_of(pod)
            self._news.set()

    def readiness(self, image: str, job: str = "") -> Readiness:
        reference = parse(image)
        name = reference.canonical
        if (outcome := self.pulls.outcome(name, job)) is not None:
            return outcome
        if self._is_there(reference):
            return READY
        pull = self.pulls.going.get(name)
        if pull is None and job:
            pull = self.pulls.begin(name, ImagePull(reference=reference), lambda it: self._pull(it, image))
        if pull is None:
            message = f"Image {reference.familiar} is on no node: it is pulled first."
            return Readiness(standing=ReadinessState.PREPARING, message=message, remedy=_ONCE)
        if job:
            pull.jobs.add(job)
        return pull.readiness()

    def preparing(self) -> tuple[PreparationProgress, ...]:
        return self.pulls.under_way(PreparationKind.IMAGE)

    def _is_there(self, reference: Reference) -> bool:
        if reference.canonical in self._started:
            return True
        return any(place in names for names in self._on_nodes.values() for place in reference.places)

    async def _pull(self, pull: ImagePull, image: str) -> Readiness | None:
        name = f"trainshed-pull-{self._home}-{hashlib.sha256(image.encode()).hexdigest()[:12]}"
        pull.begin("a pod with it is created")
        self._states[name] = None
        try:
            async with asyncio.timeout(_PATIENCE):
                return await self._watch_pull(pull, name, image)
        except TimeoutError:
            return _failure(
                pull.reference, f"it was not there after {_PATIENCE / 60:.0f} minutes: {pull.sentence}"
            )
        except ApiFault as fault:
            return _failure(pull.reference, fault.message)
        finally:
            self._states.pop(name, None)
            with contextlib.suppress(ApiFault):
                await self._api.delete("pods", name, grace=0)

    async def _watch_pull(self, pull: ImagePull, name: str, image: str) -> Readiness | None:
        try:
            self._states[name] = state_of(await self._api.create("pods", self._pod(name, image)))
        except ApiFault as fault:
            if not fault.is_there_already:
                raise
            self._states[name] = state_of(await self._api.get("pods", name))
        while True:
            self._news.clear()
            state = self._states[name]
            if state is None:
                raise ApiFault(404, "", "somebody deleted the pod that pulls it")
            if state.is_running or state.is_over:
                self._started.add(pull.reference.canonical)
                return None
            if state.pull_failure:
                pull.sentence = state.pull_failure
                if any(word in state.pull_failure for word in _FINAL):
                    return _failure(pull.reference, state.pull_failure)
            elif state.waits_for:
                pull.sentence = state.waits_for.rstrip(".")
            await self._news.wait()

    def _pod(self, name: str, image: str) -> Object:
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "labels": {HOME: self._home, PULLED: "pull"}},
            "spec": {
                "restartPolicy": "Never",
                "automountServiceAccountToken": False,
                "terminationGracePeriodSeconds": 0,
                "containers": [
                    {
                        "name": CONTAINER,
                        "image": image,
                        "imagePullPolicy": "IfNotPresent",
                        "command": [f"{INIT_MOUNT['mountPath']}/init"],  # without arguments it ends at once
                        "resources": {"limits": _LEAST, "requests": _LEAST},
                        "volumeMounts": [INIT_MOUNT],
                    }
                ],
                "volumes": [init_volume(self.init)],
            },
        }


def _failure(reference: Reference, words: str) -> Readiness:
    summary = f"Image {reference.familiar} could not be pulled: {words}"
    verdict = Verdict(
        cause=Cause.NO_SUCH_IMAGE, summary=summary, lines=(summary,), advice=_ADVICE, retry_may_help=True
    )
    return Readiness(
        standing=ReadinessState.FAILED,
        message=f"Image {reference.familiar} could not be pulled.",
        remedy=verdict.advice,
        verdict=verdict,
    )

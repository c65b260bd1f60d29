"""ClusterImageStore implements core.supplies.image_port.ImageStore with the images on the nodes of a cluster.

People and the keeper of image caches call it. An image is pulled to every node that takes pods, by a small
pod on each. Where it is, nodes say themselves; they list only their largest images and do so late, so what a
pod has just started with counts too. Images are not built, moved or removed here: nobody outside a node can,
and kubelets remove what is unused when their disk fills up.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import NoReturn

from trainshed.backends.cluster.api import ApiFault
from trainshed.backends.cluster.images import ADVICE, ClusterImages
from trainshed.backends.cluster.object_cache import ObjectCache
from trainshed.backends.cluster.objects import Object, part, parts
from trainshed.background_tasks import BackgroundTasks
from trainshed.core.errors import Forbidden, Invalid, NotFound, TrainshedError, Unavailable, Violation
from trainshed.core.supplies.image import (
    BuildRecipe,
    Image,
    ImageConfig,
    ImageStep,
    Reference,
    familiar,
    parse,
    refusal,
)

NODES = "trainshed.dev/nodes"  # label of an image: the nodes that say they have it
_PATIENCE = 3600.0  # seconds for a pull to a node; what came until then stays there
_TRUST = 3000.0  # seconds for which a pod that started proves that its image is there
_LATE = 20.0  # seconds after which a node should have said that it has an image
_REFUSED = ("unauthorized", "authorization failed", "denied", "403")
_NOT_HERE = "This server has no container engine: {what}, and push it to a registry that the nodes reach."


@dataclass(slots=True, eq=False)
class EverywherePull:
    """A pull to all nodes that is going on."""

    reference: Reference
    waiting: dict[str, str]  # nodes that do not have it yet, with what is known
    count: int
    failures: dict[str, TrainshedError] = field(default_factory=dict[str, TrainshedError])
    is_over: bool = False
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def tell(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()

    @property
    def step(self) -> ImageStep:
        there = self.count - len(self.waiting)
        rest = "; ".join(f"{node}: {words}" for node, words in sorted(self.waiting.items()))
        text = f"Image {self.reference.familiar} is on {there} of {self.count} nodes. {rest}".rstrip(". ")
        return ImageStep(text=text, percent=100 * there // self.count)


class ClusterImageStore:
    def __init__(self, images: ClusterImages, nodes: ObjectCache) -> None:
        self._images, self._nodes = images, nodes
        self._proven: dict[tuple[str, str], float] = {}  # when a pod started, by full name and node
        self._going: dict[str, EverywherePull] = {}  # by full name
        self._background = BackgroundTasks()

    async def close(self) -> None:
        await self._background.close()

    async def all(self) -> tuple[Image, ...]:
        merged: dict[str, Image] = {}
        for node, names, size in self._listed():
            digests = tuple(name for name in names if "@" in name)
            key = digests[0].partition("@")[2] if digests else names[0]
            before = merged.get(key) or Image(id=key, labels={NODES: ""})
            merged[key] = Image(
                id=key,
                names=_joined(before.names, tuple(familiar(name) for name in names if "@" not in name)),
                digests=_joined(before.digests, digests),
                size=max(before.size, size),
                labels={NODES: f"{before.labels[NODES]} {node}".strip()},
            )
        return tuple(merged.values())

    async def get(self, name: str) -> Image:
        places = () if refusal(name) else parse(name).places
        for image in await self.all():
            full = {parse(other).canonical for other in (*image.names, *image.digests)}
            if name == image.id or not full.isdisjoint(places):
                return image
        raise NotFound(f"No node says that it has image {name}.")

    async def inspect(self, name: str) -> ImageConfig:
        """What a cache needs to know of it. NotFound where a node that takes pods does not have it."""
        reference, nodes = _checked(name), self._open_nodes()
        lacking = [node for node in nodes if not self._has(node, reference)]
        if lacking or not nodes:
            raise NotFound(f"Image {reference.familiar} is not on {', '.join(lacking) or 'any node'}.")
        rows = [(names, size) for _, names, size in self._listed() if set(names) & set(reference.places)]
        identity = next((name for names, _ in rows for name in names if "@" in name), reference.canonical)
        return ImageConfig(id=identity.rpartition("@")[2], size=max((size for _, size in rows), default=0))

    async def has_triggers(self, id: str) -> bool:
        raise Unavailable(_NOT_HERE.format(what="build the image where there is one"))

    async def pull(self, name: str) -> AsyncIterator[ImageStep]:
        reference = _checked(name)
        pull = self._going.get(reference.canonical) or self._begin(reference, name)
        while not pull.is_over:
            changed = pull.changed
            yield pull.step
            await changed.wait()
        for failure in pull.failures.values():
            raise failure
        text = f"Image {reference.familiar} is on all {pull.count} nodes"
        yield ImageStep(text=text, percent=100, image=reference.canonical)

    def push(self, name: str) -> NoReturn:
        raise Unavailable(_NOT_HERE.format(what="build images where there is one"))

    def build(self, context: AsyncIterator[bytes], recipe: BuildRecipe) -> NoReturn:
        raise Unavailable(_NOT_HERE.format(what="build the image where there is one"))

    def load(self, archive: AsyncIterator[bytes]) -> NoReturn:
        raise Unavailable(_NOT_HERE.format(what="load the image where there is one"))

    def save(self, names: tuple[str, ...]) -> NoReturn:
        raise Unavailable("Images are on the nodes of a Kubernetes cluster: take them from their registry.")

    async def tag(self, name: str, new: str) -> None:
        raise Unavailable(_NOT_HERE.format(what="give the image another name where there is one"))

    async def remove(self, name: str, *, force: bool = False) -> tuple[str, ...]:
        raise Unavailable(
            "Images on the nodes of a Kubernetes cluster cannot be removed from here: the kubelet of each "
            "node removes images that are not used when its disk fills up."
        )

    # How it is done

    def _begin(self, reference: Reference, image: str) -> EverywherePull:
        nodes = self._open_nodes()
        if not nodes:
            raise Unavailable("No node of the cluster takes pods now.")
        pull = EverywherePull(reference, dict.fromkeys(nodes, "a pod with it is created"), len(nodes))
        self._going[reference.canonical] = pull
        self._background.run(self._pull(pull, image))
        return pull

    async def _pull(self, pull: EverywherePull, image: str) -> None:
        try:
            await asyncio.gather(*(self._pull_to(pull, image, node) for node in list(pull.waiting)))
            if not pull.failures:
                await self._listed_somewhere(pull.reference)
        finally:
            self._going.pop(pull.reference.canonical, None)
            pull.is_over = True
            pull.tell()

    async def _pull_to(self, pull: EverywherePull, image: str, node: str) -> None:
        def tell(words: str) -> None:
            pull.waiting[node] = words
            pull.tell()

        where = f"Image {pull.reference.familiar} could not be pulled to {node}"
        try:
            async with asyncio.timeout(_PATIENCE):
                words = await self._images.start_with(image, tell, node)
        except TimeoutError:
            late = f"it was not there after {_PATIENCE / 60:.0f} minutes: {pull.waiting[node]}"
            pull.failures[node] = Unavailable(f"{where}: {late}.")
        except ApiFault as fault:
            pull.failures[node] = fault.as_unavailable(where)
        else:
            if words:
                kind = Forbidden if any(word in words for word in _REFUSED) else NotFound
                pull.failures[node] = kind(f"{where}: {words.rstrip('.')}. {ADVICE}")
                tell(words)
            else:
                self._proven[pull.reference.canonical, node] = time.monotonic()
                del pull.waiting[node]
                pull.tell()

    async def _listed_somewhere(self, reference: Reference) -> None:
        """Wait for a node to say how large it is; nodes list their images every few seconds."""
        deadline = time.monotonic() + _LATE
        while time.monotonic() < deadline:
            if any(set(names) & set(reference.places) for _, names, _ in self._listed()):
                return
            await asyncio.sleep(0.2)

    def _open_nodes(self) -> list[str]:
        return sorted(
            name for name, node in self._nodes.objects.items() if self._images.template.is_taken_by(node)
        )

    def _has(self, node: str, reference: Reference) -> bool:
        proven = self._proven.get((reference.canonical, node), float("-inf"))
        if time.monotonic() - proven < _TRUST:
            return True
        return any(set(names) & set(reference.places) for where, names, _ in self._listed() if where == node)

    def _listed(self) -> Iterator[tuple[str, tuple[str, ...], int]]:
        """The images that nodes say they have: the node, full names, bytes."""
        for node, item in sorted(self._nodes.objects.items()):
            for image in parts(part(item, "status"), "images"):
                if names := _full_names(image):
                    yield node, names, int(image.get("sizeBytes") or 0)


def _full_names(image: Object) -> tuple[str, ...]:
    names = [str(name) for name in image.get("names") or ()]
    return tuple(parse(name).canonical for name in names if refusal(name) is None)


def _joined(some: tuple[str, ...], more: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*some, *more)))


def _checked(name: str) -> Reference:
    if sentence := refusal(name):
        raise Invalid((Violation("name", sentence),))
    return parse(name)

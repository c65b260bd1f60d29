"""The keeper fills caches and forgets them; the collector makes room and spares what is wanted."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import pytest

from tests.builders import a_job
from tests.contracts.code_store import Steps
from tests.contracts.image_cache_store import a_cache
from trainshed.control.image_caches import CacheKeeper
from trainshed.control.image_collector import EVERY, ImageCollector
from trainshed.control.queue import WorkQueue
from trainshed.core.errors import Conflict, NotFound, TrainshedError, Unavailable
from trainshed.core.jobs.job import Job
from trainshed.core.supplies.image import BuildRecipe, Image, ImageConfig, ImageStep
from trainshed.core.supplies.image_cache import CacheState, ImageCache, PulledImage
from trainshed.service.image_caches import CacheOutcome, ImageCacheService
from trainshed.testing.store import MemoryStore

DAY = timedelta(days=1)


@dataclass
class FakeImages:
    """Images of an engine, pulled in two steps, of which the second waits to be let."""

    here: dict[str, int] = field(default_factory=dict[str, int])
    trouble: dict[str, TrainshedError] = field(default_factory=dict[str, TrainshedError])
    pulls: list[str] = field(default_factory=list[str])
    go_on: asyncio.Event = field(default_factory=asyncio.Event)
    stock: list[PulledImage] = field(default_factory=list[PulledImage])
    free: int = 1 << 40
    used: set[str] = field(default_factory=set[str])
    removed: list[str] = field(default_factory=list[str])

    async def inspect(self, name: str) -> ImageConfig:
        if name not in self.here:
            raise NotFound(f"There is no image {name} here.")
        return ImageConfig(id=f"sha256:{name}", size=self.here[name])

    async def has_triggers(self, id: str) -> bool:
        return False

    async def pull(self, name: str) -> AsyncIterator[ImageStep]:
        self.pulls.append(name)
        yield ImageStep(text=f"Pulling {name}", percent=40)
        await self.go_on.wait()
        if error := self.trouble.get(name):
            raise error
        self.here[name] = 10
        yield ImageStep(text=f"Pulled {name}", percent=100)

    async def kept(self) -> tuple[PulledImage, ...]:
        return tuple(self.stock)

    async def space(self) -> tuple[int, int] | None:
        return self.free, 1 << 40

    async def remove(self, name: str, *, force: bool = False) -> tuple[str, ...]:
        if name in self.used:
            raise Conflict(f"{name} is used by a container.")
        self.removed.append(name)
        return (name,)

    async def all(self) -> tuple[Image, ...]:
        raise AssertionError("not asked")

    async def get(self, name: str) -> Image:
        raise AssertionError("not asked")

    async def tag(self, name: str, new: str) -> None:
        raise AssertionError("not asked")

    def push(self, name: str) -> AsyncIterator[ImageStep]:
        raise AssertionError("not asked")

    def build(self, context: AsyncIterator[bytes], recipe: BuildRecipe) -> AsyncIterator[ImageStep]:
        raise AssertionError("not asked")

    def load(self, archive: AsyncIterator[bytes]) -> AsyncIterator[ImageStep]:
        raise AssertionError("not asked")

    def save(self, names: tuple[str, ...]) -> AsyncIterator[bytes]:
        raise AssertionError("not asked")


class World:
    def __init__(self) -> None:
        self.store, self.images, self.clock = MemoryStore(), FakeImages(), Steps()
        self.queue = WorkQueue(self.clock)
        self.keeper = CacheKeeper(self.store, self.images, self.clock, self.queue)
        self.service = ImageCacheService(self.store, self.clock, self.queue.hint, self.keeper.latest)

    async def seen(self, name: str = "digits") -> ImageCache:
        return await self.service.get("p", "us-central1", name)

    async def until(self, state: CacheState, name: str = "digits") -> ImageCache:
        for _ in range(1000):
            found = await self.seen(name)
            if found.state is state:
                return found
            await asyncio.sleep(0.001)
        raise AssertionError(f"{await self.seen(name)} is not {state}")


@pytest.fixture
async def world() -> AsyncIterator[World]:
    world = World()
    await world.keeper.begin()
    yield world
    await world.keeper.close()


def asked(world: World, *images: str, days: int = 0) -> ImageCache:
    return world.service.draft(("p", "us-central1"), "digits", images, days=days)


async def test_its_images_are_pulled_one_after_the_other_and_how_far_it_is_is_told(world: World):
    world.images.here["a:1"] = 5
    await world.service.create(asked(world, "a:1", "b:1"))
    while (await world.seen()).reason != "Pulling b:1":
        await asyncio.sleep(0)
    seen = await world.seen()
    assert (seen.state, seen.percent) == (CacheState.CREATING, 70)
    world.images.go_on.set()
    done = await world.until(CacheState.READY)
    assert (done.percent, done.size, done.reason, world.images.pulls) == (100, 15, "", ["b:1"])
    assert await world.store.cache("p", "us-central1", "digits") == done


async def test_an_image_that_is_not_to_be_had_fails_it_with_the_reason_until_it_is_applied_again(
    world: World,
):
    world.images.go_on.set()
    world.images.trouble["a:1"] = NotFound("There is no a:1 in its registry.")
    cache, outcome = await world.service.apply(asked(world, "a:1"))
    assert outcome is CacheOutcome.CREATED
    failed = await world.until(CacheState.FAILED)
    assert failed.reason == "There is no a:1 in its registry."
    world.images.trouble.clear()
    cache, outcome = await world.service.apply(asked(world, "a:1"))
    assert outcome is CacheOutcome.UNCHANGED
    assert (await world.until(CacheState.READY)).images == cache.images


async def test_an_engine_that_is_away_is_waited_for(world: World):
    world.images.go_on.set()
    world.images.trouble["a:1"] = Unavailable("There is no engine.")
    await world.service.create(asked(world, "a:1"))
    while (await world.seen()).reason != "There is no engine.":
        await asyncio.sleep(0)
    world.images.trouble.clear()
    world.queue.hint((await world.seen()).name)
    await world.until(CacheState.READY)


async def test_applied_with_other_images_it_begins_anew(world: World):
    world.images.go_on.set()
    await world.service.create(asked(world, "a:1"))
    await world.until(CacheState.READY)
    _, outcome = await world.service.apply(asked(world, "b:1"))
    assert outcome is CacheOutcome.CHANGED
    while (await world.seen()).images != ("b:1",) or (await world.seen()).state is not CacheState.READY:
        await asyncio.sleep(0.001)
    assert world.images.pulls == ["a:1", "b:1"]


async def test_it_is_forgotten_when_its_days_are_over(world: World):
    world.images.go_on.set()
    await world.service.create(asked(world, "a:1", days=2))
    ready = await world.until(CacheState.READY)
    world.clock.wait(days=1.99)
    assert await world.keeper.turn(ready.name) == ready.expires_at
    world.clock.wait(days=0.02)
    assert await world.keeper.turn(ready.name) is None
    assert await world.store.caches() == ()
    assert list(world.keeper.caches) == []


async def test_an_image_that_went_is_pulled_again(world: World):
    world.images.go_on.set()
    await world.service.create(asked(world, "a:1"))
    ready = await world.until(CacheState.READY)
    world.images.here.clear()
    await world.keeper.turn(ready.name)
    while len(world.images.pulls) < 2 or (await world.seen()).percent < 100:
        await asyncio.sleep(0.001)
    assert world.images.here == {"a:1": 10}


async def test_what_was_being_filled_when_the_server_died_is_filled_by_the_next():
    store, world = MemoryStore(), World()
    await store.insert_cache(a_cache(images=("a:1",), retention_days=0))
    world.store = store
    world.keeper = CacheKeeper(store, world.images, world.clock, world.queue)
    world.service = ImageCacheService(store, world.clock, world.queue.hint, world.keeper.latest)
    world.images.go_on.set()
    await world.keeper.begin()
    await world.until(CacheState.READY)
    await world.keeper.close()


async def test_a_job_is_told_which_cache_it_starts_from(world: World):
    world.images.go_on.set()
    job = a_job()
    image = job.spec.pools[0].image
    assert world.keeper.matched(job) == ""
    await world.service.create(replace(asked(world, image), project=job.project, location="x"))
    while not world.keeper.matched(job):
        await asyncio.sleep(0.001)
    assert world.keeper.matched(job) == f"Image cache digits has {image}."


# The collector


def kept(name: str, used_at: datetime) -> PulledImage:
    return PulledImage(
        id=f"sha256:{name}", names=(f"docker.io/library/{name}:1",), size=1 << 30, used_at=used_at
    )


def collector(world: World, retention: timedelta | None = None) -> ImageCollector:
    return ImageCollector(
        store=world.store,
        inventories=lambda: (world.images,),
        clock=world.clock,
        caches=lambda: world.keeper.caches,
        retention=retention,
    )


def using(image: str) -> Job:
    job = a_job()
    (pool,) = job.spec.pools
    return replace(job, spec=replace(job.spec, pools=(replace(pool, image=image),)))


async def test_where_the_disk_runs_low_unused_images_go_and_all_that_somebody_wants_stay(world: World):
    long_ago = world.clock.now() - 9 * DAY
    world.images.stock = [kept(name, long_ago) for name in ("job", "cache", "box", "nobody")]
    world.images.stock.append(kept("young", world.clock.now()))
    world.images.free, world.images.used = 0, {"sha256:box"}
    world.images.here["cache:1"] = 1
    await world.store.insert(using("job:1"), ())
    await world.service.create(asked(world, "cache:1"))
    await world.until(CacheState.READY)
    assert await collector(world).look() == world.clock.now() + EVERY
    assert world.images.removed == ["sha256:nobody"]


async def test_with_a_retention_they_go_by_age_and_without_one_they_stay_while_there_is_room(world: World):
    now = world.clock.now()
    world.images.stock = [kept("old", now - 9 * DAY), kept("new", now - DAY)]
    await collector(world).look()
    assert world.images.removed == []
    await collector(world, retention=5 * DAY).look()
    assert world.images.removed == ["sha256:old"]


async def test_without_an_engine_nothing_is_asked(world: World):
    idle = ImageCollector(store=world.store, inventories=lambda: (), clock=world.clock, caches=lambda: ())
    assert await idle.look() == world.clock.now() + EVERY

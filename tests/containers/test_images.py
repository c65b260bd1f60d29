"""Images on a real engine and registry: pulled once, seen on their way, given up where they must be."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.containers.engine import Podman
from tests.containers.engine_images import BASE
from tests.containers.image_world import MIB, World, all_of, context, settled
from tests.containers.registry import Registry, a_registry
from tests.containers.slow_registry import SlowRegistry
from tests.live import PATIENCE
from trainshed.backends.machine.registry_auth import RegistryAuth
from trainshed.core.errors import Forbidden, NotFound, NotYet
from trainshed.core.jobs.readiness import Readiness, ReadinessState
from trainshed.core.jobs.verdict import Cause
from trainshed.core.supplies.image import BuildRecipe

pytestmark = [pytest.mark.containers, pytest.mark.timeout(400)]


@pytest.fixture
async def world(podman: Podman, registry: Registry) -> AsyncIterator[World]:
    one = World(podman, registry)
    yield one
    await one.close()


async def test_what_is_here_is_ready_at_once_and_tells_how_it_is_run(world: World) -> None:
    extra = (
        'ENV A=b=c\nWORKDIR /w\nUSER 7:8\nENTRYPOINT ["/e", "x"]\nCMD ["y"]\nLABEL l=m\nSTOPSIGNAL SIGINT\n'
    )
    image = await world.build("localhost/images-config:1", b"x", extra=extra)
    images = await world.started()
    assert images.readiness("localhost/images-config:1", "j").is_ready
    found = await images.resolve("localhost/images-config:1", "j")
    assert (found.id, found.entrypoint, found.command) == (image, ("/e", "x"), ("y",))
    assert (found.env["A"], found.workdir, found.user, found.labels["l"]) == ("b=c", "/w", "7:8", "m")
    assert images.config("localhost/images-config:1", "j") == found
    assert images.config("localhost/images-config:1") == found


async def test_an_image_that_podman_built_under_a_short_name_is_found_by_it(world: World) -> None:
    world.podman.run("build", "--tag", "images-short", "-", feed=f"FROM {BASE}\n".encode())
    images = await world.started()
    assert images.readiness("images-short", "j").is_ready
    assert (await images.resolve("images-short", "j")).id


async def test_of_two_images_whose_names_end_alike_the_one_is_meant_that_was_named(world: World) -> None:
    """Podman takes a short name for any that ends so."""
    images = await world.started()
    far = await world.build("127.0.0.1:1/team/images-alike:1", b"far")
    near = await world.build("images-alike:1", b"near")
    assert near != far
    assert (await images.inspect("127.0.0.1:1/team/images-alike:1")).id == far
    assert (await images.resolve("images-alike:1", "j")).id == near
    archive = b"".join([piece async for piece in images.save(("images-alike:1",))])
    assert near.removeprefix("sha256:").encode() in archive
    assert "images-alike:1" in await images.remove("images-alike:1")
    with pytest.raises(NotFound):
        await images.inspect("images-alike:1")
    assert not images.readiness("images-alike:1").is_ready
    await images.remove(far[7:19])


async def test_however_many_jobs_ask_an_image_is_pulled_once_and_all_of_them_are_hinted(world: World) -> None:
    name = await world.offer(os.urandom(MIB))
    jobs = [f"job{number}" for number in range(20)]
    async with SlowRegistry(world.podman.registry_ports[1], world.registry.port, rate=1e6) as slow:
        images = await world.started()
        assert images.readiness(slow.image(name)).standing is ReadinessState.PREPARING  # and nothing is begun
        await asyncio.sleep(0.2)
        assert not slow.fetched
        assert {images.readiness(slow.image(name), job).standing for job in jobs} == {
            ReadinessState.PREPARING
        }
        found = await asyncio.gather(*(settled(images, slow.image(name), job) for job in jobs))
    assert all(one.is_ready for one in found) and set(world.hints) == set(jobs)
    assert found[0].installed[0].startswith(f"Pulled image {slow.image(name)} (sha256:")
    assert slow.fetched and set(slow.fetched.values()) == {1}


async def test_two_images_of_a_registry_that_share_a_layer_fetch_it_once(world: World) -> None:
    shared = os.urandom(2 * MIB)
    first, other = await world.offer(shared, b"1"), await world.offer(shared, b"2")
    async with SlowRegistry(world.podman.registry_ports[1], world.registry.port, rate=4e6) as slow:
        images = await world.started()
        found = await asyncio.gather(
            settled(images, slow.image(first), "a"), settled(images, slow.image(other), "b")
        )
        assert [one.standing for one in found] == [ReadinessState.READY] * 2
        assert set(slow.fetched.values()) == {1}, slow.fetched


async def test_how_far_a_pull_is_is_told_in_percent_that_only_grow(world: World) -> None:
    name = await world.offer(os.urandom(12 * MIB))
    said: list[Readiness] = []
    async with SlowRegistry(world.podman.registry_ports[1], world.registry.port, rate=3e6) as slow:
        images = await world.started()
        while not said or said[-1].standing is ReadinessState.PREPARING:
            said.append(images.readiness(slow.image(name), "j"))
            await asyncio.sleep(0.05)
    percents = [int(one.message.split(" %")[0].split()[-1]) for one in said if " %" in one.message]
    assert len(set(percents)) >= 2 and percents == sorted(percents)
    assert {one.mark for one in said} >= {1, 2}
    assert all(one.remedy for one in said[:-1]) and said[-1].is_ready


@pytest.mark.parametrize(
    ("image", "cause", "words"),
    [
        ("{registry}/test/none:1", Cause.NO_SUCH_IMAGE, "manifest unknown"),
        ("localhost/none:1", Cause.NO_SUCH_IMAGE, "connection refused"),
        ("127.0.0.1:1/none:1", Cause.NETWORK_ERROR, "connection refused"),
        ("nowhere.invalid/none:1", Cause.NETWORK_ERROR, "nowhere.invalid"),
    ],
)
async def test_an_image_that_cannot_be_had_has_a_verdict_in_the_registrys_words(
    world: World, image: str, cause: Cause, words: str
) -> None:
    images = await world.started()
    name = image.format(registry=world.registry.host)
    found = await settled(images, name)
    assert found.standing is ReadinessState.FAILED and found.verdict is not None
    assert found.verdict.cause is cause
    assert words in found.verdict.summary and name in found.message and found.verdict.advice == found.remedy
    assert images.readiness(name, "j") == found  # it stays so for who waited
    assert images.readiness(name, "another").standing is ReadinessState.PREPARING
    assert world.hints[-1] == "j"


@pytest.mark.parametrize(("stop_after", "told"), [(0, "answered nothing"), (3 * MIB, "sent nothing more")])
async def test_a_registry_that_hangs_is_given_up_and_that_is_said(
    world: World, stop_after: int, told: str
) -> None:
    name = await world.offer(os.urandom(8 * MIB))
    port = world.podman.registry_ports[1]
    async with SlowRegistry(port, world.registry.port, rate=1.5e6, stop_after=stop_after) as slow:
        images = await world.started(answer=3.0, stall=3.0)
        found = await settled(images, slow.image(name))
        assert found.verdict is not None and found.verdict.cause is Cause.NETWORK_TIMEOUT
        assert told in found.verdict.summary and found.verdict.retry_may_help
        slow.stop_after, slow.rate = None, 1e9
        assert (await settled(images, slow.image(name), "the next")).is_ready


async def test_a_private_registry_is_opened_by_the_credentials_of_a_file_that_nothing_shows(
    world: World, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    with a_registry(world.podman, user="ann", password="s3cret-word") as private:
        name = private.image("team/secret:1")
        await world.build(name, os.urandom(1000))
        with pytest.raises(Forbidden, match=r"unauthorized|authentication required"):
            await all_of(world.images().push(name))
        auth = tmp_path / "auth.json"
        auth.write_text(json.dumps({"auths": {private.host: {"username": "ann", "password": "s3cret-word"}}}))
        images = world.opens(RegistryAuth(auth, {}))
        steps = await all_of(images.push(name))
        await images.remove(name)
        refused = await settled(await world.started(), name)
        assert refused.verdict is not None and refused.verdict.cause is Cause.PERMISSION
        granted = await settled(images, name)
        assert granted.is_ready
        base = context(Dockerfile=f"FROM {name}\nENV A=1\n".encode())
        await images.remove(name)
        steps += await all_of(images.build(base, BuildRecipe(tags=("images-private:1",))))
        built = await images.inspect("images-private:1")
        shown = f"{steps}{granted}{refused}{await images.all()}{built}{caplog.text}"
        assert "s3cret-word" not in shown


async def test_what_a_name_means_is_looked_up_once_for_each_job(world: World) -> None:
    name = "localhost/images-moving:1"
    old = await world.build(name, b"old")
    images = await world.started()
    assert (await images.resolve(name, "first")).id == old
    new = await world.build(name, b"new")
    assert (await images.resolve(name, "first")).id == old
    assert (await images.resolve(name, "second")).id == new != old


async def test_an_image_that_was_removed_behind_our_back_is_pulled_again(world: World) -> None:
    full = world.registry.image(await world.offer())
    images = await world.started()
    assert (await settled(images, full, "a")).is_ready
    await images.resolve(full, "a")
    world.podman.run("rmi", full)
    with pytest.raises(NotYet):
        await images.resolve(full, "b")
    assert images.readiness(full, "b").standing is ReadinessState.PREPARING
    assert (await settled(images, full, "b")).is_ready
    world.podman.run("rmi", full)
    with pytest.raises(NotYet):
        await images.resolve(full, "b")
    assert (await settled(images, full, "b")).is_ready
    images.forget(full, "a")
    assert (await images.resolve(full, "a")).id == (await images.resolve(full, "b")).id


async def test_an_engine_that_is_away_for_a_moment_fails_no_job(world: World) -> None:
    full = world.registry.image(await world.offer())
    images = await world.started()
    world.podman.stop()
    try:
        assert images.readiness(full, "j").standing is ReadinessState.PREPARING
        async with asyncio.timeout(PATIENCE):
            while "does not answer" not in images.readiness(full, "j").message:
                await asyncio.sleep(0.01)
    finally:
        await asyncio.to_thread(world.podman.start)
    assert (await settled(images, full)).is_ready


async def test_an_engine_that_is_killed_in_the_middle_of_a_pull_pulls_on_when_it_is_back(
    world: World,
) -> None:
    name = await world.offer(os.urandom(8 * MIB))
    async with SlowRegistry(world.podman.registry_ports[1], world.registry.port, rate=2e6) as slow:
        images = await world.started()
        async with asyncio.timeout(PATIENCE):
            while " %" not in images.readiness(slow.image(name), "j").message:
                await asyncio.sleep(0.02)
        await asyncio.to_thread(world.podman.restart)
        slow.rate = 1e9
        assert (await settled(images, slow.image(name))).is_ready

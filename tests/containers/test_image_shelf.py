"""What people do with images, on a real engine and registry: build, save, load, pull, tag and remove."""

import os
from collections.abc import AsyncIterator

import pytest

from tests.containers.engine import Podman
from tests.containers.engine_images import BASE
from tests.containers.image_world import World, all_of, context, pieces
from tests.containers.registry import Registry
from trainshed.core.errors import Conflict, Invalid, NotFound, Unavailable
from trainshed.core.supplies.image import BuildRecipe

pytestmark = [pytest.mark.containers, pytest.mark.timeout(400)]


@pytest.fixture
async def world(podman: Podman, registry: Registry) -> AsyncIterator[World]:
    one = World(podman, registry)
    yield one
    await one.close()


async def test_a_pull_by_hand_brings_what_the_registry_has_now(world: World) -> None:
    name = await world.offer(b"old")
    full = world.registry.image(name)
    images = await world.started()
    first = (await all_of(images.pull(full)))[-1]
    new = await world.build(full, b"new", os.urandom(10))
    await all_of(images.push(full))
    world.podman.run("tag", first.image, full)
    last = (await all_of(images.pull(full)))[-1]
    assert (last.image, last.percent) == (new, 100) and last.text.startswith(f"Pulled image {full}")


async def test_the_words_of_a_build_come_as_it_goes_and_its_failure_says_which_step(world: World) -> None:
    images = await world.started()
    good = f"FROM {BASE}\nRUN echo grüße\n".encode()
    steps = await all_of(images.build(context(Dockerfile=good), BuildRecipe(tags=("images-built:1",))))
    assert "grüße" in [step.text for step in steps] and steps[-1].image.startswith("sha256:")
    assert images.readiness("images-built:1", "j").is_ready
    bad = f'FROM {BASE}\nRUN ["sh", "-c", "echo last words; exit 3"]\n'.encode()
    said: list[str] = []
    with pytest.raises(Unavailable, match="exit status 3"):
        async for step in images.build(context(Dockerfile=bad), BuildRecipe(tags=("images-bad:1",))):
            said.append(step.text)
    assert "last words" in said
    with pytest.raises(NotFound, match="manifest unknown"):
        base = f"FROM {world.registry.image('none:1')}\n".encode()
        await all_of(images.build(context(Dockerfile=base), BuildRecipe(tags=("images-bad:1",))))
    with pytest.raises(Invalid, match="BAD"):
        await all_of(images.build(context(Dockerfile=good), BuildRecipe(tags=("BAD",))))


async def test_a_build_argument_holds_however_often_it_was_built_before(world: World) -> None:
    images = await world.started()
    text = f"FROM {BASE}\nARG VERSION=1\nENV VERSION=$VERSION\n".encode()
    for version in ("2", "3", "1"):
        args = {} if version == "1" else {"VERSION": version}  # the last is what the file says itself
        recipe = BuildRecipe(tags=("images-args:1",), args=args)
        await all_of(images.build(context(Dockerfile=text), recipe))
        assert (await images.inspect("images-args:1")).env["VERSION"] == version


async def test_what_is_saved_can_be_loaded_and_what_is_no_archive_is_refused(world: World) -> None:
    images = await world.started()
    names = ("localhost/images-saved:1", "localhost/images-saved:2")
    ids = [await world.build(name, os.urandom(100)) for name in names]
    archive = b"".join([piece async for piece in images.save(names)])
    for name in names:
        await images.remove(name)
    assert not images.readiness(names[0]).is_ready
    assert [step.text for step in await all_of(images.load(pieces(archive)))] == [
        f"Loaded image {name}" for name in names
    ]
    assert [(await images.inspect(name)).id for name in names] == ids
    assert images.readiness(names[0], "j").is_ready
    for wrong in (b"this is no archive" * 100, archive[:2000]):
        with pytest.raises(Invalid, match="no archive"):
            await all_of(images.load(pieces(wrong)))
    with pytest.raises(NotFound, match="images-none"):
        async for _ in images.save(("localhost/images-none:1",)):
            pass


async def test_an_image_of_which_a_container_is_made_is_not_removed(world: World) -> None:
    images = await world.started()
    world.podman.run(
        "build", "--tag", "localhost/images-used:1", "-", feed=f"FROM {BASE}\nENV A=1\n".encode()
    )
    container = world.podman.run("run", "--detach", "localhost/images-used:1", "sleep", "1000").strip()
    try:
        for force in (False, True):
            with pytest.raises(Conflict, match="in use"):
                await images.remove("localhost/images-used:1", force=force)
        assert world.podman.run("inspect", "--format", "{{.State.Running}}", container).strip() == "true"
        world.podman.run("kill", container)
        with pytest.raises(Conflict, match="in use"):
            await images.remove("localhost/images-used:1")
        assert "localhost/images-used:1" in await images.remove("localhost/images-used:1", force=True)
    finally:
        world.podman.run("rm", "--force", "--ignore", container)
    with pytest.raises(NotFound, match="images-used"):
        await images.remove("localhost/images-used:1")


@pytest.mark.parametrize("call", ["pull", "push", "save", "tag", "build"])
async def test_a_name_that_is_none_is_refused_with_the_name(world: World, call: str) -> None:
    images = world.images()
    with pytest.raises(Invalid, match="No Name") as caught:
        match call:
            case "pull":
                await all_of(images.pull("No Name"))
            case "push":
                await all_of(images.push("No Name"))
            case "tag":
                await images.tag(BASE, "No Name")
            case "build":
                await all_of(images.build(context(), BuildRecipe(tags=("No Name",))))
            case _:
                async for _ in images.save(("No Name",)):
                    pass
    assert caught.value.violations

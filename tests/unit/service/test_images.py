"""What is told of images, and who may change which, where names and jobs are of several projects."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.builders import T0, a_job
from trainshed.api.call import Call
from trainshed.api.images import ImageHandlers
from trainshed.core.accounts.permission import OWNER, Principal, PrincipalKind
from trainshed.core.accounts.role import Role
from trainshed.core.errors import Conflict, Forbidden, NotFound, TrainshedError
from trainshed.core.jobs.job import Job
from trainshed.core.ports import Store
from trainshed.core.supplies.image import (
    DERIVED,
    BuildRecipe,
    Image,
    ImageStep,
    hidden_sentence,
    is_seen,
    project_in,
)
from trainshed.core.supplies.image_cache import ImageCache
from trainshed.core.supplies.image_port import ImageStore
from trainshed.service.image_uploads import ImageUploads
from trainshed.service.images import ImageService

SECRET, MINE = "eu-docker.pkg.dev/vision/r/secret:1", "eu-docker.pkg.dev/speech/r/mine:1"
DIGEST = f"eu-docker.pkg.dev/vision/r/secret@sha256:{'e' * 64}"
PUBLIC = Image(id="sha256:" + "a" * 64, names=("python:3.11",))
HIDDEN = Image(id="sha256:" + "b" * 64, names=(SECRET,))
SHARED = Image(id="sha256:" + "c" * 64, names=(SECRET.replace("secret", "other"), MINE))
UNNAMED = Image(id="sha256:" + "d" * 64, digests=(DIGEST,))
BARE = Image(id="sha256:" + "e" * 64)  # it lost its name to a newer one
DERIVED_IMAGE = Image(id="sha256:" + "f" * 64, names=(f"{DERIVED}home:1",))
IMAGES = (PUBLIC, HIDDEN, SHARED, UNNAMED, BARE, DERIVED_IMAGE)
BOB = Principal(
    PrincipalKind.ACCOUNT, id="bob", rights=frozenset(), by_project={"speech": Role.USER.rights("speech")}
)


class Engine:
    """Has the images, and notes what is done with them."""

    def __init__(self) -> None:
        self.done: list[tuple[str, ...]] = []

    async def all(self) -> tuple[Image, ...]:
        return IMAGES

    async def get(self, name: str) -> Image:
        for image in IMAGES:
            if name in image.names or image.id.removeprefix("sha256:").startswith(
                name.removeprefix("sha256:")
            ):
                return image
        raise NotFound(f"{name} is not here, says the engine.")

    async def remove(self, name: str, *, force: bool = False) -> tuple[str, ...]:
        self.done.append(("remove", name))
        return (name,)

    async def tag(self, name: str, new: str) -> None:
        self.done.append(("tag", name, new))


class Images:
    def __init__(self, *jobs: Job, caches: tuple[ImageCache, ...] = ()) -> None:
        self.engine = Engine()

        async def active() -> tuple[Job, ...]:
            return jobs

        store = cast("Store", SimpleNamespace(active=active))
        engine = cast("ImageStore", self.engine)
        self.service = ImageService(store, engine, ImageUploads(engine, Path()), lambda: caches)
        self.handlers = ImageHandlers(self.service)

    def call(self, principal: Principal = BOB, query: str = "", **body: object) -> Call:
        return Call(path={}, query={"names": query}, body=body, headers={}, base_url="", principal=principal)

    async def refused(self, *names: str, force: bool = False) -> TrainshedError:
        with pytest.raises(TrainshedError) as refused:
            await self.handlers.remove(self.call(names=list(names), force=force))
        assert self.engine.done == []
        return refused.value


def of(project: str, id: str, image: str) -> Job:
    job = a_job(id=id)
    [pool] = job.spec.pools
    return replace(job, project=project, spec=replace(job.spec, pools=(replace(pool, image=image),)))


async def test_the_list_has_no_images_names_or_jobs_of_other_projects() -> None:
    images = Images(of("vision", "10", "python:3.11"), of("speech", "11", "python:3.11"))
    told = {image.id[7]: (image.names, jobs) for image, jobs in await images.service.all(BOB)}
    assert told == {"a": (("python:3.11",), ("11",)), "c": ((MINE,), ())}
    everything = {image.id: (image, jobs) for image, jobs in await images.service.all(OWNER)}
    assert everything[PUBLIC.id] == (PUBLIC, ("10", "11"))
    assert [everything[image.id][0] for image in IMAGES] == list(IMAGES)


async def test_an_image_of_another_project_is_as_none_by_its_id() -> None:
    images = Images()
    ids = (HIDDEN.id, HIDDEN.id[7:], "bbbb", "sha256:bbbb", UNNAMED.id, "dddd", BARE.id, "ffff", "0000")
    for id in ids:
        words = f"There is no image {id} here."
        error = await images.refused(id)
        assert isinstance(error, NotFound) and error.message == words
        for call in (
            images.handlers.tag(images.call(name=id, tag="mine:1")),
            images.handlers.push(images.call(name=id)),
            images.handlers.save(images.call(query=id)),
        ):
            with pytest.raises(NotFound) as refused:
                await call
            assert refused.value.message == words
    assert images.engine.done == []


async def test_an_image_with_names_of_two_projects_loses_only_the_callers_own() -> None:
    images = Images()
    for name, force in ((SHARED.id, False), ("cccc", True), (MINE, True)):
        error = await images.refused(name, force=force)
        assert isinstance(error, Forbidden) and "vision" not in error.message
    await images.handlers.remove(images.call(names=[MINE]))
    assert images.engine.done == [("remove", MINE)]


async def test_who_wants_an_image_is_named_to_those_who_see_their_project() -> None:
    images = Images(of("vision", "10", "python:3.11"))
    error = await images.refused("python:3.11")
    assert isinstance(error, Conflict) and "is wanted by a job of another project, not over" in error.message
    images = Images(of("vision", "10", "python:3.11"), of("speech", "11", "python:3.11"))
    assert "is wanted by job 11 'job-11' and 1 more" in (await images.refused("python:3.11")).message


async def test_a_cache_of_another_project_that_keeps_an_image_has_no_name() -> None:
    cache = ImageCache(
        id="private", project="vision", location="l", images=("python:3.11",), created_at=T0, updated_at=T0
    )
    error = await Images(caches=(cache,)).refused("python:3.11")
    assert error.message == "python:3.11 is kept by an image cache of another project."


async def test_what_the_build_of_somebody_else_says_is_for_those_who_see_all() -> None:
    images = Images()

    async def steps(*_: object) -> AsyncIterator[ImageStep]:
        yield ImageStep(text="a line of its output")

    cast("Any", images.engine).build = cast("Any", images.engine).load = steps
    ann = replace(BOB, id="ann")
    sent = cast("AsyncIterator[bytes]", steps())
    works = [
        images.service.build(sent, BuildRecipe(tags=("common:1",)), OWNER, "vision"),
        images.service.load(sent, OWNER),
    ]
    for work in works:
        await anext(work)
    assert [work.step.text for work in images.service.going(OWNER)] == ["a line of its output"] * 2
    others = images.service.going(ann)
    assert [work.name for work in others] == ["common:1", ""]
    assert not any("output" in work.step.text for work in others)


def test_capitals_and_ports_of_googles_registries_lead_to_the_same_project() -> None:
    for registry in (
        "eu-docker.pkg.dev",
        "EU-docker.pkg.dev",
        "eu-docker.pkg.dev:443",
        "gcr.io",
        "GCR.io:443",
    ):
        assert project_in(f"{registry}/vision/r/secret:1") == "vision"


def test_images_that_google_gives_to_everybody_are_of_no_project() -> None:
    for name in (
        "us-docker.pkg.dev/vertex-ai/training/tf-cpu.2-12.py310:latest",
        "gcr.io/distroless/python3",
    ):
        assert project_in(name) == ""


def test_what_is_made_for_a_job_is_seen_by_those_who_see_all_however_its_name_is_spelt() -> None:
    for name in (f"{DERIVED}home:1", "trainshed-derived-home:1", "library/trainshed-derived-home:1"):
        assert not is_seen(name, BOB) and is_seen(name, OWNER)
        assert (
            hidden_sentence(name)
            == f"{name} is an image that the server makes for jobs: use the one that it is made of."
        )
    assert is_seen("gcr.io/speech/trainshed-derived-home:1", BOB)


async def test_nobody_tags_or_pulls_what_is_made_for_a_job() -> None:
    images = Images()
    for call in (
        images.handlers.tag(images.call(name="trainshed-derived-home:1", tag="mine:1")),
        images.handlers.tag(images.call(name="python:3.11", tag=f"{DERIVED}home:1")),
        images.handlers.pull(images.call(name=f"{DERIVED}home:1")),
    ):
        with pytest.raises(Forbidden):
            await call
    assert images.engine.done == []

"""Archives and builds of people who do not see every project, on real engines."""

import asyncio
import gzip
import io
import json
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.containers.engine import Podman
from tests.containers.engine_images import BASE
from tests.containers.image_shop import BOB, MINE, SECRET, Shop, named, renamed
from tests.containers.image_world import MIB, World, all_of, context, pieces
from tests.containers.registry import Registry
from trainshed.core.accounts.permission import OWNER
from trainshed.core.errors import Invalid, NotFound, TrainshedError
from trainshed.core.supplies.image import DERIVED, BuildRecipe

pytestmark = [pytest.mark.containers, pytest.mark.timeout(400)]


@pytest.fixture
async def shop(podman: Podman, registry: Registry, tmp_path: Path) -> AsyncIterator[Shop]:
    world = World(podman, registry)
    made = Shop(await world.started(), tmp_path)
    yield made
    await made.clear()
    await world.close()


async def test_an_archive_brings_no_image_under_a_name_of_another_project(shop: Shop) -> None:
    await shop.make("projects-own:1", "FROM scratch\nCOPY f /f\n", f=b"own")
    secret = await shop.begin()
    own = await shop.saved("projects-own:1")
    for name in (SECRET, "GCR.io/vision/secret:1", "gcr.io:443/vision/new:1", f"{DERIVED}home:1"):
        words = await shop.refuses(shop.load(renamed(own, named("shelf:1", name))))
        assert (
            "is named after project vision, in which you have no role" in words or "makes for jobs" in words
        )
    twice = gzip.compress(renamed(own, lambda rows: rows + named(SECRET)(rows)))
    assert SECRET in await shop.refuses(shop.load(twice))
    odd = renamed(
        own, lambda rows: json.dumps(rows)[:-2].encode() + f', "repotags": ["{SECRET}"]}}]'.encode()
    )
    await shop.load(odd)  # Podman reads the name in small letters too; it gets what was judged
    assert (await shop.images.inspect(SECRET)).id == secret
    steps = await shop.load(renamed(own, named("shelf:1", MINE)))
    assert {step.text for step in steps} == {"Loaded image shelf:1", f"Loaded image {MINE}"}
    assert (await shop.images.inspect("shelf:1")).id == (await shop.images.inspect("projects-own:1")).id


async def test_what_was_saved_is_loaded_as_it_was_by_whom_sees_little(shop: Shop) -> None:
    await shop.make("projects-own:1", f"FROM {BASE}\nRUN echo 1 > /one\nRUN echo 2 > /two\n")
    await shop.make("projects-more:1", "FROM projects-own:1\nENV A=b\n")
    ids = [(await shop.images.inspect(f"projects-{name}:1")).id for name in ("own", "more")]
    archive = await shop.saved("projects-own:1", "projects-more:1")
    await shop.clear()
    steps = await shop.load(archive)
    assert {step.text for step in steps} == {"Loaded image projects-own:1", "Loaded image projects-more:1"}
    assert [(await shop.images.inspect(f"projects-{name}:1")).id for name in ("own", "more")] == ids


async def test_an_archive_of_an_oci_tool_is_loaded_under_the_name_in_it(
    shop: Shop, podman: Podman, tmp_path: Path
) -> None:
    made = await shop.make("projects-own:1", f"FROM {BASE}\nRUN echo 1 > /one\n")
    podman.run("save", "--format", "oci-archive", "-o", str(tmp_path / "oci.tar"), "projects-own:1")
    archive = (tmp_path / "oci.tar").read_bytes()
    await shop.clear()
    await shop.load(archive)
    assert await shop.images.inspect("projects-own:1")
    shop.before = await shop.names()
    key = "org.opencontainers.image.ref.name"

    def change(index: Any) -> Any:
        index["manifests"][0]["annotations"] = {key: SECRET}
        return index

    assert SECRET in await shop.refuses(shop.load(renamed(archive, change, "index.json")))
    assert made


async def test_an_engine_loads_nothing_of_an_archive_that_breaks_off(shop: Shop) -> None:
    await shop.make("projects-own:1", "FROM scratch\nCOPY f /f\n", f=b"own" * MIB)
    archive = await shop.saved("projects-own:1")
    await shop.clear()
    shop.before = await shop.names()

    async def part() -> AsyncIterator[bytes]:
        yield archive[: len(archive) - 20_000]
        raise NotFound("It breaks off.")

    for who in (BOB, OWNER):
        await shop.refuses(all_of(shop.service.load(part(), who)), NotFound)
        await asyncio.sleep(0.5)
        assert await shop.names() == shop.before


@pytest.mark.parametrize(
    "text",
    [
        f"FROM {SECRET}",
        "ARG X=gcr.io/vision\nFROM ${X}/secret:1",
        f"FROM {BASE}\nCOPY --from={SECRET} /secret /",
        f"FROM {BASE}\nRUN --mount=type=bind,from={SECRET},target=/m cp /m/secret /",
        "FROM gcr.io/vision/there-is-none:1",
    ],
)
async def test_a_build_reads_no_image_of_another_project(shop: Shop, text: str) -> None:
    await shop.begin()
    words = await shop.refuses(shop.build(text))
    assert "is named after project vision, in which you have no role" in words
    assert words.startswith(f"Line {text.count(chr(10)) + 1} of the Dockerfile")


async def test_a_build_finds_no_image_of_another_project_by_the_end_of_its_name_its_id_or_digest(
    shop: Shop,
) -> None:
    """Podman finds images by all of these."""
    secret = (await shop.begin()).removeprefix("sha256:")
    [digest] = [
        image.digests[0].partition("@")[2] for image in await shop.images.all() if SECRET in image.names
    ]
    for name in ("secret:1", "vision/secret:1", secret[:12], f"localhost/x/y@{digest}"):
        for text in (f"FROM {name}", f"FROM {BASE}\nCOPY --from={name} /secret /"):
            with pytest.raises(TrainshedError):
                await shop.build(text)
            assert await shop.names() == shop.before
    for name in (secret, f"sha256:{secret}"):
        assert "is the id of an image" in await shop.refuses(shop.build(f"FROM {name}"), Invalid)
    assert "of vision" not in str(await shop.images.all())
    with pytest.raises(NotFound):
        await shop.images.inspect(f"localhost/x/y@{digest}")
    assert await shop.images.inspect(f"gcr.io/vision/secret@{digest}")


async def test_a_name_that_begins_as_an_id_of_another_project_is_still_a_name(shop: Shop) -> None:
    own = await shop.make("projects-own:1", "FROM scratch\nCOPY f /f\n", f=b"own")
    secret = (await shop.begin()).removeprefix("sha256:")
    await shop.images.tag("projects-own:1", secret[:12])
    await shop.build(f"FROM {secret[:12]}")
    assert (await shop.images.inspect(MINE)).id == own
    mount = f"RUN --mount=type=bind,from={secret[:12]},target=/m cat /m/*"
    assert "own" in await shop.build(f"FROM {BASE}\n{mount}\n")
    await shop.images.remove(f"{secret[:12]}:latest")


async def test_steps_that_a_base_image_brings_along_read_no_image(shop: Shop) -> None:
    trigger = f"FROM {BASE}\nONBUILD COPY --from={SECRET} /secret /\n"
    await shop.make("projects-base:1", trigger)
    await shop.begin()
    words = await shop.refuses(shop.build("FROM projects-base:1"), Invalid)
    assert "projects-base:1 has ONBUILD steps, which may read other images" in words
    assert "ONBUILD" in await shop.refuses(shop.build(trigger), Invalid)
    for step in ("COPY none /", "RUN touch /x", "ENV a=b"):
        await shop.make("projects-base:1", f"FROM {BASE}\nONBUILD {step}\n")
        shop.before = await shop.names()
        assert "ONBUILD" in await shop.refuses(shop.build("FROM projects-base:1"), Invalid)
    await shop.make("projects-base:1", f"FROM {BASE}\nENV a=b\n")
    await shop.build("FROM projects-base:1\nRUN true\n")


async def test_a_build_of_several_stages_says_names_and_is_the_same_for_everybody(shop: Shop) -> None:
    await shop.make("projects-base:1", "FROM scratch\nCOPY f /base\n", f=b"base")
    await shop.make("gcr.io/speech/tools:1", "FROM scratch\nCOPY f /tool\n", f=b"tool")
    text = (
        "# syntax=docker/dockerfile:1\n"
        f"ARG B={BASE}\n"
        "FROM ${B} AS first\n"
        "COPY sub/own /own\n"
        "COPY --from=projects-base:1 /base /\n"
        "RUN --mount=type=bind,from=gcr.io/speech/tools:1,target=/m cat /m/tool /base /own > /all\n"
        "FROM first AS second\n"
        "COPY --from=0 /all /again\n"
        "RUN cat /again\n"
    )
    for who in (OWNER, BOB):
        told = await shop.build(
            text, who, files={"sub/own": b"own", ".dockerignore": b"none\n"}, cached=False
        )
        assert "toolbaseown" in told and f"FROM {BASE}" in told.replace("${B}", BASE)
        assert "--from=projects-base:1" in told and "--from=gcr.io/speech/tools:1" not in told
        assert "from=gcr.io/speech/tools:1" in told


async def test_the_file_that_is_judged_is_the_one_that_is_built(shop: Shop) -> None:
    await shop.begin()
    made = io.BytesIO()
    evil, good = f"FROM {SECRET}\n".encode(), f"FROM {BASE}\nRUN echo good > /good\n".encode()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for name, kind, data in (
            ("d", tarfile.DIRTYPE, b""),
            ("d/Dockerfile", tarfile.REGTYPE, good),
            ("here", tarfile.SYMTYPE, b"d"),
            ("here/Dockerfile", tarfile.REGTYPE, evil),
        ):
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname, entry.size = kind, "d", len(data) if kind == tarfile.REGTYPE else 0
            tar.addfile(entry, io.BytesIO(data))
    recipe = BuildRecipe(tags=(MINE,), dockerfile="./d//Dockerfile")
    steps = await all_of(shop.service.build(pieces(made.getvalue()), recipe, BOB, "speech"))
    assert any("echo good" in step.text for step in steps) and steps[-1].text.startswith(f"Built {MINE}")
    through = BuildRecipe(tags=(MINE,), dockerfile="here/Dockerfile")
    for how in (through, BuildRecipe(tags=(MINE,), dockerfile='["here/Dockerfile"]')):
        with pytest.raises(Invalid):
            await all_of(shop.service.build(pieces(made.getvalue()), how, BOB, "speech"))
    assert "another" in await _refused(shop, "Dockerfile.in")


async def _refused(shop: Shop, dockerfile: str) -> str:
    with pytest.raises(Invalid) as error:
        await shop.build("FROM scratch", dockerfile=dockerfile, files={dockerfile: b"FROM scratch\n"})
    return error.value.message


async def test_a_base_that_is_not_here_is_pulled_first(
    shop: Shop, podman: Podman, registry: Registry
) -> None:
    world = World(podman, registry)
    name = registry.image(await world.offer(b"far"))
    told = await shop.build(f"FROM {name}\nCOPY f /g\n", files={"f": b"x"})
    assert f"Pulled image {name}" in told and f"Built {MINE}" in told
    await shop.build(f"FROM {name}\nCOPY f /g\n", files={"f": b"x"}, pull=True)
    await world.close()


async def test_what_a_build_keeps_in_a_cache_is_found_by_builds_of_its_project_alone(shop: Shop) -> None:
    mount = f"FROM {BASE}\nRUN --mount=type=cache,target=/kept"
    recipe = BuildRecipe(tags=(MINE,), cached=False)
    told: list[str] = []
    for project, text in (("speech", "touch /kept/mine"), ("vision", "ls /kept"), ("speech", "ls /kept")):
        sent = context(Dockerfile=f"{mount} {text}\n".encode())
        steps = await all_of(shop.service.build(sent, recipe, BOB, project))
        told.append("\n".join(step.text for step in steps if "STEP" not in step.text))
    assert "mine" not in told[1].split() and "mine" in told[2].split(), told


@pytest.mark.parametrize(
    ("source", "links"),
    [
        ("out", {"out": "/"}),
        ("out/etc", {"out": "/"}),
        ("folder/out", {"here": ".", "here/folder/out": "/"}),
    ],
)
async def test_a_mount_of_a_build_leads_to_nothing_of_the_machine(
    shop: Shop, source: str, links: dict[str, str]
) -> None:
    """Podman before 4.9.4 follows links in the context."""
    mount = f"FROM {BASE}\nRUN --mount=type=bind,source={{}},target=/m cat /m/file\n"
    made, text = io.BytesIO(), mount.format(source).encode()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for name, to in links.items():
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, to
            tar.addfile(entry)
        entry = tarfile.TarInfo("Dockerfile")
        entry.size = len(text)
        tar.addfile(entry, io.BytesIO(text))
    with pytest.raises(Invalid, match="link"):
        await all_of(shop.service.build(pieces(made.getvalue()), BuildRecipe(tags=(MINE,)), BOB, "speech"))
    told = await shop.build(mount.format("folder"), files={"folder/file": b"content"})
    assert "content" in told


async def test_an_image_that_was_there_already_tells_no_names_of_others(shop: Shop) -> None:
    await shop.make("projects-base:1", "FROM scratch\nCOPY f /base\n", f=b"base")
    await shop.images.tag("projects-base:1", SECRET)
    told = await shop.build("FROM projects-base:1")
    assert "vision" not in told and f"Built {MINE}" in told
    steps = await shop.load(await shop.saved("projects-base:1"))
    assert [step.text for step in steps] == ["Loaded image projects-base:1"]


async def test_an_image_that_lost_its_name_is_nobodys_to_take(shop: Shop) -> None:
    first = await shop.begin()
    await shop.make(SECRET, "FROM scratch\nCOPY f /secret\n", f=b"newer")
    assert first in {image.id for image, _ in await shop.service.all(OWNER)}
    assert first not in {image.id for image, _ in await shop.service.all(BOB)}
    with pytest.raises(NotFound):
        await shop.service.get(first, BOB)
    await shop.images.remove(first, force=True)

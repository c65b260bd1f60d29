"""Image caches and the collector on a real engine and registry."""

import json
import os
import time
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.containers.engine import Podman
from tests.containers.engine_images import BASE
from tests.containers.registry import Registry
from tests.containers.slow_registry import slow_way
from tests.live import PARENT, PATIENCE, PROJECT, LiveServer
from tests.shell import Shell
from trainshed.backends.container.engine import Engine
from trainshed.backends.container.image_ledger import ImageLedger
from trainshed.backends.container.images import EngineImages
from trainshed.control.image_collector import ImageCollector
from trainshed.core.supplies.image import canonical
from trainshed.core.supplies.image_cache import CacheState, ImageCache
from trainshed.testing.backend import RealClock
from trainshed.testing.store import MemoryStore

pytestmark = [pytest.mark.containers, pytest.mark.timeout(400)]

CACHES = f"{PARENT}/imageCaches"


@pytest.fixture
def server(podman: Podman) -> Iterator[LiveServer]:
    flags = ("--engine", str(podman.socket), "--subnets", podman.subnets)
    with LiveServer(*flags) as live:
        yield live
        assert "Traceback" not in live.said(), live.said()


def offered(podman: Podman, registry: Registry, size: int = 1000) -> str:
    """An image that is in the registry and not here, by its name below the registry."""
    name = f"caches/{uuid.uuid4().hex}:1"
    full = registry.image(name)
    lines = f"FROM {BASE}\nRUN head -c {size} /dev/urandom > /data\n"
    podman.run("build", "--no-cache", "--tag", full, "-", feed=lines.encode())
    podman.run("push", full)
    podman.run("rmi", full)
    return name


def is_here(podman: Podman, image: str) -> bool:
    podman.run("image", "exists", image, check=False)
    return bool(podman.run("images", "--quiet", image).strip())


def until(
    ask: Callable[[], dict[str, object]], good: Callable[[dict[str, object]], bool]
) -> dict[str, object]:
    deadline = time.monotonic() + 2 * PATIENCE
    while not good(found := ask()):
        assert time.monotonic() < deadline, found
        time.sleep(0.05)
    return found


def test_a_cache_is_filled_shown_used_and_deleted(
    server: LiveServer, podman: Podman, registry: Registry, tmp_path: Path
):
    shell, image = (
        Shell(server, tmp_path, {"TRAINSHED_PROJECT": PROJECT}),
        registry.image(offered(podman, registry)),
    )
    made = shell(f"trainshed images cache create digits {image} --retention-days 3")
    assert made.returncode == 0, made.stderr
    ready = until(lambda: server.get(f"{CACHES}/digits"), lambda one: one["state"] == "READY")
    assert is_here(podman, image)
    assert int(str(ready["sizeBytes"])) > 1000
    assert ready["retentionDays"] == 3
    listed = shell("trainshed images cache ls").stdout
    assert "digits  READY  100%" in listed, listed
    refused = shell(f"trainshed images cache create digits {image}")
    assert "There is an image cache" in refused.stderr
    pool = {
        "machineSpec": {"machineType": "n1-standard-1"},
        "containerSpec": {"imageUri": image, "command": ["sh", "-c", "wc -c < /data"]},
    }
    job = server.submit(pools=[pool])
    assert server.wait(job, 120)["state"] == "JOB_STATE_SUCCEEDED"
    events = server.get(f"/v1/{job}:events")
    (cached,) = [one for one in events["events"] if one["reason"] == "IMAGE_CACHED"]
    assert cached["message"] == f"Image cache digits has {image}."
    assert not [one for one in events["events"] if one["reason"] == "PREPARING"]
    kept = shell(f"trainshed images rm {image}")
    assert f"{image} is kept by image cache digits" in kept.stderr
    assert shell("trainshed images cache rm digits").stdout == "deleted image cache digits\n"
    assert server.get(CACHES) == {"imageCaches": []}
    assert is_here(podman, image)
    assert shell("trainshed images cache rm digits").returncode == 1


def test_how_far_it_is_is_told_and_a_killed_server_goes_on_with_it(
    server: LiveServer, podman: Podman, registry: Registry
):
    name = offered(podman, registry, 6_000_000)
    with slow_way(podman.registry_ports[1], registry.port, 1.5e6) as slow:
        image = slow.image(name)
        server.post(f"{CACHES}?imageCacheId=slow", {"images": [image]})

        def look() -> dict[str, object]:
            return server.get(f"{CACHES}/slow")

        moving = until(look, lambda one: 0 < int(str(one["progress"])) < 100)
        assert moving["state"] == "CREATING"
        assert image in str(moving["reason"])
        server.kill()
        server.start()
        slow.rate = 1e9
        until(look, lambda one: one["state"] == "READY")
    assert is_here(podman, image)


def test_an_image_that_does_not_exist_fails_it_and_says_so(
    server: LiveServer, registry: Registry, tmp_path: Path
):
    shell, image = Shell(server, tmp_path, {"TRAINSHED_PROJECT": PROJECT}), registry.image("caches/none:1")
    cache = {
        "apiVersion": "eci.alibabacloud.com/v1",
        "kind": "ImageCache",
        "metadata": {"name": "none"},
        "spec": {"images": [image]},
    }
    (tmp_path / "cache.json").write_text(json.dumps(cache))
    assert shell("trainshed apply -f cache.json").stdout == "imagecache/none created\n"
    failed = until(lambda: server.get(f"{CACHES}/none"), lambda one: one["state"] == "FAILED")
    assert image in str(failed["reason"])
    assert "imagecache/none unchanged" in shell("trainshed apply -f cache.json").stdout


async def test_the_collector_removes_what_was_pulled_and_nothing_else(
    podman: Podman, registry: Registry, tmp_path: Path
):
    pulled, cached, busy, mine = (registry.image(offered(podman, registry)) for _ in range(4))
    engine = Engine(str(podman.socket))
    ledger = tmp_path / "images.json"
    images = EngineImages(engine, ledger=ImageLedger(ledger))
    try:
        await images.start()
        for name in (pulled, cached, busy):
            assert [step async for step in images.pull(name)][-1].percent == 100
        podman.run("pull", mine)
        podman.run("tag", pulled, "localhost/somebodys:1")
        box = podman.run("create", busy, "true").strip()
        again = EngineImages(engine, ledger=ImageLedger(ledger))  # what was pulled is known in the next life
        await again.start()
        cache = ImageCache(
            id="c",
            project="p",
            location="l",
            images=(cached,),
            created_at=datetime.now(UTC),
            state=CacheState.READY,
        )
        collector = ImageCollector(
            store=MemoryStore(),
            inventories=lambda: (again,),
            clock=RealClock(),
            caches=lambda: (cache,),
            retention=timedelta(),
            young=timedelta(),
        )
        assert {name for one in await again.kept() for name in one.names} == {
            canonical(cached),
            canonical(busy),
        }
        await collector.look()
        assert [is_here(podman, name) for name in (pulled, cached, busy, mine)] == [True] * 4
        podman.run("rmi", "localhost/somebodys:1")
        podman.run("rm", box)
        await collector.look()
        assert [is_here(podman, name) for name in (pulled, cached, busy, mine)] == [False, True, False, True]
        free, whole = await again.space() or (0, 0)
        assert 0 < free < whole
        disk = os.statvfs(podman.folder)
        assert whole == disk.f_blocks * disk.f_frsize
    finally:
        await images.close()
        await engine.close()

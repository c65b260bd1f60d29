"""The engines of tests themselves: what they promise is what every other test of containers stands on."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.containers.engine import ROOT, Podman, an_engine
from tests.containers.engine_guard import boxed, mounted
from tests.containers.engine_images import BASE
from tests.containers.registry import Registry, a_registry
from tests.live import bearing, until

pytestmark = pytest.mark.containers

HELD = f"""
import os, time
from tests.containers.engine import an_engine
with an_engine() as engine:
    engine.run("network", "create", "held")
    engine.run("run", "-d", "--network", "held", "{BASE}", "sleep", "1000")
    print(engine.folder, flush=True)
    time.sleep(1000)
"""


@pytest.fixture(scope="module")
def other() -> Iterator[Podman]:
    with an_engine() as engine:
        yield engine


def test_two_engines_share_the_base_image_and_nothing_else(podman: Podman, other: Podman):
    podman.run("network", "create", "n")
    try:
        podman.run("run", "-d", "--name", "one", "--network", "n", BASE, "sleep", "1000")

        assert BASE in other.run("images", "--format", "{{.Repository}}:{{.Tag}}")
        assert "one" in podman.containers() and "one" not in other.containers()
        assert "n" in podman.networks() and "n" not in other.networks()
        assert podman.subnets != other.subnets
    finally:
        podman.run("rm", "--force", "--time", "0", "one", check=False)
        podman.run("network", "rm", "--force", "n", check=False)


def test_containers_live_on_when_the_service_dies(other: Podman):
    other.run("run", "-d", "--name", "alive", BASE, "sleep", "1000")

    other.restart()

    assert other.containers() == {"alive": "running"}
    other.run("rm", "--force", "--time", "0", "alive")
    assert other.mounts() == []


def test_a_reboot_ends_every_container_and_leaves_the_engine_usable(other: Podman):
    other.run("network", "create", "wire")
    other.run("run", "-d", "--name", "dead", "--network", "wire", BASE, "sleep", "1000")

    other.reboot()

    assert list(boxed(other.folder)) == []
    assert other.containers()["dead"] != "running"
    other.run("start", "dead")
    assert other.containers() == {"dead": "running"}
    other.run("rm", "--force", "--time", "0", "dead")
    other.run("network", "rm", "wire")


def test_nothing_is_left_of_an_engine_whose_test_run_was_killed():
    run = subprocess.Popen(
        [sys.executable, "-c", HELD], cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert run.stdout is not None
    with run.stdout:
        folder = Path(run.stdout.readline().strip())
    assert mounted(folder)

    os.killpg(run.pid, signal.SIGKILL)
    run.wait()

    until(lambda: not folder.exists() and not bearing(folder))  # its guard ends last
    assert (list(boxed(folder)), mounted(folder)) == ([], [])


def test_a_registry_takes_images_and_gives_them_back(podman: Podman, registry: Registry):
    name = registry.image("team/python:3")

    podman.run("push", BASE, name)

    assert "team/python" in json.loads(registry.get("/v2/_catalog")[1])["repositories"]
    podman.run("pull", name)
    podman.run("rmi", name, check=False)
    if "in use" in podman.said:  # its content is that of a container which an earlier test has left
        podman.run("untag", name)


def test_a_closed_registry_wants_its_user(podman: Podman):
    with a_registry(podman, "ann", "s3cret") as closed:
        name = closed.image("python:3")

        podman.run("push", BASE, name, check=False)
        assert "authentication required" in podman.said
        podman.run("push", "--creds", "ann:s3cret", BASE, name)

        assert closed.get("/v2/python/tags/list")[0] == 200

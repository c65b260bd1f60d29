"""Which engine is found, in which order, and what is said where there is none."""

import asyncio
import contextlib
import errno
import json
import os
import socket
import tempfile
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import cast

import pytest

from trainshed.backends.container import engine_finder
from trainshed.backends.container.engine_finder import AnsweringEngine, EngineFinder, NoEngine
from trainshed.backends.machine.node import LocalNode
from trainshed.core.errors import Unavailable
from trainshed.core.jobs.readiness import ReadinessState
from trainshed.core.ports import Backend

PODMAN = {
    "Version": "4.3.1",
    "ApiVersion": "1.41",
    "MinAPIVersion": "1.24",
    "Components": [{"Name": "Podman Engine"}],
}
DOCKER = {
    "Version": "29.0.1",
    "ApiVersion": "1.52",
    "MinAPIVersion": "1.44",
    "Components": [{"Name": "Engine"}],
}


@pytest.fixture
def folder():
    with tempfile.TemporaryDirectory(prefix="ts-") as path:  # short: it holds sockets
        yield Path(path)


@contextlib.asynccontextmanager
async def an_engine(path: Path, says: object = PODMAN, *, mute: bool = False) -> AsyncIterator[None]:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        text = says if isinstance(says, bytes) else json.dumps(says).encode()
        try:
            await reader.readuntil(b"\r\n\r\n")
            if mute:
                await reader.read()
            else:
                writer.write(b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n" + text)
        except asyncio.IncompleteReadError:
            pass  # somebody looked whether anybody is here
        finally:
            writer.close()

    server = await asyncio.start_unix_server(answer, path)
    yield
    server.close()
    await asyncio.sleep(0.05)  # for those still being answered


def sockets(engine: str, environ: Mapping[str, str]) -> list[str]:
    found = engine_finder.places(engine, environ)
    assert not isinstance(found, NoEngine)
    return [place.socket for place in found]


def test_a_setting_of_ours_leaves_no_choice():
    environ = {"DOCKER_HOST": "unix:///d.sock", "XDG_RUNTIME_DIR": "/run/user/1"}
    assert sockets("/my.sock", environ) == ["/my.sock"]
    assert sockets("unix:///my.sock", environ) == ["/my.sock"]


def test_what_other_tools_are_told_comes_before_the_usual_places(monkeypatch: pytest.MonkeyPatch):
    environ = {
        "DOCKER_HOST": "unix:///d.sock",
        "CONTAINER_HOST": "unix:///c.sock",
        "XDG_RUNTIME_DIR": "/run/user/1",
        "HOME": "/home/a",
    }
    assert sockets("auto", environ) == [
        "/d.sock",
        "/c.sock",
        "/run/user/1/podman/podman.sock",
        "/run/podman/podman.sock",
        "/var/run/docker.sock",
        "/run/user/1/docker.sock",
        "/home/a/.docker/run/docker.sock",
    ]
    monkeypatch.setattr(os, "getuid", lambda: 0)
    assert sockets("auto", {}) == ["/run/podman/podman.sock", "/var/run/docker.sock"]
    monkeypatch.setattr(os, "getuid", lambda: 7)
    assert sockets("auto", {})[0] == "/run/user/7/podman/podman.sock"
    assert sockets("auto", {"DOCKER_HOST": "unix:///var/run/docker.sock"}).count("/var/run/docker.sock") == 1


async def test_the_first_that_answers_is_taken_and_said_by_name(folder: Path):
    environ = {"DOCKER_HOST": f"unix://{folder}/d.sock", "CONTAINER_HOST": f"unix://{folder}/c.sock"}
    async with an_engine(folder / "c.sock"):
        found = await engine_finder.look("auto", environ)
        assert str(found) == f"Podman 4.3.1 at {folder}/c.sock"
        async with an_engine(folder / "d.sock", DOCKER):
            found = await engine_finder.look("auto", environ)
            assert isinstance(found, AnsweringEngine)
            assert (found.name, found.socket) == ("Docker", f"{folder}/d.sock")


def test_an_engine_is_asked_in_an_api_that_it_still_speaks():
    found = engine_finder.read_version("/s", DOCKER)
    assert isinstance(found, AnsweringEngine) and found.api == "1.44"
    found = engine_finder.read_version("/s", PODMAN)
    assert isinstance(found, AnsweringEngine) and found.api == "1.41"
    old = engine_finder.read_version("/s", {**PODMAN, "Version": "3.0.0", "ApiVersion": "1.40"})
    assert old == "is Podman 3.0.0, whose API 1.40 is too old: 1.41 is needed"


PING = "HTTP/1.0 200 OK\r\nApi-Version: {api}\r\nLibpod-Api-Version: 4.3.1\r\nServer: Libpod/4.3.1 (linux)"


def test_podman_is_known_by_the_head_of_its_shortest_answer():
    version = engine_finder.read_ping(PING.format(api="1.41"))
    assert version is not None
    assert engine_finder.read_version("/s", version) == engine_finder.read_version("/s", PODMAN)


@pytest.mark.parametrize(
    "head",
    [
        PING.format(api="1.40"),
        PING.format(api="1.52"),
        "HTTP/1.0 200 OK\r\nApi-Version: 1.41\r\nServer: Docker/20.10",
        "HTTP/1.0 200 OK\r\nLibpod-Api-Version: 4.3.1",
        "",
    ],
)
def test_a_head_that_does_not_tell_the_least_api_of_an_engine_is_not_enough(head: str):
    assert engine_finder.read_ping(head) is None


async def test_where_nobody_listens_it_says_where_it_looked_and_what_would_help(folder: Path):
    (folder / "plain").write_text("")
    with socket.socket(socket.AF_UNIX) as abandoned:
        abandoned.bind(f"{folder}/dead.sock")  # its file stays when it is closed
    for path in (folder / "none.sock", folder / "plain", folder / "dead.sock"):
        silence = await engine_finder.look(str(path), {})
        assert str(silence) == f"none (no engine answers at {path}; start it, or change --engine)"
        assert not engine_finder.is_within_reach([engine_finder.EngineAddress(str(path))])


def test_without_any_setting_the_usual_ways_to_start_one_are_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "getuid", lambda: 0)
    silence = engine_finder.silence(
        [engine_finder.EngineAddress("/a"), engine_finder.EngineAddress("/b")], (), {}
    )
    assert str(silence) == (
        "none (no engine answers at /a, /b; start one with 'systemctl start podman.socket' "
        "or 'systemctl start docker')"
    )


async def test_an_engine_elsewhere_is_none():
    silence = engine_finder.silence(
        [engine_finder.EngineAddress("/a")], (), {"DOCKER_HOST": "tcp://box:2375"}
    )
    assert "DOCKER_HOST=tcp://box:2375 is no socket of this machine" in str(silence)
    assert await engine_finder.look("none", {"DOCKER_HOST": "unix:///d"}) == engine_finder.OFF


async def test_who_answers_and_is_no_engine_or_does_not_answer_is_named(folder: Path):
    async with an_engine(folder / "x.sock", b"<html>"):
        silence = await engine_finder.look(f"{folder}/x.sock", {})
        assert f"{folder}/x.sock is not a container engine's" in str(silence)
        assert engine_finder.is_within_reach([engine_finder.EngineAddress(f"{folder}/x.sock")])
    async with an_engine(folder / "y.sock", mute=True):
        silence = await engine_finder.look(f"{folder}/y.sock", {}, limit=0.05)
        assert f"{folder}/y.sock does not answer within 0.05 s" in str(silence)


async def test_a_socket_that_may_not_be_used_is_said_to_be_so(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(engine_finder, "_touch", lambda _: errno.EACCES)  # root may use every socket
    silence = await engine_finder.look("/run/docker.sock", {})
    assert str(silence) == (
        "none (/run/docker.sock may not be used by this user; let this user use it, by its group or as root, "
        "or name another with --engine)"
    )


def sought(folder: Path, fault: str = "") -> EngineFinder:
    async def make(found: AnsweringEngine) -> Backend:
        raise Unavailable(fault)

    return EngineFinder(folder / "home", f"{folder}/x.sock", {}, make, node=LocalNode())


async def test_an_image_is_refused_where_there_is_no_engine_and_taken_once_one_listens(folder: Path):
    containers = sought(folder)
    sentence = containers.refuse("team/train:1", "No.")
    assert sentence is not None and sentence.startswith("No. There is none: no engine answers at ")
    async with an_engine(folder / "x.sock"):
        assert containers.refuse("team/train:1", "No.") is None
        assert "cannot be" in (containers.refuse("Not a name", "No.") or "")


def test_where_containers_have_run_before_jobs_wait_for_the_engine(folder: Path):
    (folder / "home").mkdir()
    assert sought(folder).refuse("team/train:1", "No.") is None
    (folder / "home/jobs/job1").mkdir(parents=True)
    assert sought(folder).left() == {"job1"}


async def test_a_job_that_waits_is_told_what_is_missing_and_what_would_help(folder: Path):
    containers = sought(folder, "There is no C compiler.")
    assert containers.absence().standing is ReadinessState.PREPARING
    with pytest.raises(Unavailable, match="there is no engine: no engine answers"):
        await containers.find()
    assert "no engine answers at" in containers.absence().message
    assert containers.absence().remedy.startswith("Start it, or change --engine. It is looked for again")
    async with an_engine(folder / "x.sock"):
        with pytest.raises(Unavailable):
            await containers.find()
    assert "Podman 4.3.1" in containers.absence().message
    assert "There is no C compiler." in containers.absence().message


class Made:
    """Stands for a backend: it is only handed on."""


async def test_an_engine_that_has_what_is_left_of_jobs_is_waited_for_whatever_else_is_there(folder: Path):
    async def make(found: AnsweringEngine) -> Backend:
        return cast(Backend, Made())

    def by(name: str) -> EngineFinder:
        return EngineFinder(folder / "home", f"{folder}/{name}.sock", {}, make, node=LocalNode())

    async with an_engine(folder / "other.sock"):
        async with an_engine(folder / "one.sock"):
            await by("one").find()
        assert isinstance(await by("other").look(), AnsweringEngine)  # nothing is left: any will do
        (folder / "home/jobs/job1").mkdir(parents=True)
        silence = await by("other").look()
        assert f"no engine answers at {folder}/one.sock, which has containers of this server" in str(silence)
        with pytest.raises(Unavailable):
            await by("other").find()
        (folder / "one.sock").unlink()
        async with an_engine(folder / "one.sock"):
            found = await by("other").look()
            assert isinstance(found, AnsweringEngine) and found.socket == f"{folder}/one.sock"
    assert await EngineFinder(folder / "home", "none", {}, make, node=LocalNode()).look() == engine_finder.OFF


async def test_without_a_compiler_there_are_no_containers_unless_the_init_is_made(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PATH", str(folder))
    async with an_engine(folder / "x.sock"):
        assert "cannot be made without a C compiler" in str(await sought(folder).look())
        (folder / "home/bin").mkdir(parents=True)
        (folder / "home/bin/init-0123").touch()
        assert isinstance(await sought(folder).look(), AnsweringEngine)


async def test_an_engine_that_answers_and_then_stands_still_is_given_up(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    async def make(found: AnsweringEngine) -> Backend:
        await asyncio.sleep(1000)
        raise AssertionError

    monkeypatch.setattr(engine_finder, "READY", 0.05)
    async with an_engine(folder / "x.sock"):
        with pytest.raises(Unavailable, match=r"does not get ready within 0\.05 s"):
            await EngineFinder(folder / "home", f"{folder}/x.sock", {}, make, node=LocalNode()).find()

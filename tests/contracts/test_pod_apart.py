"""A program of an isolated job begins only where its pod is kept apart from the network."""

import asyncio
import contextlib
import socket

import pytest

from tests.contracts.backend_bench import until
from tests.contracts.test_pod_channel import Pod, pod
from trainshed.backends.machine.init_record import EXPOSED
from trainshed.core.jobs.replica import Exit

__all__ = ["pod"]


def start(pod: Pod, place: tuple[str, int], monkeypatch: pytest.MonkeyPatch) -> "asyncio.Task[None]":
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", place[0])
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(place[1]))
    pod.start("--begin", "--apart", "sh", "-c", "echo begun")
    return asyncio.create_task(pod.follow(pod.channel()))


async def test_a_pod_that_reaches_the_kubernetes_api_begins_nothing_and_says_why(
    pod: Pod, monkeypatch: pytest.MonkeyPatch
):
    with socket.create_server(("127.0.0.1", 0)) as api:
        following = start(pod, api.getsockname(), monkeypatch)
        await until(lambda: pod.record.exit is not None)
        assert (pod.record.exit, pod.record.unstarted, pod.out) == (Exit(code=125), EXPOSED, "")
    following.cancel()


async def test_a_pod_whose_packets_are_dropped_begins(pod: Pod, monkeypatch: pytest.MonkeyPatch):
    with socket.socket() as full, contextlib.ExitStack() as callers:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _ in range(4):  # nobody accepts them, so the kernel drops what comes after
            caller = callers.enter_context(socket.socket())
            caller.setblocking(False)
            caller.connect_ex(full.getsockname())
        following = start(pod, full.getsockname(), monkeypatch)
        await until(lambda: pod.out == "begun\n")
        following.cancel()


async def test_a_pod_whose_kubernetes_api_only_refuses_is_not_taken_for_kept_apart(
    pod: Pod, monkeypatch: pytest.MonkeyPatch
):
    following = start(pod, ("127.0.0.1", 9), monkeypatch)
    await until(lambda: pod.record.exit is not None)
    assert pod.record.unstarted == EXPOSED and pod.out == ""
    following.cancel()

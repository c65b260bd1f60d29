"""The suggester in a process of its own: the promises of the port, and what happens when it fails."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import psutil
import pytest

from tests.studies.suggestions import MIXED, SMALL, random_trials, request_of
from trainshed.core.errors import Invalid, Unavailable
from trainshed.core.tuning.search_space import Parameter, ParameterKind, SearchSpace
from trainshed.core.tuning.suggestion_port import Algorithm, NoiseLevel, TrialResult, point_key
from trainshed.suggest.message import request_line
from trainshed.suggest.process import COMMAND, SuggestionProcess

DIES = (sys.executable, "-c", "import sys; sys.stdin.readline(); sys.exit(3)")
HANGS = (sys.executable, "-c", "import time; time.sleep(1000)")
BABBLES = (sys.executable, "-c", "import sys; [print('hello', flush=True) for _ in sys.stdin]")
ASTRAY = (
    sys.executable,
    "-c",
    """import sys; [print('{"points":[{"x":1}]}', flush=True) for _ in sys.stdin]""",
)
WITHOUT_NUMPY = (
    sys.executable,
    "-c",
    "import sys; sys.modules['numpy'] = None; from trainshed.suggest.worker import main; main()",
)


@asynccontextmanager
async def suggesting(
    command: tuple[str, ...] = COMMAND, patience: float = 60.0, idle: float = 600.0
) -> AsyncIterator[SuggestionProcess]:
    process = SuggestionProcess(command=command, patience=patience, idle=idle)
    try:
        yield process
    finally:
        await process.close()


async def ended(pid: int) -> None:
    while psutil.pid_exists(pid):
        await asyncio.sleep(0.01)


async def test_the_same_request_gets_the_same_points_from_another_process():
    request = request_of(trials=random_trials(12), count=2)
    async with suggesting() as first, suggesting() as second:
        points = await first.suggest(request)
        assert points == await second.suggest(request)
    assert len(points) == 2 and all(MIXED.contains(point) for point in points)


async def test_one_process_serves_all_who_ask_at_once_and_ends_with_the_close():
    async with suggesting() as process:
        await process.suggest(request_of())
        pid = process.pid
        requests = [replace(request_of(), number=number) for number in range(1, 6)]
        answers = await asyncio.gather(*map(process.suggest, requests))
        assert process.pid == pid
        for request, points in zip(requests, answers, strict=True):
            assert points == await process.suggest(request)
    assert pid is not None and not psutil.pid_exists(pid)


async def test_no_point_comes_twice_and_an_exhausted_space_gives_none():
    trials: tuple[TrialResult, ...] = ()
    async with suggesting() as process:
        while points := await process.suggest(request_of(SMALL, trials)):
            trials = (*trials, TrialResult(point=points[0], is_failed=True))
        assert len({point_key(trial.point) for trial in trials}) == len(trials) == 4
        assert await process.suggest(request_of(SMALL, trials, noise=NoiseLevel.HIGH))


async def test_what_is_wrong_with_a_request_is_said_without_a_process():
    async with suggesting() as process:
        with pytest.raises(Invalid) as caught:
            await process.suggest(request_of(MIXED, algorithm=Algorithm.GRID))
        assert len(caught.value.violations) == 2
        assert process.pid is None


async def test_a_killed_process_is_replaced_and_the_answer_is_the_same():
    request = request_of(trials=random_trials(12))
    async with suggesting() as process:
        points = await process.compute(request)
        assert process.pid is not None
        killed = process.pid
        os.kill(killed, 9)
        assert await process.compute(request) == points
        assert process.pid != killed


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (DIES, "failed twice"),
        (HANGS, "did not answer in time"),
        (BABBLES, "failed twice"),
        (("/no/such/program",), "failed twice"),
        (WITHOUT_NUMPY, "numpy and scipy are needed"),
    ],
    ids=["dies", "hangs", "babbles", "missing", "without-numpy"],
)
async def test_a_process_that_cannot_work_is_named_and_points_are_drawn_at_random(
    command: tuple[str, ...], words: str
):
    request = request_of(trials=random_trials(12), count=2)
    async with suggesting(command, patience=60.0 if command is WITHOUT_NUMPY else 0.5) as process:
        with pytest.raises(Unavailable, match=words):
            await process.compute(request)
        points = await process.suggest(request)
        assert points == await process.suggest(request)
    assert len(points) == 2 and all(MIXED.contains(point) for point in points)


async def test_a_request_for_many_points_is_asked_in_parts_that_know_of_each_other():
    counts = (
        "import json, sys\n"
        "for line in sys.stdin:\n"
        "    request = json.loads(line)\n"
        "    assert request['count'] <= 10\n"
        "    first = len(request['trials'])\n"
        "    points = [{'n': first + at} for at in range(request['count'])]\n"
        "    print(json.dumps({'points': points}), flush=True)\n"
    )
    space = SearchSpace((Parameter(id="n", kind=ParameterKind.INTEGER, low=0, high=999),))
    async with suggesting((sys.executable, "-c", counts)) as process:
        points = await process.suggest(request_of(space, count=25))
    assert [point["n"] for point in points] == list(range(25))


async def test_a_point_outside_of_the_space_is_never_passed_on():
    async with suggesting(ASTRAY) as process:
        with pytest.raises(Unavailable, match="outside of the space"):
            await process.suggest(request_of())


async def test_an_idle_process_ends_and_the_next_request_starts_another():
    async with suggesting(idle=0.0) as process:
        await process.suggest(request_of())
        first = process.pid
        if first is not None:
            await ended(first)
        assert MIXED.contains((await process.compute(request_of()))[0])


async def test_a_request_that_is_cancelled_leaves_no_process_that_is_half_way():
    async with suggesting(HANGS) as process:
        asking = asyncio.create_task(process.suggest(request_of()))
        while process.pid is None:
            await asyncio.sleep(0.01)
        pid = process.pid
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert not psutil.pid_exists(pid)


def test_a_process_whose_server_died_while_it_computed_ends_in_silence():
    process = subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.close()
    _, told = process.communicate(request_line(request_of()), timeout=60)
    assert (process.returncode, told) == (0, b"")

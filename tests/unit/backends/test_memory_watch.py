"""Who is over its memory: alone, or of those that share a limit."""

import asyncio
from pathlib import Path

from trainshed.backends.machine.memory_watch import MemoryWatch, excess, in_words, is_near
from trainshed.backends.process.run import ProcessRun
from trainshed.core.jobs.limits import MemoryLimit
from trainshed.core.names import ReplicaName, RunKey

GIB = 1 << 30


def key(job: str, index: int = 0) -> RunKey:
    return RunKey(ReplicaName(job, 0, 0, index), 0)


def test_each_has_its_own_limit():
    limits = {key("a", n): MemoryLimit(most=GIB, weight=GIB) for n in range(2)}
    assert excess(limits, {key("a", 0): GIB, key("a", 1): GIB + 1}) == {key("a", 1): GIB + 1}


def test_of_those_that_share_the_one_furthest_over_its_part_is_ended():
    limits = {
        key("a", n): MemoryLimit(most=4 * GIB, weight=part, shared=True)
        for n, part in enumerate((GIB, 3 * GIB))
    }
    used = {key("a", 0): 2 * GIB, key("a", 1): 3 * GIB}
    assert excess(limits, used) == {key("a", 0): 5 * GIB}
    assert excess(limits, {key("a", 0): 3 * GIB, key("a", 1): GIB}) == {}


def test_another_look_comes_sooner_near_a_limit_or_on_the_way_to_it():
    limits = {key("a"): MemoryLimit(most=10 * GIB, weight=10 * GIB)}
    assert not is_near(limits, {key("a"): 2 * GIB}, {key("a"): 2 * GIB})
    assert is_near(limits, {key("a"): 9 * GIB}, {key("a"): 9 * GIB})
    assert is_near(limits, {key("a"): 4 * GIB}, {key("a"): 2 * GIB})


def test_the_verdict_has_the_numbers():
    limit = MemoryLimit(most=4 * GIB, weight=GIB, shared=True, words="w")
    assert in_words(limit, 3 * GIB, 5 * GIB) == (
        "it was ended for want of memory: it used 3.0 GiB, all replicas of its job here 5.0 GiB, and w"
    )


async def test_a_run_that_an_earlier_server_was_about_to_end_is_ended_once(tmp_path: Path):
    ended: list[RunKey] = []

    async def end(run: ProcessRun) -> None:
        ended.append(run.key)

    watch = MemoryWatch[ProcessRun](asyncio.Event().wait, end)
    run = ProcessRun(key("a"), str(tmp_path), memory=MemoryLimit(most=GIB, weight=GIB), over_memory="noted")
    for _ in range(3):
        watch.take([run], {run.key: GIB // 2})
        await asyncio.sleep(0)
    await watch.close()
    assert ended == [key("a")]


async def test_no_other_run_is_ended_while_one_that_is_being_ended_still_has_memory(tmp_path: Path):
    ended: list[RunKey] = []

    async def end(run: ProcessRun) -> None:
        ended.append(run.key)

    watch = MemoryWatch[ProcessRun](asyncio.Event().wait, end)
    limit = MemoryLimit(most=4 * GIB, weight=2 * GIB, shared=True)
    runs = [ProcessRun(key("a", n), str(tmp_path / str(n)), memory=limit) for n in range(2)]
    for run in runs:
        Path(run.folder).mkdir()
    watch.take(runs, {key("a", 0): 3 * GIB, key("a", 1): 2 * GIB})
    watch.take(runs, {key("a", 0): 2 * GIB + 1, key("a", 1): 2 * GIB + 2})  # the first has given back some
    await asyncio.sleep(0)
    await watch.close()
    assert ended == [key("a", 0)]

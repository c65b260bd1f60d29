"""Stacks put together: who is where, the odd one named, in the words of the program's own files."""

import pytest

from trainshed.core.jobs.stacks import (
    ProcessStack,
    StackDump,
    StackFrame,
    ThreadStack,
    clean_command,
    drawn,
    grouped,
    place_of,
    print_of,
    spread,
    told,
)

TORCH = "/venv/lib/python3.11/site-packages/torch/distributed"
REDUCE = (
    StackFrame("all_reduce", f"{TORCH}/distributed_c10d.py", 2501),
    StackFrame("_exception_logger.<locals>.wrapper", f"{TORCH}/c10d_logger.py", 83),
    StackFrame("main", "/srv/train.py", 41),
    StackFrame("<module>", "/srv/train.py", 50),
)
LOAD = (StackFrame("load_batch", "/srv/data.py", 17), StackFrame("main", "/srv/train.py", 40))
LAUNCHER = (
    StackFrame("_poll", f"{TORCH}/elastic/agent.py", 5),
    StackFrame("<module>", "/venv/bin/torchrun", 8),
)


def a_process(
    frames: tuple[StackFrame, ...] = (),
    *,
    pid: int = 1,
    waits: bool = False,
    others: int = 0,
    command: str = "python",
) -> ProcessStack:
    main = ThreadStack(name="MainThread", frames=frames, waits=waits, is_main=True)
    rest = tuple(ThreadStack(name=f"t{n}", frames=(StackFrame("run", "x.py", n),)) for n in range(others))
    return ProcessStack(
        pid=pid, command=command, state="sleeps in futex", threads=(main, *rest) if frames else ()
    )


def a_dump(*stacks: tuple[StackFrame, ...], waits: bool = False) -> StackDump:
    return StackDump(
        processes=tuple(a_process(frames, pid=n, waits=waits) for n, frames in enumerate(stacks))
    )


def test_the_same_stacks_are_told_once_and_the_odd_replica_is_named() -> None:
    dumps = {f"workerpool1-{n}": a_dump(REDUCE, waits=True) for n in (0, 2)}
    dumps["workerpool0-0"] = a_dump(REDUCE, waits=True)
    dumps["workerpool1-1"] = a_dump(LOAD)
    groups = grouped(dumps)
    assert told(groups) == (
        "3 replicas wait in all_reduce (train.py:41); workerpool1-1 is in load_batch (data.py:17)"
    )
    assert groups[0].tasks == ("workerpool0-0", "workerpool1-0", "workerpool1-2")


def test_a_place_is_told_as_the_program_itself_calls_it() -> None:
    assert place_of(REDUCE) == "all_reduce (train.py:41)"
    assert place_of(LOAD) == "load_batch (data.py:17)"
    assert place_of(LAUNCHER) == "_poll (agent.py:5)"
    assert (
        place_of(REDUCE[1:]) == "_exception_logger.<locals>.wrapper (train.py:41)"
    )  # nothing better is known


def test_the_program_tells_more_than_its_launcher() -> None:
    [group] = grouped({"workerpool0-0": a_dump(LAUNCHER, REDUCE)})
    assert group.place == "all_reduce (train.py:41)"


def test_a_replica_of_several_programs_is_told_by_the_places_of_all() -> None:
    [group] = grouped({"workerpool0-0": a_dump(LAUNCHER, REDUCE, LOAD, LOAD)})
    assert group.sentence == "workerpool0-0 is in all_reduce (train.py:41) and load_batch (data.py:17)"


def test_where_parents_are_in_the_same_place_the_child_that_differs_is_told() -> None:
    join = (StackFrame("join", "/lib/python3.11/mp.py", 3), StackFrame("main", "/srv/spawn.py", 9))
    dumps = {"workerpool0-0": a_dump(join, REDUCE), "workerpool0-1": a_dump(join, LOAD)}
    assert told(grouped(dumps)) == (
        "workerpool0-0 is in all_reduce (train.py:41); workerpool0-1 is in load_batch (data.py:17)"
    )


def test_how_many_workers_and_other_threads_there_are_makes_no_difference() -> None:
    one = StackDump(processes=(a_process(REDUCE), a_process(LOAD, pid=2)))
    two = StackDump(
        processes=(
            a_process(REDUCE, others=3),
            a_process(LOAD, pid=2),
            a_process(LOAD, pid=3),
            a_process(pid=4),
        )
    )
    assert print_of(one) == print_of(two)
    assert print_of(one) != print_of(StackDump(processes=(a_process(REDUCE),)))


def test_another_program_is_told_by_what_it_waits_for() -> None:
    dump = StackDump(processes=(a_process(command="trainer --fast"),))
    [group] = grouped({"workerpool0-0": dump})
    assert told([group]) == "workerpool0-0 is in trainer, which sleeps in futex"
    assert not dump.speaks


def test_a_replica_of_which_nothing_is_known_says_why() -> None:
    [group] = grouped({"workerpool0-0": StackDump(fault="No time.")})
    assert "No time." in told([group])


def test_replicas_are_counted_in_their_natural_order() -> None:
    dumps = {f"workerpool0-{n}": a_dump(REDUCE) for n in (10, 9, 100)}
    assert grouped(dumps)[0].tasks == ("workerpool0-9", "workerpool0-10", "workerpool0-100")


def test_many_places_are_cut_short() -> None:
    dumps = {f"workerpool0-{n}": a_dump((StackFrame("f", "/w/a.py", n),)) for n in range(9)}
    assert told(grouped(dumps)).endswith("workerpool0-5 is in f (a.py:5); 3 more are in other places")


def test_a_group_is_drawn_with_its_frames_and_counts_the_rest() -> None:
    process = a_process(LOAD, pid=7, others=2)
    dumps = {
        f"workerpool0-{n}": StackDump(processes=(process,), fault="py-spy saw no thread of 8.")
        for n in range(5)
    }
    [group] = grouped(dumps)
    assert drawn(group).splitlines() == [
        "5 replicas are in load_batch (data.py:17).",
        "  workerpool0-0, workerpool0-1, workerpool0-2 and 2 more; the stacks of workerpool0-0:",
        "  py-spy saw no thread of 8.",
        "  process 7, python: sleeps in futex",
        "    load_batch (data.py:17)",
        "    main (train.py:40)",
        "    and 2 more threads",
    ]


@pytest.mark.parametrize(("count", "most"), [(0, 4), (3, 4), (4, 4), (5, 4), (1000, 64), (65, 64)])
def test_a_sample_is_spread_over_all(count: int, most: int) -> None:
    found = spread(range(count), most)
    assert len(found) == len(set(found)) == min(count, most)
    assert not found or (found[0], found[-1]) == (0, count - 1)


def test_a_command_line_is_short_and_keeps_its_secrets() -> None:
    assert clean_command("python train.py --password=hunter22") == "python train.py --password=***"
    assert len(clean_command("x " * 1000)) == 120

"""Random jobs and random lives for them."""

from dataclasses import dataclass
from typing import TypeAlias

from hypothesis import strategies as st

from tests.builders import EMPTY, a_job, a_pool, a_rule, seconds
from tests.properties.job_world import NO_FAULT, Fault, World
from trainshed.core.jobs.job import Job, Scheduling
from trainshed.core.jobs.readiness import READY, Readiness, ReadinessState
from trainshed.core.jobs.replica import Exit

PREPARING = Readiness(standing=ReadinessState.PREPARING, message="It is being made.", remedy="It comes.")
BROKEN = Readiness(standing=ReadinessState.FAILED, message="It cannot be made.")

exits = st.one_of(
    st.sampled_from([0, 1, 128, 129, 137, 255]).map(lambda code: Exit(code=code)),
    st.sampled_from([9, 15]).map(lambda number: Exit(signal=number)),
    st.just(Exit()),
)

rules = st.builds(
    a_rule,
    restarts=st.sampled_from([0, 1, 2, 5]),
    retries=st.sampled_from([0, 1, 3]),
    backoff=st.sampled_from([0.0, 0.5]),
    whole_gang=st.sampled_from([False, False, True]),
    disabled=st.sampled_from([False, False, False, True]),
    codes=st.sampled_from([((129, 255),), ((129, 255),), ((1, 1),), ()]),
)

schedulings = st.builds(
    Scheduling,
    timeout=st.sampled_from([seconds(20), seconds(7 * 24 * 3600)]),
    max_wait=st.sampled_from([None, seconds(5)]),
    grace=st.sampled_from([seconds(0), seconds(3), seconds(30)]),
    drain=st.sampled_from([seconds(0), seconds(10)]),
    hold=st.sampled_from([seconds(0), seconds(0), seconds(4), seconds(60)]),
    restart=rules,
)

gangs = st.sampled_from(
    [
        (a_pool(),),
        (a_pool(), a_pool(2)),
        (a_pool(2), EMPTY, a_pool()),
        (EMPTY, a_pool(2)),
        (a_pool(), a_pool(), a_pool(reducer=True), a_pool()),
    ]
)


@st.composite
def jobs(draw: st.DrawFn) -> Job:
    return a_job(*draw(gangs), scheduling=draw(schedulings))


@dataclass(frozen=True, slots=True)
class Admit:
    pass


@dataclass(frozen=True, slots=True)
class Cancel:
    pass


@dataclass(frozen=True, slots=True)
class Wait:
    seconds: float


@dataclass(frozen=True, slots=True)
class Die:
    which: int
    how: Exit


@dataclass(frozen=True, slots=True)
class Vanish:
    which: int


@dataclass(frozen=True, slots=True)
class Prepare:
    """What the job needs before it can start has moved, or was taken away again."""

    readiness: Readiness


@dataclass(frozen=True, slots=True)
class Turn:
    fault: Fault = NO_FAULT


Step: TypeAlias = Admit | Cancel | Wait | Die | Vanish | Prepare | Turn

faults = st.builds(
    Fault,
    actions_done=st.sampled_from([0, 1, 2, 99, 99, 99]),
    write_lost=st.sampled_from([False, False, True]),
    stale_by=st.sampled_from([0.0, 0.0, 0.3, 1.0, 1.999]),
    twice=st.booleans(),
)
turns = st.builds(Turn, faults)
good_turns = st.just(Turn())
deaths = st.builds(Die, st.integers(0, 5), exits)
waits = st.builds(Wait, st.sampled_from([0.001, 0.1, 0.5, 1.0, 2.0, 5.0, 31.0]))
steps: st.SearchStrategy[Step] = st.one_of(
    turns,
    turns,
    turns,
    good_turns,
    good_turns,
    waits,
    waits,
    deaths,
    deaths,
    st.builds(Vanish, st.integers(0, 5)),
    st.builds(Prepare, st.sampled_from([READY, READY, PREPARING, PREPARING, BROKEN])),
)


@st.composite
def lives(draw: st.DrawFn) -> list[Step]:
    """Mostly admitted early, sometimes cancelled somewhere, otherwise anything in any order."""
    life: list[Step] = draw(st.lists(steps, max_size=70))
    if draw(st.sampled_from([True, True, True, False])):
        life.insert(draw(st.integers(0, min(3, len(life)))), Admit())
    if draw(st.booleans()):
        life.insert(draw(st.integers(0, len(life))), Cancel())
    if draw(st.sampled_from([True, False, False])):
        life.insert(0, Prepare(PREPARING))
    return life


def play(world: World, step: Step) -> None:
    match step:
        case Admit():
            world.admit()
        case Cancel():
            world.cancel()
        case Wait():
            world.pass_time(step.seconds)
        case Die() | Vanish():
            alive = world.alive()
            if alive:
                key = alive[step.which % len(alive)]
                world.end(key, step.how) if isinstance(step, Die) else world.forget(key)
        case Prepare():
            world.readiness = step.readiness
        case Turn():
            world.turn(step.fault)

"""The judge of hangs over random lives: never early, always in the end, and naming the right moment."""

from dataclasses import dataclass, replace
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from tests.builders import T0
from tests.properties.effort import PROPERTY
from trainshed.core.jobs.hang import (
    HangRule,
    Pulse,
    ReplicaLife,
    RunActivity,
    StallKind,
    felt,
    judge,
)

LIMITS = st.integers(min_value=0, max_value=4000).map(lambda seconds: timedelta(seconds=seconds))
RULES = st.builds(HangRule, after=LIMITS, exit_after=LIMITS, asked=st.booleans())


@dataclass(frozen=True)
class Look:
    """Between two looks: how long it took, in tenths of the pace, and what one replica did meanwhile."""

    tenths: int
    replica: int
    does: str


DOES = ("nothing", "prints", "steps", "computes", "uses the gpu", "dozes")
LOOKS = st.lists(
    st.builds(
        Look,
        tenths=st.integers(1, 10),
        replica=st.integers(0, 2),
        does=st.sampled_from(DOES),
    ),
    min_size=1,
    max_size=60,
)


def moved(sign: RunActivity, does: str, seconds: float) -> RunActivity:
    sign = replace(sign, gpu=None)
    match does:
        case "prints":
            return replace(sign, printed=sign.printed + 1)
        case "steps":
            return replace(sign, said=f"{sign.said}.")
        case "computes":
            return replace(sign, cpu_seconds=(sign.cpu_seconds or 0) + seconds)
        case "uses the gpu":
            return replace(sign, gpu=0.9)
        case "dozes":  # a watchdog's worth of CPU
            return replace(sign, cpu_seconds=(sign.cpu_seconds or 0) + seconds * 0.01)
        case _:
            return sign


@given(rule=RULES, looks=LOOKS, replicas=st.integers(1, 3), done=st.booleans())
@PROPERTY
def test_a_verdict_is_never_early_and_its_moment_is_the_last_movement(
    rule: HangRule, looks: list[Look], replicas: int, done: bool
) -> None:
    if rule.after == rule.exit_after == timedelta():
        return
    pace, now = rule.pace(), T0
    signs = [RunActivity(cpu_seconds=0.0) for _ in range(replicas)]
    pulses: list[Pulse] = [felt(None, sign, now, pace) for sign in signs]
    spoke = worked = T0
    for look in looks:
        passed = pace * look.tenths / 10
        now += passed
        at = look.replica % replicas
        for index in range(replicas):
            does = look.does if index == at else "nothing"
            signs[index] = moved(signs[index], does, passed.total_seconds())
            pulses[index] = felt(pulses[index], signs[index], now, pace)
        spoke = now if look.does in ("prints", "steps") else spoke
        worked = now if look.does in ("computes", "uses the gpu") else worked
        lives = [ReplicaLife(task=f"workerpool0-{index}", pulse=pulse) for index, pulse in enumerate(pulses)]
        if done:
            lives.append(ReplicaLife(task="workerpool1-0", done_at=T0))
        stall = judge(rule, lives, now)
        still = max(spoke, worked)
        expected = None
        if rule.watches(len(lives)) and now - still >= rule.after:
            expected = (StallKind.STILL, still)
        elif done and rule.watches_exits(len(lives)) and now - spoke >= rule.exit_after:
            expected = (StallKind.EXIT, spoke)
        elif rule.watches(len(lives)) and any(s.said for s in signs) and now - spoke >= rule.after:
            expected = (StallKind.BUSY, spoke)
        assert (stall and (stall.kind, stall.since)) == expected


@given(rule=RULES, gap=st.integers(min_value=2, max_value=10**6), quiet=st.integers(0, 50))
@PROPERTY
def test_what_nobody_watched_is_not_held_against_a_job(rule: HangRule, gap: int, quiet: int) -> None:
    if rule.after == rule.exit_after == timedelta():
        return
    pace, sign = rule.pace(), RunActivity(printed=1, said="1", cpu_seconds=1.0)
    now = T0
    pulse = felt(None, sign, now, pace)
    for _ in range(quiet):
        now += pace
        pulse = felt(pulse, sign, now, pace)
    now += max(pace * 5, timedelta(seconds=30)) + timedelta(seconds=gap)  # the machine slept
    pulse = felt(pulse, sign, now, pace)
    lives = (ReplicaLife(task="a", pulse=pulse), ReplicaLife(task="b", done_at=T0))
    assert judge(replace(rule, asked=True), lives, now) is None


@given(rule=RULES, replicas=st.integers(1, 3))
@PROPERTY
def test_whatever_stands_still_is_found_out_in_time(rule: HangRule, replicas: int) -> None:
    pace = rule.pace() if rule.after or rule.exit_after else timedelta(seconds=2)
    now, sign = T0, RunActivity()
    pulses = [felt(None, sign, now, pace)] * replicas
    found = None
    while now - T0 < rule.after + pace:
        now += pace
        pulses = [felt(pulse, sign, now, pace) for pulse in pulses]
        lives = [ReplicaLife(task=str(index), pulse=pulse) for index, pulse in enumerate(pulses)]
        found = judge(rule, lives, now)
    assert (found is not None) is rule.watches(replicas)

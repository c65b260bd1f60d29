"""Whatever was used: parts add up to totals exactly, classes to the time with resources, no second twice."""

from collections import defaultdict
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tests.properties.effort import PROPERTY
from tests.properties.job_plans import Step, jobs, lives, play
from tests.properties.job_world import World
from trainshed.core.costs import GroupBy, by_class, fold, ordered, shown, together
from trainshed.core.costs import total as added
from trainshed.core.day_use import DayUse, JobUses, day_uses, open_uses
from trainshed.core.jobs.job import Job
from trainshed.core.ledger import Interval, TimeClass, open_intervals
from trainshed.core.names import ReplicaName, RunKey
from trainshed.core.prices import DEFAULT, Hardware, PriceList, Prices, UnitPrices

DAYS = [date(2026, 10, 31), date(2026, 11, 1), date(2026, 11, 2)]
money = st.decimals(0, 1000, places=6)
units = st.builds(UnitPrices, cpu=money, gib=money, gpus=money.map(lambda price: {DEFAULT: price}))
machine = Hardware(
    nodes=("n1",),
    bought=Decimal(30000),
    years=Decimal(3),
    cpus=Decimal(7),
    memory_gib=Decimal(3),
    gpus=3,
    utilisation=Decimal("0.7"),
)
lists = st.builds(
    PriceList, on_demand=units, spot=units, hardware=st.sampled_from([(), ((machine, machine.prices()),)])
)
prices = st.tuples(lists, lists).map(
    lambda pair: Prices(
        currency="EUR", lists=(pair[0], PriceList(since=DAYS[1], on_demand=pair[1].on_demand))
    )
)
uses = st.lists(
    st.builds(
        DayUse,
        day=st.sampled_from(DAYS),
        project=st.sampled_from("pq"),
        job=st.sampled_from("123"),
        label=st.sampled_from(["", "red"]),
        user=st.sampled_from(["", "ann"]),
        node=st.sampled_from(["n1", "n2"]),
        spent_on=st.sampled_from(TimeClass),
        cpus=st.floats(0.001, 512),
        memory=st.integers(0, 1 << 42),
        gpus=st.integers(0, 16),
        is_spot=st.booleans(),
        micros=st.integers(1, 10**15),
    ),
    max_size=20,
)


@PROPERTY
@given(uses, prices, st.sampled_from(GroupBy))
def test_parts_add_up_to_the_total_exactly_in_every_group(used: list[DayUse], valid: Prices, by: GroupBy):
    sums = fold(used, valid, by)
    exact = added(amount for group in sums.groups for amount in by_class(sums, group).values())
    other = fold(used, valid, GroupBy.CLASS)
    assert exact == added(amount for group in other.groups for amount in by_class(other, group).values())
    rows = list(shown(sums, ordered(sums, by)))
    assert added(row.amount for row in rows) == together(sums).amount
    for row in rows:
        assert row.amount == added(row.classes.values())
        assert abs(sum(row.shares.values()) - 1) < 1e-9


@PROPERTY
@given(uses, prices, st.integers(0, 20))
def test_jobs_told_by_kinds_and_numbers_have_the_same_sums(used: list[DayUse], valid: Prices, cut: int):
    kinds = {number: use._replace(job="", micros=0) for number, use in enumerate(used[:cut])}
    rows = [(number, use.job, use.micros) for number, use in enumerate(used[:cut])]
    told = fold(used[cut:], valid, GroupBy.JOB, JobUses(kinds=kinds, rows=rows))
    plain = fold(used, valid, GroupBy.JOB)
    assert list(shown(told, ordered(told, GroupBy.JOB))) == list(shown(plain, ordered(plain, GroupBy.JOB)))


@PROPERTY
@given(uses)
def test_classes_add_up_to_time_times_resources_exactly(used: list[DayUse]):
    sums = fold(used, None, GroupBy.JOB)
    amount = added(part for group in sums.groups for part in by_class(sums, group).values())
    assert Fraction(amount.cpu) == sum(use.micros * Fraction(Decimal(repr(use.cpus))) for use in used)
    assert Fraction(amount.gib) == sum(use.micros * Fraction(use.memory, 1 << 30) for use in used)
    assert (amount.gpu, amount.cost) == (sum(use.micros * use.gpus for use in used), 0)


@PROPERTY
@given(jobs(), lives())
def test_the_days_of_a_life_have_each_second_of_its_runs_once(job: Job, life: list[Step]):
    world = World(job)
    for step in life:
        play(world, step)
    counted: dict[TimeClass, int] = defaultdict(int)
    for use in (*world.uses, *open_uses(world.job, world.now)):
        counted[use.spent_on] += use.micros
    expected: dict[TimeClass, int] = defaultdict(int)
    for interval in (*world.ledger, *open_intervals(world.job, world.now)):
        if interval.node:
            expected[interval.spent_on] += (interval.to_at - interval.from_at) // timedelta(microseconds=1)
    for kind in TimeClass:
        if kind in (TimeClass.IDLE, TimeClass.CHECKPOINTED):  # these may last longer than what they cost
            assert counted[kind] <= expected[kind]
        else:
            assert counted[kind] == expected[kind]


def piece(job: Job, from_at: datetime, to_at: datetime) -> Interval:
    pool = next(number for number, pool in enumerate(job.spec.pools) if not pool.is_empty)
    key = RunKey(ReplicaName(job.id, 0, pool, 0), 0)
    return Interval(key=key, spent_on=TimeClass.COMPUTED, from_at=from_at, to_at=to_at, node="n1", cpus=1.5)


@PROPERTY
@given(
    jobs(), st.integers(0, 3 * 86400), st.lists(st.integers(0, 2 * 86_400_000_000), min_size=2, max_size=6)
)
def test_time_is_the_same_in_one_piece_and_cut_at_any_moment(job: Job, shift: int, cuts: list[int]):
    begin = datetime(2026, 11, 1, tzinfo=UTC) + timedelta(seconds=shift)
    moments = [begin + timedelta(microseconds=cut) for cut in sorted(cuts)]
    in_pieces = day_uses(job, job.status, [piece(job, a, b) for a, b in pairwise(moments)])
    as_whole = day_uses(job, job.status, [piece(job, moments[0], moments[-1])])
    assert sorted(map(str, in_pieces)) == sorted(map(str, as_whole))

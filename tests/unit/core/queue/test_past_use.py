"""What projects had lately: it fades, and who had less goes first."""

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.builders import T0, a_node, at
from tests.shares import a_job_of, a_share, a_tree
from trainshed.core.day_use import DayUse
from trainshed.core.ledger import TimeClass
from trainshed.core.queue.admit import in_turn
from trainshed.core.queue.fleet import Fit
from trainshed.core.queue.past_use import averages
from trainshed.core.queue.share import ShareTree
from trainshed.core.queue.snapshot import snapshot_of

DAY = 24 * 3600 * 10**6


def a_use(project: str, days_ago: float, **fields: object) -> DayUse:
    day = (T0 - timedelta(days=days_ago)).date()
    use = DayUse(spent_on=TimeClass.COMPUTED, day=day, project=project, cpus=4, micros=DAY)
    return use._replace(**fields)  # pyright: ignore[reportArgumentType]


def cpus(*uses: DayUse) -> float:
    return averages(uses, T0).get("a", {}).get("cpus", 0)


def test_what_was_used_a_week_ago_counts_half():
    assert cpus(a_use("a", 8)) == pytest.approx(cpus(a_use("a", 1)) / 2)


def test_who_always_had_the_same_had_that_on_average():
    uses = [a_use("a", n) for n in range(60)]
    assert cpus(*uses) == pytest.approx(4, rel=0.1)


def test_time_of_spot_jobs_does_not_count():
    assert cpus(a_use("a", 1, is_spot=True)) == 0


def test_gpus_count_by_their_number_and_by_their_type():
    amounts = averages([a_use("a", 0, gpus=2, accelerator="NVIDIA_TESLA_T4", memory=8)], T0)["a"]
    assert amounts["gpus"] == amounts["NVIDIA_TESLA_T4"] == pytest.approx(amounts["memory"] / 4)


def turns(tree: ShareTree) -> list[str]:
    waiting = [a_job_of("a", "1"), a_job_of("b", "2", created_at=at(1))]
    snapshot = snapshot_of([], (a_node(cpus=8),), Fit.SHRINK, T0, None, tree)
    return [job.id for job in in_turn(snapshot, waiting, T0)]


def test_who_had_less_lately_goes_first():
    tree = a_tree(a_share("a", 0), a_share("b", 0))
    assert turns(tree) == ["1", "2"]
    assert turns(replace(tree, past={"a": {"cpus": 2.0}})) == ["2", "1"]
    assert turns(replace(tree, past={"a": {"cpus": 2.0}, "b": {"cpus": 3.0}})) == ["1", "2"]
    heavier = a_tree(a_share("a", 0), a_share("b", 0, weight=2))
    assert turns(replace(heavier, past={"a": {"cpus": 2.0}, "b": {"cpus": 3.0}})) == ["2", "1"]

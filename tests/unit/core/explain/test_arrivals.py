"""Jobs that are still to come: such as came lately."""

from datetime import datetime
from itertools import islice

from tests.builders import a_job, at
from trainshed.core.explain.arrivals import NOBODY, Arrivals, original, to_come

NOW = at(7200)
LATE = Arrivals((a_job(id="a", created_at=at(10)), a_job(id="b", created_at=at(7000))), at(0))


def coming(share: float, many: int) -> list[tuple[str, datetime]]:
    return [(original(job.id), job.created_at) for job in islice(to_come(LATE, NOW, share), many)]


def test_they_come_again_at_the_same_distances_for_as_long_as_somebody_looks():
    assert coming(0, 3) == [("a", at(7210)), ("b", at(14200)), ("a", at(14410))]


def test_each_simulation_begins_with_others_of_them():
    assert coming(0.5, 3) == [("b", at(10600)), ("a", at(10810)), ("b", at(17800))]


def test_no_two_of_them_are_the_same_job_and_all_wait():
    jobs = list(islice(to_come(LATE, NOW, 0), 50))
    assert len({job.id for job in jobs}) == 50
    assert all(job.status.admission is None for job in jobs)


def test_a_few_at_once_do_not_mean_that_as_many_follow():
    """Where all that is known came within a minute, they come once in an hour."""
    at_once = Arrivals((a_job(id="a", created_at=at(7190)),), at(7180))
    [first, second] = islice(to_come(at_once, NOW, 0), 2)
    assert (second.created_at - first.created_at).total_seconds() == 3600


def test_where_nobody_came_nobody_is_to_come():
    assert not list(to_come(NOBODY, NOW, 0))

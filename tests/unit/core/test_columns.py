"""Columns for graphs: extremes survive, gaps stay gaps, reports keep their steps."""

from trainshed.core.columns import Columns, named, narrowed, reported, summary, used, with_gaps

TASK = "workerpool0-0"


def test_a_peak_of_one_moment_survives_on_a_narrow_screen():
    values = [0.0] * 10_000
    values[4321], values[4323] = 9.0, -1.0
    narrow = narrowed(Columns(list(range(10_000)), {(TASK, "cpu"): values}), 100)
    column = narrow.values[TASK, "cpu"]
    assert len(narrow.times) == len(column) <= 100
    assert (max(v for v in column if v is not None), min(v for v in column if v is not None)) == (9, -1)
    assert list(narrow.times) == sorted(set(narrow.times))


def test_the_extremes_of_a_stretch_come_in_the_order_they_came():
    rising = Columns([0, 1, 2, 3], {(TASK, "cpu"): [1, 2, 3, 4], (TASK, "memory"): [4, 3, 2, 1]})
    narrow = narrowed(rising, 2)
    assert list(narrow.values[TASK, "cpu"]) == [1, 4]
    assert list(narrow.values[TASK, "memory"]) == [4, 1]


def test_what_fits_is_left_as_it_is():
    columns = Columns([0, 2], {(TASK, "cpu"): [1, None]})
    assert narrowed(columns, 2) is columns


def test_a_replica_that_was_not_there_has_no_values():
    columns = Columns([0, 1, 2, 3], {("a", "cpu"): [1, 1, 1, 1], ("b", "cpu"): [None, None, 2, 2]})
    assert list(narrowed(columns, 2).values["b", "cpu"]) == [2, 2]
    four = Columns([*range(8)], {("a", "cpu"): [1] * 8, ("b", "cpu"): [None] * 4 + [2] * 4})
    assert list(narrowed(four, 4).values["b", "cpu"]) == [None, None, 2, 2]


def test_a_stretch_in_which_nothing_ran_is_a_gap_in_every_line():
    columns = Columns([0, 2, 100, 102], {("a", "cpu"): [1, 1, 1, 1]}, 2)
    gaped = with_gaps(columns)
    assert list(gaped.times) == [0, 2, 51, 100, 102]
    assert list(gaped.values["a", "cpu"]) == [1, 1, None, 1, 1]
    assert with_gaps(Columns([0, 2], {("a", "cpu"): [1, 1]}, 2)).times == [0, 2]


def test_usage_and_reports_are_told_apart_and_reports_have_their_own_moments():
    columns = Columns(
        [0, 2, 4],
        {
            (TASK, "cpu"): [1, 1, 1],
            (TASK, "step"): [None, 10, 20],
            (TASK, "value.loss"): [None, 0.5, 0.25],
            ("workerpool1-0", "value.loss"): [None, None, 7],
        },
    )
    assert set(used(columns).values) == {(TASK, "cpu")}
    first, second = map(named, reported(columns))
    assert (first.task, list(first.times), list(first.steps)) == (TASK, [2, 4], [10, 20])
    assert list(first.values["loss"]) == [0.5, 0.25]
    assert (list(second.times), list(second.steps)) == ([4], [None])


def test_a_summary_has_the_last_value_and_the_bounds():
    total = summary([1, None, 5, 3, None])
    assert total is not None
    assert (total.last, total.least, total.most, total.mean) == (3, 1, 5, 3)
    assert summary([None]) is None

"""Jobs beside each other: curves over shared places, bands by a label, settings that differ."""

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.builders import a_job, a_pool
from trainshed.core.columns import Columns
from trainshed.core.comparison import MOST_VALUES, ComparisonRequest, compare
from trainshed.core.curve import Curve, Over, curve, resampled, shared_places
from trainshed.core.jobs.job import Job
from trainshed.core.jobs.job_settings import arguments, differences
from trainshed.core.jobs.secret import MASK

TASK = "workerpool0-0"
BEGAN = a_job().created_at.timestamp()


def columns(steps: list[float], losses: list[float]) -> Columns:
    times = [BEGAN + 10 * number for number in range(len(steps))]
    return Columns(times, {(TASK, "step"): steps, (TASK, "value.loss"): losses})


def jobs(*labels: dict[str, str]) -> list[Job]:
    return [replace(a_job(id=str(number)), labels=some) for number, some in enumerate(labels)]


def test_curves_share_their_places_and_end_where_their_jobs_ended():
    compared = compare(
        jobs({}, {}),
        {"0": columns([0, 1, 2, 3], [4, 3, 2, 1]), "1": columns([0, 2], [10, 20])},
        ComparisonRequest(),
    )
    [metric] = compared.metrics
    assert (metric.name, list(compared.places)) == ("loss", [0, 1, 2, 3])
    assert list(metric.curves[0]) == [4, 3, 2, 1]
    assert list(metric.curves[1]) == [10, 15, 20, None]
    assert (metric.summaries[0].last, metric.summaries[1].most) == (1, 20)


def test_over_time_a_curve_begins_with_its_job():
    late = replace(a_job(id="1"), created_at=a_job().created_at - timedelta(seconds=100))
    both = {"0": columns([1, 2], [1, 2]), "1": columns([1, 2], [3, 4])}
    compared = compare([a_job(id="0"), late], both, ComparisonRequest(over=Over.TIME))
    assert (compared.places[0], compared.places[-1]) == (0, 110)


def test_jobs_of_a_label_are_one_line_with_a_band_and_those_without_it_another():
    curves = {str(number): columns([0, 1], [number, number]) for number in range(4)}
    labelled = jobs({"opt": "adam"}, {"opt": "adam"}, {"opt": "sgd"}, {})
    [metric] = compare(labelled, curves, ComparisonRequest(group_by="opt")).metrics
    assert not metric.curves
    assert [(group.value, group.jobs) for group in metric.groups] == [
        ("adam", (0, 1)),
        ("sgd", (2,)),
        (None, (3,)),
    ]
    adam = metric.groups[0].band
    assert [list(some) for some in (adam.mean, adam.least, adam.most, adam.deviation)] == [
        [0.5, 0.5],
        [0, 0],
        [1, 1],
        [0.5, 0.5],
    ]


def test_steps_that_a_restarted_program_repeats_count_once():
    some = curve(columns([1, 2, 3, 2, 3, 4], [10, 9, 8, 7, 6, 5]), "loss", Over.STEP, 0)
    assert some == Curve([1, 2, 3, 4], [10, 7, 6, 5])


def test_a_curve_of_one_point_between_two_places_is_seen():
    places = shared_places([Curve([0, 1000], [0, 0]), Curve([333], [7])], 11, None, None)
    assert [value for value in resampled(Curve([333], [7]), places) if value is not None] == [7]


def test_a_range_of_steps_has_all_its_points():
    assert shared_places([Curve([0, 1e6], [0, 0])], 100, 500, 510) == [float(n) for n in range(500, 511)]
    assert shared_places([], 100, None, None) == []


def test_many_curves_have_fewer_points_each():
    many = [a_job(id=str(number)) for number in range(500)]
    steps = [float(n) for n in range(1000)]
    column = {str(number): columns(steps, steps) for number in range(500)}
    compared = compare(many, column, ComparisonRequest(points=1000))
    assert len(compared.places) * 500 <= MOST_VALUES


@pytest.mark.parametrize(
    ("words", "options"),
    [
        (["python", "t.py", "--lr=0.1"], {"command": "python t.py", "args.lr": "0.1"}),
        (
            ["--lr", "0.1", "--fast", "--n", "-3"],
            {"command": "", "args.lr": "0.1", "args.fast": "true", "args.n": "-3"},
        ),
        (["python", "-c", "a --b\nc"], {"command": "python -c a --b\nc"}),
        (["--hf-token=abc", "--", "x"], {"command": "-- x", "args.hf-token": MASK}),
        (["--last"], {"command": "", "args.last": "true"}),
    ],
)
def test_options_are_settings_by_their_names(words: list[str], options: dict[str, str]):
    assert dict(arguments(words)) == options


def test_only_settings_that_differ_are_told_and_secrets_never():
    def job(identity: str, *env: tuple[str, str], rate: str, count: int) -> Job:
        pool = replace(a_pool(), env=env, args=(f"--lr={rate}", "--seed=1"), replicas=count)
        return replace(a_job(pool, id=identity), labels={"team": "a"})

    first = job("1", ("HF_TOKEN", "s3cret"), ("MODE", "x"), rate="0.1", count=1)
    second = job("2", ("HF_TOKEN", "other"), rate="0.2", count=2)
    told = {difference.name: difference.values for difference in differences([first, second])}
    assert told == {"replicas": ("1", "2"), "args.lr": ("0.1", "0.2"), "env.MODE": ("x", None)}
    assert differences([first]) == differences([first, first]) == ()

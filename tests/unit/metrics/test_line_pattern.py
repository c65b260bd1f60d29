"""The expression that a study gives for lines of output."""

import pytest

from trainshed.core.errors import Invalid
from trainshed.metrics.line_pattern import printed_metrics

pytest.importorskip("re2")


def test_a_pattern_names_the_metric_its_value_and_its_step():
    lines = printed_metrics(r"\[(?P<step>\d+)\] (?P<name>\w+) -> (?P<value>\S+)", ["acc", "loss"])
    [value] = lines.values("[12] acc -> 1e-2 loss=5")
    assert (value.name, value.value, value.step) == ("acc", 0.01, 12)
    assert lines.values("acc=0.5") == []
    assert lines.values("[12] other -> 1") == []
    assert lines.names("[12] other -> 1 [13] acc -> 2") == ["other", "acc"]


def test_a_pattern_without_a_name_is_for_the_only_metric():
    [value] = printed_metrics(r"Score (?<value>[0-9.]+)", ["score"]).values("Epoch 3: Score 0.5")
    assert (value.name, value.value, value.step) == ("score", 0.5, 3)


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(?P<name>(?P<value>", "cannot be understood"),
        (r"(?P<name>\w+)=(.*)", "group (?P<value>…)"),
        ("(?P<value>.*)", "group (?P<name>…)"),
        (r"(?P<name>\w+)(?P<value>.*)(?=x)", "cannot be understood"),
        ("(?P<value>a)(?P<name>b)\n", "one line"),
        ("(?P<value>a)(?P<name>b)" + "x" * 1000, "1000 characters"),
    ],
)
def test_a_pattern_that_cannot_be_used_is_refused_with_the_reason(pattern: str, why: str):
    with pytest.raises(Invalid, match="metric_pattern") as refusal:
        printed_metrics(pattern, ["a", "b"])
    assert why in refusal.value.message


def test_no_pattern_takes_long_for_a_line():
    lines = printed_metrics(r"(?P<name>(a+)+)(?P<value>b)", ["a", "b"])
    assert lines.values("a" * 100_000) == []

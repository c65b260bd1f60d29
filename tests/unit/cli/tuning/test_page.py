"""The page of a study: what is drawn, that foreign words stay words, and that nothing odd breaks it."""

import math
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from typing import Any

import pytest

from tests.unit.cli.tuning.told import CUSTOM_JOB, NAME, SPEC, ToldStudies, trial
from trainshed.cli.tuning import charts
from trainshed.cli.tuning.axis import Axis, axis_of, thinned
from trainshed.cli.tuning.markup import Markup, tag
from trainshed.cli.tuning.page import StudyPicture, page

EVIL = '</title></svg><script>alert(1)</script><img src=x onerror="alert(1)">\'&\x00\x1b[2J\u202e'
BEST = {
    "trial": "2",
    "metric": "accuracy",
    "value": 0.75,
    "parameters": {"lr": 0.02},
    "customJob": CUSTOM_JOB,
}
CURVES = {
    "metric": "accuracy",
    "curves": [
        {"trial": "2", "steps": [1, 2, 3], "values": [0.1, 0.5, 0.75]},
        {"trial": "1", "steps": [1, 2], "values": [0.1, "NaN"]},
        {"trial": "3", "steps": [], "values": []},
    ],
}
ANALYSIS = {
    "best": ["2"],
    "importance": [{"parameterId": "net", "importance": 0.2}, {"parameterId": "lr", "importance": 0.8}],
    "history": [
        {"trial": "1", "value": 0.5, "best": 0.5},
        {"trial": "2", "value": 0.75, "best": 0.75},
        {"trial": "3", "value": 0.7, "best": 0.75},
    ],
}


def drawn(told: ToldStudies | None = None, **parts: Any) -> str:
    told = told or ToldStudies()
    study = {"name": NAME, "displayName": told.display, "studySpec": told.spec, "trainshed": told.row()}
    given: dict[str, Any] = {"analysis": ANALYSIS, "best": BEST, "trials": told.trials[:3], "curves": CURVES}
    return page(StudyPicture(study=study, **(given | parts)))


class Elements(HTMLParser):
    """The elements and attributes that a browser would see."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.attributes += attrs


def test_a_page_has_history_coordinates_importance_and_curves() -> None:
    text = drawn()
    titles = re.findall(r"<h2>(.*?)</h2>", text)
    assert titles == [
        "History",
        "Parallel coordinates",
        "Importance of parameters",
        "Learning curves",
        "The best 3 trials",
    ]
    assert "trainshed submit train.py --machine n1-standard-8 -- --epochs 5 --lr=0.025 --net=big" in text
    assert "<title>trial 2: accuracy 0.75</title>" in text
    assert "prefers-color-scheme: dark" in text


def test_a_page_needs_no_network_and_runs_nothing() -> None:
    text = drawn()
    elements = Elements(text)
    assert "script" not in elements.names
    assert "default-src 'none'" in text
    addresses = [value for name, value in elements.attributes if name in ("href", "src", "action")]
    assert addresses == []
    assert "url(" not in text
    assert set(re.findall(r"https?://[^\"<\s]+", text)) == {"http://www.w3.org/2000/svg"}


def test_each_drawing_is_whole() -> None:
    drawings = re.findall(r"<svg.*?</svg>", drawn(), re.DOTALL)
    assert len(drawings) == 4
    for text in drawings:
        assert ET.fromstring(text).get("role") == "img"
        assert "nan" not in text.lower().replace("nano", "")
        assert "inf" not in text


def test_names_and_values_of_others_stay_words() -> None:
    spec = {
        "metrics": [{"metricId": EVIL, "goal": "MAXIMIZE"}],
        "parameters": [{"parameterId": EVIL, "categoricalValueSpec": {"values": [EVIL, "b"]}}],
    }
    final = {"metrics": [{"metricId": EVIL, "value": 0.5}]}
    trials = [
        trial(n, 0.5, parameters=[{"parameterId": EVIL, "value": EVIL}], finalMeasurement=final)
        for n in (1, 2)
    ]
    text = drawn(
        ToldStudies(display=EVIL, spec=spec, trials=trials, extra={"message": EVIL}),
        trials=trials,
        analysis={**ANALYSIS, "importance": [{"parameterId": EVIL, "importance": 1}], "best": [EVIL]},
        best={**BEST, "parameters": {EVIL: EVIL}, "metric": EVIL},
        curves={"metric": EVIL, "curves": [{"trial": EVIL, "steps": [1, 2], "values": [1, 2]}]},
    )
    elements = Elements(text)
    assert not {"script", "img"} & set(elements.names)
    assert not [name for name, _ in elements.attributes if name.startswith("on")]
    assert "&lt;script&gt;" in text
    assert "\x00" not in text
    assert "\x1b" not in text
    assert "\u202e" not in text  # nor does it turn around what stands behind it


@pytest.mark.parametrize(
    "values", [[math.nan], [math.inf, 1.0], ["NaN", 0.5], [1e308, -1e308], [5e-324, 1e-323], [0.5], [0, 0]]
)
def test_odd_values_do_not_break_a_drawing(values: list[Any]) -> None:
    history = [{"trial": str(n), "value": value, "best": value} for n, value in enumerate(values, 1)]
    trials = [trial(n, value) for n, value in enumerate(values, 1)]
    curves = {
        "metric": "accuracy",
        "curves": [{"trial": "1", "steps": [0, 10**18], "values": [*values, 1.0]}],
    }
    text = drawn(
        ToldStudies(trials=trials, best=[]),
        trials=trials,
        analysis={"history": history},
        curves=curves,
        best={},
    )
    for drawing in re.findall(r"<svg.*?</svg>", text, re.DOTALL):
        places = re.findall(r' (?:x|y|cx|cy|x1|y1|d)="([^"]*)"', drawing)
        assert not any("nan" in place or "inf" in place for place in places), drawing


def test_a_study_without_measurements_says_so() -> None:
    text = drawn(ToldStudies(trials=[], best=[]), trials=[], analysis={}, curves={}, best={})
    assert "No trial has measured anything yet." in text
    assert "<svg" not in text


def test_several_objectives_are_drawn_against_each_other() -> None:
    trials = [
        trial(
            n,
            n,
            finalMeasurement={"metrics": [{"metricId": "a", "value": n}, {"metricId": "b", "value": -n}]},
        )
        for n in (1, 2, 3)
    ]
    drawing = charts.front(trials, ["a", "b"], ["1", "3"])
    assert drawing is not None
    assert drawing.count("on-front") == 2
    assert charts.front(trials, ["a"], ["1"]) is None


def test_a_conditional_parameter_is_left_out_of_the_lines_of_trials_without_it() -> None:
    specs = [
        *SPEC["parameters"],
        {"parameterId": "units", "integerValueSpec": {"minValue": "1", "maxValue": "9"}},
    ]
    point = [{"parameterId": "lr", "value": 0.01}, {"parameterId": "units", "value": 4}]
    trials = [trial(1, 0.5), trial(2, 0.7, parameters=point)]
    drawing = charts.parallel(trials, specs, "accuracy", is_more_better=True)
    assert drawing is not None
    paths = re.findall(r' d="([^"]*)"', drawing)
    assert [path.count("L") + 1 for path in paths] == [3, 3]  # two parameters and the objective each
    assert ">units</text>" in drawing


def test_many_trials_are_thinned_and_no_best_value_is_lost() -> None:
    history = [
        {"trial": str(n), "value": 1.0 if n == 31_337 else 0.5, "best": 1.0 if n >= 31_337 else 0.5}
        for n in range(1, 50_001)
    ]
    drawing = charts.history({"history": history}, "accuracy")
    assert drawing is not None
    assert drawing.count("<circle") <= charts.MOST_POINTS + 2
    assert "trial 31337: accuracy 1<" in drawing


def test_an_axis_has_round_ticks_within_its_ends() -> None:
    assert [text for _, text in axis_of([0.0, 1.0], 0, 100).ticks()] == ["0", "0.2", "0.4", "0.6", "0.8", "1"]
    log = axis_of([1e-4, 1e-1], 0, 100, is_log=True)
    assert [text for _, text in log.ticks()] == ["0.0001", "0.001", "0.01", "0.1"]
    assert log.at(1e-4) == pytest.approx(0)
    assert log.at(1e-1) == pytest.approx(100)
    whole = Axis(start=0, end=100, low=1, high=3, is_whole=True)
    assert [text for _, text in whole.ticks()] == ["1", "2", "3"]
    words = axis_of(["a", "b", "c"], 0, 100)
    assert words.ticks() == [(0, "a"), (50, "b"), (100, "c")]
    assert Axis(start=0, end=10, low=3, high=3).at(3) == 5


def test_thinning_keeps_the_ends_and_what_must_be_kept() -> None:
    places = thinned(range(1000), 10, [17])
    assert {0, 17, 999} <= set(places)
    assert len(places) == 11
    assert thinned([1, 2], 10) == [0, 1]


def test_only_markup_is_not_escaped() -> None:
    assert tag("p", "<b>", tag("i", "&"), title='"') == '<p title="&quot;">&lt;b&gt;<i>&amp;</i></p>'
    assert isinstance(tag("p"), Markup)

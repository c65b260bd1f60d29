"""Graphs and comparisons on the wire: arrays with six digits, and requests refused with every violation."""

import json

import pytest

from tests.builders import a_job, at
from trainshed.core.columns import Columns, ReportedColumns
from trainshed.core.comparison import ComparisonRequest, compare
from trainshed.core.curve import Over
from trainshed.core.errors import Invalid
from trainshed.core.graphs import JobGraphs
from trainshed.wire.comparison import parse_comparison
from trainshed.wire.graphs import numbers, render_comparison, render_graphs

NAME = "projects/p/locations/l/customJobs/1"


def test_columns_are_arrays_with_null_where_nothing_was_measured():
    assert json.loads(numbers([1, None, 0.123456789, 1e9, -1e-9])) == [1, None, 0.123457, 1e9, -1e-9]
    assert json.loads(numbers([])) == []
    assert json.loads(numbers([1234567], 12)) == [1234567]


def test_graphs_are_json_whatever_a_program_called_its_metrics():
    graphs = JobGraphs(
        since=at(0),
        until=at(9),
        whole_since=at(0),
        whole_until=at(9),
        usage=Columns([at(0).timestamp()], {("t", "cpu"): [1.5]}),
        reports=(ReportedColumns("t", [at(2).timestamp()], [3], {'</script>"\\\ud800': [2]}),),
        marks=(),
    )
    told = json.loads(render_graphs(graphs, None))
    assert told["usage"]["times"] == [at(0).timestamp()]
    assert told["usage"]["series"] == [{"task": "t", "name": "cpu", "unit": "cores", "values": [1.5]}]
    assert told["reported"][0]["series"][0]["name"].startswith('</script>"\\')


def test_a_comparison_is_json_without_any_jobs():
    told = json.loads(render_comparison(compare([], {}, ComparisonRequest()), [NAME], False))
    assert (told["x"], told["jobs"], told["missing"]) == ([], [], [NAME])
    assert json.loads(render_comparison(compare([a_job()], {}, ComparisonRequest()), [], True))["hasMore"]


def test_a_request_names_jobs_metrics_and_a_label():
    asked = parse_comparison(
        {"jobs": [NAME], "metrics": ["loss"], "over": "time", "groupBy": "labels.seed", "points": 50}
    )
    assert asked.names == (("p", "l", "1"),)
    assert asked.request == ComparisonRequest(
        metrics=frozenset({"loss"}), over=Over.TIME, group_by="seed", points=50
    )
    assert parse_comparison({"filter": "state=RUNNING"}).where is not None


def test_everything_wrong_with_a_request_is_said_at_once():
    body = {
        "jobs": ["1", NAME],
        "filter": "x",
        "over": "weight",
        "groupBy": "opt",
        "points": 99999,
        "start": 3,
        "end": 2,
    }
    with pytest.raises(Invalid) as refused:
        parse_comparison(body)
    fields = [violation.field for violation in refused.value.violations]
    assert fields == ["filter", "jobs[0]", "over", "points", "group_by", "end"]
    with pytest.raises(Invalid):
        parse_comparison({"jobs": [NAME] * 501})

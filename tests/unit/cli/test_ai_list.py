"""`trainshed ai custom-jobs list` and its kin: gcloud's filters, orders and formats."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.unit.cli.terminal import PARENT, Terminal
from trainshed.cli.ai.condition import parse
from trainshed.cli.ai.output import Output, yaml_text
from trainshed.cli.ai.path import Path
from trainshed.cli.failure import Misuse

JOB: dict[str, Any] = {
    "name": f"{PARENT}/123",
    "displayName": "digits-large",
    "state": "JOB_STATE_RUNNING",
    "createTime": "2026-01-31T12:00:00.250000Z",
    "labels": {"team": "vision", "cost-center": "7"},
    "jobSpec": {
        "enableWebAccess": True,
        "workerPoolSpecs": [
            {"replicaCount": "1", "machineSpec": {"machineType": "n1-standard-4"}},
            {"replicaCount": "12", "machineSpec": {"machineType": "n1-highmem-8"}},
        ],
    },
}
LIST = ("ai", "custom-jobs", "list")


@pytest.mark.parametrize(
    "text",
    [
        "displayName=digits-large",
        "display_name=DIGITS-LARGE",
        'displayName="digits-large"',
        "displayName = digits-large",
        "displayName:digits",
        "displayName:dig*",
        "displayName~^dig.*large$",
        "displayName!=other",
        "displayName!~^other",
        "state=JOB_STATE_RUNNING",
        "state:RUNNING",
        "state=(JOB_STATE_FAILED JOB_STATE_RUNNING)",
        "state:(FAILED,RUNNING)",
        "NOT state=JOB_STATE_FAILED",
        "-state=JOB_STATE_FAILED",
        "labels.team=vision",
        "labels.cost-center=7",
        "labels:team",
        "labels.team:*",
        "NOT labels.owner:*",
        "state:RUNNING labels.team=vision",
        "state:FAILED OR labels.team=vision",
        "state:FAILED OR state:RUNNING labels.team=vision",
        "(state:FAILED OR state:RUNNING) AND NOT (labels.team=speech)",
        "jobSpec.workerPoolSpecs[1].replicaCount>9",
        "jobSpec.workerPoolSpecs.replicaCount=12",
        "jobSpec.workerPoolSpecs[].machineSpec.machineType:highmem",
        "jobSpec.enableWebAccess=true",
        "createTime>2026-01-31",
        "createTime>=2026-01-31T12:00:00+00:00",
        "createTime<2026-01-31T14:00:00+01:00",
        "createTime>-P1000W",
        "name.basename()=123",
        "digits",
    ],
)
def test_a_filter_that_speaks_of_the_job_finds_it_and_its_opposite_does_not(text: str) -> None:
    assert parse(text)(JOB)
    assert not parse(f"NOT ({text})")(JOB)


def test_a_period_counts_back_from_now() -> None:
    young = {"createTime": (datetime.now(UTC) - timedelta(hours=2)).isoformat()}
    assert parse("createTime>-P1D")(young)
    assert parse("createTime>-PT3H")(young)
    assert not parse("createTime>-PT1H")(young)


def test_terms_side_by_side_bind_weaker_than_or_and_or_weaker_than_and() -> None:
    def holds(text: str, **fields: str) -> bool:
        return parse(text)(fields)

    assert holds("a=1 AND b=1 OR c=1", a="0", b="0", c="1")
    assert not holds("a=1 b=1 OR c=1", a="0", b="0", c="1")


@pytest.mark.parametrize(
    "text", ["a=", "=b", "(a=b", "a=b)", "a=b AND", "NOT", "a=(b", "a~(", "a=b OR OR c=d", "a~["]
)
def test_what_is_no_filter_is_told(text: str) -> None:
    with pytest.raises(Misuse, match="--filter"):
        parse(text)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("name.basename()", "123"),
        ("name.segment(1)", "local"),
        ("createTime.date('%d.%m.%Y')", "31.01.2026"),
        ("jobSpec.workerPoolSpecs.len()", 2),
        ("jobSpec.workerPoolSpecs[-1].replicaCount", "12"),
        ("jobSpec.workerPoolSpecs[5].replicaCount", None),
        ("jobSpec.workerPoolSpecs[].replicaCount", ["1", "12"]),
        ("job_spec.worker_pool_specs.replica_count.list()", "1,12"),
        ("nothing.here", None),
        ("displayName.deeper", None),
    ],
)
def test_a_key_finds_what_is_there(key: str, value: object) -> None:
    assert Path.parse(key).get(JOB) == value


@pytest.mark.parametrize("key", ["a.launch()", "a b", "a.basename().b", "!"])
def test_what_is_no_key_is_told(key: str) -> None:
    with pytest.raises(Misuse):
        Path.parse(key)


@pytest.mark.parametrize(
    ("form", "printed"),
    [
        ("value(name.basename(),state)", "123\tJOB_STATE_RUNNING\n"),
        ("value(labels)", "cost-center=7;team=vision\n"),
        ("get(displayName)", "digits-large\n"),
        ("csv(displayName,state)", "display_name,state\ndigits-large,JOB_STATE_RUNNING\n"),
        ("csv[no-heading](displayName)", "digits-large\n"),
        ("table(displayName:label=JOB,state)", "JOB           STATE\ndigits-large  JOB_STATE_RUNNING\n"),
        ("table[no-heading](displayName)", "digits-large\n"),
        ("json(displayName,labels.team)", '[\n  {\n    "displayName": "digits-large",\n    "labels": {\n'
         '      "team": "vision"\n    }\n  }\n]\n'),
        ("yaml(displayName)", "---\ndisplayName: digits-large\n"),
        ("flattened(labels)", "---\nlabels.cost-center: 7\nlabels.team: vision\n"),
        ("none", ""),
    ],
)  # fmt: skip
def test_each_format_prints_as_gcloud_does(
    form: str, printed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Output.parse(form).many([JOB])
    assert capsys.readouterr().out == printed


@pytest.mark.parametrize("form", ["xml", "value", "json(", "csv", "table(a.b.c.nope())"])
def test_what_is_no_format_is_told(form: str) -> None:
    with pytest.raises(Misuse):
        Output.parse(form)


def test_yaml_reads_back_as_it_was_and_shows_programs_as_they_are_written() -> None:
    import yaml

    odd = {
        "b": "yes",
        "a": "1",
        "c": ["x: y", "", " z"],
        "t": "2026-01-31T12:00:00Z",
        "p": "a = 1\nprint(a)\n",
    }
    text = yaml_text(odd)
    assert yaml.safe_load(text) == odd
    assert text.splitlines()[0] == "a: '1'"
    assert "  print(a)" in text.splitlines()


def test_a_list_is_filtered_sorted_and_cut_here(terminal: Terminal) -> None:
    for identity, name in (("1", "b"), ("2", "a"), ("3", "c"), ("4", "skip")):
        terminal.add(identity, displayName=name, state="JOB_STATE_QUEUED")
    found = terminal(
        *LIST, "--filter=NOT displayName=skip", "--sort-by=~displayName", "--limit=2", "--format=json"
    )
    assert [job["displayName"] for job in json.loads(found.out)] == ["c", "b"]
    assert terminal(*LIST, "--sort-by=displayName", "--format=value(displayName)").out == "a\nb\nc\nskip\n"
    assert (
        terminal(*LIST, "--limit=1", "--page-size=5", "--uri").out == f"{terminal.script.url}/v1/{PARENT}/1\n"
    )


def test_an_empty_list_says_so_on_stderr(terminal: Terminal) -> None:
    result = terminal(*LIST)
    assert (result.code, result.out) == (0, "")
    assert "Listed 0 items." in result.err


def test_a_job_is_described_by_id_or_full_name_as_yaml_in_the_order_of_names(terminal: Terminal) -> None:
    name = terminal.add("77", state="JOB_STATE_QUEUED")
    text = f"displayName: job-77\nname: {name}\nstate: JOB_STATE_QUEUED\n"
    assert terminal("ai", "custom-jobs", "describe", "77").out == text
    assert terminal("ai", "custom-jobs", "describe", name, "--region=elsewhere").out == text
    assert json.loads(terminal("ai", "custom-jobs", "describe", "77", "--format=json").out)["name"] == name


def test_cancelling_says_that_it_was_asked_for(terminal: Terminal) -> None:
    terminal.add("77", state="JOB_STATE_RUNNING")
    result = terminal("ai", "custom-jobs", "cancel", "77", "--region=us-central1")
    assert (result.code, result.out) == (0, "")
    assert "Request to cancel CustomJob [77] has been sent" in result.err
    assert f"POST /v1/{PARENT.replace('us-central1', '-')}/77:cancel" in terminal.script.paths()


def test_streamed_logs_are_severity_time_task_and_text(terminal: Terminal) -> None:
    terminal.add("77", state="JOB_STATE_SUCCEEDED")
    flags = ("--polling-interval=5", "--allow-multiline-logs", "--task-name=workerpool0-0")
    alone = terminal("ai", "custom-jobs", "stream-logs", "77", *flags)
    assert [line.split("\t")[0::2] for line in alone.out.splitlines()] == [["INFO", "workerpool0-0"]] * 3
    assert alone.out.splitlines()[0].endswith("\tloss 0.5")
    rows = [line.split("\t") for line in terminal("ai", "custom-jobs", "stream-logs", "77").out.splitlines()]
    assert [row[2] for row in rows].count("service") == 1
    assert terminal("ai", "custom-jobs", "stream-logs", "77", "--polling-interval=0").code == 2

"""`scheduling.hangWatch`: understood, refused with every violation, echoed only where it was said."""

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.builders import T0, running
from tests.unit.wire.bodies import a_body, a_job, faults, parsed
from trainshed.core.jobs.hang import HangPolicy, HangRule, StallKind, Suspicion
from trainshed.core.jobs.job import Scheduling
from trainshed.core.jobs.stacks import ProcessStack, StackDump, StackFrame, ThreadStack, grouped
from trainshed.wire.custom_job import render_custom_job
from trainshed.wire.job_status import render_job_status
from trainshed.wire.stacks import render_stacks


def rule(**fields: object) -> HangRule:
    return parsed(a_body(scheduling={"hangWatch": fields})).spec.scheduling.hang


def test_nothing_said_means_the_defaults_and_nothing_is_echoed() -> None:
    job = a_job(a_body(scheduling={}))
    assert job.spec.scheduling.hang == HangRule()
    answer = render_custom_job(job)
    assert "hangWatch" not in answer["jobSpec"]["scheduling"]


@pytest.mark.parametrize(
    ("said", "found", "echo"),
    [
        ({}, HangRule(asked=True), {"after": "1200s"}),
        ({"policy": "HANG_POLICY_UNSPECIFIED"}, HangRule(asked=True), {"after": "1200s"}),
        ({"after": "90s"}, HangRule(after=timedelta(seconds=90), asked=True), {"after": "90s"}),
        ({"after": "0s"}, HangRule(after=timedelta(), asked=True), {"after": "0s"}),
        (
            {"exit_after": "0s", "policy": "RESTART"},
            HangRule(exit_after=timedelta(), policy=HangPolicy.RESTART, asked=True),
            {"after": "1200s", "exitAfter": "0s", "policy": "RESTART"},
        ),
        (
            {"after": "1.5s", "exitAfter": "3600s", "policy": "FAIL"},
            HangRule(
                after=timedelta(seconds=1.5),
                exit_after=timedelta(hours=1),
                policy=HangPolicy.FAIL,
                asked=True,
            ),
            {"after": "1.5s", "exitAfter": "3600s", "policy": "FAIL"},
        ),
    ],
)
def test_what_was_said_is_understood_and_echoed(
    said: dict[str, object], found: HangRule, echo: dict[str, object]
) -> None:
    assert rule(**said) == found
    job = a_job(a_body(scheduling={"hangWatch": said}))
    answer = render_custom_job(job)["jobSpec"]["scheduling"]["hangWatch"]
    assert answer == echo
    assert rule(**answer) == found


def test_every_violation_is_told_with_its_place() -> None:
    told = faults(
        a_body(scheduling={"hangWatch": {"after": "-1s", "exitAfter": "0.5s", "policy": "SHOUT", "every": 1}})
    )
    path = "job_spec.scheduling.hang_watch"
    assert {field.removeprefix("custom_job.") for field in told} >= {
        f"{path}.after",
        f"{path}.exit_after",
        f"{path}.policy",
        f"{path}.every",
    }


def test_a_policy_that_can_never_act_is_refused() -> None:
    told = faults(a_body(scheduling={"hangWatch": {"after": "0s", "exitAfter": "0s", "policy": "FAIL"}}))
    assert any("nothing to act on" in sentence for sentence in told.values())


def test_a_suspicion_is_part_of_the_status() -> None:
    job = running(a_job())
    assert "hang" not in render_job_status(job)
    suspicion = Suspicion(kind=StallKind.STILL, since=T0, message="It seems.", noticed_at=T0)
    answer = render_job_status(replace(job, status=replace(job.status, hang=suspicion)))
    assert answer["hang"] == {
        "kind": "STILL",
        "since": "2026-05-01T12:00:00.000000Z",
        "noticedTime": "2026-05-01T12:00:00.000000Z",
        "message": "It seems.",
    }


def test_stacks_are_told_by_group_and_replica() -> None:
    main = ThreadStack(name="MainThread", frames=(StackFrame("f", "/w/a.py", 3),), waits=True, is_main=True)
    python = ProcessStack(pid=7, command="python a.py", state="sleeps", threads=(main,))
    dumps = {"workerpool0-0": StackDump(processes=(python,)), "workerpool0-1": StackDump(fault="No time.")}
    answer = render_stacks(dumps, grouped(dumps), 5)
    assert answer["summary"].startswith("workerpool0-0 waits in f (a.py:3); workerpool0-1 is in an unknown")
    assert answer["alive"] == 5
    assert answer["groups"][0] == {"tasks": ["workerpool0-0"], "place": "f (a.py:3)", "waiting": True}
    first, second = answer["replicas"]
    frame = {"function": "f", "file": "/w/a.py", "line": 3}
    assert first["processes"][0]["threads"] == [
        {"name": "MainThread", "main": True, "waiting": True, "frames": [frame]}
    ]
    assert second == {"task": "workerpool0-1", "processes": [], "fault": "No time."}


def test_the_default_rule_of_the_core_is_the_one_of_the_wire() -> None:
    assert Scheduling().hang == HangRule()

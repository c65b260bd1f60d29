"""`trainshed why` and `submit --dry-run`: reasons, times and changes as a person reads them."""

import json
import re
from pathlib import Path
from typing import Any

from tests.unit.cli.terminal import Terminal
from tests.unit.client.scripted import Asked, Handler, failure
from trainshed.cli.why import drawn

NEEDS = {"reason": "NEEDS", "message": "Needs 4 CPUs."}
HOLDER = {"reason": "HOLDS", "message": "Job 5 'big' holds 2 CPUs.", "job": "5"}
FIRST = {"reason": "BEFORE", "message": "Job 4 'first' is before it.", "job": "4", "because": [HOLDER]}
WAITS: dict[str, Any] = {
    "displayName": "digits",
    "state": "JOB_STATE_QUEUED",
    "because": {
        "reason": "WAITS_BEHIND_OTHERS",
        "message": "It waits.",
        "remedy": "Wait.",
        "because": [NEEDS, FIRST, HOLDER],
    },
    "would": "wait",
    "position": 2,
    "queueLength": 3,
    "changes": [
        {"field": "jobSpec.scheduling.priority", "from": "0", "to": "1", "message": "Submit it so."},
        {"field": "cancel", "from": "RUNNING", "to": "CANCELLED", "message": "Cancel 5.", "job": "5"},
    ],
    "eta": {
        "earliest": "2026-01-31T12:00:00Z",
        "latest": "2999-01-31T12:00:00Z",
        "basis": "No job like it has ended before.",
    },
}
FILE = """
workerPoolSpecs:
- machineSpec: {machineType: n1-standard-4}
  containerSpec: {imageUri: "trainshed/python:3"}
"""


def test_the_reasons_are_drawn_as_a_tree_and_then_when_and_what_would_help() -> None:
    lines = drawn({"name": "projects/p/locations/l/customJobs/77", **WAITS}).splitlines()
    assert lines[0] == "digits (77) is QUEUED, place 2 of 3 in the queue."
    assert lines[2:8] == [
        "It waits. [WAITS_BEHIND_OTHERS]",
        "├─ Needs 4 CPUs.",
        "├─ Job 4 'first' is before it.",
        "│  └─ Job 5 'big' holds 2 CPUs.",
        "└─ Job 5 'big' holds 2 CPUs.",
        "Wait.",
    ]
    assert lines[9:11] == ["When:", "  at the earliest  now"]
    assert lines[11].startswith("  at the latest    in ")
    assert lines[12] == "  No job like it has ended before."
    assert lines[15:] == [
        "  1. Submit it so.",
        "     jobSpec.scheduling.priority: 1",
        "  2. Cancel 5.",
        "     trainshed cancel 5",
    ]


def test_a_range_of_likely_times_is_told_where_there_is_no_single_one() -> None:
    eta = {"earliest": "2026-01-31T12:00:00Z", "likelyFrom": "2998-01-31T12:00:00Z"}
    eta |= {"likelyTo": "2999-01-31T12:00:00Z", "basis": "These took too differently."}
    first = drawn({**WAITS, "eta": eta}).splitlines()[10]
    assert first.startswith("  likely           in ")
    assert re.search(r" to \d+d \d+h, 2998-01-31 .* to 2999-01-31 ", first)


def test_where_nothing_helps_it_is_said() -> None:
    assert drawn({**WAITS, "changes": []}).endswith("No single change would start it now.")


def test_a_job_is_asked_about_by_any_of_its_names(terminal: Terminal) -> None:
    running = {"reason": "RUNNING", "message": "Its replica runs."}
    terminal.add("5", state="JOB_STATE_RUNNING", because=running)
    done = terminal("why", "5")
    assert (done.code, done.out) == (0, "job-5 (5) is RUNNING.\n\nIts replica runs. [RUNNING]\n")
    assert terminal.script.paths()[-1].endswith("/customJobs/5:why")
    assert json.loads(terminal("why", "5", "--json").out)["because"] == running


def a_dry_run(terminal: Terminal, tmp_path: Path, *flags: str) -> tuple[int, str, str]:
    file = tmp_path / "digits.yaml"
    file.write_text(FILE)
    done = terminal("submit", str(file), "--dry-run", *flags)
    return done.code, done.out, done.err


def test_a_dry_run_asks_and_submits_nothing(terminal: Terminal, tmp_path: Path) -> None:
    terminal.script.answer = lambda asked, handler: (200, {"accepted": True, **WAITS})
    code, out, err = a_dry_run(terminal, tmp_path)
    assert (code, err) == (0, "")
    first = "digits is accepted and would wait, place 2 of 3 in the queue. Nothing was submitted."
    assert out.splitlines()[0] == first
    [asked] = terminal.script.paths()
    assert asked.startswith("POST ")
    assert asked.endswith("/customJobs:explain")
    assert terminal.sent["displayName"] == "digits"


def test_a_dry_run_of_a_job_that_fits_says_so(terminal: Terminal, tmp_path: Path) -> None:
    fits = {**WAITS, "would": "start now", "changes": []}
    terminal.script.answer = lambda asked, handler: (200, fits)
    _, out, _ = a_dry_run(terminal, tmp_path)
    assert out.startswith("digits is accepted and would start now. Nothing was submitted.\n")
    assert "When" not in out
    assert "No single change" not in out


def test_a_dry_run_for_a_script_is_the_servers_answer(terminal: Terminal, tmp_path: Path) -> None:
    terminal.script.answer = lambda asked, handler: (200, {"accepted": True, **WAITS})
    _, out, _ = a_dry_run(terminal, tmp_path, "--json")
    assert json.loads(out) == {"accepted": True, **WAITS}


def test_a_dry_run_tells_what_is_wrong_with_the_file_as_a_submit_would(
    terminal: Terminal, tmp_path: Path
) -> None:
    def answer(asked: Asked, handler: Handler) -> tuple[int, Any]:
        code, body = failure(400, "INVALID_ARGUMENT", "It is wrong.")
        violation = {"field": "jobSpec.workerPoolSpecs[0].machineSpec", "description": "is odd."}
        body["error"]["details"] = [
            {"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": [violation]}
        ]
        return code, body

    terminal.script.answer = answer
    code, _, err = a_dry_run(terminal, tmp_path)
    assert code == 1
    assert "digits.yaml:3: jobSpec.workerPoolSpecs[0].machineSpec is odd." in err


def test_a_dry_run_of_a_job_that_has_to_be_prepared_has_no_place_in_the_queue(
    terminal: Terminal, tmp_path: Path
) -> None:
    because = {"reason": "PREPARING", "message": "It is not built here yet."}
    told = {"accepted": True, "displayName": "digits", "state": "JOB_STATE_QUEUED", "because": because}
    terminal.script.answer = lambda asked, handler: (200, told)
    _, out, _ = a_dry_run(terminal, tmp_path)
    assert out.startswith("digits is accepted and would wait. Nothing was submitted.\n")
    assert "It is not built here yet. [PREPARING]" in out

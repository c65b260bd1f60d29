"""Comforts of the command line: once more, what a replica is given, the lines that matter, completion."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.unit.cli.terminal import PARENT, Terminal
from trainshed.cli.main import run

SPEC = {"workerPoolSpecs": [{"replicaCount": "1"}], "scheduling": {"timeout": "60s"}}


def test_a_retry_is_the_same_spec_as_a_new_job(terminal: Terminal) -> None:
    told = {"createTime": "2026-01-31T12:00:00Z", "error": {"code": 3}, "endTime": "2026-01-31T12:00:00Z"}
    terminal.add("77", jobSpec=SPEC, labels={"a": "b"}, state="JOB_STATE_FAILED", **told)
    result = terminal("retry", "job-77")
    assert (result.code, result.out) == (0, "999\n")
    assert terminal.script.paths()[-1] == f"POST /v1/{PARENT}/77:retry"
    assert terminal.sent == {}
    assert terminal("retry", "77", "--name", "again").code == 0
    assert terminal.sent == {"displayName": "again"}
    assert json.loads(terminal("retry", "77", "--json").out)["name"].endswith("/999")


def test_a_retry_stays_where_the_job_is(terminal: Terminal) -> None:
    terminal.add("77", name="projects/p2/locations/l2/customJobs/77", jobSpec=SPEC)
    assert terminal("retry", "projects/p2/locations/l2/customJobs/77").code == 0
    assert terminal.script.paths()[-1] == "POST /v1/projects/p2/locations/l2/customJobs/77:retry"


def test_a_replicas_environment_can_be_read_back_by_a_shell(terminal: Terminal) -> None:
    terminal.add("77")
    result = terminal("show", "77", "--env", "--replica", "workerpool0-0")
    assert f"GET /v1/{PARENT}/77:environment?task=workerpool0-0" in terminal.script.paths()
    shell = subprocess.run(
        ["sh", "-c", f'{result.out}\nprintf %s "$TF_CONFIG"'], capture_output=True, text=True, check=True
    )
    assert json.loads(shell.stdout) == {"a": "it's"}
    [told] = json.loads(terminal("show", "77", "--env", "--json").out)
    assert told["environment"]["RANK"] == "0"
    assert terminal("show", "77", "--replica", "workerpool0-0").code == 2


@pytest.mark.parametrize(
    ("since", "sent"),
    [
        ("10m", "600.000s"),
        ("1.5h", "5400.000s"),
        ("2026-01-31T12:00:00Z", "2026-01-31T12%3A00%3A00%2B00%3A00"),
    ],
)
def test_logs_since_a_time_are_asked_of_the_server(terminal: Terminal, since: str, sent: str) -> None:
    terminal.add("77")
    assert terminal("logs", "77", "--since", since).code == 0
    assert terminal.script.paths()[-1] == f"GET /v1/{PARENT}/77:output?since={sent}"


def test_logs_can_be_narrowed_to_the_lines_in_which_an_expression_is_found(terminal: Terminal) -> None:
    terminal.add("77")
    assert terminal("logs", "77", "--grep", r"loss \d").out == "loss 0.5\nloss 0.25\n"
    assert terminal("logs", "77", "--grep", "nothing").out == ""
    assert terminal("logs", "77", "--grep", "(").code == 2
    assert terminal("logs", "77", "--since", "yesterday").code == 2


def test_what_is_done_to_several_jobs_can_be_read_by_a_script(terminal: Terminal) -> None:
    name = terminal.add("77")
    result = terminal("cancel", "77", "nobody", "--json")
    assert result.code == 1
    done, failed = json.loads(result.out)
    assert done == {"job": "77", "name": name, "done": "cancelling"}
    assert failed["job"] == "nobody"
    assert "there is no job 'nobody'" in failed["error"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_a_script_that_asks_us(terminal: Terminal, shell: str) -> None:
    result = terminal("completion", shell)
    assert result.code == 0
    assert f"_TRAINSHED_COMPLETE={shell}_complete" in result.out
    assert terminal("completion", "tcsh").code == 2


@contextmanager
def completing(line: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    words = line.split(" ")
    with monkeypatch.context() as patch:
        patch.setenv("_TRAINSHED_COMPLETE", "bash_complete")
        patch.setenv("COMP_WORDS", line)
        patch.setenv("COMP_CWORD", str(len(words) - 1))
        yield


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("trainshed logs ", ["71", "72"]),
        ("trainshed logs 72", ["72"]),
        ("trainshed show job-7", ["job-71", "job-72"]),
        ("trainshed cancel 71 ", ["72"]),
        ("trainshed ai custom-jobs describe ", ["71", "72"]),
        ("trainshed ai custom-jobs st", ["stream-logs"]),
        ("trainshed retr", ["retry"]),
        ("trainshed retry --fo", ["--follow"]),
        ("trainshed retry --wi", ["--with-folder"]),
        ("trainshed submit --repl", ["--replicas"]),
        ("trainshed submit train.py --det", ["--detach"]),
        ("trainshed code ", ["71", "72"]),
        ("trainshed diff 71 7", ["71", "72"]),
    ],
)
def test_commands_options_and_jobs_are_completed(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, line: str, offered: list[str]
) -> None:
    terminal.add("71")
    terminal.add("72")
    with completing(line, monkeypatch), pytest.raises(SystemExit):
        run([])
    assert [row.partition(",")[2] for row in terminal.capture.readouterr().out.splitlines()] == offered


def test_completion_without_a_server_offers_nothing_and_says_nothing(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAINSHED_URL", "http://127.0.0.1:1")
    with completing("trainshed logs ", monkeypatch), pytest.raises(SystemExit):
        run([])
    out, err = terminal.capture.readouterr()
    assert (out.strip(), err) == ("", "")


def test_the_other_grammar_costs_nothing_until_it_is_spoken() -> None:
    program = (
        "import sys; from trainshed.cli.main import run; run(['--help']); print(*sys.modules, sep='\\n')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=dict(os.environ)
    )
    assert not {"trainshed.cli.ai", "trainshed.cli.complete"} & set(done.stdout.splitlines())

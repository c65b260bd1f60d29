"""Words of other tools, as the commands they mean here."""

from pathlib import Path

import pytest

from tests.unit.cli.terminal import Terminal
from trainshed.cli.synonyms import meant

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: hello}\n"


@pytest.mark.parametrize(
    ("said", "command"),
    [
        ("help", "--help"),
        ("help submit", "submit --help"),
        ("help ai custom-jobs create", "ai custom-jobs create --help"),
        ("status", "ls"),
        ("status --location europe-west4 --json", "ls --location europe-west4 --json"),
        ("status digits --json", "show digits --json"),
        ("status --url http://x digits", "show --url http://x digits"),
        ("describe digits", "show digits"),
        ("describe job digits", "show job/digits"),
        ("describe pod/digits --json", "show pod/digits --json"),
        ("describe pytorchjob digits", "show pytorchjob/digits"),
        ("describe job", "show job"),
        ("describe imagecache tensorflow", "get imagecache tensorflow -o yaml"),
        ("create -f pod.yaml", "apply -f pod.yaml"),
        ("create --filename=pod.yaml --dry-run", "apply --filename=pod.yaml --dry-run"),
        ("create -f -", "apply -f -"),
        ("create -f job.yaml --detach", "submit job.yaml --detach"),
        ("create job.yaml", "submit job.yaml"),
        ("create -f gone.yaml", "submit gone.yaml"),
    ],
)
def test_a_word_of_another_tool_is_the_command_it_means(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, command: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pod.yaml").write_text(POD)
    Path("job.yaml").write_text("displayName: x\njobSpec: {workerPoolSpecs: []}\n")
    assert meant(said.split()) == command.split()


def test_help_is_a_word_too(terminal: Terminal) -> None:
    assert terminal("help").out == terminal("--help").out
    assert terminal("help", "cancel").out.startswith("Usage: trainshed cancel")
    result = terminal("help", "submti")
    assert (result.code, "submit" in result.err) == (2, True)


def test_one_job_is_printed_in_the_form_asked_for(terminal: Terminal) -> None:
    name = terminal.add("77", state="JOB_STATE_RUNNING")
    assert terminal("get", "77", "-o", "yaml").out.splitlines()[:2] == [
        "displayName: job-77",
        f"name: {name}",
    ]
    assert '"displayName": "job-77"' in terminal("get", name, "-o", "json").out
    assert terminal("get", "77", "-o", "name").out == f"{name}\n"
    assert terminal("get", "77", "-o", "wide").out == terminal("get", "77").out
    assert "RUNNING" in terminal("get", "77").out
    result = terminal("get", "podz")
    assert (
        result.code,
        "pods, jobs, jobsets, pytorchjobs, tfjobs, mpijobs, trainjobs, imagecaches, experiments, and no job"
        in result.err,
    ) == (
        2,
        True,
    )


def test_a_running_job_is_deleted_only_where_that_is_forced(terminal: Terminal) -> None:
    name = terminal.add("77", state="JOB_STATE_RUNNING")
    terminal.cancelled = lambda: terminal.jobs["77"].update(state="JOB_STATE_CANCELLED")
    for args in (("77", "--force"), ("-f", "77")):
        terminal.script.asked.clear()
        terminal.jobs["77"]["state"] = "JOB_STATE_RUNNING"
        assert terminal("delete", *args).out == "deleted 77 (job-77)\n"
        verbs = [path for path in terminal.script.paths() if not path.startswith("GET")]
        assert verbs == [f"POST /v1/{name}:cancel", f"DELETE /v1/{name}"]
    assert terminal("delete").code == 2

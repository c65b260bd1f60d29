"""The commands as a person runs them, against a scripted server."""

import importlib
import json
import os
import stat
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest

from tests.unit.client.scripted import END, Asked, Handler, Script, entry, failure, frame
from trainshed.cli.main import DIALECTS, SECTIONS, run
from trainshed.cli.menu import cli

PARENT = "projects/local/locations/us-central1/customJobs"
JOBS = {
    "71234": {"displayName": "digits", "state": "JOB_STATE_RUNNING"},
    "71999": {"displayName": "big", "state": "JOB_STATE_QUEUED"},
    "80000": {"displayName": "twin", "state": "JOB_STATE_FAILED", "error": {"message": "it broke"}},
    "80001": {"displayName": "twin", "state": "JOB_STATE_SUCCEEDED"},
}
EXITS = {"80000": 7}
POOLS = [{"replicaCount": "1", "machineSpec": {"machineType": "n1-standard-4"}}, {"replicaCount": "1"}]


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str


class Shell:
    """Runs commands in this process and gives back what they printed."""

    def __init__(self, capture: pytest.CaptureFixture[bytes]) -> None:
        self._capture = capture

    def __call__(self, *args: str) -> Result:
        self._capture.readouterr()
        code = run(list(args))
        out, err = self._capture.readouterr()
        return Result(code, out.decode(errors="replace"), err.decode())


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith(("TRAINSHED_", "CLOUDSDK_", "GOOGLE_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("TRAINSHED_HOME", str(tmp_path))
    (tmp_path / "token").write_text("secret")
    return tmp_path


@pytest.fixture
def trainshed(home: Path, script: Script, capsysbinary: pytest.CaptureFixture[bytes]) -> Shell:
    (home / "server.json").write_text(json.dumps({"url": script.url, "pid": 1}))
    script.answer = answer
    return Shell(capsysbinary)


def told(identity: str) -> dict[str, Any]:
    return {"name": f"{PARENT}/{identity}", "jobSpec": {"workerPoolSpecs": POOLS}, **JOBS[identity]}


def answer(asked: Asked, handler: Handler) -> tuple[int, Any] | None:
    path, _, query = asked.path.removeprefix("/v1/").partition("?")
    identity, _, verb = path.rpartition("/")[2].partition(":")
    if asked.headers.get("authorization") != "Bearer secret":
        return failure(401, "UNAUTHENTICATED", "The credentials are wrong.")
    if path == PARENT and asked.method == "POST":
        return 200, {"name": f"{PARENT}/71234", "state": "JOB_STATE_QUEUED", **asked.body}
    if path in (PARENT, PARENT.replace("us-central1", "-")):
        found = [told(one) | _waiting(one, query) for one in JOBS]
        return 200, {"customJobs": [job for job in found if _matches(job, query)]}
    if path == f"{PARENT}:count":
        return 200, {"count": len(JOBS), "elsewhere": 0}
    if identity not in JOBS:
        return failure(404, "NOT_FOUND", "There is no such job.")
    if asked.method == "DELETE":
        return failure(400, "FAILED_PRECONDITION", "The job is RUNNING: cancel it first.")
    if verb == "tail":
        handler.begin_stream()
        handler.piece(entry(1, "hello \x1b[31m\udcff", "workerpool0-0") + entry(2, "again", "workerpool1-0"))
        handler.piece(entry(3, "more", "workerpool0-0", attempt=1))
        return handler.end_stream()
    if verb == "output":
        handler.begin_stream()
        handler.piece(frame(1, b"hello \x1b[31m\xff\n") + frame(2, b"again\n", "workerpool1-0"))
        handler.piece(frame(3, b"more", attempt=1) + END)
        return handler.end_stream()
    if verb == "status":
        return 200, _status(identity)
    events = [
        {"time": "2026-01-31T12:00:00Z", "reason": "SUBMITTED", "severity": "INFO", "message": "Submitted."}
    ]
    return 200, {"events": events} if verb == "events" else told(
        identity
    ) if not verb or verb == "wait" else {}


def _matches(job: dict[str, Any], query: str) -> bool:
    from urllib.parse import parse_qs

    where = parse_qs(query).get("filter", [""])[0]
    return not where or where == f'display_name="{job["displayName"]}"'


def _waiting(identity: str, query: str) -> dict[str, Any]:
    """Only to those who ask for our own view: Google's clients do not know the field."""
    status = _status(identity) if "view=trainshed" in query else {}
    return {"waiting": status["waiting"]} if "waiting" in status else {}


def _status(identity: str) -> dict[str, Any]:
    status: dict[str, Any] = {"name": f"{PARENT}/{identity}", "state": told(identity)["state"]}
    if identity == "71999":
        status["waiting"] = {
            "reason": "WAITS_FOR_CAPACITY",
            "message": "Asks for 8 CPUs.",
            "remedy": "Ask for 2.",
        }
    if identity in EXITS:
        status["failure"] = {"reason": "PROGRAM_FAILED", "message": "it broke", "task": "workerpool1-0"}
        status["replicas"] = [{"task": "workerpool1-0", "phase": "ENDED", "exit": {"code": EXITS[identity]}}]
    return status


def test_the_menu_says_of_each_command_what_the_command_says_of_itself() -> None:
    menu = {name: text for commands in SECTIONS.values() for name, text in commands.items()}
    for name, text in menu.items():
        module = DIALECTS.get(name) or f"trainshed.cli.{name.replace('-', '_')}"
        command: click.Command = importlib.import_module(module).command
        assert command.name == name
        assert command.short_help == text
        assert (command.help or "").startswith(text)
        assert "Example:" in (command.help or "")
    assert cli.list_commands(click.Context(cli)) == list(menu)


def test_help_needs_neither_the_network_nor_yaml_nor_the_server() -> None:
    program = (
        "import sys; from trainshed.cli.main import run; run(['--help']); print(*sys.modules, sep='\\n')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.splitlines())
    assert "click" in loaded
    assert not loaded & {"http.client", "yaml", "rich", "trainshed.client", "trainshed.core", "asyncio"}
    assert "Exit codes:" in done.stdout


@pytest.mark.parametrize("called", ["71234", "digits", f"{PARENT}/71234", "712"])
def test_a_job_may_be_called_by_id_name_full_name_or_the_beginning_of_its_id(
    trainshed: Shell, called: str
) -> None:
    result = trainshed("cancel", called)
    assert (result.code, result.out) == (0, "cancelling 71234 (digits)\n")


@pytest.mark.parametrize("called", ["twin", "8000"])
def test_what_could_mean_two_jobs_is_refused_with_both_named(
    trainshed: Shell, script: Script, called: str
) -> None:
    result = trainshed("cancel", called)
    assert result.code == 1
    assert "80000" in result.err
    assert "80001" in result.err
    assert not [path for path in script.paths() if path.startswith("POST")]


def test_who_only_looks_means_the_newest_of_several_jobs_of_one_name(trainshed: Shell) -> None:
    result = trainshed("events", "twin")
    assert result.code == 0
    assert result.err == "the newest of several jobs named twin: 80000\n"  # the one the server lists first
    assert trainshed("events", "8000").code == 1


def test_one_bad_job_does_not_keep_the_others_from_being_cancelled(trainshed: Shell) -> None:
    result = trainshed("cancel", "nobody", "71234")
    assert result.code == 1
    assert "error: there is no job 'nobody' in local" in result.err
    assert result.out == "cancelling 71234 (digits)\n"


def test_the_servers_reason_for_a_refusal_is_the_error(trainshed: Shell) -> None:
    result = trainshed("delete", "digits")
    assert (result.code, result.err) == (1, "error: digits: The job is RUNNING: cancel it first.\n")


def test_a_list_says_why_jobs_wait_or_failed(trainshed: Shell, script: Script) -> None:
    result = trainshed("ls")
    assert result.code == 0
    rows = [line.split() for line in result.out.splitlines()]
    assert rows[0][:3] == ["ID", "NAME", "STATE"]
    assert rows[2] == ["71999", "big", "QUEUED", "2", "Asks", "for", "8", "CPUs."]
    assert rows[3][-2:] == ["it", "broke"]
    assert len(script.asked) == 2  # jobs, and how many are elsewhere; not one more for each job that waits
    listed = json.loads(trainshed("ls", "--json", "--limit", "2").out)
    assert [job["displayName"] for job in listed] == ["digits", "big"]


def test_an_empty_list_says_that_there_are_jobs_elsewhere(trainshed: Shell, script: Script) -> None:
    script.answer = lambda asked, handler: (200, {"elsewhere": 4})
    result = trainshed("ls")
    hint = "4 in other locations: trainshed ls --location=-"
    assert (result.code, result.err) == (0, f"no jobs in local, us-central1\n{hint}\n")
    script.answer = lambda asked, handler: (200, {"elsewhere": 0})
    assert trainshed("ls").err.endswith("submit one with: trainshed submit job.yaml\n")


def test_showing_a_job_says_what_would_change_its_waiting_and_who_failed(trainshed: Shell) -> None:
    waits = trainshed("show", "big").out
    assert "Asks for 8 CPUs. [WAITS_FOR_CAPACITY]" in waits
    assert "Ask for 2." in waits
    failed = trainshed("show", "80000").out
    assert "it broke [PROGRAM_FAILED]" in failed
    assert "trainshed logs 80000 --replica workerpool1-0" in failed
    shown = json.loads(trainshed("show", "80000", "--json").out)
    assert set(shown) == {"job", "status", "events", "costs"}


def test_logs_in_a_pipe_are_the_very_bytes_with_a_prefix_where_there_are_several_replicas(
    trainshed: Shell, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert run(["logs", "digits"]) == 0
    out, err = capsysbinary.readouterr()
    assert out == b"workerpool0-0 | hello \x1b[31m\xff\nworkerpool1-0 | again\nworkerpool0-0 | more"
    assert err == b"-- attempt 1 --\n"
    assert run(["logs", "digits", "--replica", "workerpool0-0"]) == 0
    assert capsysbinary.readouterr().out.startswith(b"hello ")


def test_logs_as_json_are_one_object_a_line(trainshed: Shell) -> None:
    lines = [json.loads(line) for line in trainshed("logs", "digits", "--json").out.splitlines()]
    assert [line["task"] for line in lines] == ["workerpool0-0", "workerpool1-0", "workerpool0-0"]


def test_waiting_exits_as_the_job_did(trainshed: Shell) -> None:
    assert trainshed("wait", "80001").code == 0
    failed = trainshed("wait", "80000")
    assert (failed.code, failed.out) == (7, "80000 FAILED: it broke\n")
    assert trainshed("wait", "digits", "--timeout", "0s").code == 124
    assert trainshed("wait", "digits", "--timeout", "soon").code == 2


def test_a_submitted_job_is_named_on_stdout_and_the_way_on_on_stderr(
    trainshed: Shell, script: Script, tmp_path: Path
) -> None:
    file = tmp_path / "hello.yaml"
    file.write_text("labels: {a: b}\nworkerPoolSpecs: [{replicaCount: 1}]\n")
    result = trainshed("submit", str(file), "--label", "team=vision")
    assert (result.code, result.out) == (0, "71234\n")
    assert "trainshed logs -f 71234" in result.err
    assert script.asked[-1].body == {
        "displayName": "hello",
        "labels": {"a": "b", "team": "vision"},
        "jobSpec": {"workerPoolSpecs": [{"replicaCount": 1}]},
    }
    assert trainshed("submit", str(file), "--label", "team").code == 2
    assert json.loads(trainshed("submit", str(file), "--name", "n", "--json").out)["displayName"] == "n"


def test_a_followed_submit_exits_as_the_job_did(
    trainshed: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "hello.yaml"
    file.write_text("workerPoolSpecs: [{replicaCount: 1}]\n")
    monkeypatch.setitem(JOBS, "71234", JOBS["80000"])
    monkeypatch.setitem(EXITS, "71234", 7)
    result = trainshed("submit", str(file), "--follow")
    assert result.out.splitlines()[1:] == ["again", "more"]
    assert result.err.splitlines()[0] == "submitted hello as 71234"
    assert result.err.splitlines()[-1].startswith("71234 FAILED")
    assert result.code == 7


def test_what_the_server_refuses_is_told_with_the_line_of_the_file(
    trainshed: Shell, script: Script, tmp_path: Path
) -> None:
    file = tmp_path / "hello.yaml"
    file.write_text("workerPoolSpecs:\n- replicaCount: -1\n")
    wrong = {"job_spec.worker_pool_specs[0].replica_count": "must be at least 1."}
    script.answer = lambda asked, handler: failure(400, "INVALID_ARGUMENT", "wrong", **wrong)
    result = trainshed("submit", str(file))
    assert result.code == 1
    assert result.err.splitlines()[1] == f"  {file}:2: {next(iter(wrong))} must be at least 1."


def test_a_refused_token_is_told_with_where_it_came_from(trainshed: Shell, home: Path) -> None:
    (home / "token").write_text("wrong")
    result = trainshed("ls")
    assert result.code == 1
    assert f"the token comes from {home / 'token'}" in result.err
    (home / "token").unlink()
    assert "no token was found" in trainshed("ls").err


def test_without_a_server_the_address_and_the_way_to_start_one_are_told(trainshed: Shell) -> None:
    result = trainshed("ls", "--url", "http://127.0.0.1:1")
    assert result.code == 1
    assert result.err.startswith("error: no server answers at http://127.0.0.1:1 (")
    assert "trainshed up" in result.err


def test_a_command_that_is_not_there_is_a_usage_error_with_the_nearest_named(trainshed: Shell) -> None:
    result = trainshed("sumbit")
    assert result.code == 2
    assert "Did you mean 'submit'?" in result.err


def test_up_refuses_to_serve_others_without_a_token(
    trainshed: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "execv", lambda *_: pytest.fail("the server must not start"))
    result = trainshed("up", "--no-auth", "--host", "0.0.0.0")
    assert result.code == 2
    assert result.err.startswith("error: --no-auth")


def test_up_becomes_the_server_with_its_settings_and_without_click(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[list[str]] = []

    def become(_: str, args: list[str]) -> None:
        started.append(args)
        sys.exit(0)

    monkeypatch.setattr(os, "execv", become)
    monkeypatch.setattr("trainshed.cli.menu.run", lambda _: pytest.fail("click is slow"))
    monkeypatch.setenv("TRAINSHED_DATABASE", "")
    url = "postgresql://me:secret@db/x"
    with pytest.raises(SystemExit):
        run(["up", "--port", "0", "--memory", "1GiB", "--database", url])
    [args] = started
    assert args[:4] == [sys.executable, "-P", "-m", "trainshed.server"]
    from trainshed.settings.table import Settings

    settings = Settings.from_args(args[4:])
    assert (settings.port, settings.memory, settings.home, settings.database) == (0, 1 << 30, home, url)
    assert "secret" not in " ".join(args)


def test_env_points_gcloud_at_the_server_and_keeps_its_configuration_apart(
    trainshed: Shell, home: Path, script: Script
) -> None:
    found = json.loads(trainshed("env", "--json").out)
    assert found["CLOUDSDK_CONFIG"] == str(home / "gcloud")
    assert stat.S_IMODE((home / "gcloud").stat().st_mode) == 0o700
    assert found["CLOUDSDK_AUTH_ACCESS_TOKEN_FILE"] == str(home / "token")
    assert found["CLOUDSDK_API_ENDPOINT_OVERRIDES_AIPLATFORM"] == f"{script.url}/"
    assert found["CLOUDSDK_CORE_PROJECT"] == found["GOOGLE_CLOUD_PROJECT"] == "local"


def test_env_has_gsutil_pass_its_commands_on_to_gcloud(
    trainshed: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gcloud = tmp_path / "sdk" / "bin" / "gcloud"
    gcloud.parent.mkdir(parents=True)
    gcloud.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(gcloud.parent))
    found = json.loads(trainshed("env", "--json").out)
    told = Path(found["BOTO_CONFIG"]).read_text().splitlines()
    assert {"use_gcloud_storage = True", "hidden_shim_mode = no_fallback"} <= set(told)
    assert found["CLOUDSDK_ROOT_DIR"] == str(tmp_path / "sdk")
    gcloud.unlink()
    assert "CLOUDSDK_ROOT_DIR" not in json.loads(trainshed("env", "--json").out)


def test_env_can_be_evaluated_whatever_the_values_are(trainshed: Shell) -> None:
    odd = 'it\'s $HOME; `x` \\ "y"'
    result = trainshed("env", "--project", odd)
    shell = subprocess.run(
        ["sh", "-c", f'{result.out}\nprintf %s "$CLOUDSDK_CORE_PROJECT"'],
        capture_output=True,
        text=True,
        check=True,
    )
    assert shell.stdout == odd
    fish = trainshed("env", "--project", odd, "--shell", "fish").out
    assert """set -gx CLOUDSDK_CORE_PROJECT 'it\\'s $HOME; `x` \\\\ "y"';""" in fish


def test_env_without_a_token_still_gives_gcloud_a_file_to_read(
    trainshed: Shell, home: Path, script: Script
) -> None:
    (home / "token").unlink()
    script.answer = lambda asked, handler: (200, {})
    file = Path(json.loads(trainshed("env", "--json").out)["CLOUDSDK_AUTH_ACCESS_TOKEN_FILE"])
    assert file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize("form", [(), ("--json",), ("--shell", "fish")])
def test_env_without_a_server_is_an_error_and_gives_a_shell_nothing_to_take(
    trainshed: Shell, home: Path, form: tuple[str, ...]
) -> None:
    result = trainshed("env", "--url", "http://127.0.0.1:1", *form)
    assert (result.code, result.out) == (1, "")
    assert "no server answers at http://127.0.0.1:1" in result.err
    assert f"start a server with: trainshed up --home {home}\n" in result.err
    assert not (home / "gcloud").exists()


def test_env_with_a_refused_token_is_an_error(trainshed: Shell, home: Path) -> None:
    (home / "token").write_text("wrong")
    result = trainshed("env")
    assert (result.code, result.out) == (1, "")
    assert f"the token comes from {home / 'token'}" in result.err


def test_env_of_a_home_is_of_its_server_whatever_is_set(
    trainshed: Shell, home: Path, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("HOME", "/nowhere"), ("URL", "http://127.0.0.1:1"), ("TOKEN", "another")):
        monkeypatch.setenv(f"TRAINSHED_{name}", value)
    lines = trainshed("env", "--home", str(home)).out.splitlines()
    assert f"export TRAINSHED_URL={script.url}" in lines
    assert f"export TRAINSHED_HOME={home}" in lines
    assert f"export TRAINSHED_TOKEN_FILE={home / 'token'}" in lines
    assert "unset TRAINSHED_TOKEN" in lines


def test_a_reader_that_goes_away_is_no_error_to_talk_about(trainshed: Shell, home: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    program = [sys.executable, "-c", "from trainshed.cli.main import main; main()", "logs", "digits"]
    done = subprocess.run(program, stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")

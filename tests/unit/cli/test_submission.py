"""The way of a submit: the job is asked for first, files are sent only if they are missing."""

from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.terminal import Terminal
from tests.unit.client.scripted import Asked, Handler, failure
from trainshed.client.code import Parcel

UNKNOWN = {"job_spec.code": "is not known here: send it first."}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "program"
    folder.mkdir()
    (folder / "train.py").write_text("print(1)")
    (folder / "data").write_text("x")
    monkeypatch.chdir(folder)
    return folder


def server(terminal: Terminal, *, lacks: list[str], **violations: str) -> None:
    """A server that lacks the contents until they are uploaded."""
    plain = terminal.answer

    def answer(asked: Asked, handler: Handler) -> tuple[int, Any] | None:
        if asked.path.endswith("/code:missing"):
            return 200, {"code": "c", "missing": list(lacks)}
        if asked.path.endswith("/code:upload"):
            lacks.clear()
            return 200, {"received": 1}
        if lacks or violations:
            told = {**violations, **(UNKNOWN if lacks else {})}
            return failure(400, "INVALID_ARGUMENT", "no", **told)
        return plain(asked, handler)

    terminal.script.answer = answer


def steps(terminal: Terminal) -> list[str]:
    return [asked.path.rpartition("/")[2] for asked in terminal.script.asked]


def test_a_folder_the_server_knows_takes_one_question(terminal: Terminal, here: Path) -> None:
    server(terminal, lacks=[])
    done = terminal("submit", "train.py", "--detach")
    assert (done.code, done.out) == (0, "999\n")
    assert steps(terminal) == ["customJobs?view=trainshed"]


def test_what_is_missing_is_sent_and_the_job_asked_for_again_under_the_same_key(
    terminal: Terminal, here: Path
) -> None:
    digest = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"  # of "x"
    server(terminal, lacks=[digest])
    done = terminal("submit", "train.py", "--detach")
    assert done.code == 0, done.err
    assert steps(terminal) == [
        "customJobs?view=trainshed",
        "code:missing",
        "code:upload",
        "code:missing",
        "customJobs?view=trainshed",
    ]
    first, _, upload, _, last = terminal.script.asked
    assert first.headers["idempotency-key"] == last.headers["idempotency-key"]
    assert first.body == last.body
    assert upload.body == f"{digest} 1\nx".encode()
    assert "sent 1 file, 1 B; the server had the rest" in done.err
    assert len({asked.connection for asked in terminal.script.asked}) == 1


def test_a_job_that_would_be_refused_anyway_has_nothing_sent_for_it(terminal: Terminal, here: Path) -> None:
    field = "job_spec.worker_pool_specs[{}].machine_spec.machine_type"
    wrong = {field.format(0): '"x" is none.', field.format(1): '"x" is none.'}
    server(terminal, lacks=["0" * 64], **wrong)
    done = terminal("submit", "train.py", "--replicas", "2", "--machine", "x")
    assert done.code == 1
    assert done.err.splitlines()[1:] == [
        "error: the server does not accept this job",
        '  --machine: "x" is none.',
    ]
    assert steps(terminal) == ["customJobs?view=trainshed"]


def test_a_dry_run_tells_what_is_refused_by_the_option_that_said_it(terminal: Terminal, here: Path) -> None:
    wrong = {"job_spec.worker_pool_specs[0].machine_spec.machine_type": '"x" is none.'}
    server(terminal, lacks=[], **wrong)
    done = terminal("submit", "train.py", "--machine", "x", "--dry-run")
    assert done.code == 1
    assert done.err.splitlines()[-1] == '  --machine: "x" is none.'


def test_a_file_that_the_server_finds_changed_is_named(terminal: Terminal, here: Path) -> None:
    digest = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"  # of "x"
    server(terminal, lacks=[digest])
    plain = terminal.script.answer

    def answer(asked: Asked, handler: Handler) -> tuple[int, Any] | None:
        if asked.path.endswith("/code:upload"):
            told = {"frames[0]": f"The bytes sent as {digest} have another hash."}
            return failure(400, "INVALID_ARGUMENT", "no", **told)
        return plain(asked, handler)

    terminal.script.answer = answer
    done = terminal("submit", "train.py")
    assert done.code == 1
    assert "a file changed while it was sent: data" in done.err


def test_ctrl_c_while_the_job_is_asked_for_does_not_say_that_nothing_was_submitted(
    terminal: Terminal, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked_and_interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("trainshed.client.api.Client.create", asked_and_interrupted)
    done = terminal("submit", "train.py")
    assert done.code == 130
    assert "before the job was submitted" not in done.err
    assert "trainshed ls" in done.err


def test_files_that_cannot_be_read_are_all_named(
    terminal: Terminal, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Parcel, full: str, size: int) -> tuple[int, str]:
        raise PermissionError(13, "Permission denied", full)

    monkeypatch.setattr(Parcel, "_read", refuse)
    done = terminal("submit", "train.py")
    assert done.code == 1
    assert "  data: Permission denied" in done.err.splitlines()
    assert "  train.py: Permission denied" in done.err.splitlines()
    assert steps(terminal) == []

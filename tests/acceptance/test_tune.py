"""`tune` and `study` as a person uses them: real trials of a small program, in a pipe and on a terminal."""

import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.test_submit import Person
from tests.live import LiveServer, until

# The best is lr=0.01; the larger net is a little better.
PROGRAM = """
import argparse, math, os, pathlib, time
from trainshed import report
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, required=True)
parser.add_argument("--net", required=True)
parser.add_argument("--units", type=int, default=0)
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--gate", default="")
options = parser.parse_args()
assert (options.net == "big") == bool(options.units)
while options.gate and not pathlib.Path(options.gate).exists():
    time.sleep(0.02)
top = 0.9 - 0.1 * (math.log10(options.lr) + 2) ** 2 + (options.net == "big") * 0.05
for epoch in range(1, options.epochs + 1):
    report.step(epoch, total=options.epochs, accuracy=top * (1 - 0.5**epoch), size=options.units)
print("trial", os.environ.get("CLOUD_ML_TRIAL_ID"), flush=True)
"""
SPACE = (
    *("--param", "lr=log:1e-4..1e-1", "--param", "net=small,big"),
    *("--param", "units@net=big=8..64", "--maximize", "accuracy"),
)
SMALL = ("--machine", "n1-standard-1")

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with LiveServer("--cpus", "16", "--memory", "64GiB") as live:
        yield live
        assert "Traceback" not in live.said(), live.said()


@pytest.fixture
def person(server: LiveServer, tmp_path: Path) -> Person:
    here = tmp_path / "program"
    here.mkdir()
    somebody = Person(server, here)
    somebody.write(train__py=PROGRAM)
    return somebody


def tuned(person: Person, *more: str) -> str:
    """The id of a study that has been started and not followed."""
    done = person("tune", "train.py", *SPACE, *SMALL, "--detach", *more)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def shown(person: Person, study: str) -> Any:
    done = person("study", "show", study, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def trials(person: Person, study: str) -> list[Any]:
    return json.loads(person("study", "trials", study, "--json").stdout)


def state(person: Person, study: str) -> str:
    return str(shown(person, study)["study"]["trainshed"]["state"])


def test_a_program_is_tuned_in_a_pipe_and_its_best_trial_can_be_run_again(person: Person) -> None:
    done = person(
        *("tune", "train.py", *SPACE, *SMALL, "--trials", "5", "--parallel", "3", "--name", "pipe"),
        *("--try", "lr=0.01,net=big,units=16", "--try", "lr=0.0001,net=small", "--", "--epochs", "3"),
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    ended = [line for line in lines if line.startswith("trial ")]
    assert sorted(int(line.split()[1]) for line in ended) == [1, 2, 3, 4, 5]
    assert all(" SUCCEEDED  accuracy=" in line for line in ended), done.stdout
    [best] = [line for line in lines if line.startswith("Best")]
    assert "★ trial 1: accuracy 0.83125" in best, done.stdout
    [command] = [line.removeprefix("Run it").strip() for line in lines if line.startswith("Run it")]
    assert command == (
        "trainshed submit train.py --machine n1-standard-1 -- --epochs 3 --lr=0.01 --net=big --units=16"
    )
    again = person(*command.split()[1:])
    assert again.returncode == 0, again.stderr

    job = person("study", "best", "pipe", "--submit", "--follow")
    assert job.returncode == 0, job.stderr
    assert job.stdout.startswith("trial ")
    listed = person("ls", "--limit", "100").stdout
    assert re.search(r"pipe trial 5 +trial +SUCCEEDED", listed), listed
    assert "trainshed study show" in person("show", "pipe trial 1").stdout


def test_a_terminal_shows_a_table_that_is_drawn_anew_and_ctrl_c_detaches(
    person: Person, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    screen = person.at_terminal(
        *("tune", "train.py", *SPACE, *SMALL, "--trials", "2", "--parallel", "2", "--name", "screen"),
        *("--", "--gate", str(gate)),
    )
    screen.until("ACTIVE")
    seen = screen.until("0 of 2 trials ended: 2 active")
    assert re.search(r"TRIAL +STATE +lr", seen)
    screen.type("\x03")
    assert screen.end() == 130
    assert "detached: the study goes on" in screen.seen
    [identity] = re.findall(r"Come back with: trainshed study show -f (\d+)", screen.seen)

    gate.touch()
    screen = person.at_terminal("study", "show", "-f", identity)
    assert screen.end() == 0
    last = screen.seen.rpartition("\x1b[J")
    assert "2 of 2 trials ended: 2 succeeded" in last[0]
    assert "★" in last[0]
    assert "trainshed submit train.py" in last[2]


def test_following_outlasts_a_server_that_is_killed(person: Person, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    identity = tuned(person, "--trials", "2", "--parallel", "2", "--", "--gate", str(gate))
    screen = person.at_terminal("study", "show", "-f", identity)
    screen.until("2 active")
    person.server.kill()
    gate.touch()
    person.server.start()
    assert screen.end() == 0, screen.seen
    assert "2 of 2 trials ended: 2 succeeded" in screen.seen


def test_a_study_is_stopped_resumed_and_given_trials(person: Person, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    identity = tuned(person, "--trials", "2", "--parallel", "1", "--", "--gate", str(gate))
    done = person("study", "add", identity, "lr=0.02,net=small")
    assert done.returncode == 0, done.stderr
    until(lambda: any(item["state"] == "ACTIVE" for item in trials(person, identity)))
    assert person("study", "stop", identity).returncode == 0
    until(lambda: state(person, identity).endswith(("SUCCEEDED", "FAILED")))
    before = len(trials(person, identity))
    refused = person("study", "add", identity, "lr=0.02,net=small")
    assert (refused.returncode, "trainshed study resume" in refused.stderr) == (1, True)

    gate.touch()
    most = str(before + 2)
    done = person("study", "resume", identity, "--trials", most, "--parallel", "2", "--follow")
    assert done.returncode == 0, done.stderr
    assert len(trials(person, identity)) >= before + 2
    assert person("study", "delete", identity).returncode == 0
    assert "there is no study" in person("study", "show", identity).stderr


def test_a_study_that_runs_is_cancelled_and_not_deleted(person: Person, tmp_path: Path) -> None:
    identity = tuned(person, "--trials", "2", "--", "--gate", str(tmp_path / "never"))
    refused = person("study", "delete", identity)
    assert refused.returncode == 1
    assert "cancel it first" in refused.stderr
    assert person("study", "cancel", identity).returncode == 0
    until(lambda: state(person, identity) == "JOB_STATE_CANCELLED")


def test_a_study_says_that_its_trials_wait_in_the_queue(person: Person, tmp_path: Path) -> None:
    whole_machine = ("--machine", "n1-standard-16")
    gate = tmp_path / "gate"
    study = tuned(person, *whole_machine, "--trials", "2", "--parallel", "2", "--", "--gate", str(gate))
    until(lambda: "2 active (1 in the queue)" in person("study", "show", study).stdout)
    gate.touch()
    until(lambda: state(person, study) == "JOB_STATE_SUCCEEDED")
    assert "in the queue" not in person("study", "show", study).stdout


def test_two_objectives_have_a_front(person: Person) -> None:
    done = person(
        *("tune", "train.py", *SPACE, *SMALL, "--minimize", "size", "--trials", "3", "--parallel", "3"),
        *("--try", "lr=0.01,net=big,units=64", "--try", "lr=0.01,net=small", "--try", "lr=0.0001,net=small"),
    )
    assert done.returncode == 0, done.stderr
    assert "Pareto front: trials 1, 2;" in done.stdout
    [identity] = re.findall(r"as study (\d+)", done.stderr)
    page = person("study", "show", identity).stdout
    assert page.partition("Pareto front")[2].partition("\n\n")[0].count("★") == 2


def test_a_study_is_written_as_a_page_and_as_csv(person: Person) -> None:
    identity = tuned(person, "--trials", "4", "--parallel", "4", "--name", "files")
    followed = person("study", "show", "-f", identity)
    assert followed.returncode == 0, followed.stderr
    done = person("study", "show", "files", "--plot", "files.html", "--csv", "files.csv")
    assert done.returncode == 0, done.stderr
    page = (person.here / "files.html").read_text()
    assert page.count("<svg") >= 3
    assert "<script" not in page
    rows = list(csv.DictReader(io.StringIO((person.here / "files.csv").read_text())))
    assert [row["trial"] for row in rows] == ["1", "2", "3", "4"]
    assert all(float(row["metrics.accuracy"]) > 0 for row in rows)
    assert all(bool(row["params.units"]) == (row["params.net"] == "big") for row in rows)


def test_a_study_begins_with_what_another_has_learned(person: Person) -> None:
    first = tuned(person, "--trials", "2", "--parallel", "2", "--seed", "1")
    assert person("study", "show", "-f", first).returncode == 0
    second = tuned(person, "--trials", "1", "--warm-start", first)
    spec = shown(person, second)["study"]["studySpec"]
    assert spec["priorStudyNames"][0].endswith(first)


def test_what_the_server_refuses_is_told_by_the_option(person: Person) -> None:
    done = person("tune", "train.py", *SPACE, "--machine", "none-such", "--algorithm", "grid", "--detach")
    assert done.returncode == 1
    assert "  --machine: " in done.stderr
    assert "  --param lr=log:1e-4..1e-1: " in done.stderr

"""`trainshed study`: what is shown of a study, and what each command asks the server for."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.terminal import Terminal
from tests.unit.cli.test_person import completing
from tests.unit.cli.tuning.conftest import Serve
from tests.unit.cli.tuning.told import CUSTOM_JOB, NAME, ToldStudies, trial
from trainshed.cli.main import run
from trainshed.cli.tuning import trial_words
from trainshed.cli.tuning.study_table import bar

PATH = f"/v1/{NAME}"


def posted(terminal: Terminal) -> list[tuple[str, Any]]:
    return [(asked.path, asked.body) for asked in terminal.script.asked if asked.method != "GET"]


def test_studies_are_listed_with_their_best_value(terminal: Terminal, serve: Serve) -> None:
    serve(ToldStudies())
    head, line = terminal("study", "ls").out.splitlines()
    assert head.split() == [
        *("ID", "NAME", "STATE", "AGE", "TRIALS", "FAILED", "GOAL", "BEST"),
        *("POINT", "OR", "WHY"),
    ]
    assert line.startswith("500  train  SUCCEEDED")
    assert line.endswith("4/20    1       max accuracy  0.75  lr=0.02 net=small")


def test_a_study_that_waits_for_its_share_says_so_though_it_has_a_best_trial(
    terminal: Terminal, serve: Serve
) -> None:
    why = "Its next trial cannot begin. Share 'a' may have 1 CPU."
    waits = {"message": why, "waiting": {"reason": "WAITS_FOR_SHARE", "message": why}}
    serve(ToldStudies("JOB_STATE_RUNNING", extra=waits))
    assert terminal("study", "ls").out.splitlines()[1].endswith(why)
    assert f"Why       {why}" in terminal("study", "show", "500").out


@pytest.mark.parametrize("called", ["500", "train", NAME, "50"])
def test_a_study_is_shown_by_any_of_its_names(terminal: Terminal, serve: Serve, called: str) -> None:
    serve(ToldStudies())
    done = terminal("study", "show", called)
    assert done.code == 0
    for text in (
        "Goal      maximize accuracy",
        "Trials    4 of 20 trials ended: 3 succeeded, 1 infeasible",
        "Early     1 stopped early, which saved about 30s",
        "Best      ★ trial 2: accuracy 0.75  ▁▆█",
        "Run it    trainshed submit train.py --machine n1-standard-8 -- --epochs 5 --lr=0.025 --net=big",
        "  lr   ██████████████████████▌         75%",
        "  ★  2      SUCCEEDED   0.02  small  0.75",
    ):
        assert text in done.out
    assert "Left" not in done.out, "it has ended"


def test_a_study_that_runs_says_when_it_may_end(terminal: Terminal, serve: Serve) -> None:
    serve(ToldStudies("JOB_STATE_RUNNING"))
    assert "Left      about 1m 30s" in terminal("study", "show", "500").out


def test_several_objectives_have_a_front_instead_of_a_best_trial(terminal: Terminal, serve: Serve) -> None:
    metrics = [{"metricId": "accuracy", "goal": "MAXIMIZE"}, {"metricId": "size", "goal": "MINIMIZE"}]
    final = {"metrics": [{"metricId": "accuracy", "value": 0.5}, {"metricId": "size", "value": 9}]}
    trials = [trial(n, 0.5, finalMeasurement=final) for n in (1, 2, 3)]
    serve(ToldStudies(trials=trials, best=["1", "3"], spec={"metrics": metrics, "parameters": []}))
    out = terminal("study", "show", "500").out
    front = out.partition("Pareto front")[2].partition("\n\n")[0]
    assert "accuracy  size" in front
    assert front.count("★") == 2
    assert "Run it" not in out


def test_all_that_is_shown_is_there_for_scripts(terminal: Terminal, serve: Serve) -> None:
    serve(ToldStudies())
    whole = json.loads(terminal("study", "show", "500", "--json").out)
    assert set(whole) == {"study", "analysis", "best", "front", "latest", "curve"}


def test_where_there_is_not_room_for_all_those_that_run_and_the_best_are_shown(
    terminal: Terminal, serve: Serve
) -> None:
    ended = [trial(n, 0.9 if n == 1 else 0.5) for n in range(1, 12)]
    to_come = [trial(n, None, "REQUESTED") for n in range(14, 40)]
    active = [trial(12, None, "ACTIVE"), trial(13, None, "STOPPING")]
    serve(ToldStudies("JOB_STATE_RUNNING", [*ended, *active, *to_come], best=["1"]))
    whole = json.loads(terminal("study", "show", "500", "--json").out)
    assert [item["id"] for item in whole["latest"]] == ["1", "7", "8", "9", "10", "11", "12", "13"]


def test_trials_are_listed_the_best_first_where_asked(terminal: Terminal, serve: Serve) -> None:
    serve(ToldStudies())
    lines = terminal("study", "trials", "500", "--order", "value").out.splitlines()[1:]
    assert [line.lstrip("★ ").split()[0] for line in lines] == ["2", "3", "1"]
    out = terminal("study", "trials", "500", "--state", "infeasible", "--json").out
    assert [item["id"] for item in json.loads(out)] == ["4"]


@pytest.mark.parametrize(
    ("args", "asked", "told"),
    [
        (("stop", "train"), (f"{PATH}:stop", {}), "stopping 500 (train)"),
        (("stop", "500", "--trial", "7"), (f"{PATH}/trials/7:stop", {}), "stopping trial 7 of 500 (train)"),
        (("cancel", "500"), (f"{PATH}:cancel", {}), "cancelling 500 (train)"),
        (("delete", "500"), (PATH, None), "deleted 500 (train)"),
        (
            ("resume", "500", "--trials", "40", "--parallel", "8"),
            (f"{PATH}:resume", {"maxTrialCount": 40, "parallelTrialCount": 8}),
            "resumed 500 (train)",
        ),
        (
            ("add", "500", "lr=0.01,net=big", "lr=0.02,net=small"),
            (
                f"{PATH}:addTrials",
                {"points": [{"lr": 0.01, "net": "big"}, {"lr": 0.02, "net": "small"}]},
            ),
            "added 2 trials to 500 (train)",
        ),
    ],
)
def test_a_study_is_steered(
    terminal: Terminal, serve: Serve, args: tuple[str, ...], asked: tuple[str, Any], told: str
) -> None:
    serve(ToldStudies("JOB_STATE_RUNNING"))
    done = terminal("study", *args)
    assert (done.code, done.out) == (0, f"{told}\n"), done.err
    assert posted(terminal) == [asked]


def test_one_that_is_not_there_does_not_keep_the_others_from_it(terminal: Terminal, serve: Serve) -> None:
    serve(ToldStudies("JOB_STATE_RUNNING"))
    done = terminal("study", "cancel", "nope", "500", "--json")
    assert done.code == 1
    assert [("error" in item, item["study"]) for item in json.loads(done.out)] == [
        (True, "nope"),
        (False, "500"),
    ]
    assert "trainshed study ls" in done.err


def test_trials_are_not_added_to_a_study_that_has_ended(terminal: Terminal, serve: Serve) -> None:
    serve(ToldStudies())
    done = terminal("study", "add", "500", "lr=0.01,net=big")
    assert done.code == 1
    assert "trainshed study resume 500 --trials 5" in done.err


def test_a_wrong_point_is_refused_before_the_server_is_asked(terminal: Terminal, serve: Serve) -> None:
    serve(ToldStudies("JOB_STATE_RUNNING"))
    done = terminal("study", "add", "500", "lr=0.01,net=huge")
    assert done.code == 2
    assert "lr=0.01,net=huge: net is one of small, big, not 'huge'" in done.err
    assert not posted(terminal)


def test_the_best_point_runs_as_a_job(terminal: Terminal, serve: Serve) -> None:
    serve(ToldStudies())
    done = terminal("study", "best", "500", "--submit")
    assert (done.code, done.out) == (0, "999\n")
    [(path, body)] = posted(terminal)
    assert path.startswith("/v1/projects/local/locations/us-central1/customJobs?")
    assert body == CUSTOM_JOB


def test_a_study_without_a_value_has_no_best_trial(terminal: Terminal, serve: Serve) -> None:
    serve(ToldStudies(best=[]))
    done = terminal("study", "best", "500")
    assert done.code == 1
    assert "no trial of 500 has a value yet" in done.err


def test_trials_are_written_as_csv(terminal: Terminal, serve: Serve, tmp_path: Path) -> None:
    serve(ToldStudies(trials=[*ToldStudies().trials, trial(5, 0.1, infeasibleReason='a "b",\nc')]))
    file = tmp_path / "trials.csv"
    assert terminal("study", "show", "500", "--csv", str(file)).code == 0
    rows = list(csv.DictReader(io.StringIO(file.read_text())))
    assert [row["params.lr"] for row in rows] == ["0.01", "0.02", "0.03", "0.04", "0.05"]
    assert [row["metrics.accuracy"] for row in rows] == ["0.5", "0.75", "0.7", "", "0.1"]
    assert rows[4]["note"] == 'a "b",\nc'
    assert terminal("study", "show", "500", "--csv", "-").out == file.read_text()


@pytest.mark.parametrize("text", ["=1+1", "+cmd", "-2+3", "@SUM(1)", "\t=1", "\r=1", "\n=1"])
def test_no_text_of_a_trial_becomes_a_formula(
    terminal: Terminal, serve: Serve, tmp_path: Path, text: str
) -> None:
    given = [{"parameterId": "lr", "value": text}]
    serve(ToldStudies(trials=[trial(1, -0.5, parameters=given, infeasibleReason=text)]))
    file = tmp_path / "trials.csv"
    assert terminal("study", "show", "500", "--csv", str(file)).code == 0
    with file.open(newline="") as stream:
        [row] = csv.DictReader(stream)
    written = "'" + text.replace("\r", "\n")
    assert (row["params.lr"], row["note"]) == (written, written)
    assert row["metrics.accuracy"] == "-0.5"  # a number is none


@pytest.mark.parametrize("value", [-0.5, -3, "-3", "+1e-3"])
def test_numbers_are_written_as_they_are(
    terminal: Terminal, serve: Serve, tmp_path: Path, value: float | str
) -> None:
    serve(ToldStudies(trials=[trial(1, 0.5, parameters=[{"parameterId": "lr", "value": value}])]))
    file = tmp_path / "trials.csv"
    assert terminal("study", "show", "500", "--csv", str(file)).code == 0
    [row] = csv.DictReader(io.StringIO(file.read_text()))
    assert row["params.lr"] == str(value)


def test_a_page_is_written(terminal: Terminal, serve: Serve, tmp_path: Path) -> None:
    serve(ToldStudies())
    file = tmp_path / "page.html"
    done = terminal("study", "show", "500", "--plot", str(file))
    assert (done.code, done.err) == (0, f"wrote {file}\n")
    assert file.read_text().startswith("<!doctype html>")
    done = terminal("study", "show", "500", "--plot", str(tmp_path / "nowhere" / "page.html"))
    assert (done.code, "cannot write" in done.err) == (1, True)


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("trainshed study show ", ["500"]),
        ("trainshed study stop tr", ["train"]),
        ("trainshed study re", ["resume"]),
        ("trainshed tune train.py --warm-start ", ["500"]),
        ("trainshed tune train.py --para", ["--param", "--parallel"]),
    ],
)
def test_studies_and_their_commands_are_completed(
    terminal: Terminal, serve: Serve, monkeypatch: pytest.MonkeyPatch, line: str, offered: list[str]
) -> None:
    serve(ToldStudies())
    with completing(line, monkeypatch), pytest.raises(SystemExit):
        run([])
    assert [row.partition(",")[2] for row in terminal.capture.readouterr().out.splitlines()] == offered


def test_a_job_of_a_trial_is_marked_in_the_list(terminal: Terminal) -> None:
    terminal.add("1", kind="trial", state="JOB_STATE_RUNNING")
    terminal.add("2", kind="custom", state="JOB_STATE_RUNNING")
    plain = terminal.script.answer
    terminal.script.answer = lambda asked, handler: (
        (200, {"elsewhere": 0}) if ":count" in asked.path else plain(asked, handler)
    )
    head, first, second = terminal("ls").out.splitlines()
    assert head.split()[:4] == ["ID", "NAME", "KIND", "STATE"]
    assert first.split() == ["1", "job-1", "trial", "RUNNING", "0"]
    assert second.split() == ["2", "job-2", "RUNNING", "0"]
    assert "trainshed ls --filter 'kind != trial'" in terminal("ls", "--limit", "1").err


def test_a_trial_that_was_stopped_without_a_value_says_why_once() -> None:
    trial = {"infeasibleReason": "It had not begun. It was cancelled.", "stopReason": "It was cancelled."}
    assert trial_words.note(trial) == "It had not begun. It was cancelled."


def test_a_curve_has_a_bar_for_each_value_and_a_gap_for_no_number() -> None:
    assert trial_words.curve([1, 2, 3]) == "▁▄█"
    assert trial_words.curve([1, "NaN", 3]) == "▁ █"
    assert trial_words.curve([5]) == ""
    assert len(trial_words.curve(list(range(1000)))) == trial_words.CURVE


def test_a_bar_is_full_at_one_and_empty_at_none() -> None:
    assert bar(1.0, 4) == "████"
    assert bar(0.0, 4) == "    "
    assert bar(0.5, 4) == "██  "
    assert bar(7.0, 4) == "████"


def job(**container: Any) -> dict[str, Any]:
    pool = {"containerSpec": {"imageUri": "trainshed/python:3", **container}, "replicaCount": "1"}
    return {"jobSpec": {"code": "c", "workerPoolSpecs": [pool]}}


@pytest.mark.parametrize(
    ("container", "line"),
    [
        ({"command": ["python", "a b.py"]}, "trainshed submit 'a b.py'"),
        ({"command": ["python", "-m", "pkg.mod"], "args": ["--x=1"]}, "trainshed submit -m pkg.mod -- --x=1"),
        ({"command": ["./run"]}, "trainshed submit ./run"),
        (
            {"command": ["python", "t.py"], "imageUri": "trainshed/pytorch"},
            "trainshed submit t.py --runtime trainshed/pytorch",
        ),
        (
            {"command": ["python", "t.py"], "env": [{"name": "A", "value": "1"}]},
            "trainshed submit t.py --env A=1",
        ),
        (
            {"command": ["python", "t.py"], "env": [{"name": "T", "value": trial_words.MASK}]},
            "trainshed submit t.py --secret T",
        ),
        ({"command": ["python", "-c", "print(1)"]}, ""),
        ({}, ""),
    ],
)
def test_the_command_line_of_the_best_trial_can_be_pasted(container: dict[str, Any], line: str) -> None:
    assert trial_words.submit_line(job(**container)) == line


def test_a_command_line_says_all_or_is_not_given() -> None:
    best = job(command=["python", "t.py"])
    pool = best["jobSpec"]["workerPoolSpecs"][0]
    pool["machineSpec"] = {"machineType": "n1-standard-4", "acceleratorType": "T4", "acceleratorCount": 2}
    best["jobSpec"]["workerPoolSpecs"].append({**pool, "replicaCount": "2"})
    best["jobSpec"]["baseOutputDirectory"] = {"outputUriPrefix": "gs://b/out"}
    assert trial_words.submit_line(best) == (
        "trainshed submit t.py --gpu T4:2 --replicas 3 --output gs://b/out"
    )
    best["jobSpec"]["requirements"] = ["numpy"]
    assert trial_words.submit_line(best) == ""
    assert trial_words.program_line(best) == "python t.py"

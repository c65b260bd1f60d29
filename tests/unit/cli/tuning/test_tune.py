"""`trainshed tune`: what it asks the server for, what it prints, and what it refuses."""

import json
from pathlib import Path

import pytest
import yaml

from tests.unit.cli.terminal import Terminal
from tests.unit.cli.tuning.conftest import Serve
from tests.unit.cli.tuning.told import NAME, ToldStudies, trial
from tests.unit.client.scripted import failure
from trainshed.cli.tuning.follow_study import line_of
from trainshed.cli.tuning.live_table import cropped
from trainshed.cli.tuning.request import TuneWords, option_of_study, study_spec

LR = ("--param", "lr=log:1e-4..1e-1")
GOAL = ("--maximize", "accuracy")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "program"
    folder.mkdir()
    (folder / "train.py").write_text("print(1)")
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.usefixtures("here")
def test_the_study_has_the_program_the_space_and_the_limits(terminal: Terminal, serve: Serve) -> None:
    serve(ToldStudies())
    done = terminal(
        *("tune", "train.py", *LR, "--param", "net=small,big", "--param", "d@net=big=0.1..0.5", *GOAL),
        *("--minimize", "loss", "--trials", "30", "--parallel", "4", "--failed", "3", "--seed", "7"),
        *("--algorithm", "tpe", "--stop-early", "asha", "--steps", "1..50", "--timeout-study", "2h"),
        *("--no-progress", "9", "--try", "lr=0.01,net=small", "--warm-start", "train", "--name", "big one"),
        *("--label", "team=vision", "--machine", "n1-standard-8", "--timeout", "10m", "--detach"),
        *("--pattern", r"(?P<name>\w+) is (?P<value>\S+)", "--", "--epochs", "5"),
    )
    assert (done.code, done.out) == (0, "500\n"), done.err
    assert "trainshed study show -f 500" in done.err
    sent = terminal.sent
    job = sent.pop("trialJobSpec")
    parameters = sent["studySpec"].pop("parameters")
    assert sent == {
        "displayName": "big one",
        "labels": {"team": "vision"},
        "maxTrialCount": 30,
        "parallelTrialCount": 4,
        "maxFailedTrialCount": 3,
        "seed": 7,
        "initialTrials": [{"lr": 0.01, "net": "small"}],
        "studySpec": {
            "metrics": [
                {"metricId": "accuracy", "goal": "MAXIMIZE"},
                {"metricId": "loss", "goal": "MINIMIZE"},
            ],
            "algorithm": "TPE",
            "ashaStoppingSpec": {"minStepCount": 1, "maxStepCount": 50},
            "studyStoppingConfig": {
                "maximumRuntimeConstraint": {"maxDuration": "7200s"},
                "maxNumTrialsNoProgress": 9,
            },
            "metricPattern": r"(?P<name>\w+) is (?P<value>\S+)",
            "priorStudyNames": [NAME],
        },
    }
    assert [spec["parameterId"] for spec in parameters] == ["lr", "net"]
    [pool] = job["workerPoolSpecs"]
    assert pool["machineSpec"] == {"machineType": "n1-standard-8"}
    assert pool["containerSpec"]["command"] == ["python", "train.py"]
    assert pool["containerSpec"]["args"] == ["--epochs", "5"]
    assert job["scheduling"] == {"timeout": "600s"}
    assert job["code"]


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(("steps", "spec"), [((), {}), (("--steps", "50"), {"maxStepCount": 50})])
def test_trials_are_stopped_early_though_not_all_steps_are_told(
    terminal: Terminal, serve: Serve, steps: tuple[str, ...], spec: dict[str, int]
) -> None:
    serve(ToldStudies())
    done = terminal("tune", "train.py", *LR, *GOAL, "--stop-early", "asha", *steps, "--dry-run", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["studySpec"]["ashaStoppingSpec"] == spec


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("form", ["yaml", "json"])
def test_a_dry_run_prints_the_body_and_asks_for_nothing(terminal: Terminal, serve: Serve, form: str) -> None:
    serve(ToldStudies())
    flags = ("--json",) if form == "json" else ()
    done = terminal("tune", "train.py", *LR, *GOAL, "--dry-run", *flags)
    body = json.loads(done.out) if form == "json" else yaml.safe_load(done.out)
    assert done.code == 0
    assert body["maxTrialCount"] == 20
    assert body["studySpec"]["metrics"] == [{"metricId": "accuracy", "goal": "MAXIMIZE"}]
    assert not [path for path in terminal.script.paths() if path.startswith("POST")]


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("args", "reason"),
    [
        (LR, "say what is good: --maximize METRIC or --minimize METRIC"),
        (GOAL, "say what to search: --param NAME=SPEC"),
        ((*LR, *GOAL, "--minimize", "accuracy"), "accuracy stands twice"),
        (("--param", "lr=5", *GOAL), "--param lr=5: '5' is neither a range"),
        ((*LR, *GOAL, "--try", "lr=7"), "--try lr=7: lr is a number from 0.0001 to 0.1, not '7'"),
        ((*LR, *GOAL, "--steps", "1..5"), "--steps 1..5 goes with --stop-early convex, asha, hyperband"),
        ((*LR, *GOAL, "--stop-early", "median", "--steps", "1..5"), "--stop-early median takes none"),
        ((*LR, *GOAL, "--stop-early", "asha", "--steps", "9..5"), "--steps 9..5 is not [MIN..]MAX"),
        ((*LR, *GOAL, "--stop-early", "asha", "--steps", "x"), "--steps x is not [MIN..]MAX"),
        ((*LR, *GOAL, "--timeout-study", "soon"), "--timeout-study 'soon' is not a length of time"),
        ((*LR, *GOAL, "--pattern", "("), "--pattern ( is no regular expression"),
        ((*LR, *GOAL, "--pattern", "a"), "--pattern a has no group called value"),
        ((*LR, *GOAL, "--trials", "0"), "--trials"),
        ((*LR, *GOAL, "--algorithm", "magic"), "--algorithm"),
        ((*LR, *GOAL, "--lr"), "as in: trainshed tune train.py -- --epochs 5"),
    ],
)
def test_a_wrong_command_line_is_told_by_its_option(
    terminal: Terminal, serve: Serve, args: tuple[str, ...], reason: str
) -> None:
    serve(ToldStudies())
    done = terminal("tune", "train.py", *args)
    assert done.code == 2
    assert reason in done.err
    assert "packed" not in done.err
    assert not terminal.script.asked


def test_a_file_is_led_to_the_command_that_takes_it(terminal: Terminal) -> None:
    done = terminal("tune", "study.yaml", *LR, *GOAL)
    assert done.code == 2
    assert "trainshed ai hp-tuning-jobs create --config FILE" in done.err


@pytest.mark.usefixtures("here")
def test_a_refusal_of_the_server_is_told_by_the_option(terminal: Terminal) -> None:
    wrong = {
        "study_spec.parameters[1].double_value_spec.max_value": "is too large.",
        "study_spec.metrics[0].metric_id": "is odd.",
        "max_trial_count": "is too many.",
        "trial_job_spec.worker_pool_specs[0].machine_spec.machine_type": "is not known.",
        "initial_trials[0].lr": "is wrong.",
    }
    terminal.script.answer = lambda asked, handler: failure(400, "INVALID_ARGUMENT", "no", **wrong)
    done = terminal("tune", "train.py", *LR, "--param", "x=0.1..0.5", *GOAL, "--try", "lr=0.01,x=0.2")
    assert done.code == 1
    assert done.err.splitlines()[-6:] == [
        "error: the server does not accept this study",
        "  --param x=0.1..0.5: is too large.",
        "  --maximize accuracy: is odd.",
        "  --trials: is too many.",
        "  --machine: is not known.",
        "  --try lr=0.01,x=0.2: is wrong.",
    ]


@pytest.mark.parametrize(
    ("field", "option"),
    [
        ("study_spec.asha_stopping_spec.max_step_count", "--stop-early"),
        ("study_spec.metric_pattern", "--pattern"),
        ("study_spec.metrics[1].metric_id", "--minimize"),
        ("study_spec.parameters[7]", "--param"),
        ("hyperparameter_tuning_job.study_spec.algorithm", "--algorithm"),
        ("trial_job_spec.code", ""),
    ],
)
def test_each_field_of_a_study_has_its_option(field: str, option: str) -> None:
    words = TuneWords(params=("lr=1..2",), maximize=("a",), minimize=("b",))
    assert option_of_study(field, words) == option


@pytest.mark.usefixtures("here")
def test_in_a_pipe_each_trial_that_ends_is_one_line(terminal: Terminal, serve: Serve) -> None:
    running = ToldStudies("JOB_STATE_RUNNING", [trial(1, 0.5), trial(2, None, "ACTIVE")], best=["1"])
    serve(ToldStudies("JOB_STATE_PENDING", [], best=[], later=[running, ToldStudies()]))
    done = terminal("tune", "train.py", *LR, "--param", "net=small,big", *GOAL)
    assert done.code == 0
    assert done.out.splitlines() == [
        "trial 1 SUCCEEDED  accuracy=0.5  lr=0.01 net=big  1.0s  ★ best so far",
        "trial 2 SUCCEEDED  accuracy=0.75  lr=0.02 net=small  2.0s"
        "  stopped early: it was worse than the median  ★ best so far",
        "trial 3 SUCCEEDED  accuracy=0.7  lr=0.03 net=big  3.0s  given",
        "trial 4 INFEASIBLE  lr=0.04 net=small  4.0s  It reported no accuracy.",
        "Best      ★ trial 2: accuracy 0.75",
        "Point     lr=0.025 net=big",
        "Run it    trainshed submit train.py --machine n1-standard-8 -- --epochs 5 --lr=0.025 --net=big",
        "Or        trainshed study best 500 --submit",
    ]
    assert "500 SUCCEEDED" in done.err


@pytest.mark.usefixtures("here")
def test_trials_that_end_out_of_order_are_told_once_each(terminal: Terminal, serve: Serve) -> None:
    looks = [
        ToldStudies("JOB_STATE_RUNNING", [trial(1, None, "ACTIVE"), trial(2, 0.5)], best=["2"]),
        ToldStudies(
            "JOB_STATE_RUNNING", [trial(1, None, "ACTIVE"), trial(2, 0.5), trial(3, 0.6)], best=["3"]
        ),
        ToldStudies(trials=[trial(1, 0.4), trial(2, 0.5), trial(3, 0.6), trial(4, 0.7)], best=["4"]),
    ]
    serve(ToldStudies("JOB_STATE_PENDING", [], best=[], later=looks))
    done = terminal("tune", "train.py", *LR, *GOAL)
    numbers = [line.split()[1] for line in done.out.splitlines() if line.startswith("trial ")]
    assert numbers == ["2", "3", "1", "4"]


@pytest.mark.usefixtures("here")
def test_as_json_each_line_is_an_object_and_the_last_has_the_best(terminal: Terminal, serve: Serve) -> None:
    serve(ToldStudies())
    done = terminal("tune", "train.py", *LR, *GOAL, "--json")
    *trials, last = map(json.loads, done.out.splitlines())
    assert [item["id"] for item in trials] == ["1", "2", "3", "4"]
    assert last["best"]["trial"] == "2"


@pytest.mark.usefixtures("here")
def test_a_study_that_fails_is_an_exit_code(terminal: Terminal, serve: Serve) -> None:
    serve(ToldStudies("JOB_STATE_FAILED", [trial(1, None, "INFEASIBLE")], best=[], extra={"message": "Why."}))
    done = terminal("tune", "train.py", *LR, *GOAL)
    assert done.code == 1
    assert "500 FAILED: Why." in done.err
    assert "no trial has a value; see why: trainshed study trials 500" in done.err


@pytest.mark.usefixtures("here")
def test_a_range_of_0_and_1_is_remarked_on(terminal: Terminal, serve: Serve) -> None:
    serve(ToldStudies())
    done = terminal("tune", "train.py", "--param", "m=0..1", *GOAL, "--detach")
    assert "note: m has only the values 0 and 1; write 0.0..1.0" in done.err


def test_lower_is_better_where_it_is_minimized() -> None:
    best: dict[str, float] = {}
    goals = [("accuracy", False)]
    marks = ["best so far" in line_of(trial(n, v), goals, best) for n, v in ((1, 0.5), (2, 0.7), (3, 0.1))]
    assert marks == [True, False, True]


def test_a_line_of_a_live_table_never_wraps_and_keeps_its_colours_whole() -> None:
    line = "\x1b[32mgreen\x1b[0m and ★ 中文"
    assert cropped(line, 3) == "\x1b[32mgre\x1b[0m"
    assert cropped(line, 11) == "\x1b[32mgreen\x1b[0m and ★"
    assert cropped(line, 13) == "\x1b[32mgreen\x1b[0m and ★ ", "half of a wide letter does not fit"
    assert cropped(line, 80) == line


def test_the_default_algorithm_is_left_to_the_server() -> None:
    assert "algorithm" not in study_spec(TuneWords(params=("a=1..2",), maximize=("m",)))

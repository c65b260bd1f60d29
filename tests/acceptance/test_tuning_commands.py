"""`trainshed ai hp-tuning-jobs`: the printed command and file, and the other verbs, run by a shell."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.acceptance.test_seed_commands import PRINTED_IMAGE, SEED
from tests.live import IMAGE, LiveServer, pool, python
from tests.shell import Shell
from tests.studies.tuning import PROGRAM, a_tuning_job, wait_study

# As the printed file names its parameters and its metric.
TRAINER = """
import argparse
from trainshed import report
parser = argparse.ArgumentParser()
parser.add_argument("--learning_rate", type=float, required=True)
parser.add_argument("--batch_size", type=int, choices=[32, 64, 128, 256], required=True)
args = parser.parse_args()
print("rate", args.learning_rate, "batch", args.batch_size)
report.step(1, accuracy=1 - args.learning_rate)
"""


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with LiveServer("--cpus", "32", "--memory", "64GiB") as live:
        yield live
        assert "Traceback" not in live.said(), live.said()


@pytest.fixture
def shell(server: LiveServer, tmp_path: Path) -> Shell:
    shutil.copy(SEED / "hp_config.yaml", tmp_path)
    return Shell(server, tmp_path)


def printed() -> str:
    return (SEED / "hp_tuning.sh").read_text().replace("gcloud ai", "trainshed ai").rstrip()


def created(shell: Shell, command: str) -> str:
    done = shell(command)
    assert done.returncode == 0, done.stderr
    match = re.search(r"Hyperparameter tuning job \[(\d+)\] submitted successfully\.", done.stderr)
    assert match, done.stderr
    assert "Job State: JOB_STATE_" in done.stderr
    return match[1]


def a_file(shell: Shell, source: str = PROGRAM, **changes: Any) -> str:
    """A configuration, which JSON is too."""
    body = a_tuning_job(source, **changes)
    del body["displayName"]
    (shell.folder / "small.yaml").write_text(json.dumps(body))
    return "trainshed ai hp-tuning-jobs create --region=us-central1 --config=small.yaml"


def test_the_printed_command_is_understood_and_only_its_image_is_refused(shell: Shell) -> None:
    done = shell(printed())
    assert done.returncode == 1
    assert done.stderr.startswith("ERROR: (trainshed.ai.hp-tuning-jobs.create) INVALID_ARGUMENT: ")
    fields = re.findall(r"field: (\S+)", done.stderr)
    assert fields == ["trial_job_spec.worker_pool_specs[0].container_spec.image_uri"]
    assert "hp_config.yaml:" in done.stderr


@pytest.mark.parametrize("track", ["ai", "beta ai"])
def test_the_printed_command_runs_twenty_trials_once_its_image_is_here(shell: Shell, track: str) -> None:
    file = shell.folder / "hp_config.yaml"
    line = re.compile(rf"^( *)imageUri: {PRINTED_IMAGE.pattern}$", re.MULTILINE)
    command = json.dumps(["python", "-c", TRAINER])
    file.write_text(
        line.sub(lambda m: f"{m[1]}imageUri: {IMAGE}\n{m[1]}command: {command}", file.read_text())
    )
    identity = created(shell, printed().replace("trainshed ai", f"trainshed {track}"))
    name = json.loads(
        shell(f"trainshed ai hp-tuning-jobs describe {identity} --region=us-central1 --format=json").stdout
    )["name"]
    job = wait_study(shell.server, name, patience=120)
    assert job["state"] == "JOB_STATE_SUCCEEDED", job.get("error")
    assert len(job["trials"]) == 20
    assert (job["maxTrialCount"], job["parallelTrialCount"]) == (20, 4)
    assert {trial["state"] for trial in job["trials"]} == {"SUCCEEDED"}


def test_list_describe_cancel_and_stream_logs(shell: Shell) -> None:
    identity = created(shell, f"{a_file(shell, trials=2)} --display-name=mine --labels=team=vision")
    streamed = shell(f"trainshed ai hp-tuning-jobs stream-logs {identity} --region=us-central1")
    assert streamed.returncode == 0, streamed.stderr
    rows = [line.split("\t") for line in streamed.stdout.splitlines()]
    texts = {row[2]: row[3] for row in rows if row[3].startswith("x is")}
    assert set(texts) == {"trial-1/workerpool0-0", "trial-2/workerpool0-0"}
    described = shell(f"trainshed ai hp-tuning-jobs describe {identity} --region=us-central1")
    assert "state: JOB_STATE_SUCCEEDED" in described.stdout
    assert "trials:" in described.stdout
    listed = shell(
        "trainshed ai hp-tuning-jobs list --region=us-central1 --filter=displayName=mine "
        "--format='value(name.basename(),state)'"
    )
    assert listed.stdout.split() == [identity, "JOB_STATE_SUCCEEDED"]
    again = shell(f"trainshed ai hp-tuning-jobs cancel {identity} --region=us-central1")
    assert again.returncode == 1
    assert "FAILED_PRECONDITION" in again.stderr


def test_a_running_one_is_cancelled(shell: Shell) -> None:
    identity = created(shell, f"{a_file(shell, 'import time; time.sleep(600)')} --max-trial-count=1")
    done = shell(f"trainshed ai hp-tuning-jobs cancel {identity} --region=us-central1")
    assert done.returncode == 0
    assert f"Request to cancel hyperparameter tuning job [{identity}] has been sent" in done.stderr
    shell(f"trainshed ai hp-tuning-jobs stream-logs {identity} --region=us-central1")
    described = shell(f"trainshed ai hp-tuning-jobs describe {identity} --format='value(state)'")
    assert described.stdout.strip() == "JOB_STATE_CANCELLED"


def test_a_file_that_is_wrong_is_refused_with_its_lines(shell: Shell) -> None:
    body = a_tuning_job(trialJobSpec={"workerPoolSpecs": [pool(python(PROGRAM), machine="nope")]})
    (shell.folder / "wrong.yaml").write_text(json.dumps(body, indent=1))
    done = shell("trainshed ai hp-tuning-jobs create --config=wrong.yaml")
    assert done.returncode == 1
    assert "trial_job_spec.worker_pool_specs[0].machine_spec.machine_type" in done.stderr
    assert re.search(r"wrong\.yaml:\d+", done.stderr)
    missing = shell("trainshed ai hp-tuning-jobs create --display-name=x")
    assert missing.returncode == 2
    assert "--config" in missing.stderr


def test_the_older_grammar_tunes_too(shell: Shell) -> None:
    params = [{"parameterName": "x", "type": "DOUBLE", "minValue": 0, "maxValue": 1}]
    config = {
        "trainingInput": {
            "masterConfig": {"imageUri": IMAGE, "containerCommand": python(PROGRAM)},
            "hyperparameters": {
                "goal": "MAXIMIZE",
                "hyperparameterMetricTag": "accuracy",
                "maxTrials": 2,
                "maxParallelTrials": 2,
                "params": params,
            },
        }
    }
    (shell.folder / "older.yaml").write_text(json.dumps(config))
    made = shell(
        "trainshed ai-platform jobs submit training older_1 --region=us-central1 --config=older.yaml"
    )
    assert made.returncode == 0, made.stderr
    streamed = shell("trainshed ai-platform jobs stream-logs older_1")
    rows = [line.split("\t") for line in streamed.stdout.splitlines()]
    texts = {row[3]: row[2] for row in rows if row[-1].startswith("x is")}
    assert texts == {"1": "master-replica-0", "2": "master-replica-0"}, streamed
    described = shell("trainshed ai-platform jobs describe older_1 --format=json")
    assert json.loads(described.stdout)["trainingOutput"]["completedTrialCount"] == "2"


EXPERIMENT = """
apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata:
  namespace: kubeflow
  name: NAME
spec:
  objective:
    type: maximize
    objectiveMetricName: accuracy
  algorithm:
    algorithmName: random
  parallelTrialCount: 2
  maxTrialCount: 2
  parameters:
  - name: lr
    parameterType: double
    feasibleSpace: {min: "0.1", max: "0.5"}
  trialTemplate:
    primaryContainerName: main
    trialParameters:
    - {name: learningRate, reference: lr}
    trialSpec:
      apiVersion: batch/v1
      kind: Job
      spec:
        template:
          spec:
            containers:
            - name: main
              image: IMAGE
              command: COMMAND
            restartPolicy: Never
"""


def an_experiment(name: str, source: str) -> str:
    command = json.dumps([*python(source), "--x=${trialParameters.learningRate}"])
    return EXPERIMENT.replace("NAME", name).replace("IMAGE", IMAGE).replace("COMMAND", command)


def test_an_experiment_of_katib_is_applied_shown_and_deleted(shell: Shell) -> None:
    (shell.folder / "katib.yaml").write_text(an_experiment("katib-1", PROGRAM))
    dry = shell("trainshed apply -f katib.yaml --dry-run")
    assert "experiment/katib-1 would be created" in dry.stdout, dry.stderr
    made = shell("trainshed apply -f katib.yaml")
    match = re.search(r"experiment/katib-1 created \(study (\d+)\)", made.stdout)
    assert match, made.stdout + made.stderr
    row = json.loads(shell("trainshed get experiment katib-1 --json").stdout)
    job = wait_study(shell.server, row["study"]["name"])
    assert job["state"] == "JOB_STATE_SUCCEEDED", job
    for trial in job["trials"]:
        [line] = [row["text"] for row in shell.server.lines(trial["customJob"])]
        assert line == f"x is {trial['parameters'][0]['value']}"
    again = shell("trainshed apply -f katib.yaml")
    assert "unchanged: it is SUCCEEDED" in again.stdout
    table = shell("trainshed get experiments").stdout
    assert re.search(r"katib-1\s+Succeeded\s+2/2\s+accuracy=", table), table
    assert "kind: katib" in shell("trainshed describe experiment katib-1").stdout
    assert shell("trainshed delete -f katib.yaml").returncode == 0
    assert "katib-1" not in shell("trainshed get experiments").stdout


def test_trials_of_an_experiment_may_be_gangs_whose_size_is_a_parameter(shell: Shell) -> None:
    program = "import os; print(os.environ['TF_CONFIG'], flush=True); print('accuracy=0.5')"
    replica = {"template": {"spec": {"containers": [{"image": IMAGE, "command": python(program)}]}}}
    kind = {"apiVersion": "kubeflow.org/v1", "kind": "TFJob"}
    workers = {"replicas": "${trialParameters.workers}", **replica}
    document = yaml.safe_load(an_experiment("katib-2", PROGRAM))
    document["spec"]["parameters"] = [
        {"name": "n", "parameterType": "discrete", "feasibleSpace": {"list": ["2", "3"]}}
    ]
    document["spec"]["algorithm"]["algorithmName"] = "grid"
    document["spec"]["trialTemplate"] |= {
        "trialParameters": [{"name": "workers", "reference": "n"}],
        "trialSpec": kind | {"spec": {"tfReplicaSpecs": {"Worker": workers}}},
    }
    (shell.folder / "gang.yaml").write_text(json.dumps(document))
    made = shell("trainshed apply -f gang.yaml")
    assert made.returncode == 0, made.stderr
    row = json.loads(shell("trainshed get experiment katib-2 --json").stdout)
    job = wait_study(shell.server, row["study"]["name"])
    assert job["state"] == "JOB_STATE_SUCCEEDED", job
    for trial in job["trials"]:
        texts = [row["text"] for row in shell.server.lines(trial["customJob"])]
        clusters = [json.loads(text)["cluster"] for text in texts if text.startswith("{")]
        count = int(float(trial["parameters"][0]["value"]))
        assert [len(cluster["worker"]) for cluster in clusters] == [count] * count
    best = shell("trainshed study best katib-2")
    assert "trainshed retry" in best.stdout, best.stderr
    again = shell(re.search(r"trainshed retry \d+", best.stdout)[0])  # type: ignore[index]
    assert again.returncode == 0, again.stderr


def test_a_running_experiment_is_not_changed_and_deleted_by_its_file(shell: Shell) -> None:
    file = shell.folder / "katib.yaml"
    file.write_text(an_experiment("katib-2", "import time; time.sleep(600)"))
    assert shell("trainshed apply -f katib.yaml").returncode == 0
    file.write_text(file.read_text().replace("maxTrialCount: 2", "maxTrialCount: 3"))
    changed = shell("trainshed apply -f katib.yaml")
    assert changed.returncode == 1
    assert "asks for something else now" in changed.stderr
    deleted = shell("trainshed delete -f katib.yaml")
    assert deleted.returncode == 0, deleted.stderr
    assert "deleted experiment/katib-2" in deleted.stderr


def test_a_wrong_experiment_is_refused_with_its_lines(shell: Shell) -> None:
    text = an_experiment("katib-3", PROGRAM).replace("algorithmName: random", "algorithmName: darts")
    (shell.folder / "katib.yaml").write_text(text.replace("reference: lr", "reference: rate"))
    refused = shell("trainshed apply -f katib.yaml")
    assert refused.returncode == 1
    assert re.search(r"katib\.yaml:\d+: spec\.algorithm\.algorithmName", refused.stderr), refused.stderr
    assert "spec.trialTemplate.trialParameters" in refused.stderr

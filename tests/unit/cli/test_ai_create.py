"""`trainshed ai custom-jobs create`: flags and file, as the job that is sent."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.terminal import Terminal
from tests.unit.client.scripted import failure
from trainshed.cli.ai.custom_job_words import CustomJobWords
from trainshed.cli.ai.given import Key
from trainshed.cli.ai.grammar import Misspelt
from trainshed.cli.ai.listing import pairs, words
from trainshed.cli.ai.pools import PoolProgram, pools
from trainshed.cli.job_file import read

POOL = "machine-type=n1-standard-4,container-image-uri=trainshed/python:3"
NOW = datetime(2026, 1, 31, 12, 0, 5, tzinfo=UTC)
CREATE = ("ai", "custom-jobs", "create")
FILE = """
displayName: from-the-file
labels: {a: b, c: d}
jobSpec:
  network: slow
  scheduling: {timeout: 60s}
  worker_pool_specs:
  - machineSpec: {machineType: n1-standard-8}
"""


def body(wish: CustomJobWords, file: str = "") -> Any:
    return wish.body(read("job.yaml", file) if file else None, ("p", "r"), NOW)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a,b", ["a", "b"]),
        ("", []),
        ("^@@^-c@@echo a,b", ["-c", "echo a,b"]),
        ("^:^a:b=1,2", ["a", "b=1,2"]),
        ("^", ["^"]),
        ("--x=1,,z", ["--x=1", "", "z"]),
    ],
)
def test_a_list_is_cut_at_commas_or_at_the_delimiter_it_names(text: str, expected: list[str]) -> None:
    assert words(text, "--args") == expected


def test_a_dictionary_keeps_what_is_behind_the_first_equals_sign() -> None:
    assert pairs("a=b=c,d=,", "--labels") == {"a": "b=c", "d": ""}
    assert pairs("^;^a=1,2;b=3", "--labels") == {"a": "1,2", "b": "3"}


@pytest.mark.parametrize("text", ["a", "a=b,c", "=b", "^^a"])
def test_what_is_no_dictionary_is_refused_with_the_flag(text: str) -> None:
    with pytest.raises(Misspelt, match="argument --labels: "):
        pairs(text, "--labels")


def test_a_pool_is_what_its_keys_say_and_one_replica_where_they_do_not() -> None:
    gpus = "accelerator-type=nvidia-tesla-t4,accelerator-count=2"
    text = f"machine-type=m,replica-count=3,{gpus},container-image-uri=i:1"
    program = PoolProgram(command=["python"], args=["-c", "x"])
    assert pools([text, "", POOL], program) == [
        {
            "machineSpec": {"machineType": "m", "acceleratorType": "NVIDIA_TESLA_T4", "acceleratorCount": 2},
            "replicaCount": 3,
            "containerSpec": {"imageUri": "i:1", "command": ["python"], "args": ["-c", "x"]},
        },
        {},
        {
            "machineSpec": {"machineType": "n1-standard-4"},
            "replicaCount": 1,
            "containerSpec": {"imageUri": "trainshed/python:3", "command": ["python"], "args": ["-c", "x"]},
        },
    ]


def test_an_accelerator_without_a_count_is_one() -> None:
    [pool] = pools([f"{POOL},accelerator-type=TPU_V4"], PoolProgram())
    assert pool["machineSpec"]["acceleratorCount"] == 1
    assert pool["machineSpec"]["acceleratorType"] == "TPU_V4"


def test_a_pool_with_an_executor_runs_a_module_of_the_packages() -> None:
    text = "machine-type=m,executor-image-uri=i,python-module=trainer.task"
    [pool] = pools([text], PoolProgram(command=["ignored"], args=["a"], packages=["gs://b/p.tar.gz"]))
    assert pool["pythonPackageSpec"] == {
        "executorImageUri": "i",
        "pythonModule": "trainer.task",
        "packageUris": ["gs://b/p.tar.gz"],
        "args": ["a"],
    }
    assert "containerSpec" not in pool


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "the first one must not be empty"),
        ("machine-type=m", "exactly one of the keys"),
        ("machine-type=m,container-image-uri=i,executor-image-uri=j", "exactly one of the keys"),
        ("container-image-uri=i", r"\[machine-type\] required"),
        ("machine-type=m,executor-image-uri=i", r"\[python-module\] is required"),
        ("machine-type=m,container-image-uri=i,python-module=x", r"\[python-module\] goes with"),
        (
            "machine-type=m,container-image-uri=i,replica-count=two",
            "invalid int value for replica-count: 'two'",
        ),
        ("machine-type=m,container-image-uri=i,colour=red", "valid keys are .*; received: colour"),
    ],
)
def test_a_pool_that_cannot_be_is_refused_with_its_reason(text: str, why: str) -> None:
    with pytest.raises(Misspelt, match=f"argument --worker-pool-spec: .*{why}"):
        pools([text], PoolProgram())


def test_flags_win_over_the_file_and_their_pools_take_the_place_of_its_pools() -> None:
    made = body(
        CustomJobWords(
            display_name="mine",
            pool_specs=[POOL],
            labels=["c=x", "e=f"],
            network="fast",
            enable_web_access=True,
            args=["a,b", "c"],
        ),
        FILE,
    )
    assert made == {
        "displayName": "mine",
        "labels": {"a": "b", "c": "x", "e": "f"},
        "jobSpec": {
            "scheduling": {"timeout": "60s"},
            "network": "fast",
            "enableWebAccess": True,
            "workerPoolSpecs": [
                {
                    "machineSpec": {"machineType": "n1-standard-4"},
                    "replicaCount": 1,
                    "containerSpec": {"imageUri": "trainshed/python:3", "args": ["a", "b", "c"]},
                }
            ],
        },
    }


def test_a_job_is_named_by_the_flag_then_by_the_file_then_by_the_time() -> None:
    assert body(CustomJobWords(display_name="mine"), FILE)["displayName"] == "mine"
    assert body(CustomJobWords(), FILE)["displayName"] == "from-the-file"
    assert body(CustomJobWords(pool_specs=[POOL]))["displayName"] == "custom-job-20260131-120005"


def test_the_files_spec_stays_as_it_is_where_no_flag_says_otherwise() -> None:
    spec = body(CustomJobWords(), FILE)["jobSpec"]
    assert spec["worker_pool_specs"] == [{"machineSpec": {"machineType": "n1-standard-8"}}]
    assert (spec["network"], "enableWebAccess" in spec) == ("slow", False)


def test_a_key_is_named_whole_or_in_parts() -> None:
    whole = "projects/k/locations/l/keyRings/r/cryptoKeys/key"
    assert body(CustomJobWords(kms=Key(key=whole)), FILE)["encryptionSpec"] == {"kmsKeyName": whole}
    parts = Key(key="key", keyring="r", project="k")
    assert parts.name("p", "r1") == "projects/k/locations/r1/keyRings/r/cryptoKeys/key"
    with pytest.raises(Misspelt, match="--kms-keyring"):
        Key(key="key").name("p", "r")
    assert "encryptionSpec" not in body(CustomJobWords(), FILE)


def test_create_takes_all_of_gclouds_flags_and_prints_how_to_go_on(terminal: Terminal) -> None:
    flags = (
        *("--region=europe-west4", "--project", "p2", "--display-name=x", "--quiet", "--verbosity=error"),
        *("--network=n", "--service-account=s@x", "--persistent-resource-id=r", "--enable-dashboard-access"),
        *("--no-enable-web-access", "--labels=a=b,c=d", "--kms-key=projects/k/x", "--billing-project=z"),
        *(
            f"--worker-pool-spec={POOL}",
            "--worker-pool-spec=",
            "--command=python,-c",
            "--args=^@@^print(1,2)",
        ),
    )
    result = terminal(*CREATE, *flags)
    assert (result.code, result.out) == (0, "")
    name = "projects/p2/locations/europe-west4/customJobs/999"
    assert f"CustomJob [{name}] is submitted successfully." in result.err
    assert f"  $ trainshed ai custom-jobs stream-logs {name}" in result.err.splitlines()
    assert terminal.sent == {
        "displayName": "x",
        "labels": {"a": "b", "c": "d"},
        "encryptionSpec": {"kmsKeyName": "projects/k/x"},
        "jobSpec": {
            "network": "n",
            "serviceAccount": "s@x",
            "persistentResourceId": "r",
            "enableWebAccess": False,
            "enableDashboardAccess": True,
            "workerPoolSpecs": [
                {
                    "machineSpec": {"machineType": "n1-standard-4"},
                    "replicaCount": 1,
                    "containerSpec": {
                        "imageUri": "trainshed/python:3",
                        "command": ["python", "-c"],
                        "args": ["print(1,2)"],
                    },
                },
                {},
            ],
        },
    }


def test_create_prints_the_job_where_a_format_is_asked_for(terminal: Terminal) -> None:
    result = terminal(*CREATE, f"--worker-pool-spec={POOL}", "--format=value(name.basename())")
    assert result.out == "999\n"


def test_a_file_without_pools_is_enough_beside_pools_given_as_flags(
    terminal: Terminal, tmp_path: Path
) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text("scheduling: {timeout: 60s}\n")
    assert terminal(*CREATE, f"--config={file}", f"--worker-pool-spec={POOL}").code == 0
    assert terminal.sent["jobSpec"]["scheduling"] == {"timeout": "60s"}
    alone = terminal(*CREATE, f"--config={file}")
    assert alone.code == 1
    assert "has neither jobSpec nor workerPoolSpecs" in alone.err


def test_flags_about_pools_of_a_file_are_not_ignored_in_silence(terminal: Terminal, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(FILE)
    result = terminal(*CREATE, "--config", str(file), "--args=a")
    assert result.code == 0
    assert "note: --args is for pools of --worker-pool-spec" in result.err


def test_a_flag_may_stand_before_the_verb_as_with_gcloud(terminal: Terminal) -> None:
    result = terminal(
        "ai", "-q", "--project=p9", "custom-jobs", "--region", "r9", "create", f"--worker-pool-spec={POOL}"
    )
    assert result.code == 0
    assert "projects/p9/locations/r9/customJobs/999" in result.err
    assert "No such option" in terminal("ai", "custom-jobs", "--colour", "list").err


@pytest.mark.parametrize("track", ["beta", "alpha"])
def test_every_track_speaks_under_its_own_name(terminal: Terminal, track: str) -> None:
    made = terminal(track, *CREATE, f"--worker-pool-spec={POOL}")
    assert f"  $ trainshed {track} ai custom-jobs describe " in made.err
    wrong = terminal(track, *CREATE)
    assert wrong.err.startswith(f"ERROR: (trainshed.{track}.ai.custom-jobs.create) at least one of")


def test_placeholders_for_project_and_region_mean_the_usual_ones_and_that_is_said(terminal: Terminal) -> None:
    result = terminal(*CREATE, "--project=PROJECT_ID", "--region=REGION", f"--worker-pool-spec={POOL}")
    assert result.code == 0
    assert "note: --project=PROJECT_ID is a placeholder; the project is local." in result.err
    assert "note: --region=REGION is a placeholder; the region is us-central1." in result.err
    assert "projects/local/locations/us-central1/customJobs/999" in result.err


def test_what_the_server_refuses_reads_as_with_gcloud_with_the_line_of_the_file(
    terminal: Terminal, tmp_path: Path
) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(FILE)
    wrong = {"job_spec.worker_pool_specs[0].machine_spec.machine_type": "is unknown."}
    terminal.script.answer = lambda asked, handler: failure(400, "INVALID_ARGUMENT", "No.", **wrong)
    result = terminal(*CREATE, f"--config={file}")
    assert result.code == 1
    assert result.err.splitlines() == [
        "ERROR: (trainshed.ai.custom-jobs.create) INVALID_ARGUMENT: No.",
        "- fieldViolations:",
        f"  - description: is unknown. ({file}:8)",
        "    field: job_spec.worker_pool_specs[0].machine_spec.machine_type",
    ]


@pytest.mark.parametrize(
    ("args", "code", "error"),
    [
        (
            ("create", "--config=/nowhere.yaml"),
            1,
            "(trainshed.ai.custom-jobs.create) Unable to read file [/now",
        ),
        (("create", "--colour=red"), 2, "(trainshed.ai.custom-jobs.create) No such option"),
        (
            ("create", "--worker-pool-spec=x"),
            2,
            "(trainshed.ai.custom-jobs.create) argument --worker-pool-spec: ",
        ),
        (("describe",), 2, "(trainshed.ai.custom-jobs.describe) Missing argument"),
        (("describe", "12"), 1, "(trainshed.ai.custom-jobs.describe) NOT_FOUND: There is no job 12."),
        (("describe", "12", "--format=xml"), 2, "(trainshed.ai.custom-jobs.describe) argument --format: "),
        (("list", "--filter=a="), 2, "(trainshed.ai.custom-jobs.list) --filter: "),
        (("list", "--url=http://127.0.0.1:1"), 1, "(trainshed.ai.custom-jobs.list) no server answers at"),
        (("eat",), 2, "(trainshed.ai.custom-jobs) No such command 'eat'"),
    ],
)
def test_an_error_names_its_command_and_exits_as_gcloud_does(
    terminal: Terminal, args: tuple[str, ...], code: int, error: str
) -> None:
    result = terminal("ai", "custom-jobs", *args)
    assert (result.code, result.out) == (code, "")
    assert result.err.startswith(f"ERROR: {error}")

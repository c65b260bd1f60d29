"""`trainshed ai-platform jobs …`: flags as the job that is sent, answers as gcloud prints them."""

import hashlib
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from tests.unit.cli.terminal import Result, Terminal
from tests.unit.client.scripted import Asked, Handler, entry, failure
from trainshed.dialects.ai_platform.cli.complete import training_jobs

SUBMIT = ("ai-platform", "jobs", "submit", "training")
JOBS = ("ai-platform", "jobs")
MADE = "2026-01-31T12:00:00.123456Z"
IMAGE = ("--master-image-uri", "trainshed/python:3")
BUCKET = ("--staging-bucket", "gs://staging")


@dataclass
class Older:
    """A server with the older API, one bucket, and the customJobs its jobs are."""

    terminal: Terminal
    jobs: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    objects: dict[str, bytes] = field(default_factory=dict[str, bytes])
    ends: str = "SUCCEEDED"

    def __call__(self, *words: str) -> Result:
        return self.terminal(*words)

    def submit(self, *words: str) -> Result:
        return self.terminal(*SUBMIT, *words)

    @property
    def sent(self) -> Any:
        """The body of the last create."""
        asked = reversed(self.terminal.script.asked)
        return next(one.body for one in asked if one.method == "POST" and one.path.endswith("/jobs"))

    def add(self, name: str, **fields: Any) -> None:
        self.jobs[name] = {"jobId": name, "state": "RUNNING", "createTime": MADE, **fields}
        self.terminal.add(f"9{len(self.jobs)}", displayName=name, createTime=MADE, state="JOB_STATE_RUNNING")

    def answer(self, asked: Asked, handler: Handler) -> tuple[int, Any] | None:
        parts = urlsplit(asked.path)
        if parts.path.startswith("/upload/"):
            return self._stored(asked, parse_qs(parts.query)["name"][0])
        found = re.fullmatch(r"/v1/projects/local/jobs(?:/([^:]+))?(:cancel)?", parts.path)
        if found is None:
            return self.terminal.answer(asked, handler)
        name = unquote(found[1] or "")
        if not name and asked.method == "GET":
            return 200, {"jobs": list(self.jobs.values())} if self.jobs else {}
        if not name:
            return self._created(asked)
        if name not in self.jobs:
            return failure(404, "NOT_FOUND", f"There is no job {name}.")
        if found[2]:
            self.jobs[name]["state"] = "CANCELLING"
            return 200, {}
        if asked.method == "PATCH":
            assert parts.query == "updateMask=labels"
            self.jobs[name].update(asked.body)
        return 200, self.jobs[name]

    def _created(self, asked: Asked) -> tuple[int, Any]:
        name = asked.body["jobId"]
        if name in self.jobs:
            return failure(409, "ALREADY_EXISTS", f"A job {name} exists already.")
        if asked.body["trainingInput"]["region"] == "mars":
            wrong = {"training_input.region": "is too far away.", "training_input.scale_tier": "is odd."}
            return failure(400, "INVALID_ARGUMENT", "The job is not valid.", **wrong)
        self.add(name, **asked.body)
        answered = {**self.jobs[name], "state": "QUEUED"}
        self.jobs[name]["state"] = self.ends
        self.jobs[name]["startTime"] = MADE
        return 200, answered

    def _stored(self, asked: Asked, name: str) -> tuple[int, Any]:
        bucket = asked.path.split("/")[5]
        if bucket != "staging":
            return failure(404, "NOT_FOUND", f"There is no bucket {bucket}.")
        self.objects[name] = asked.body
        return 200, {"name": name}


@pytest.fixture
def older(terminal: Terminal) -> Older:
    found = Older(terminal)
    terminal.script.answer = found.answer
    return found


@pytest.fixture
def trainer(tmp_path: Path) -> Path:
    package = tmp_path / "src" / "trainer"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "task.py").write_text("print('trained')\n")
    return package


def test_every_flag_is_sent_under_the_apis_name(older: Older) -> None:
    roles = [
        flag
        for role in ("worker", "parameter-server")
        for flag in (
            f"--{role}-machine-type=m-{role}",
            f"--{role}-count=3",
            f"--{role}-image-uri=i-{role}",
            f"--{role}-accelerator=type=nvidia-tesla-t4,count=2",
        )
    ]
    done = older.submit(
        "my_job",
        "--region=asia-southeast1",
        "--scale-tier=custom",
        "--python-version=3.7",
        "--master-machine-type=complex_model_m",
        "--master-image-uri=i",
        "--master-accelerator=type=NVIDIA_TESLA_V100",
        *roles,
        "--use-chief-in-tf-config=True",
        "--job-dir=gs://models/here",
        "--packages=gs://b/one.whl,gs://b/two.whl",
        "--module-name=trainer.task",
        "--service-account=a@b",
        "--network=n",
        "--kms-key=k",
        "--kms-keyring=r",
        "--enable-web-access",
        "--labels=a=b,c=d",
        "--async",
        "--",
        "--epochs",
        "10",
        "--",
        "-x",
    )
    assert done.code == 0, done.err
    gpus = {"count": "2", "type": "NVIDIA_TESLA_T4"}
    assert older.sent == {
        "jobId": "my_job",
        "labels": {"a": "b", "c": "d"},
        "trainingInput": {
            "region": "asia-southeast1",
            "args": ["--epochs", "10", "--", "-x"],
            "jobDir": "gs://models/here",
            "pythonModule": "trainer.task",
            "packageUris": ["gs://b/one.whl", "gs://b/two.whl"],
            "scaleTier": "CUSTOM",
            "pythonVersion": "3.7",
            "serviceAccount": "a@b",
            "network": "n",
            "enableWebAccess": True,
            "useChiefInTfConfig": True,
            "encryptionConfig": {
                "kmsKeyName": "projects/local/locations/asia-southeast1/keyRings/r/cryptoKeys/k"
            },
            "masterType": "complex_model_m",
            "masterConfig": {
                "imageUri": "i",
                "acceleratorConfig": {"count": "1", "type": "NVIDIA_TESLA_V100"},
            },
            "workerType": "m-worker",
            "workerCount": "3",
            "workerConfig": {"imageUri": "i-worker", "acceleratorConfig": gpus},
            "parameterServerType": "m-parameter-server",
            "parameterServerCount": "3",
            "parameterServerConfig": {"imageUri": "i-parameter-server", "acceleratorConfig": gpus},
        },
    }


def test_little_is_sent_where_little_is_said(older: Older) -> None:
    done = older.submit("j", *IMAGE)
    assert done.code == 0, done.err
    expected = {"region": "us-central1", "masterConfig": {"imageUri": "trainshed/python:3"}}
    assert older.sent == {"jobId": "j", "trainingInput": expected}
    assert done.out == "jobId: j\nstate: QUEUED\n"
    assert done.err.startswith("Job [j] submitted successfully.\nYour job is still active.")
    assert "  $ trainshed ai-platform jobs describe j\n" in done.err
    assert "  $ trainshed ai-platform jobs stream-logs j\n" in done.err


@pytest.mark.parametrize("text", ["PREMIUM_1", "premium-1", "Premium_1"])
def test_a_tier_is_known_in_either_spelling(older: Older, text: str) -> None:
    assert older.submit("j", "--scale-tier", text, *IMAGE).code == 0
    assert older.sent["trainingInput"]["scaleTier"] == "PREMIUM_1"


@pytest.mark.parametrize("track", ["beta", "alpha"])
def test_the_release_tracks_are_words_in_front(older: Older, track: str) -> None:
    done = older(track, *SUBMIT, "j", *IMAGE)
    assert done.code == 0
    assert f"$ trainshed {track} ai-platform jobs describe j" in done.err


def test_flags_may_stand_before_the_verb_and_arguments_stay_behind_theirs(older: Older) -> None:
    done = older(
        "ai-platform",
        "--region",
        "r1",
        "jobs",
        "--project=local",
        "submit",
        "training",
        "j",
        *IMAGE,
        "--",
        "a",
    )
    assert done.code == 0, done.err
    assert older.sent["trainingInput"]["args"] == ["a"]
    assert older.sent["trainingInput"]["region"] == "r1"


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ((), 2, "Missing argument 'JOB'"),
        (("j", "extra", *IMAGE), 2, "unexpected extra argument"),
        (("j", "--scale-tier=huge", *IMAGE), 2, "argument --scale-tier: Invalid choice: 'huge'."),
        (("j", "--scale-tier=CUSTOM", *IMAGE), 2, "--master-machine-type is required if scale-tier"),
        (("j", "--runtime-version=2.1", *IMAGE), 2, "Only one of --master-image-uri, --runtime-version"),
        (("j", "--worker-count=3", *IMAGE), 2, "argument --worker-machine-type: Must be specified"),
        (("j", "--parameter-server-machine-type=m", *IMAGE), 2, "argument --parameter-server-count: Must be"),
        (("j", "--worker-accelerator=count=2", *IMAGE), 2, "Key [type] required in dict arg"),
        (("j", "--worker-accelerator=type=t,count=0", *IMAGE), 2, "must be a number from 1 on: '0'"),
        (("j", "--worker-accelerator=kind=t", *IMAGE), 2, "valid keys are [count, type]; received: kind"),
        (("j", "--labels=x", *IMAGE), 2, "argument --labels: Bad syntax for dict arg: [x]"),
        (("j", "--async", "--stream-logs", *IMAGE), 2, "At most one of --async | --stream-logs"),
        (("j", "--staging-bucket=staging", *IMAGE), 2, "argument --staging-bucket: Must be a valid bucket"),
        (("j", "--job-dir=models", *IMAGE), 2, "argument --job-dir: Must begin with 'gs://'"),
        (("j", "--kms-key=k", *IMAGE), 2, "argument --kms-key: needs --kms-keyring"),
        (("j", "--config=none.yaml"), 1, "Unable to read file [none.yaml]"),
        (("j",), 1, "Non-custom jobs must have packages."),
        (("j", "--packages=none.whl", *BUCKET), 1, "[none.whl] is not a file"),
        (("j", "--package-path=none", *BUCKET), 1, "Source directory [none] is not a directory."),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_is_sent(
    older: Older, words: tuple[str, ...], code: int, told: str
) -> None:
    done = older.submit(*words)
    assert done.code == code, done.err
    assert done.err.startswith("ERROR: (trainshed.ai-platform.jobs.submit.training) ")
    assert told in done.err
    assert not [one for one in older.terminal.script.asked if one.method == "POST"]


def test_a_packages_folder_is_built_and_uploaded_under_its_hash(older: Older, trainer: Path) -> None:
    done = older.submit("my_job", "--package-path", str(trainer), "--module-name=trainer.task", *BUCKET)
    assert done.code == 0, done.err
    [(name, content)] = older.objects.items()
    assert name == f"my_job/{hashlib.sha256(content).hexdigest()}/trainer-0.0.0.tar.gz"
    assert older.sent["trainingInput"]["packageUris"] == [f"gs://staging/{name}"]
    assert sorted(path.name for path in trainer.parent.rglob("*")) == ["__init__.py", "task.py", "trainer"]


def test_without_a_staging_bucket_packages_go_below_the_job_dir(older: Older, trainer: Path) -> None:
    assert older.submit("j", f"--package-path={trainer}", "--job-dir=gs://staging/out/").code == 0
    assert older.submit("k", f"--package-path={trainer}", "--job-dir=gs://staging").code == 0
    digests = {name.split("/")[-2] for name in older.objects}
    assert len(digests) == 1, "the same folder has the same hash"
    assert [name.partition(digests.copy().pop())[0] for name in older.objects] == [
        "out/packages/",
        "packages/",
    ]


def test_local_packages_need_a_place_in_a_bucket(older: Older, trainer: Path) -> None:
    for more in ((), ("--job-dir=s3://models/x",)):
        done = older.submit("j", f"--package-path={trainer}", *more)
        assert done.code == 1
        assert "the `--staging-bucket` or `--job-dir` flag must be given" in done.err


def test_a_bucket_that_is_not_there_is_told_with_the_command_that_makes_it(
    older: Older, trainer: Path
) -> None:
    done = older.submit("j", f"--package-path={trainer}", "--staging-bucket=gs://none")
    assert done.code == 1
    assert "[none] bucket does not exist." in done.err
    assert "trainshed storage buckets create gs://none" in done.err
    assert not older.jobs


def test_packages_in_buckets_come_first_and_local_ones_are_uploaded(
    older: Older, trainer: Path, tmp_path: Path
) -> None:
    (tmp_path / "dep.whl").write_bytes(b"wheel")
    given = f"{tmp_path / 'dep.whl'},gs://other/x.tar.gz"
    assert older.submit("j", "--packages", given, f"--package-path={trainer}", *BUCKET).code == 0
    uris = older.sent["trainingInput"]["packageUris"]
    assert [uri.rsplit("/", 1)[-1] for uri in uris] == ["x.tar.gz", "dep.whl", "trainer-0.0.0.tar.gz"]
    twice = older.submit("k", f"--packages={tmp_path / 'dep.whl'},{tmp_path / 'dep.whl'}", *BUCKET)
    assert twice.code == 1
    assert "Cannot upload multiple packages with the same filename: [dep.whl]" in twice.err


def test_what_a_flag_says_wins_over_the_file_and_the_rest_of_it_stays(older: Older, tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(
        "labels: {from: file}\n"
        "trainingInput:\n"
        "  scaleTier: CUSTOM\n"
        "  region: europe-west4\n"
        "  args: [--from-file]\n"
        "  master_type: n1-standard-4\n"
        "  masterConfig: {imageUri: from-file, containerArgs: [x]}\n"
        "  hyperparameters: {goal: MAXIMIZE}\n"
    )
    assert older.submit("j", "--config", str(file)).code == 0
    kept = older.sent
    assert kept["labels"] == {"from": "file"}
    assert kept["trainingInput"]["region"] == "europe-west4"
    assert kept["trainingInput"]["args"] == ["--from-file"]
    done = older.submit(
        "k", f"--config={file}", "--master-machine-type=m", *IMAGE, "--region=r", "--labels=a=b", "--", "x"
    )
    assert done.code == 0, done.err
    assert older.sent == {
        "jobId": "k",
        "labels": {"a": "b"},
        "trainingInput": {
            "scaleTier": "CUSTOM",
            "region": "r",
            "args": ["x"],
            "masterType": "m",
            "masterConfig": {"imageUri": "trainshed/python:3", "containerArgs": ["x"]},
            "hyperparameters": {"goal": "MAXIMIZE"},
        },
    }


def test_what_the_server_refuses_is_told_with_the_line_of_the_file(older: Older, tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("trainingInput:\n  scaleTier: BASIC\n  region: mars\n")
    done = older.submit("j", f"--config={file}", *IMAGE)
    assert done.code == 1
    assert "INVALID_ARGUMENT: The job is not valid." in done.err
    assert f"is too far away. ({file}:3)" in done.err
    assert f"is odd. ({file}:2)" in done.err
    for text in ("", "- a\n", "trainingInput: 3\n"):
        file.write_text(text)
        assert older.submit("j", f"--config={file}", *IMAGE).code == 1


def test_a_name_that_is_taken_is_a_conflict_in_gclouds_words(older: Older) -> None:
    older.add("j")
    done = older.submit("j", *IMAGE)
    assert done.code == 1
    assert "Resource in projects [local] is the subject of a conflict: A job j exists already." in done.err


@pytest.mark.parametrize(("ends", "code"), [("SUCCEEDED", 0), ("FAILED", 1), ("CANCELLED", 1)])
def test_streaming_prints_the_lines_beside_the_output_and_exits_as_the_job_did(
    older: Older, ends: str, code: int
) -> None:
    older.ends = ends
    answer = older.terminal.answer

    def ended(asked: Asked, handler: Handler) -> tuple[int, Any] | None:
        if asked.path.partition("?")[0].endswith(":wait"):
            return 200, {"state": f"JOB_STATE_{ends}"}
        return answer(asked, handler)

    older.terminal.answer = ended
    done = older.submit("j", "--stream-logs", *IMAGE)
    assert done.code == code, done.err
    assert done.out == f"jobId: j\nstartTime: '{MADE}'\nstate: {ends}\n"
    rows = [line.split("\t") for line in done.err.splitlines() if "\t" in line]
    assert [(row[0], row[2], row[3], row[4]) for row in rows] == [
        ("INFO", "service", "", "Submitted."),
        ("INFO", "master-replica-0", "", "loss 0.5"),
        ("INFO", "master-replica-0", "", "saved"),
        ("INFO", "master-replica-0", "", "loss 0.25"),
    ]
    assert "Your job is still active" not in done.err


def test_a_stream_that_is_interrupted_leaves_the_job_and_says_how_to_come_back(
    older: Older, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("trainshed.dialects.ai_platform.cli.stream_logs.rows", interrupt)
    done = older.submit("j", "--stream-logs", *IMAGE)
    assert done.code == 130
    assert "Received keyboard interrupt." in done.err
    assert "stream-logs j" in done.err
    assert older.jobs["j"]["state"] == "SUCCEEDED"


def test_a_list_is_a_table_of_ids_and_can_be_filtered_sorted_and_cut(older: Older) -> None:
    assert older(*JOBS, "list").err == "Listed 0 items.\n"
    older.add("first", state="FAILED")
    older.add("second", state="SUCCEEDED", labels={"team": "a"})
    lines = older(*JOBS, "list").out.splitlines()
    assert lines[0].split() == ["JOB_ID", "STATUS", "CREATED"]
    assert [line.split()[:2] for line in lines[1:]] == [["first", "FAILED"], ["second", "SUCCEEDED"]]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", lines[1].split()[2])
    keys = "--format=value(jobId)"
    assert older(*JOBS, "list", keys, "--filter=state=FAILED").out == "first\n"
    assert older(*JOBS, "list", keys, "--filter=labels.team=a", "--page-size=1").out == "second\n"
    assert older(*JOBS, "list", keys, "--sort-by=~jobId", "--limit=1").out == "second\n"
    assert older(*JOBS, "list", "--uri", "--limit=1").out.endswith("/v1/projects/local/jobs/first\n")


def test_a_job_is_described_whole_or_in_short(older: Older) -> None:
    older.add("j", trainingInput={"region": "r"})
    done = older(*JOBS, "describe", "j")
    assert "trainingInput:\n  region: r" in done.out
    assert "stream-logs j" in done.err
    assert older(*JOBS, "describe", "projects/local/jobs/j").out == done.out
    assert older(*JOBS, "describe", "j", "--summarize").out.split()[:2] == ["JOB_ID", "STATE"]
    missing = older(*JOBS, "describe", "none")
    assert missing.code == 1
    assert missing.err.startswith("ERROR: (trainshed.ai-platform.jobs.describe) NOT_FOUND: ")


def test_a_cancel_is_silent(older: Older) -> None:
    older.add("j")
    assert older(*JOBS, "cancel", "j") == Result(0, "", "")
    assert older.jobs["j"]["state"] == "CANCELLING"
    assert older(*JOBS, "cancel", "none").code == 1


@pytest.mark.parametrize(
    ("words", "after"),
    [
        (("--update-labels=c=d,a=x",), {"a": "x", "b": "2", "c": "d"}),
        (("--remove-labels=a,none",), {"b": "2"}),
        (("--clear-labels",), {}),
        (("--clear-labels", "--update-labels=n=1"), {"n": "1"}),
        (("--remove-labels=a", "--update-labels=a=9"), {"a": "9", "b": "2"}),
    ],
)
def test_labels_are_set_taken_away_and_cleared(
    older: Older, words: tuple[str, ...], after: dict[str, str]
) -> None:
    older.add("j", labels={"a": "1", "b": "2"})
    assert older(*JOBS, "update", "j", *words).code == 0
    assert older.jobs["j"]["labels"] == after


def test_an_update_that_changes_nothing_sends_nothing(older: Older) -> None:
    older.add("j", labels={"a": "1"})
    done = older(*JOBS, "update", "j", "--update-labels=a=1")
    assert (done.code, done.err) == (0, "No update to perform.\n")
    assert "PATCH" not in {one.method for one in older.terminal.script.asked}
    assert older(*JOBS, "update", "j").code == 2
    assert older(*JOBS, "update", "j", "--clear-labels", "--remove-labels=a").code == 2


def test_a_jobs_lines_have_a_column_for_the_trial_and_tasks_their_older_names(older: Older) -> None:
    answer = older.terminal.answer

    def two(asked: Asked, handler: Handler) -> tuple[int, Any] | None:
        path = asked.path.partition("?")[0]
        if path.endswith(":tail"):
            handler.begin_stream()
            handler.piece(entry(1, "a", "workerpool1-12") + entry(2, "b", "workerpool2-0"))
            return handler.end_stream()
        if path.endswith(":wait"):
            return 200, {"state": "JOB_STATE_SUCCEEDED"}
        return answer(asked, handler)

    older.terminal.answer = two
    older.add("j")
    rows = [line.split("\t") for line in older(*JOBS, "stream-logs", "j").out.splitlines()]
    assert [row[2:] for row in rows[1:]] == [["worker-replica-12", "", "a"], ["ps-replica-0", "", "b"]]
    older(*JOBS, "stream-logs", "j", "--task-name=ps-replica-0", "--polling-interval=1")
    asked = [one.path for one in older.terminal.script.asked if ":tail" in one.path]
    assert "task=workerpool2-0" in asked[-1]


def test_ids_are_completed(older: Older, monkeypatch: pytest.MonkeyPatch) -> None:
    import click

    older.add("digits_1")
    older.add("words_1")
    context = click.Context(click.Command("describe"))
    context.params = {}
    found = training_jobs(context, click.Argument(["job"]), "dig")
    assert [item.value for item in found] == ["digits_1"]
    monkeypatch.setenv("TRAINSHED_URL", "http://127.0.0.1:9")
    assert training_jobs(context, click.Argument(["job"]), "") == []


def test_help_is_there_for_every_command(older: Older) -> None:
    for words in ((), ("jobs",), ("jobs", "submit"), ("jobs", "submit", "training"), ("jobs", "update")):
        done = older("ai-platform", *words, "--help")
        assert done.code == 0
        assert "Usage: trainshed ai-platform" in done.out
    assert "[-- ARGS...]" in older(*SUBMIT, "--help").out


def test_a_full_disk_is_told_in_a_sentence_and_nothing_is_sent(
    older: Older, trainer: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("trainshed.cli.archive.write", full)
    done = older.submit("j", f"--package-path={trainer}", *BUCKET)
    assert done.code == 1
    assert "the package cannot be made: No space left on device" in done.err
    assert not older.objects
    assert not older.jobs


def test_words_that_are_not_utf_8_reach_the_server_as_they_can(older: Older) -> None:
    assert older.submit("j", *IMAGE, "--", "caf\udce9", "日本").code == 0
    assert older.sent["trainingInput"]["args"][1] == "日本"


def test_an_upload_that_breaks_off_is_sent_again_whole(older: Older, trainer: Path) -> None:
    answer, lost = older.answer, list[str]()

    def once(asked: Asked, handler: Handler) -> tuple[int, Any] | None:
        if asked.path.startswith("/upload/") and not lost:
            lost.append(asked.path)
            return handler.hang_up()
        return answer(asked, handler)

    older.terminal.script.answer = once
    assert older.submit("j", f"--package-path={trainer}", *BUCKET).code == 0
    [(name, content)] = older.objects.items()
    assert hashlib.sha256(content).hexdigest() in name
    assert lost


def test_a_server_that_went_away_before_the_answer_is_asked_again_with_the_same_key(older: Older) -> None:
    answer, lost = older.answer, list[str]()

    def once(asked: Asked, handler: Handler) -> tuple[int, Any] | None:
        if asked.method == "POST" and not lost:
            lost.append(asked.headers["idempotency-key"])
            return handler.hang_up()
        return answer(asked, handler)

    older.terminal.script.answer = once
    assert older.submit("j", *IMAGE).code == 0
    creates = [one for one in older.terminal.script.asked if one.method == "POST"]
    assert [one.headers["idempotency-key"] for one in creates] == lost * 2

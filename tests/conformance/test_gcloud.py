"""The real gcloud, unmodified, pointed at a live server by nothing but `trainshed env`."""

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.gcloud_model import printed_environment
from tests.live import IMAGE, JOBS, LOCATION, LiveServer, python, until

Unique = Callable[[str], str]

pytestmark = [
    pytest.mark.needs_gcloud,
    pytest.mark.slow,
    pytest.mark.skipif(
        shutil.which("gcloud") is None,
        reason="the Google Cloud CLI is not on PATH; test_transcripts.py replays what it sends",
    ),
    pytest.mark.timeout(300),
]
POOL = f"machine-type=n1-standard-4,container-image-uri={IMAGE}"
REGION = f"--region={LOCATION}"
TRACKS = ["ga", "beta", "alpha"]


class Gcloud:
    """gcloud with the variables `trainshed env` prints: the person's own configuration is not touched."""

    def __init__(self, server: LiveServer, environ: Mapping[str, str]) -> None:
        self.server = server
        self.environ = environ

    def command(self, *words: str) -> list[str]:
        return [shutil.which("gcloud") or "gcloud", *words]

    def run(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            self.command(*words),
            env=dict(self.environ),
            cwd=self.server.base,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
        assert not check or done.returncode == 0, done.stderr
        assert "gcloud crashed" not in done.stderr, done.stderr
        return done

    def json(self, *words: str) -> Any:
        return json.loads(self.run(*words, "--format=json").stdout)

    def create(self, name: str, *flags: str, track: str = "ga") -> str:
        """Create a job; the full name of it."""
        self.run(*jobs(track), "create", REGION, f"--display-name={name}", *flags)
        [created] = self.server.get(JOBS, filter=f'displayName="{name}"')["customJobs"]
        return str(created["name"])


class Stream:
    """A stream-logs that goes on while the test does. The rows that tasks printed are in `rows`."""

    def __init__(self, gcloud: Gcloud, track: str, job: str, printed: Path) -> None:
        self._printed = printed
        with printed.open("wb") as out:
            self._process = subprocess.Popen(
                gcloud.command(*jobs(track), "stream-logs", job, "--polling-interval=1"),
                env={**gcloud.environ, "PYTHONUNBUFFERED": "1"},
                cwd=gcloud.server.base,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.PIPE,
                text=True,
            )

    @property
    def rows(self) -> list[tuple[str, str]]:
        """Severity and text of each."""
        rows = (row.split("\t") for row in self._printed.read_text().splitlines())
        return [(row[0], row[3]) for row in rows if len(row) > 3 and row[2] == "workerpool0-0"]

    @property
    def texts(self) -> list[str]:
        return [text for _, text in self.rows]

    def wait(self) -> None:
        said = self._process.communicate(timeout=200)[1]
        assert self._process.returncode == 0, said


def jobs(track: str) -> tuple[str, ...]:
    return ("ai", "custom-jobs") if track == "ga" else (track, "ai", "custom-jobs")


@pytest.fixture(scope="module")
def gcloud(server: LiveServer) -> Iterator[Gcloud]:
    yield Gcloud(server, printed_environment(server))


@pytest.fixture
def streams(gcloud: Gcloud, tmp_path: Path) -> Callable[[str], list[Stream]]:
    """Begins one in every track, side by side: each waits for seconds that gcloud itself sets."""
    return lambda job: [Stream(gcloud, track, job, tmp_path / track) for track in TRACKS]


@pytest.mark.parametrize("track", TRACKS)
def test_create_list_describe_and_cancel_in_every_track(gcloud: Gcloud, unique: Unique, track: str) -> None:
    display_name = unique(f"life-{track}")
    name = gcloud.create(
        display_name,
        f"--worker-pool-spec={POOL}",
        "--command=python",
        "--args=^@@^-c@@import time; time.sleep(600)",
        track=track,
    )
    [listed] = gcloud.json(*jobs(track), "list", REGION, f"--filter=displayName={display_name}")
    assert listed["name"] == name
    described = gcloud.json(*jobs(track), "describe", name.rsplit("/", 1)[1], REGION)
    assert described["name"] == name
    gcloud.server.wait_for(name, ("JOB_STATE_RUNNING",))
    done = gcloud.run(*jobs(track), "cancel", name)
    assert "has been sent" in done.stderr
    assert gcloud.server.wait(name)["state"] == "JOB_STATE_CANCELLED"

    again = gcloud.run(*jobs(track), "cancel", name, check=False)
    assert again.returncode == 1
    assert "FAILED_PRECONDITION" in again.stderr
    assert "CANCELLED" in again.stderr


def test_flags_reach_the_job(gcloud: Gcloud, unique: Unique) -> None:
    name = gcloud.create(
        unique("flags"),
        f"--worker-pool-spec={POOL}",
        "--command=sh",
        "--args=^@@^-c@@echo a,b",
        "--labels=team=vision,cost=42",
        "--enable-web-access",
        "--network=projects/12345/global/networks/default",
        "--service-account=trainer@p1.iam.gserviceaccount.com",
    )
    job = gcloud.server.wait(name)
    assert job["state"] == "JOB_STATE_SUCCEEDED"
    assert job["labels"] == {"team": "vision", "cost": "42"}
    assert job["jobSpec"]["enableWebAccess"] is True
    assert job["jobSpec"]["network"] == "projects/12345/global/networks/default"
    assert [line["text"] for line in gcloud.server.lines(name)] == ["a,b"]


def test_several_pools_one_of_them_empty(gcloud: Gcloud, unique: Unique) -> None:
    name = gcloud.create(
        unique("pools"),
        f"--worker-pool-spec={POOL}",
        f"--worker-pool-spec=replica-count=2,{POOL}",
        "--worker-pool-spec=",
        f"--worker-pool-spec={POOL}",
        "--command=python",
        "--args=-c,print(1)",
    )
    assert gcloud.server.wait(name)["state"] == "JOB_STATE_SUCCEEDED"
    tasks = sorted(line["task"] for line in gcloud.server.lines(name))
    assert tasks == ["workerpool0-0", "workerpool1-0", "workerpool1-1", "workerpool3-0"]


@pytest.fixture
def config(server: LiveServer, unique: Unique) -> Callable[[str], Path]:
    def written(text: str) -> Path:
        path = server.base / f"{unique('config')}.yaml"
        path.write_text(text)
        return path

    return written


PLAIN = f"""
workerPoolSpecs:
- machineSpec:
    machineType: n1-standard-4
  replicaCount: 1
  containerSpec:
    imageUri: {IMAGE}
    command: [python, -c, "print('from the file')"]
scheduling:
  timeout: 3600s
  disableRetries: true
"""


def test_a_config_file(gcloud: Gcloud, unique: Unique, config: Callable[[str], Path]) -> None:
    name = gcloud.create(unique("config"), f"--config={config(PLAIN)}")
    assert gcloud.server.wait(name)["state"] == "JOB_STATE_SUCCEEDED"
    assert [line["text"] for line in gcloud.server.lines(name)] == ["from the file"]


def test_a_config_file_and_flags_together(
    gcloud: Gcloud, unique: Unique, config: Callable[[str], Path]
) -> None:
    """The pools of the flags replace those of the file; the rest of the file stays."""
    name = gcloud.create(
        unique("both"),
        f"--config={config(PLAIN)}",
        f"--worker-pool-spec={POOL}",
        "--command=echo",
        "--args=from the flags",
    )
    job = gcloud.server.wait(name)
    assert [line["text"] for line in gcloud.server.lines(name)] == ["from the flags"]
    assert job["jobSpec"]["scheduling"]["timeout"] == "3600s"
    assert job["jobSpec"]["scheduling"]["disableRetries"] is True


def test_the_seed_s_wrapped_file(gcloud: Gcloud, unique: Unique, config: Callable[[str], Path]) -> None:
    indented = "".join(f"  {line}\n" for line in PLAIN.strip().splitlines())
    path = config(f"displayName: from-the-file\njobSpec:\n{indented}")
    name = gcloud.create(unique("wrapped"), f"--config={path}")
    assert gcloud.server.wait(name)["state"] == "JOB_STATE_SUCCEEDED"
    assert [line["text"] for line in gcloud.server.lines(name)] == ["from the file"]


def test_a_reduction_server_inside_a_pool(
    gcloud: Gcloud, unique: Unique, config: Callable[[str], Path]
) -> None:
    reducer = f"""  reductionServerSpec:
    replicaCount: 2
    machineSpec: {{machineType: n1-highcpu-16}}
    containerSpec: {{imageUri: {IMAGE}, command: ["true"]}}
scheduling:
"""
    path = config(PLAIN.replace("scheduling:\n", reducer))
    name = gcloud.create(unique("reduce"), f"--config={path}")
    pools = gcloud.server.wait(name)["jobSpec"]["workerPoolSpecs"]
    assert pools[1] == {}
    assert pools[2]["replicaCount"] == "2"


def test_an_error_is_rendered_with_every_violation(gcloud: Gcloud, config: Callable[[str], Path]) -> None:
    path = config(PLAIN.replace("n1-standard-4", "n1-nonsense-4") + "colour: red\n")
    done = gcloud.run(*jobs("ga"), "create", REGION, "--display-name=bad", f"--config={path}", check=False)
    assert done.returncode == 1
    assert "(gcloud.ai.custom-jobs.create) INVALID_ARGUMENT:" in done.stderr
    assert "n1-nonsense-4" in done.stderr
    assert 'Unknown name "colour"' in done.stderr.replace("\n", " ").replace("\\", "")
    assert "job_spec.worker_pool_specs[0].machine_spec.machine_type" in done.stderr


def test_a_job_that_is_not_there(gcloud: Gcloud) -> None:
    done = gcloud.run(*jobs("ga"), "describe", "404", REGION, check=False)
    assert done.returncode == 1
    assert "NOT_FOUND" in done.stderr


def test_stream_logs_of_a_finished_job_prints_all_and_ends_in_every_track(
    gcloud: Gcloud, unique: Unique, streams: Callable[[str], list[Stream]]
) -> None:
    # More than the thousand that gcloud asks for at a time; it takes 5 ms of CPU to print one.
    source = (
        "import sys\nfor i in range(1010): print('row', i, file=sys.stderr if i % 5 == 0 else sys.stdout)"
    )
    name = gcloud.server.submit(python(source), name=unique("finished"))
    gcloud.server.wait(name)
    for stream in streams(name):
        stream.wait()
        assert sorted(stream.texts) == sorted(f"row {i}" for i in range(1010))
        assert {severity for severity, _ in stream.rows} == {"INFO", "ERROR"}


def test_stream_logs_of_a_running_job_outlasts_a_silence_and_ends_with_the_job_in_every_track(
    gcloud: Gcloud, unique: Unique, streams: Callable[[str], list[Stream]], tmp_path: Path
) -> None:
    # gcloud asks every ten seconds whether it shall go on: the silence has two of these questions.
    source = f"""
import os, time
for i in range(30):
    print('row', i, flush=True)
    while i == 14 and not os.path.exists({str(tmp_path / "go")!r}): time.sleep(0.1)
    time.sleep(25 if i == 14 else 0.1)
"""
    name = gcloud.server.submit(python(source), name=unique("running"))
    begun = streams(name)
    for stream in begun:
        until(lambda stream=stream: "row 14" in stream.texts)
    (tmp_path / "go").touch()
    for stream in begun:
        stream.wait()
        assert stream.texts == [f"row {i}" for i in range(30)]
    assert gcloud.server.state(name) == "JOB_STATE_SUCCEEDED"


def test_stream_logs_ends_with_a_cancel(gcloud: Gcloud, unique: Unique, tmp_path: Path) -> None:
    name = gcloud.server.submit(
        python("import time\nprint('up', flush=True); time.sleep(600)"), name=unique("up")
    )
    stream = Stream(gcloud, "ga", name, tmp_path / "printed")
    until(lambda: stream.texts)
    gcloud.server.cancel(name)
    stream.wait()
    assert stream.texts == ["up"]


def test_logging_read_in_both_orders(gcloud: Gcloud, unique: Unique) -> None:
    name = gcloud.server.submit(python("for i in range(20): print('row', i)"), name=unique("read"))
    gcloud.server.wait(name)
    job = name.rsplit("/", 1)[1]
    where = f'resource.type="ml_job" AND resource.labels.job_id="{job}" AND jsonPayload.message:"row"'
    newest = gcloud.json("logging", "read", where, "--limit=5")
    assert [e["jsonPayload"]["message"] for e in newest] == [f"row {i}" for i in range(19, 14, -1)]
    oldest = gcloud.json("logging", "read", where, "--order=asc")
    assert [e["jsonPayload"]["message"] for e in oldest] == [f"row {i}" for i in range(20)]


def test_a_wrong_token_is_told(gcloud: Gcloud, unique: Unique) -> None:
    wrong = gcloud.server.base / unique("token")
    wrong.write_text("wrong")
    stranger = Gcloud(gcloud.server, {**gcloud.environ, "CLOUDSDK_AUTH_ACCESS_TOKEN_FILE": str(wrong)})
    done = stranger.run(*jobs("ga"), "list", REGION, check=False)
    assert done.returncode == 1
    assert "UNAUTHENTICATED" in done.stderr


def test_quotas_of_compute_and_of_vertex(gcloud: Gcloud) -> None:
    project = gcloud.json("compute", "project-info", "describe", "--project=p1")
    region = gcloud.json("compute", "regions", "describe", LOCATION)
    for answer in (project, region):
        assert {row["metric"]: row["limit"] for row in answer["quotas"]}["CPUS"] == 256


@pytest.mark.parametrize("track", TRACKS)
def test_quotas_by_cloud_quotas(gcloud: Gcloud, track: str) -> None:
    """Older releases have `gcloud quotas` in two tracks alone."""
    words = [*([] if track == "ga" else [track]), "quotas", "info"]
    asked = ["--service=aiplatform.googleapis.com", "--project=p1"]
    done = gcloud.run(*words, "list", *asked, "--format=json", check=False)
    if track == "ga" and "Invalid choice: 'quotas'" in done.stderr:
        pytest.skip("this gcloud has `quotas` in its beta and alpha tracks alone")
    assert done.returncode == 0, done.stderr
    [cpus] = [row for row in json.loads(done.stdout) if row["metric"].endswith("/custom_model_training_cpus")]
    assert cpus["dimensionsInfos"][0]["details"]["value"] == "256"
    assert gcloud.json(*words, "describe", cpus["quotaId"], *asked) == cpus

"""Results for which there is no bucket: told at submit, stored as soon as there is one, never thrown away."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.live import PARENT, PROJECT, LiveServer, pool, python, until
from tests.shared_server import forget_bucket, forget_jobs
from trainshed.cli.why import drawn

BUCKET = "not-yet-made"
FIX = f"trainshed storage buckets create gs://{BUCKET}"
WRITES = (
    "import os\nfolder = os.environ['TRAINSHED_MODEL_DIR']\n"
    "os.makedirs(folder)\nopen(folder + 'm', 'w').write('x')\n"
)
SLEEPS = f"{WRITES}import time\nprint('written', flush=True)\ntime.sleep(600)\n"
AWAITS = f"{WRITES}import time\nwhile not os.path.exists(os.environ['GO']): time.sleep(0.1)\n"


@pytest.fixture(scope="module")
def shared_server() -> Iterator[LiveServer]:
    with LiveServer("--cpus", "4", "--memory", "32GiB") as live:
        yield live
        assert "Traceback" not in live.said(), live.said()


@pytest.fixture
def server(shared_server: LiveServer) -> Iterator[LiveServer]:
    """All tests have the same one, and each finds it without jobs and without the bucket."""
    yield shared_server
    forget_jobs(shared_server)
    forget_bucket(shared_server, BUCKET)


def submit(server: LiveServer, source: str, output: str = f"gs://{BUCKET}/run", **more: Any) -> str:
    spec = {"baseOutputDirectory": {"outputUriPrefix": output}}
    return server.submit(spec=spec, pools=[pool(python(source), **more)])


def make(server: LiveServer, project: str = PROJECT) -> None:
    server.post(f"/storage/v1/b?project={project}", {"name": BUCKET})


def events(server: LiveServer, job: str, reason: str) -> list[Any]:
    return [one for one in server.get(f"/v1/{job}:events")["events"] if one["reason"] == reason]


def stored(server: LiveServer) -> set[str]:
    return {one["name"] for one in server.get(f"/storage/v1/b/{BUCKET}/o").get("items", [])}


def kept(message: str) -> Path:
    found = re.search(r"in (\S+), until the job is deleted", message)
    assert found is not None, message
    return Path(found[1])


def test_a_job_without_a_bucket_is_accepted_with_a_warning_that_names_field_bucket_and_fix(
    server: LiveServer,
):
    job = submit(server, "pass")
    (told,) = events(server, job, "NO_BUCKET")
    assert told["severity"] == "WARNING"
    assert told["message"].startswith(f"jobSpec.baseOutputDirectory: there is no bucket gs://{BUCKET}")
    assert f"{FIX} --project {PROJECT}" in told["message"]
    assert server.wait(job)["state"] == "JOB_STATE_SUCCEEDED"  # it wrote nothing: nothing is missing


def test_a_job_with_its_bucket_is_told_nothing(server: LiveServer):
    make(server)
    job = submit(server, "pass")
    assert not events(server, job, "NO_BUCKET") + events(server, job, "OUTPUTS_ELSEWHERE")


def test_a_bucket_made_while_the_job_runs_gets_all_of_it(server: LiveServer, tmp_path: Path):
    go = tmp_path / "go"
    job = submit(server, AWAITS, env={"GO": str(go)})
    server.wait_for(job, ["JOB_STATE_RUNNING"])
    assert FIX in drawn(server.get(f"/v1/{job}:why"))
    make(server)
    assert FIX not in drawn(server.get(f"/v1/{job}:why"))
    go.touch()
    assert server.wait(job)["state"] == "JOB_STATE_SUCCEEDED"
    assert "run/model/m" in stored(server)


def test_a_bucket_made_while_the_job_waits_gets_all_of_it(server: LiveServer):
    holder = server.submit(["sleep", "600"])
    job = submit(server, WRITES)
    assert FIX in drawn(server.get(f"/v1/{job}:why"))
    make(server)
    server.cancel(holder)
    assert server.wait(job)["state"] == "JOB_STATE_SUCCEEDED"
    assert "run/model/m" in stored(server)


def test_what_no_bucket_took_is_kept_until_the_job_is_deleted_and_its_end_says_where(server: LiveServer):
    job = submit(server, WRITES)
    done = server.wait(job)
    assert done["state"] == "JOB_STATE_FAILED"
    verdict = server.get(f"/v1/{job}:status")["failure"]["verdict"]
    assert verdict["cause"] == "OUTPUTS_LOST"
    assert "trainshed storage buckets create" in verdict["advice"]
    folder = kept(done["error"]["message"])
    until((folder / "0.0").exists)
    files = [one for one in (folder / "0.0").rglob("*") if one.is_file()]
    assert [one.read_text() for one in files] == ["x"]
    assert files[0].parts[-4:] == (BUCKET, "run", "model", "m")
    server.kill()
    server.start()
    assert files[0].read_text() == "x"
    server.request("DELETE", f"/v1/{job}")
    until(lambda: not folder.exists())


def test_a_server_killed_before_it_put_outputs_aside_still_keeps_them(server: LiveServer):
    job = submit(server, SLEEPS)
    until(lambda: server.lines(job))
    server.kill()
    server.start()
    server.cancel(job)
    assert server.wait(job)["state"] == "JOB_STATE_CANCELLED"
    (lost,) = events(server, job, "OUTPUTS_LOST")
    whole = kept(lost["message"]) / "0.0"  # under another name until it is
    until(whole.exists)
    assert [one.read_text() for one in whole.rglob("m")] == ["x"]


def test_what_a_restarted_replica_had_written_is_kept_and_told_too(server: LiveServer, tmp_path: Path):
    """The run after it begins with what is stored, and nothing of it was."""
    go = tmp_path / "go"
    source = (
        f"import os, signal, time\nif os.path.exists({str(go)!r}): raise SystemExit\n{WRITES}"
        f"open({str(go)!r}, 'w')\nos.kill(os.getpid(), signal.SIGKILL)"
    )
    job = submit(server, source)
    assert server.wait(job)["state"] == "JOB_STATE_SUCCEEDED"
    assert events(server, job, "REPLICA_RESTARTED")
    (told,) = events(server, job, "OUTPUTS_STORED")
    assert next(kept(told["message"]).rglob("m")).read_text() == "x"


def test_a_bucket_of_another_project_is_told_as_well(server: LiveServer):
    make(server, project="another")
    (told,) = events(server, submit(server, "pass"), "NO_BUCKET")
    assert "belongs to another project" in told["message"]


def test_a_pipeline_is_told_by_its_own_field(server: LiveServer):
    body = {
        "displayName": "p",
        "trainingTaskDefinition": "gs://google-cloud-aiplatform/schema/trainingjob/definition/custom_task_1.0.0.yaml",
        "trainingTaskInputs": {
            "workerPoolSpecs": [pool(["true"])],
            "baseOutputDirectory": {"outputUriPrefix": f"gs://{BUCKET}/run"},
        },
    }
    name = server.post(f"{PARENT}/trainingPipelines", body)["name"].replace("trainingPipelines", "customJobs")
    (told,) = events(server, name, "NO_BUCKET")
    assert told["message"].startswith("trainingTaskInputs.baseOutputDirectory: ")


def test_an_output_in_a_store_that_only_the_program_knows_is_told_once(server: LiveServer):
    job = submit(server, "pass", "s3://of-another-store/x")
    assert server.wait(job)["state"] == "JOB_STATE_SUCCEEDED"
    (told,) = events(server, job, "OUTPUTS_ELSEWHERE")
    assert "the program reads and writes it itself" in told["message"]
    assert told.get("severity", "INFO") == "INFO"

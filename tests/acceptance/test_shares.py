"""Shares on a real server: who is stopped for whom, what they go on from, and who may set shares."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.live import LiveServer, pool, python, until
from tests.shared_server import forget_jobs
from tests.studies.tuning import a_tuning_job, wait_study

# Four CPUs a job, so that one of them fills the machine. Each step is a checkpoint of its own.
TRAINS = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
folder, resume = os.environ["TRAINSHED_CHECKPOINT_DIR"], os.environ.get("TRAINSHED_RESUME_DIR")
first = int(open(resume + "state").read()) + 1 if resume else 0
print("from", first, flush=True)
for step in range(first, first + 400):
    os.makedirs(f"{folder}step-{step:04d}", exist_ok=True)
    open(f"{folder}step-{step:04d}/state", "w").write(str(step))
    if resume and step > first + 3: break
    time.sleep(0.1)
print("done", flush=True)
"""
SLEEPS = python("import time; time.sleep(600)")
SHORT = python("import time; time.sleep(1)")
LOCATION = "locations/us-central1"


def submit(server: LiveServer, project: str, command: list[str], **scheduling: object) -> str:
    spec: dict[str, Any] = {"workerPoolSpecs": [pool(command)], "scheduling": scheduling}
    spec["baseOutputDirectory"] = {"outputUriPrefix": f"gs://results/{project}"}
    answer = server.post(
        f"/v1/projects/{project}/{LOCATION}/customJobs", {"displayName": project, "jobSpec": spec}
    )
    return str(answer["name"])


def standing(server: LiveServer, name: str) -> object:
    return server.get(f"/v1/{name}:status").get("standing")


def events(server: LiveServer, name: str, reason: str) -> list[str]:
    rows = server.get(f"/v1/{name}:events")["events"]
    return [str(row["message"]) for row in rows if row["reason"] == reason]


@pytest.fixture(scope="module")
def shared_server() -> Iterator[LiveServer]:
    with LiveServer("--cpus", "4", "--memory", "16GiB") as server:
        server.post("/storage/v1/b?project=demo", {"name": "results"})
        yield server
        assert "Traceback" not in server.said(), server.said()


@pytest.fixture
def server(shared_server: LiveServer) -> Iterator[LiveServer]:
    """The same for all, without jobs and shares."""
    yield shared_server
    for project in ("demo", "speech", "vision"):
        forget_jobs(shared_server, f"/v1/projects/{project}/{LOCATION}/customJobs")
    assert shared_server.request("PUT", "/v1/shares", {}).status == 200


@pytest.fixture(scope="module")
def one() -> Iterator[LiveServer]:
    """For all that ask and start no job."""
    with LiveServer("--cpus", "4", "--memory", "16GiB") as server:
        yield server
        assert "Traceback" not in server.said(), server.said()


def test_a_spot_job_gives_way_and_goes_on_from_its_checkpoint_also_after_a_kill(server: LiveServer):
    spot = submit(server, "demo", python(TRAINS), strategy="SPOT")
    until(lambda: server.get(f"/v1/{spot}:results").get("checkpoints"))
    assert standing(server, spot) == "SPOT"
    urgent = submit(server, "demo", SHORT)
    server.kill()
    server.start()
    server.wait_for(urgent, ["JOB_STATE_RUNNING", "JOB_STATE_SUCCEEDED"])
    server.wait(urgent)
    ended = server.wait(spot)
    assert ended["state"] == "JOB_STATE_SUCCEEDED"
    lines = [row["text"] for row in server.lines(spot)]
    begun = [int(line.split()[1]) for line in lines if line.startswith("from")]
    assert begun[0] == 0 and begun[-1] > 0, lines
    assert len(events(server, spot, "PREEMPTED")) == 1, "it was stopped once"
    [text] = events(server, urgent, "PREEMPTS")
    assert "Spot jobs give way" in text and spot.rpartition("/")[2] in text


STORES_WHEN_ASKED = """
import os, signal, sys, time
place = os.environ["TRAINSHED_CHECKPOINT_DIR"] + "latest"
print("from", open(place).read() if os.path.exists(place) else "nothing", flush=True)
if os.path.exists(place): sys.exit()
def store(*_):
    time.sleep(0.5)
    os.makedirs(os.path.dirname(place), exist_ok=True)
    open(place, "w").write("step 7")
    sys.exit(143)
if os.environ["RANK"] == "0": signal.signal(signal.SIGTERM, store)
time.sleep(600)
"""


def test_a_job_goes_on_from_what_one_replica_stored_when_all_were_asked_to_stop(server: LiveServer):
    spec = {
        "workerPoolSpecs": [pool(python(STORES_WHEN_ASKED), replicas=2, machine="n1-standard-2")],
        "scheduling": {"strategy": "SPOT"},
        "baseOutputDirectory": {"outputUriPrefix": "gs://results/demo"},
    }
    path = f"/v1/projects/demo/{LOCATION}/customJobs"
    spot = str(server.post(path, {"displayName": "spot", "jobSpec": spec})["name"])
    until(lambda: len(server.lines(spot)) == 2)
    server.wait(submit(server, "demo", SHORT))
    server.wait(spot)
    begun = sorted(row["text"] for row in server.lines(spot))
    assert begun == ["from nothing", "from nothing", "from step 7", "from step 7"]


def shares_file(folder: Path, text: str) -> str:
    file = folder / "shares.toml"
    file.write_text(text)
    return str(file)


TWO = """
[share.vision]
projects = ["vision"]
nominal = { cpus = 4 }

[share.speech]
projects = ["speech"]
nominal = { cpus = 0 }
"""


def test_a_share_takes_its_own_back_and_why_names_the_rule(server: LiveServer, tmp_path: Path):
    assert server.cli("shares", "ls").stdout.strip() == "no shares: all jobs wait in one queue"
    done = server.cli("shares", "set", shares_file(tmp_path, TWO))
    assert done.returncode == 0, done.stderr
    borrows = submit(server, "speech", SLEEPS)
    until(lambda: standing(server, borrows) == "BORROWED")
    own = submit(server, "vision", SLEEPS)
    until(lambda: standing(server, own) == "GUARANTEED")
    why = server.cli("why", borrows.rpartition("/")[2], TRAINSHED_PROJECT="speech").stdout
    assert "Preempted by job" in why and "takes back what is its own" in why, why
    server.restart()
    [rows] = [json.loads(server.cli("shares", "ls", "--json").stdout)]
    uses = {row["name"]: (row["used"].get("cpus"), row["running"], row["waiting"]) for row in rows}
    assert uses["vision"] == (4, {"GUARANTEED": 1}, 0)
    assert uses["speech"] == (None, {}, 1)
    assert server.cli("shares", "rm").returncode == 0
    server.cancel(own)
    server.wait_for(borrows, ["JOB_STATE_RUNNING"])


def test_a_study_waits_while_its_share_is_too_small_for_a_trial_and_goes_on_when_it_is_raised(
    server: LiveServer,
):
    project = f"projects/vision/{LOCATION}"
    body = a_tuning_job(trials=2, parallel=1, maxFailedTrialCount=1)
    study = server.post(f"/v1/{project}/hyperparameterTuningJobs", body)["name"]
    small = {"share": {"vision": {"projects": ["vision"], "nominal": {"cpus": 1}, "borrow": {"cpus": 0}}}}
    assert server.request("PUT", "/v1/shares", small).status == 200

    def row() -> dict[str, Any]:
        return server.get(f"/v1/{study}?view=trainshed")["trainshed"]

    until(lambda: row().get("waiting", {}).get("reason") == "WAITS_FOR_SHARE")
    assert "Share 'vision' may have 1 CPU" in row()["message"]
    shown = server.cli("study", "ls", TRAINSHED_PROJECT="vision").stdout
    assert "Its next trial cannot begin." in shown, shown
    refused = server.request("POST", f"/v1/{project}/hyperparameterTuningJobs", body)
    assert refused.status == 429, "a new study does not wait"
    assert server.request("PUT", "/v1/shares", {}).status == 200
    ended = wait_study(server, study)
    assert ended["state"] == "JOB_STATE_SUCCEEDED", ended
    assert "waiting" not in row()


def test_a_new_account_has_its_whole_limit_while_jobs_of_who_had_its_name_before_run(server: LiveServer):
    share = {"projects": ["vision"], "nominal": {"cpus": 4}, "per_user": {"cpus": 2}}
    assert server.request("PUT", "/v1/shares", {"share": {"vision": share}}).status == 200
    spec = {"workerPoolSpecs": [pool(SLEEPS, machine="n1-standard-2")]}
    bindings = [{"role": "user", "members": ["user:ann"]}]
    for _ in range(2):
        server.post("/v1/accounts", {"name": "ann"})
        server.post("/v1/projects/vision:setIamPolicy", {"policy": {"bindings": bindings}})
        token = server.post("/v1/tokens", {"account": "ann"})["token"]
        path = f"/v1/projects/vision/{LOCATION}/customJobs"
        job = server.request("POST", path, {"displayName": "x", "jobSpec": spec}, token=token).json["name"]
        server.wait_for(job, ["JOB_STATE_RUNNING"])
        server.request("DELETE", "/v1/accounts/ann")


def test_wrong_shares_are_refused_with_every_violation_and_change_nothing(one: LiveServer, tmp_path: Path):
    wrong = '[share.a]\nnominal = { wheels = 1 }\nweight = -1\nparent = "nobody"\n'
    done = one.cli("shares", "set", shares_file(tmp_path, wrong))
    assert done.returncode == 1
    assert "share.a.nominal.wheels" in done.stderr and "share.a.weight" in done.stderr
    assert one.request("PUT", "/v1/shares", {"share": {"a": 1}}).status == 400
    assert one.request("PUT", "/v1/shares", {"share": [1]}).status == 400
    assert one.get("/v1/shares") == {"shares": []}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("nominal = { cpus = 1979-05-27 }", "share.a.nominal.cpus must be a number from 0"),
        ("weight = inf", "share.a.weight must be a number above 0"),
        (f"weight = 0x{'f' * 5000}", "share.a.weight must be a number above 0"),
        (f"weight = {'9' * 5000}", "is no TOML for shares"),
        (f"x.{'a.' * 2000}b = 1", "more than 50 deep"),
    ],
)
def test_what_json_does_not_have_is_told_in_a_file_of_shares(
    one: LiveServer, tmp_path: Path, line: str, words: str
):
    done = one.cli("shares", "set", shares_file(tmp_path, f"[share.a]\n{line}\n"))
    assert done.returncode in (1, 2)
    assert words in done.stderr and "Traceback" not in done.stderr, done.stderr


def test_a_file_without_shares_removes_none(one: LiveServer, tmp_path: Path):
    assert one.cli("shares", "set", shares_file(tmp_path, "[share.root]\nbudget = 100\n")).returncode == 0
    for text in ("", "# nothing yet\n", "[share]\n"):
        done = one.cli("shares", "set", shares_file(tmp_path, text))
        assert done.returncode == 2 and "trainshed shares rm" in done.stderr, done.stderr
    [root] = one.get("/v1/shares")["shares"]
    assert (root["name"], root["budget"], "parent" in root) == ("root", "100", False)
    assert root["nominal"]["cpus"] == 4, "no job has waited yet"
    assert one.cli("shares", "rm").returncode == 0
    assert one.get("/v1/shares") == {"shares": []}


def test_a_server_with_a_file_of_shares_takes_none_from_the_api(tmp_path: Path):
    file = shares_file(tmp_path, TWO)
    with LiveServer("--cpus", "4", "--shares", file) as server:
        answer = server.request("PUT", "/v1/shares", {})
        assert answer.status == 403 and file in answer.error["message"]
        assert [row["name"] for row in server.get("/v1/shares")["shares"]] == ["root", "speech", "vision"]


def test_a_job_that_its_share_may_never_have_is_refused_in_googles_words(tmp_path: Path):
    text = TWO.replace("nominal = { cpus = 0 }", "nominal = { cpus = 1 }\nborrow = { cpus = 1 }")
    with LiveServer("--cpus", "4", "--shares", shares_file(tmp_path, text)) as server:
        body = {"displayName": "x", "jobSpec": {"workerPoolSpecs": [pool(SLEEPS)]}}
        answer = server.request("POST", f"/v1/projects/speech/{LOCATION}/customJobs", body)
        assert answer.status == 429
        assert answer.error["status"] == "RESOURCE_EXHAUSTED"
        assert answer.error["message"].startswith("The following quota metrics exceed quota limits: ")
        assert server.get(f"/v1/projects/speech/{LOCATION}/customJobs") == {}

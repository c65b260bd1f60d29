"""What people with roles in one project are not told of another: results, environments, channels, files."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.contracts.test_venv_runtimes import a_wheel
from tests.live import IMAGE, LiveServer, pool, python, until

VISION, SPEECH = "vision", "speech"
LOCATION = "locations/us-central1"
ROLES = (("ann", "user", VISION), ("bob", "user", SPEECH), ("eve", "admin", SPEECH))


@dataclass
class Team:
    server: LiveServer
    tokens: dict[str, str] = field(default_factory=dict[str, str])

    def admit(self, name: str, role: str, project: str) -> None:
        """Add somebody with a role in a project."""
        self.server.post("/v1/accounts", {"name": name})
        path = f"/v1/projects/{project}"
        bindings = self.server.post(f"{path}:getIamPolicy").get("bindings", [])
        new = {"role": f"roles/trainshed.{role}", "members": [f"user:{name}"]}
        self.server.post(f"{path}:setIamPolicy", {"policy": {"bindings": [*bindings, new]}})
        self.tokens[name] = self.server.post("/v1/tokens", {"account": name, "title": "t"})["token"]

    def ask(self, who: str, verb: str, path: str, body: object = None) -> Any:
        return self.server.request(verb, path, body, token=self.tokens[who])

    def get(self, who: str, path: str) -> Any:
        answer = self.ask(who, "GET", path)
        assert answer.status == 200, (path, answer.body)
        return answer.json

    def runs(self, who: str, project: str, output: str, *programs: str) -> str:
        """The name of a job that has ended, with a replica for each program."""
        spec: dict[str, object] = {"workerPoolSpecs": [pool(python(code)) for code in programs]}
        body = {"displayName": "job", "jobSpec": spec | {"baseOutputDirectory": {"outputUriPrefix": output}}}
        answer = self.ask(who, "POST", f"/v1/projects/{project}/{LOCATION}/customJobs", body)
        assert answer.status == 200, answer.body
        self.server.wait(answer.json["name"])
        return answer.json["name"]


@pytest.fixture(scope="module")
def team() -> Iterator[Team]:
    """Ann in the project vision; Bob and Eve, who is its admin, in the project speech."""
    with LiveServer("--cpus", "4", "--memory", "8GiB") as server:
        team = Team(server)
        for name, role, project in ROLES:
            team.admit(name, role, project)
        yield team
        assert "Traceback" not in server.said(), server.said()


WRITES = """
import os
for name, folder in (("AIP_CHECKPOINT_DIR", "/epoch7"), ("AIP_MODEL_DIR", "")):
    path = os.environ[name].replace("gs://", "/gcs/") + folder
    os.makedirs(path, exist_ok=True)
    open(path + "/w.bin", "w").write("x")
"""
RESTARTS = """
import os, signal
print("resumes", os.environ.get("TRAINSHED_RESUME_FROM"), os.environ["TRAINSHED_RESTART"], flush=True)
if os.environ["TRAINSHED_RESTART"] == "0":
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_results_in_a_bucket_of_another_project_are_neither_told_nor_resumed_from(team: Team):
    assert team.ask("ann", "POST", f"/storage/v1/b?project={VISION}", {"name": "pictures"}).status == 200
    written = team.runs("ann", VISION, "gs://pictures/runs/alpha", WRITES)
    results = team.get("ann", f"/v1/{written}:results")
    assert results["model"] and results["checkpoints"], results
    notes = set[str]()
    for bucket in ("pictures", "nowhere"):
        name = team.runs("bob", SPEECH, f"gs://{bucket}/runs/alpha", RESTARTS, "import time; time.sleep(2)")
        results = team.get("bob", f"/v1/{name}:results")
        assert set(results) == {"outputUriPrefix", "note"}
        notes.add(results["note"].replace(bucket, "BUCKET"))
        printed = team.ask("bob", "GET", f"/v1/{name}:tail").body.decode()
        assert "resumes None 1" in printed and "epoch7" not in printed
    assert notes == {"Project 'speech' has no bucket BUCKET."}


def test_environments_tell_packages_and_jobs_to_their_own_projects_and_are_removed_by_the_servers_admins(
    team: Team, tmp_path: Path
):
    a_wheel(tmp_path, "secretproj")
    [wheel] = tmp_path.iterdir()
    team.ask("ann", "POST", f"/storage/v1/b?project={VISION}", {"name": "sources"})
    path = f"/upload/storage/v1/b/sources/o?uploadType=media&name={wheel.name}"
    assert team.ask("ann", "POST", path, wheel.read_bytes()).status == 200
    package = {
        "executorImageUri": IMAGE,
        "packageUris": [f"gs://sources/{wheel.name}"],
        "pythonModule": "http.server",
        "args": ["--bind", "127.0.0.1", "0"],
    }
    replica = {key: value for key, value in pool(()).items() if key != "containerSpec"}
    body = {
        "displayName": "secret",
        "jobSpec": {"workerPoolSpecs": [{**replica, "pythonPackageSpec": package}]},
    }
    made = team.ask("ann", "POST", f"/v1/projects/{VISION}/{LOCATION}/customJobs", body)
    assert made.status == 200, made.body
    job = made.json["name"].rpartition("/")[2]
    until(lambda: team.server.state(made.json["name"]) == "JOB_STATE_RUNNING")
    runtimes = f"/v1/projects/{VISION}/{LOCATION}/runtimes"
    [own] = [one for one in team.get("ann", runtimes)["runtimes"] if one.get("packages")]
    assert own["jobs"] == [job] and own["packages"][0]["uri"] == f"gs://sources/{wheel.name}"
    runtimes = f"/v1/projects/{SPEECH}/{LOCATION}/runtimes"
    told = [
        team.ask("bob", "GET", path).body.decode() for path in (runtimes, f"{runtimes}/{own['id']}:follow")
    ]
    assert own["id"] in told[0] and own["id"] in told[1]
    for word in (wheel.name, own["packages"][0]["sha256"], job):
        assert not any(word in text for text in told), word
    assert team.ask("eve", "DELETE", f"{runtimes}/{own['id']}").status == 403
    assert team.ask("eve", "POST", f"{runtimes}:prune", {}).status == 403
    team.ask("ann", "POST", f"/v1/{made.json['name']}:cancel", {})
    team.server.wait(made.json["name"])
    assert wheel.name not in team.ask("ann", "GET", runtimes.replace(SPEECH, VISION)).body.decode()
    assert wheel.name in team.server.request("GET", runtimes).body.decode()


def test_channels_of_the_whole_server_are_shown_to_its_admins_only(team: Team):
    for project in ("-", SPEECH, VISION):
        path = f"/v1/projects/{project}/noticeChannels?channelId=of-{project.strip('-') or 'all'}"
        team.server.post(path, {"webhook": "http://127.0.0.1:9/x"})
    path = f"/v1/projects/{SPEECH}/noticeChannels"
    names = [channel["name"] for channel in team.get("eve", path)["noticeChannels"]]
    assert names == [f"projects/{SPEECH}/noticeChannels/of-speech"]
    assert team.ask("eve", "GET", f"{path}/of-all").status == 404
    assert len(team.server.get(path)["noticeChannels"]) == 2
    assert len(team.server.get("/v1/projects/-/noticeChannels")["noticeChannels"]) == 3


def test_where_the_file_of_prices_lies_is_told_to_the_servers_admins_only(tmp_path: Path):
    prices = tmp_path / "prices.toml"
    prices.write_text('currency = "EUR"\n[[prices]]\ncpu_hour = 1\ngib_hour = 1\n')
    with LiveServer("--prices", str(prices)) as server:
        team = Team(server)
        team.admit("bob", "user", SPEECH)
        prices.write_text("nonsense")
        costs = f"/v1/projects/{SPEECH}/{LOCATION}/costs"
        until(lambda: "pricesError" in server.get(costs))
        assert str(prices) in server.get(costs)["pricesError"]
        told = team.get("bob", costs)["pricesError"]
        assert "has a mistake" in told and prices.name not in told

"""What people with roles in one project are not told of another: results, environments, channels, files."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.live import LiveServer, pool, python

VISION, SPEECH = "vision", "speech"
LOCATION = "locations/us-central1"
ROLES = (("ann", "user", VISION), ("bob", "user", SPEECH), ("eve", "admin", SPEECH))


@dataclass
class Team:
    server: LiveServer
    tokens: dict[str, str] = field(default_factory=dict[str, str])

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
            server.post("/v1/accounts", {"name": name})
            path = f"/v1/projects/{project}"
            bindings = server.post(f"{path}:getIamPolicy").get("bindings", [])
            new = {"role": f"roles/trainshed.{role}", "members": [f"user:{name}"]}
            server.post(f"{path}:setIamPolicy", {"policy": {"bindings": [*bindings, new]}})
            team.tokens[name] = server.post("/v1/tokens", {"account": name, "title": "t"})["token"]
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

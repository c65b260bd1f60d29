"""Images that say themselves what they run, on a real cluster with a real registry."""

import json
import uuid
from pathlib import Path
from typing import Any

import pytest

from tests.containers.pushed_image import push_teller
from tests.kubernetes.cluster import Cluster
from tests.live import LiveServer

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(600)]

CONFIG = {
    "Entrypoint": ["/tell", "$(HOME)"],
    "Cmd": ["--image"],
    "Env": ["OWN=of the image", "HOME=/"],
    "User": "1234:1234",
    "WorkingDir": "/srv",
}


@pytest.fixture(scope="module")
def image(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> str:
    name = f"own/{uuid.uuid4().hex}"
    return push_teller(cluster.registry, name, tmp_path_factory.mktemp("image"), CONFIG)


def run(server: LiveServer, image: str, **container: object) -> tuple[dict[str, Any], list[str]]:
    pool = {
        "machineSpec": {"machineType": "custom-1-256"},
        "replicaCount": 1,
        "containerSpec": {"imageUri": image, **container},
    }
    job = server.submit(pools=[pool], name="own command")
    done = server.wait(job, 180)
    return done, [entry["text"] for entry in server.lines(job)]


@pytest.mark.parametrize(
    ("container", "words"),
    [
        ({}, "/tell $(HOME) --image 1234 /srv of the image"),
        ({"args": ["--mine"]}, "/tell $(HOME) --mine 1234 /srv of the image"),
        ({"command": ["/tell"], "env": [{"name": "OWN", "value": "mine"}]}, "/tell 1234 /srv mine"),
    ],
    ids=["nothing", "arguments", "command"],
)
def test_a_pod_runs_what_its_image_says_where_the_job_does_not(
    server: LiveServer, image: str, container: dict[str, object], words: str
):
    done, lines = run(server, image, **container)
    assert done["state"] == "JOB_STATE_SUCCEEDED", json.dumps(done.get("error"))
    assert lines == [words]


def test_a_user_who_may_not_listen_at_googles_port_is_told_so(server: LiveServer, image: str):
    done, _ = run(server, image)
    events = json.dumps(server.get(f"/v1/{done['name']}:events"))
    assert "Port 443 of the server is missing inside" in events


def test_an_image_whose_registry_the_server_does_not_reach_needs_a_command(
    server: LiveServer, cluster: Cluster
):
    done, _ = run(server, cluster.image)
    assert done["state"] == "JOB_STATE_FAILED"
    assert "cannot be reached from the server" in done["error"]["message"], done["error"]
    assert "`command`" in done["error"]["message"], done["error"]


def test_an_image_without_a_program_needs_a_command(server: LiveServer, cluster: Cluster, tmp_path: Path):
    name = f"own/{uuid.uuid4().hex}"
    image = push_teller(cluster.registry, name, tmp_path, {"User": "1"})
    done, _ = run(server, image)
    assert done["state"] == "JOB_STATE_FAILED" and "which has none" in done["error"]["message"], done["error"]

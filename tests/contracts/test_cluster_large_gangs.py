"""The pods of a large gang are small, and its programs notice nothing of that. Here two pods are many."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.contracts.backend_bench import Bench, benched, until
from tests.contracts.test_cluster_backend import ClusterBench, ClusterWorld
from tests.kubernetes.cluster import Cluster
from trainshed.backends.cluster import job_objects, pod_variables
from trainshed.core.jobs.launch import Launch
from trainshed.core.jobs.replica import Exit

pytestmark = pytest.mark.cluster
PEERS = ("workerpool0-0", "workerpool0-1")
PROGRAM = (
    "import json, os, socket; socket.gethostbyname('workerpool0-0'); socket.gethostbyname('workerpool0-1');"
    "print(json.dumps(dict(os.environ)))"
)


@pytest.fixture
async def bench(tmp_path: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pod_variables, "MANY", 1)
    monkeypatch.setattr(job_objects, "MANY", 1)
    monkeypatch.setattr(pod_variables, "_LONG", 20)
    async with benched(ClusterWorld(tmp_path / "home", cluster), tmp_path, ClusterBench) as bench:
        yield bench


def launch_at(bench: Bench, index: int) -> Launch:
    cluster = {"worker": [f"{peer}:2222" for peer in PEERS]}
    env = {
        "TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": "worker", "index": index}}),
        "RANK": str(index),
        "WORLD_SIZE": "2",
        "TEXT": "a line\nand $(another) = $$ 'one'",
    }
    return replace(bench.launch(("python3", "-c", PROGRAM), index=index), peers=PEERS, env=env)


async def test_programs_have_all_their_variables_and_find_each_other_and_nothing_is_left(bench: Bench):
    launches = [launch_at(bench, index) for index in range(2)]
    for launch in launches:
        await bench.backend.launch(launch)
    for index, launch in enumerate(launches):
        assert (await bench.ended(launch.key)).exit == Exit(code=0), bench.err(index)
        seen = json.loads(bench.out(index))
        assert seen.items() >= launch.env.items() and seen["TRAINSHED_RUN"] == str(launch.key)
        assert not [name for name in seen if name.startswith("TRAINSHED_POD_")]
    await bench.backend.remove(bench.job)
    await until(lambda: not bench.world.private_files(bench.job))

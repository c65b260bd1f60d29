"""kill -9 while packages are fetched and installed, and replaced meanwhile: no gang runs two contents."""

import os
import random
import time

import pytest

from tests import packages
from tests.acceptance.test_packages import URI, pool, put, texts
from tests.live import PROJECT, LiveServer

LONGEST = 3.0  # seconds until the kill: about what it takes from the submit to the program
SHARE = 5  # of the rounds: each is an install


@pytest.mark.slow
def test_a_gang_runs_one_content_whenever_the_server_dies_and_the_object_changes(
    rounds: int, seed: int
) -> None:
    chance = random.Random(seed)
    print(f"seed {seed}")
    env = {"PIP_CONFIG_FILE": os.devnull}
    with LiveServer("--cpus", "8", "--memory", "64GiB", "--offline", env=env) as server:
        server.post("/storage/v1/b", {"name": "staging"}, project=PROJECT)
        for number in range(max(1, rounds // SHARE)):
            versions = [f"{number}.{step}" for step in range(2)]
            first, second = (packages.sdist(packages.files(version=version)) for version in versions)
            put(server, URI, first)
            job = server.submit(pools=[pool(), pool(replicas=2), {}, pool()])
            time.sleep(chance.uniform(0, LONGEST))
            server.kill()
            server.start()
            put(server, URI, second)
            time.sleep(chance.uniform(0, LONGEST))
            server.kill()
            server.start()
            assert server.wait(job)["state"] == "JOB_STATE_SUCCEEDED", server.job(job)
            ran = texts(server, job)
            assert len(ran) == 4 and len(set(ran)) == 1 and ran[0] in versions, (seed, ran)
        left = {path.name for path in (server.home / "runtimes" / "packages" / "coming").iterdir()}
        assert left == set()
        assert "Traceback" not in server.said(), server.said()

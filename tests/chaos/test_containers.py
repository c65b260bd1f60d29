"""kill -9 to the server and to the engine while container jobs start, run and end; others who end containers.

Every program prints its run when it begins and when it ends, straight into the job's output: a run that was
started a second time shows there.
"""

import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import pytest

from tests.containers.engine import Podman, an_engine
from tests.containers.engine_guard import mounted
from tests.containers.engine_images import BASE
from tests.faults import Sentence
from tests.live import PATIENCE, LiveServer, by_id
from tests.network import quiet_port

pytestmark = [pytest.mark.containers, pytest.mark.slow, pytest.mark.timeout(600)]

CODE = """
import os, sys, time
run = os.environ["TRAINSHED_RUN"]
print("begin", run, flush=True)
time.sleep(float(sys.argv[1]))
print("end", run, flush=True)
sys.exit(int(sys.argv[2]))
"""
SOON = {"restartRule": {"backoff": "0.1s"}}
NEVER = {"restartRule": {"maxReplicaRestarts": 0, "maxJobRetries": 0}}
SUCCEEDED, FAILED, CANCELLED = "JOB_STATE_SUCCEEDED", "JOB_STATE_FAILED", "JOB_STATE_CANCELLED"
Found = TypeVar("Found")
SHARE = 4  # of the rounds: each starts several containers


@pytest.fixture(scope="module")
def podman() -> Iterator[Podman]:
    """An engine of its own: it is killed and restarted here."""
    with an_engine() as engine:
        yield engine


@pytest.fixture
def server(podman: Podman) -> Iterator[LiveServer]:
    flags = ("--cpus", "16", "--memory", "64GiB", "--engine", str(podman.socket), "--subnets", podman.subnets)
    with LiveServer(*flags, port=quiet_port()) as live:
        yield live
        assert "Traceback" not in live.said(), live.said()
        nothing_is_left(podman, live)


def pool(seconds: float, code: int = 0, replicas: int = 1) -> dict[str, Any]:
    return {
        "machineSpec": {"machineType": "n1-standard-1"},
        "replicaCount": replicas,
        "containerSpec": {"imageUri": BASE, "command": ["python3", "-c", CODE, f"{seconds:.3f}", str(code)]},
    }


def submit(server: LiveServer, *pools: dict[str, Any], scheduling: dict[str, Any] = SOON) -> str:
    return server.submit(pools=list(pools), spec={"scheduling": scheduling})


def said(server: LiveServer, job: str, word: str) -> Counter[str]:
    """The runs that printed the word, and how often."""
    texts = [row["text"].split() for row in server.lines(job)]
    return Counter(words[1] for words in texts if words[0] == word)


def begun(server: LiveServer, job: str, count: int) -> Counter[str]:
    """The job's runs once so many of them have begun."""
    return wait_for(lambda: found if (found := said(server, job, "begin")).total() >= count else None)


def runs(job: str, *ends: str) -> Counter[str]:
    return Counter(f"{by_id(job)}.{end}" for end in ends)


def wait_for(ask: Callable[[], Found | None]) -> Found:
    deadline = time.monotonic() + PATIENCE
    while (found := ask()) is None:
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.05)
    return found


def settled(podman: Podman, server: LiveServer, job: str) -> Any:
    """The job once it is final; where it does not become so, all that is known of it."""
    try:
        return server.wait(job, PATIENCE)
    except AssertionError as error:
        error.add_note(f"{server.get(f'/v1/{job}:status')}\n{server.get(f'/v1/{job}:events')}")
        error.add_note(f"{podman.containers()}\n{server.said()}")
        raise


def leftovers(podman: Podman, server: LiveServer) -> list[str]:
    jobs = server.home / "containers" / "jobs"
    return [
        *podman.containers("trainshed-"),
        *(name for name in podman.networks() if name.startswith("trainshed-")),
        *podman.mounts(),
        *mounted(server.home),
        *(str(path) for path in (jobs.iterdir() if jobs.exists() else ())),
    ]


def nothing_is_left(podman: Podman, server: LiveServer) -> None:
    """Cleaning up follows the final state by moments; what is there for longer is left behind."""
    deadline = time.monotonic() + PATIENCE
    while left := leftovers(podman, server):
        assert time.monotonic() < deadline, f"left: {left}; {podman.containers()}"
        time.sleep(0.1)


def container_of(podman: Podman, job: str) -> str:
    return wait_for(
        lambda: next((name for name in podman.containers("trainshed-") if by_id(job) in name), None)
    )


def test_whenever_the_server_or_the_engine_dies_every_job_settles_and_no_run_starts_twice(
    podman: Podman, server: LiveServer, rounds: int, seed: int
) -> None:
    print(f"seed {seed}")
    rng = random.Random(seed)
    expected: dict[str, tuple[str, Counter[str]]] = {}
    for _ in range(max(3, rounds // SHARE)):
        quick = submit(server, pool(rng.uniform(0, 0.5)))
        fails = submit(server, pool(rng.uniform(0, 0.5), code=3), scheduling=NEVER)
        gang = submit(server, pool(rng.uniform(0.3, 1.5)), pool(0.1))
        expected[quick] = SUCCEEDED, runs(quick, "0.0.0.0")
        expected[fails] = FAILED, runs(fails, "0.0.0.0")
        expected[gang] = SUCCEEDED, runs(gang, "0.0.0.0", "0.1.0.0")
        time.sleep(rng.uniform(0, 1.5))
        match rng.randrange(4):
            case 0:
                podman.stop()
                time.sleep(rng.uniform(0, 0.5))
                podman.start()
            case 1:
                server.kill()
                podman.restart()
                server.start()
            case _:
                server.kill()
                server.start()
    for job, (state, begins) in expected.items():
        done = settled(podman, server, job)
        assert done["state"] == state, (seed, done, server.get(f"/v1/{job}:events"))
        assert said(server, job, "begin") == begins, (seed, done)
        if state == SUCCEEDED:
            assert said(server, job, "end") == begins, (seed, done)


@pytest.mark.fault(
    "Containers",
    "The container engine goes away while jobs run",
    "They go on. New ones wait until the engine is back.",
)
def test_jobs_that_run_while_the_engine_is_away_go_on_and_end_well(
    podman: Podman, server: LiveServer
) -> None:
    short, long = submit(server, pool(1)), submit(server, pool(6))
    begun(server, short, 1)
    begun(server, long, 1)

    podman.stop()
    early = server.wait(short)
    late = submit(server, pool(0))
    time.sleep(0.5)
    assert server.state(late) not in (SUCCEEDED, FAILED)
    podman.start()

    assert early["state"] == SUCCEEDED
    for job in (short, long, late):
        assert server.wait(job)["state"] == SUCCEEDED, server.job(job)
        assert said(server, job, "end") == runs(job, "0.0.0.0")


@pytest.mark.fault(
    "Containers",
    "Somebody removes a job's container",
    "The replica counts as lost and starts again.",
)
def test_a_container_removed_by_somebody_else_is_lost_and_started_again(
    podman: Podman, server: LiveServer
) -> None:
    job = submit(server, pool(3))
    begun(server, job, 1)

    podman.run("rm", "--force", "--time", "0", container_of(podman, job))

    assert server.wait(job)["state"] == SUCCEEDED, server.job(job)
    assert said(server, job, "begin") == runs(job, "0.0.0.0", "0.0.0.1")
    assert said(server, job, "end") == runs(job, "0.0.0.1")


@pytest.mark.parametrize("server_is_up", [True, False])
def test_a_container_killed_by_somebody_else_is_lost_and_its_job_says_so(
    podman: Podman, server: LiveServer, server_is_up: bool
) -> None:
    job = submit(server, pool(600), scheduling=NEVER)
    begun(server, job, 1)
    name = container_of(podman, job)
    if not server_is_up:
        server.kill()

    podman.run("kill", "--signal", "KILL", name)
    if not server_is_up:
        server.start()

    done = server.wait(job)
    assert done["state"] == FAILED
    assert "was lost" in done["error"]["message"]


@pytest.mark.fault(
    "Containers",
    "The machine is rebooted",
    "What ran counts as lost and starts again once, if its rule lets it.",
    sentence="was lost",
)
def test_after_a_reboot_what_ran_is_lost_and_started_again_once(
    sentence: Sentence, podman: Podman, server: LiveServer
) -> None:
    gang, alone = submit(server, pool(4), pool(4)), submit(server, pool(600), scheduling=NEVER)
    begun(server, gang, 2)
    begun(server, alone, 1)

    server.kill()
    podman.reboot()
    server.start()

    assert settled(podman, server, gang)["state"] == SUCCEEDED, server.job(gang)
    assert set(said(server, gang, "begin").values()) == {1}
    done = server.wait(alone)
    assert done["state"] == FAILED
    assert sentence.is_in(done["error"]["message"])
    assert said(server, alone, "begin") == runs(alone, "0.0.0.0")


def test_a_cancel_during_the_engines_absence_is_done_when_it_is_back(
    podman: Podman, server: LiveServer
) -> None:
    job = submit(server, pool(600))
    begun(server, job, 1)

    podman.stop(signal.SIGTERM)
    server.cancel(job)
    time.sleep(0.5)
    podman.start()

    assert server.wait(job)["state"] == CANCELLED

"""Pods, nodes, the API server and our own server are harmed by chance while jobs run in a cluster.

    pytest tests/chaos/test_cluster.py --faults=500 --seed=42

After each round all is mended, and then: every job has its true end, each line is there once and in order, no
replica was alive twice, and nothing is left in the cluster.
"""

import random
import shutil
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.beats import Beats, Life
from tests.chaos.cluster_faults import Faults, wait_until_whole
from tests.containers.engine_images import on_disk
from tests.kubernetes.cluster import Cluster, a_cluster_apart
from tests.live import FINAL, LiveServer, by_id
from tests.network import quiet_port

LONGEST = 4 * 3600  # seconds for as many faults as anybody asks for
pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(LONGEST)]

# A program that says that it lives, prints numbered lines, and ends with a code. Nobody can ask it to end
# once it has printed that it does, so a run that printed that has that end.
CODE = """
import os, signal, socket, sys, threading, time
lines, seconds, code = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
run = os.environ["TRAINSHED_RUN"]
host, _, port = os.environ["BEATS"].partition(":")
def beat():
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    while True:
        try:
            sender.sendto(run.encode(), (host, int(port)))
        except OSError:
            pass
        time.sleep(0.1)
threading.Thread(target=beat, daemon=True).start()
for number in range(lines):
    os.write(2 if number % 5 == 4 else 1, f"{run} {number}\\n".encode())
    time.sleep(seconds / lines)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.write(1, f"{run} end\\n".encode())
os._exit(code)
"""
SUCCEEDED, FAILED, CANCELLED = FINAL
MANY = {"restartRule": {"backoff": "0.1s", "maxReplicaRestarts": 100, "maxJobRetries": 100}}
A_ROUND = 25  # faults
AT_ONCE = 3  # jobs
EVERYDAY = 8  # faults
# Of the server, for all its jobs: the init of pods and the roots of its certificates.
SERVERS_OWN = ("configmaps/trainshed-init-", "configmaps/trainshed-roots-")
AWAY = 40.0  # seconds in which a removed pod ends, and a server comes back
ABOUT = 3.0  # seconds: what is no further apart may have one cause
PATIENCE = 240.0  # seconds for all jobs to end once everything is mended
# Those that others who use the cluster do not notice, with their weights.
UNNOTICED = {"delete": 3, "delete_at_once": 3, "evict": 3, "kill_program": 2, "kill_init": 2}
UNNOTICED |= {"kill_server": 2}
ALL = UNNOTICED | {"cut": 2, "off": 2, "stop_api": 2, "compact": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    state: str
    lines: int
    message: str = ""


@dataclass(slots=True)
class Storm:
    cluster: Cluster
    server: LiveServer
    faults: Faults
    beats: Beats
    rng: random.Random
    namespace: str
    jobs: dict[str, Expected] = field(default_factory=dict[str, Expected])  # of this round
    to_cancel: dict[str, float] = field(default_factory=dict[str, float])  # when

    def round(self, count: int, names: dict[str, int]) -> list[str]:
        """So many faults while jobs run; the promises that were broken."""
        self.jobs, self.to_cancel = {}, {}
        while count:
            self._keep_busy()
            before = len(self.faults.done)
            self.faults.inflict(names)
            count -= len(self.faults.done) - before
            time.sleep(self.rng.choice((0.0, 0.3, 1.0, 2.5)))
        self.faults.mend_all()
        self.server.wait_ready()
        late = self._wait_for_ends()
        return [*late, *(sentence for job in self.jobs for sentence in self._check(job)), *self._leftovers()]

    # Jobs

    def _keep_busy(self) -> None:
        """The server may be away: then it is tried at the next fault."""
        try:
            for job, at in list(self.to_cancel.items()):
                if time.monotonic() > at:
                    self.server.cancel(job)
                    del self.to_cancel[job]
            alive = [job for job in self.jobs if self.server.state(job) not in FINAL]
            while len(alive) < AT_ONCE:
                alive.append(self._submit())
        except OSError:
            return

    def _submit(self) -> str:
        kind = self.rng.choices(("works", "gang", "again", "fails", "cancelled"), (4, 4, 2, 2, 2))[0]
        seconds = 600 if kind == "cancelled" else self.rng.uniform(0.5, 12)
        lines = self.rng.randrange(5, 60)
        code = 3 if kind == "fails" else 0
        counts = (1, self.rng.randrange(1, 3)) if kind in ("gang", "again") else (1,)
        pools = [self._pool(count, lines, seconds, code) for count in counts]
        rule = MANY | ({"restartJobOnWorkerRestart": True} if kind == "again" else {})
        job = self.server.submit(pools=pools, name=kind, spec={"scheduling": rule})
        state = {"fails": FAILED, "cancelled": CANCELLED}.get(kind, SUCCEEDED)
        self.jobs[job] = Expected(state=state, lines=lines, message="exited with code 3" if code else "")
        if kind == "cancelled":
            self.to_cancel[job] = time.monotonic() + self.rng.uniform(0, 15)
        return job

    def _pool(self, count: int, lines: int, seconds: float, code: int) -> dict[str, Any]:
        env = {"BEATS": self.beats.address, "CHAOS": self.namespace}
        words = ["python3", "-c", CODE, str(lines), f"{seconds:.3f}", str(code)]
        return {
            "machineSpec": {"machineType": "custom-1-256"},
            "replicaCount": count,
            "containerSpec": {
                "imageUri": self.cluster.image,
                "command": words,
                "env": [{"name": name, "value": value} for name, value in env.items()],
            },
        }

    def _wait_for_ends(self) -> list[str]:
        for job in self.to_cancel:
            self.server.cancel(job)
        deadline = time.monotonic() + PATIENCE
        alive = list(self.jobs)
        while alive and time.monotonic() < deadline:
            alive = [job for job in alive if self.server.state(job) not in FINAL]
            time.sleep(0.2)
        return [f"{job} never ended: {self.server.get(f'/v1/{job}:status')}" for job in alive]

    # What must be true

    def _check(self, job: str) -> Iterator[str]:
        expected, body = self.jobs[job], self.server.job(job)
        error = str(body.get("error") or "")
        if body["state"] in FINAL and (body["state"] != expected.state or expected.message not in error):
            yield f"{job} became {body['state']}, not {expected.state}: {error}"
        numbers: defaultdict[str, list[str]] = defaultdict(list)
        for row in self.server.lines(job):
            run, _, number = str(row["text"]).rpartition(" ")
            numbers[run].append(number)
        yield from self._lines(job, expected, numbers)
        yield from self._lives(job)

    def _lines(self, job: str, expected: Expected, numbers: defaultdict[str, list[str]]) -> Iterator[str]:
        lives, ended = self.beats.lives(), Counter[str]()
        for run, found in list(numbers.items()):
            if not run.startswith(f"{by_id(job)}."):
                yield f"{job} has lines nobody printed: {run!r} {found}"
                continue
            # What goes to one stream is in order; between the two there is none.
            rest = [word for word in found if word != "end"]
            if sorted(map(int, rest)) != list(range(len(rest))) or found.count("end") > 1:
                yield f"run {run} has the lines {found}"
            for err in (False, True):
                of_stream = [int(word) for word in rest if (int(word) % 5 == 4) is err]
                if of_stream != sorted(of_stream):
                    yield f"run {run} has its lines in the order {of_stream}"
            if "end" in found and len(rest) != expected.lines:
                yield f"run {run} ended after {len(rest)} of {expected.lines} lines"
            life = lives.get(run)
            if "end" not in found or life is None:
                continue
            if not self._may_be_lost(life) and not self._is_removed_at_its_end(life):
                ended[".".join(run.split(".")[-4:-1])] += 1
        for replica, count in ended.items():
            if count > 1:
                yield f"{job}: replica {replica} ended {count} times, although nothing was lost"
        primaries = [life for life in lives.values() if life.replica == (by_id(job), "0.0")]
        is_heard = bool(primaries)  # else its node was cut off for all of its life
        if (
            expected.state == SUCCEEDED
            and is_heard
            and not any("end" in numbers[life.run] or self._may_lack_lines(life) for life in primaries)
        ):
            yield f"{job} has succeeded, and no run of it has printed its end"

    def _lives(self, job: str) -> Iterator[str]:
        """A node that is cut off runs on what was taken from it, until it is back: nobody can reach it."""
        ours = [life for life in self.beats.lives().values() if life.replica[0] == by_id(job)]
        lives = sorted(ours, key=lambda life: life.first)
        for number, life in enumerate(lives):
            for later in lives[number + 1 :]:
                is_twice = later.replica == life.replica and later.first < life.last
                if is_twice and not self.faults.struck(life.node, life.first, later.first):
                    yield f"run {life.run} was alive {life.last - later.first:.2f} s after {later.run} began"

    def _may_be_lost(self, life: Life) -> bool:
        """Its node was harmed, or its init killed, so that nobody may know how it ended."""
        return self.faults.struck(life.node, life.first, life.last + 30) or any(
            harm.what == "kill init" and harm.target == life.run for harm in self.faults.done
        )

    def _may_lack_lines(self, life: Life) -> bool:
        """It was lost, or its pod was removed at once while no server could take its output."""
        if self._may_be_lost(life):
            return True
        removed = self._removals(life, "delete at once")
        away = [harm.begun for harm in self.faults.done if harm.what in ("kill server", "stop api")]
        return any(abs(one - other) < AWAY for one in removed for other in away)

    def _is_removed_at_its_end(self, life: Life) -> bool:
        """So that nobody can tell whether it ended by itself."""
        removals = self._removals(life, "delete", "delete at once", "evict")
        return any(abs(life.last - moment) < ABOUT for moment in removals)

    def _removals(self, life: Life, *kinds: str) -> list[float]:
        """When its pod was removed."""
        job, attempt, pool, index, restart = life.run.rsplit(".", 4)
        name = f"-{job}-{attempt}-workerpool{pool}-{index}-{restart}"
        harms = [harm for harm in self.faults.done if harm.what in kinds]
        return [harm.begun for harm in harms if harm.target.endswith(name)]

    def _leftovers(self) -> list[str]:
        deadline = time.monotonic() + 60
        while (left := self._left()) and time.monotonic() < deadline:
            time.sleep(0.3)
        return left

    def _left(self) -> list[str]:
        names: list[str] = []
        for kind in ("pods", "services", "secrets", "configmaps"):
            path = f"/api/v1/namespaces/{self.namespace}/{kind}?labelSelector=trainshed.dev/home"
            items = self.cluster.ask("GET", path)["items"]
            names += [f"{kind}/{item['metadata']['name']} is left" for item in items]
        folders = (self.server.home / "kubernetes" / "jobs").iterdir()
        alive = [life for life in self.beats.lives().values() if time.monotonic() - life.last < 1]
        return [
            *(name for name in names if not name.startswith(SERVERS_OWN)),
            *(f"{path} is left" for path in folders),
            *(f"run {life.run} is alive" for life in alive),
        ]


@pytest.fixture
def faults(request: pytest.FixtureRequest) -> int:
    return int(request.config.getoption("faults", None) or EVERYDAY)


@pytest.fixture
def harmed(request: pytest.FixtureRequest, faults: int) -> Iterator[Cluster]:
    """Few faults are inflicted on the cluster of all tests, many on one apart, where nodes can be harmed."""
    if faults <= EVERYDAY:
        yield request.getfixturevalue("cluster")
        return
    with (
        tempfile.TemporaryDirectory(prefix="chaos-", dir=on_disk()) as folder,
        a_cluster_apart(Path(folder) / "c") as apart,
    ):
        yield apart


def test_whatever_happens_to_pods_nodes_and_servers_jobs_end_truly_and_leave_nothing(
    harmed: Cluster, faults: int, seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    names = UNNOTICED if faults <= EVERYDAY else ALL
    with capsys.disabled(), harmed.namespace() as namespace, Beats(harmed.place) as beats:
        print(f"\nchaos: --faults={faults} --seed={seed}", flush=True)
        flags = ("--kubernetes", "--kubeconfig", str(harmed.place.kubeconfig), "--namespace", namespace)
        with LiveServer(*flags, port=quiet_port()) as server:
            rng = random.Random(seed)
            storm = Storm(harmed, server, Faults(harmed, server, rng, namespace), beats, rng, namespace)
            left, jobs = faults, 0
            while left > 0:
                begun, count = time.monotonic(), min(left, A_ROUND)
                broken = storm.round(count, names)
                left, jobs, took = left - count, jobs + len(storm.jobs), time.monotonic() - begun
                print(f"chaos: {faults - left} faults, {jobs} jobs, {took:.0f} s", flush=True)
                if broken:
                    told = "\n  ".join(broken)
                    pytest.fail(f"seed {seed}: {_keep(storm)}:\n  {told}", False)
                wait_until_whole(harmed)
            assert "Traceback" not in server.said(), server.said()
            print(f"chaos: {dict(Counter(harm.what for harm in storm.faults.done))}", flush=True)


def _keep(storm: Storm) -> Path:
    """All one needs to find out what happened."""
    folder = Path(tempfile.mkdtemp(prefix="trainshed-chaos-"))
    (folder / "faults").write_text(storm.faults.told())
    (folder / "lives").write_text("\n".join(map(str, storm.beats.lives().values())))
    for job in storm.jobs:
        events = storm.server.get(f"/v1/{job}:events")["events"]
        rows = [f"{event['time']} {event['reason']} {event['message']}" for event in events]
        (folder / f"{by_id(job)}.events").write_text("\n".join(rows))
        (folder / f"{by_id(job)}.log").write_text("\n".join(map(str, storm.server.lines(job))))
    shutil.copytree(storm.server.base, folder / "server", ignore=_special)
    return folder


def _special(folder: str, names: list[str]) -> list[str]:
    """Pipes and sockets, which nobody can copy."""
    return [name for name in names if not Path(folder, name).is_dir() and not Path(folder, name).is_file()]

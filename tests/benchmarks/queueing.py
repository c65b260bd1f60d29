"""What 10,000 waiting jobs cost: each number beside the same one of a server on which nobody waits.

Two servers run side by side and take turns, so that a busy moment hurts both. On each a job holds one CPU for
good. On the one, 10,000 jobs wait for the whole machine; on the other, as many have ended.
"""

import asyncio
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median

from tests.benchmarks.row import Row, ms
from tests.live import JOBS, LOCATION, PARENT, PROJECT, LiveServer, pool
from trainshed.client.api import Client
from trainshed.core.event import Reason, Waiting
from trainshed.core.job import Job, JobSpec, JobState, Pool, Status
from trainshed.store.sql import SqlStore

WAITING = 10_000
BATCH = 20  # jobs run in one round
WATCHED = 30.0  # seconds: three looks at everything
SOON = 5.0  # seconds until a server that finds so many is ready
PAGE_MOST = 100  # milliseconds for a page of the queue
LIMIT = 1.2  # times what it takes where nobody waits


def long_queue() -> list[Row]:
    with ExitStack() as stack:
        empty, full = (stack.enter_context(_Server(state)) for state in (JobState.SUCCEEDED, JobState.QUEUED))
        compared = [  # the list first: its page then is of those that wait
            _compare("list of 100 jobs", 30, empty, full, _Server.list_page, ms),
            _compare("submits", 60, empty, full, _Server.submit, _rate),
            _compare("no-op jobs, two at a time", 10, empty, full, _Server.run, _rate),
            _compare("cancel of one that waits", 30, empty, full, _Server.cancel, ms),
        ]
        pages = [full.queue_page() for _ in range(30)]
        spent = [server.cpu() for server in (empty, full)]
        time.sleep(WATCHED)
        idle, busy = (server.cpu() - before for server, before in zip((empty, full), spent, strict=True))
    return [
        Row(
            what=f"up -> ready, {WAITING:,} waiting",
            floor=f"{empty.ready:.2f} s",
            ours=f"{full.ready:.2f} s",
            value=full.ready,
            goal=SOON,
            unit="s",
        ),
        *compared,
        Row(
            what=f"page of 100 of the queue, {WAITING:,} waiting",
            floor="",
            ours=ms(pages),
            value=median(pages) * 1e3,
            goal=PAGE_MOST,
            unit="ms",
        ),
        Row(
            what=f"idle CPU, {WAITING:,} waiting",
            floor=f"{idle / WATCHED:.3%}",
            ours=f"{busy / WATCHED:.3%}",
            value=busy / idle,
            goal=LIMIT,
        ),
    ]


def _compare(
    what: str,
    rounds: int,
    empty: "_Server",
    full: "_Server",
    measure: Callable[["_Server"], float],
    show: Callable[[list[float]], str],
) -> Row:
    floors: list[float] = []
    ours: list[float] = []
    for _ in range(rounds):
        floors.append(measure(empty))
        ours.append(measure(full))
    return Row(
        what=f"{what}, {WAITING:,} waiting",
        floor=show(floors),
        ours=show(ours),
        value=median(ours) / median(floors),
        goal=LIMIT,
    )


def _rate(seconds: list[float]) -> str:
    return f"{1 / median(seconds):.0f}/s"


class _Server:
    """A server with many jobs of one state, and a job that holds one of its three CPUs."""

    def __init__(self, state: JobState) -> None:
        self.live = LiveServer("--cpus", "3", "--memory", "64GiB")
        self.live.home.mkdir(parents=True)
        asyncio.run(_fill(self.live.home, state))
        self.ready = 0.0
        self.client: Client | None = None

    def __enter__(self) -> "_Server":
        began = time.perf_counter()
        try:
            self.live.start()
            self.ready = time.perf_counter() - began
            self.client = Client(self.live.url, self.live.token, PROJECT, LOCATION)
            blocker = self.live.submit(
                pools=[pool(["sleep", "100000"], machine="n1-standard-1")], spec=_FIRST
            )
            self.live.wait_for(blocker, ["JOB_STATE_RUNNING"])
            time.sleep(2)  # until all that a start looks at has been looked at
        except BaseException:
            self.live.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self.client is not None:
            self.client.close()
        self.live.close()

    def submit(self) -> float:
        """Seconds until a job that will wait is kept."""
        assert self.client is not None
        began = time.perf_counter()
        name = str(self.client.submit("waits", _spec("n1-highcpu-4"))["name"])
        took = time.perf_counter() - began
        self.live.cancel(name)  # so that nobody waits on the one, and no more on the other
        return took

    def run(self) -> float:
        """Seconds for a job, of a few that go before all who wait."""
        assert self.client is not None
        began = time.perf_counter()
        names = [
            str(self.client.submit("no-op", _spec("n1-standard-1", _FIRST))["name"]) for _ in range(BATCH)
        ]
        for name in names:
            self.client.wait(name)
        return (time.perf_counter() - began) / BATCH

    def list_page(self) -> float:
        began = time.perf_counter()
        assert len(self.live.get(JOBS, pageSize=100)["customJobs"]) == 100
        return time.perf_counter() - began

    def queue_page(self) -> float:
        began = time.perf_counter()
        assert len(self.live.get(f"{PARENT}/queue", pageSize=100)["jobs"]) == 100
        return time.perf_counter() - began

    def cancel(self) -> float:
        assert self.client is not None
        name = str(self.client.submit("waits", _spec("n1-highcpu-4"))["name"])
        began = time.perf_counter()
        self.live.cancel(name)
        self.client.wait(name)
        return time.perf_counter() - began

    def cpu(self) -> float:
        """Seconds of CPU the server has used, to the nanosecond, which ticks of the kernel are not."""
        tasks = Path(f"/proc/{self.live.pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


_FIRST = {"scheduling": {"priority": 1}}


def _spec(machine: str, more: Mapping[str, object] | None = None) -> dict[str, object]:
    return {"workerPoolSpecs": [pool([sys.executable, "-c", "pass"], machine=machine)], **(more or {})}


async def _fill(home: Path, state: JobState) -> None:
    """Jobs for the whole machine, as a server would have left them."""
    store = SqlStore(f"sqlite:///{home / 'trainshed.db'}")
    await store.start()
    spec = JobSpec(
        pools=(
            Pool(
                machine_type="n1-highcpu-4",
                cpus=4,
                memory=4 << 30,
                replicas=1,
                image="trainshed/python:3",
                command=(sys.executable, "-c", "pass"),
            ),
        )
    )
    began = datetime.now(UTC) - timedelta(days=1)
    waiting = Waiting(reason=Reason.WAITS_BEHIND_OTHERS, message="Needs 4 CPUs.", remedy="It moves up.")

    async def keep(number: int) -> None:
        at = began + timedelta(seconds=number)
        job = Job(
            id=f"{number:019d}",
            project=PROJECT,
            location=LOCATION,
            display_name=f"job {number}",
            spec=spec,
            created_at=at,
            status=Status(updated_at=at, waiting=waiting),
        )
        kept = await store.insert(job, ())
        if state.is_final:
            await store.write(kept, replace(kept.status, state=state, waiting=None, ended_at=at))

    for start in range(0, WAITING, 1000):
        await asyncio.gather(*(keep(number) for number in range(start, start + 1000)))
    await store.close()

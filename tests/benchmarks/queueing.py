"""What 10,000 and 100,000 waiting jobs cost, each number beside that of a server on which nobody waits.

Two servers run side by side and take turns, so that a busy moment hurts both. On each a job holds one CPU for
good. On the one, so many jobs wait for the whole machine; on the other, as many have ended. With shares, a
tree of 20 divides the machine on both, and the waiting jobs belong to 16 projects of it.
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
from tempfile import TemporaryDirectory

from tests.benchmarks.resting import proportional_memory
from tests.benchmarks.row import Row, ms
from tests.benchmarks.trace import teams
from tests.live import JOBS, LOCATION, PARENT, PROJECT, LiveServer, pool
from trainshed.client.api import Client
from trainshed.core.event import Reason, Waiting
from trainshed.core.jobs.job import Job, JobSpec, JobState, Pool, Status
from trainshed.store.sql import SqlStore

WAITING = 10_000
MOST_WAITING = 100_000
BATCH = 20  # jobs run in one round
WATCHED = 30.0  # seconds: three looks at everything
SOON = 5.0  # seconds until a server that finds so many is ready
PAGE_MOST = 100  # milliseconds for a page of the queue
LIMIT = 1.2  # times what it takes where nobody waits
FAR_LIMIT = 2.0  # the same, where MOST_WAITING do
MOST_MEMORY = 400  # MB, where MOST_WAITING do


def longest_queue(*, shared: bool) -> list[Row]:
    """The rows of MOST_WAITING jobs, within twice what they may be of WAITING; and the server's memory."""
    more = f"{MOST_WAITING:,} waiting{', 20 shares' if shared else ''}"
    with ExitStack() as stack:
        empty, full = (
            stack.enter_context(_Server(state, MOST_WAITING, shared=shared))
            for state in (JobState.SUCCEEDED, JobState.QUEUED)
        )
        rows = [
            _compare(f"list of 100 jobs, {more}", 30, empty, full, _Server.list_page, ms),
            _compare(f"submits, {more}", 30, empty, full, _Server.submit, _rate),
            _compare(f"no-op jobs, two at a time, {more}", 5, empty, full, _Server.run, _rate),
        ]
        spent = full.cpu()
        time.sleep(WATCHED)
        busy = (full.cpu() - spent) / WATCHED * 100
        memory, floor = proportional_memory(full.live.pid), proportional_memory(empty.live.pid)
    rows = [replace(row, goal=FAR_LIMIT) for row in rows]
    return [
        *rows,
        Row(what=f"idle CPU, {more}", floor="-", ours=f"{busy:.2f} %", value=busy, goal=2, unit="%"),
        Row(
            what=f"memory, {more}",
            floor=f"{floor:.0f} MB",
            ours=f"{memory:.0f} MB",
            value=memory,
            goal=MOST_MEMORY,
            unit="MB",
        ),
    ]


def long_queue(*, shared: bool = False) -> list[Row]:
    more = f"{WAITING:,} waiting{', 20 shares' if shared else ''}"
    with ExitStack() as stack:
        empty, full = (
            stack.enter_context(_Server(state, WAITING, shared=shared))
            for state in (JobState.SUCCEEDED, JobState.QUEUED)
        )
        compared = [  # the list first: its page then is of those that wait
            _compare(f"list of 100 jobs, {more}", 30, empty, full, _Server.list_page, ms),
            _compare(f"submits, {more}", 60, empty, full, _Server.submit, _rate),
            _compare(f"no-op jobs, two at a time, {more}", 10, empty, full, _Server.run, _rate),
            _compare(f"cancel of one that waits, {more}", 30, empty, full, _Server.cancel, ms),
        ]
        pages = [full.queue_page() for _ in range(30)]
        spent = [server.cpu() for server in (empty, full)]
        time.sleep(WATCHED)
        idle, busy = (server.cpu() - before for server, before in zip((empty, full), spent, strict=True))
    return [
        Row(
            what=f"up -> ready, {more}",
            floor=f"{empty.ready:.2f} s",
            ours=f"{full.ready:.2f} s",
            value=full.ready,
            goal=SOON,
            unit="s",
        ),
        *compared,
        Row(
            what=f"page of 100 of the queue, {more}",
            floor="",
            ours=ms(pages),
            value=median(pages) * 1e3,
            goal=PAGE_MOST,
            unit="ms",
        ),
        Row(
            what=f"idle CPU, {more}",
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
        what=what,
        floor=show(floors),
        ours=show(ours),
        value=median(ours) / median(floors),
        goal=LIMIT,
    )


def _rate(seconds: list[float]) -> str:
    return f"{1 / median(seconds):.0f}/s"


class _Server:
    """A server with many jobs of one state, and a job that holds one of its three CPUs."""

    def __init__(self, state: JobState, number: int, *, shared: bool) -> None:
        self.folder = TemporaryDirectory() if shared else None
        flags = ["--shares", _shares_file(Path(self.folder.name))] if self.folder is not None else []
        self.live = LiveServer("--cpus", "3", "--memory", "64GiB", *flags)
        self.live.home.mkdir(parents=True)
        asyncio.run(_fill(self.live.home, state, number, shared=shared))
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
        if self.folder is not None:
            self.folder.cleanup()

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


TEAMS = teams()
_FIRST = {"scheduling": {"priority": 1}}


def _spec(machine: str, more: Mapping[str, object] | None = None) -> dict[str, object]:
    return {"workerPoolSpecs": [pool([sys.executable, "-c", "pass"], machine=machine)], **(more or {})}


def _shares_file(folder: Path) -> str:
    """A file that divides the three CPUs among 16 teams of 4 departments."""
    tables: list[str] = []
    for number, team in enumerate(TEAMS):
        department = f"department-{number // 4}"
        if number % 4 == 0:
            tables.append(f"[share.{department}]\nnominal = {{ cpus = 0.4 }}\n")
        projects = [team, PROJECT] if number == 0 else [team]
        table = f'parent = "{department}"\nprojects = {projects}\nnominal = {{ cpus = 0.1 }}\n'
        tables.append(f"[share.{team}]\n{table}")
    path = folder / "shares.toml"
    path.write_text("\n".join(tables))
    return str(path)


async def _fill(home: Path, state: JobState, number: int, *, shared: bool) -> None:
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

    async def keep(at_place: int) -> None:
        at = began + timedelta(seconds=at_place * WAITING / number)
        # Every second one is of the project whose list is asked for.
        project = TEAMS[at_place % len(TEAMS)] if shared and at_place % 2 else PROJECT
        job = Job(
            id=f"{at_place:019d}",
            project=project,
            location=LOCATION,
            display_name=f"job {at_place}",
            spec=spec,
            created_at=at,
            status=Status(updated_at=at, waiting=waiting),
        )
        kept = await store.insert(job, ())
        if state.is_final:
            await store.write(kept, replace(kept.status, state=state, waiting=None, ended_at=at))

    for start in range(0, number, 1000):
        await asyncio.gather(*(keep(at_place) for at_place in range(start, start + 1000)))
    await store.close()

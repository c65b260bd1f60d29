"""What a server costs when nothing happens: time to be ready, memory, CPU; looking on; lists of many jobs."""

import asyncio
import http.client
import os
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median

from tests.benchmarks.row import Row, ms
from tests.live import JOBS, LiveServer, pool
from trainshed.core.jobs.job import Job, JobSpec, JobState, Pool, Status
from trainshed.store.sql import SqlStore

JOBS_KEPT = 100_000
WATCHED = 10.0  # seconds
LOOKED_ON = 20.0  # seconds
REPLICAS = 20
TICKS = os.sysconf("SC_CLK_TCK")


def idle() -> list[Row]:
    ready: list[float] = []
    for _ in range(5):
        server = LiveServer(env={"TRAINSHED_ENGINE": "auto"})
        began = time.perf_counter()
        try:
            server.start()
            ready.append(time.perf_counter() - began)
        finally:
            server.close()
    with LiveServer(env={"TRAINSHED_ENGINE": "auto"}) as server:
        server.wait(server.submit(["python", "-c", "pass"]))
        time.sleep(2)
        spent = cpu_seconds(server.pid)
        time.sleep(WATCHED)
        share = (cpu_seconds(server.pid) - spent) / WATCHED * 100
        memory = _memory(server.pid)
    return [
        Row(what="up -> ready", floor="-", ours=ms(ready), value=median(ready), goal=0.8, unit="s"),
        Row(what="idle memory", floor="-", ours=f"{memory:.0f} MB", value=memory, goal=90, unit="MB"),
        Row(what="idle CPU", floor="-", ours=f"{share:.2f} %", value=share, goal=0.3, unit="%"),
    ]


def looking_on() -> Row:
    """The server's CPU beside replicas that do nothing, less what it takes idle."""
    with LiveServer("--cpus", "64", "--memory", "400GiB") as server:
        server.wait(server.submit(["python", "-c", "pass"]))
        time.sleep(3)
        idle = _share(server)
        sleeping = pool(["sleep", "1000"], replicas=REPLICAS, machine="n1-standard-1")
        job = server.submit(pools=[sleeping])
        server.wait_for(job, ["JOB_STATE_RUNNING"])
        time.sleep(3)
        busy = _share(server)
        told = server.get(f"/v1/{job}:metrics", window="30s")
        assert sum(one["name"] == "cpu" for one in told["series"]) == REPLICAS
        server.cancel(job)
    return Row(
        what=f"metrics of {REPLICAS} replicas, CPU",
        floor=f"{idle:.2f} % idle",
        ours=f"{busy:.2f} %",
        value=busy - idle,
        goal=0.5,
        unit="%",
    )


def _share(server: LiveServer) -> float:
    """Per cent of a core the server takes, by its own account, which is finer than the kernel's ticks."""

    def spent() -> float:
        text = server.request("GET", "/metrics").body.decode()
        return float(text.split("\nprocess_cpu_seconds_total ")[1].split()[0])

    spent()
    before = spent()
    time.sleep(LOOKED_ON)
    return (spent() - before) / LOOKED_ON * 100


def long_list() -> list[Row]:
    server = LiveServer()
    try:
        server.home.mkdir(parents=True)
        asyncio.run(_fill(server.home))
        server.start()
        plain, filtered = _times(server, ""), _times(server, "&filter=state%3DJOB_STATE_FAILED")
        memory = _memory(server.pid)
    finally:
        server.close()
    return [
        Row(
            what=f"list 100 of {JOBS_KEPT:,} jobs",
            floor="-",
            ours=ms(plain),
            value=median(plain) * 1e3,
            goal=15,
            unit="ms",
        ),
        Row(
            what="the same, those that failed",
            floor="-",
            ours=ms(filtered),
            value=median(filtered) * 1e3,
            goal=15,
            unit="ms",
        ),
        Row(
            what="memory beside that many ended jobs",
            floor="-",
            ours=f"{memory:.0f} MB",
            value=memory,
            goal=90,
            unit="MB",
        ),
    ]


async def _fill(home: Path) -> None:
    """Ended jobs, put in as the server would have left them."""
    store = SqlStore(f"sqlite:///{home / 'trainshed.db'}")
    await store.start()
    spec = JobSpec(
        pools=(
            Pool(
                machine_type="n1-standard-4", cpus=4, memory=15 << 30, replicas=1, image="trainshed/python:3"
            ),
        )
    )
    began = datetime(2026, 1, 1, tzinfo=UTC)

    async def one(number: int) -> None:
        at = began + timedelta(seconds=number)
        state = JobState.FAILED if number % 10 == 0 else JobState.SUCCEEDED
        job = Job(
            id=f"{number:019d}",
            project="p1",
            location="us-central1",
            display_name=f"job {number}",
            spec=spec,
            created_at=at,
            status=Status(updated_at=at),
        )
        kept = await store.insert(job, ())
        await store.write(kept, replace(kept.status, state=state, ended_at=at))

    for start in range(0, JOBS_KEPT, 1000):
        await asyncio.gather(*(one(number) for number in range(start, start + 1000)))
    await store.close()


def _times(server: LiveServer, more: str) -> list[float]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    headers = {"Authorization": f"Bearer {server.token}"}
    times: list[float] = []
    for _ in range(30):
        began = time.perf_counter()
        connection.request("GET", f"{JOBS}?pageSize=100{more}", headers=headers)
        body = connection.getresponse().read()
        times.append(time.perf_counter() - began)
        assert body.count(b'"createTime"') == 100, body[:300]
    return times


def _memory(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1000
    raise LookupError("no VmRSS")


def proportional_memory(pid: int) -> float:
    """MB, with a fair part of what it shares with other processes."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1000
    raise LookupError("no Pss")


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS

"""Graphs of sixteen replicas over six hours, and 500 jobs compared: by the API, and drawn in a page."""

import asyncio
import math
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

from tests.benchmarks.browsing import empty_page, shown, signed_in_page
from tests.benchmarks.row import Row, ms
from tests.homes.many_jobs import keep_ended_jobs
from tests.live import LiveServer
from trainshed.core.metrics import Sample
from trainshed.metrics.store import FileMetricStore

REPLICAS, HOURS, PACE = 16, 6, 2  # a sample every two seconds, as the collector takes them
COMPARED, STEPS = 500, 200
ROUNDS = 5
USED = ("cpu", "memory", "disk_read", "disk_write", "network_in", "network_out")
# When the canvas of each graph that is seen has its lines. A pixel is read, so that they are drawn by then.
DRAWN = """
const stroked = new Map();
const stroke = CanvasRenderingContext2D.prototype.stroke;
CanvasRenderingContext2D.prototype.stroke = function (...path) {
  stroke.apply(this, path);
  if (!path.length || window.noted) return;
  stroked.set(this.canvas, this);
  const plots = [...document.querySelectorAll("figure.plot")];
  const seen = plots.filter((plot) => plot.getBoundingClientRect().top < innerHeight);
  if (!seen.every((plot) => stroked.has(plot.querySelector("canvas")))) return;
  queueMicrotask(() => {
    for (const context of stroked.values()) context.getImageData(0, 0, 1, 1);
    window.noted ??= performance.now();
  });
};
"""
PLACE = "/v1/projects/old/locations/us-central1/customJobs"


def graphs() -> list[Row]:
    server = LiveServer()
    began = datetime.now(UTC) - timedelta(hours=HOURS)
    keep_ended_jobs(server.home, COMPARED, age=timedelta(hours=HOURS))
    asyncio.run(_measure(server.home, began))
    day = f"startTime={_text(began)}&endTime={_text(began + timedelta(hours=HOURS))}&points=720"
    jobs = ",".join(f"old/us-central1/{_id(number)}" for number in range(COMPARED))
    with server, signed_in_page(server) as page:
        one = _times(lambda: server.get(f"{PLACE}/{_id(0)}:graphs?{day}"))
        names = [f"{PLACE.removeprefix('/v1/')}/{_id(number)}" for number in range(COMPARED)]
        many = _times(lambda: server.post(f"{PLACE}:compare", {"jobs": names, "over": "step", "points": 300}))
        floor = empty_page(page)
        page.add_init_script(DRAWN)
        query = f"from={_text(began)}&to={_text(began + timedelta(hours=HOURS))}"
        graphs = [
            shown(page, f"/console/jobs/old/us-central1/{_id(0)}/graphs?{query}") for _ in range(ROUNDS)
        ]
        compared = [shown(page, f"/console/compare?jobs={jobs}") for _ in range(ROUNDS)]
    what = f"graphs of {REPLICAS} replicas over {HOURS} h"
    return [
        _row(f"{what}, by the API", "-", one, 300),
        _row(f"{COMPARED} jobs compared, by the API", "-", many, 1000),
        _row(f"{what}, address -> drawn", floor, graphs, 300),
        _row(f"{COMPARED} jobs compared, address -> drawn", floor, compared, 1000),
    ]


async def _measure(home: Path, began: datetime) -> None:
    store = FileMetricStore(home / "metrics")
    await store.start()
    for second in range(0, HOURS * 3600, 600 * PACE):
        await store.record({_id(0): [*_used(began, second)]})
    for number in range(1, COMPARED):
        await store.record({_id(number): [*_reported(began, number)]})
    await store.close()


def _used(began: datetime, first: int) -> Iterator[Sample]:
    """What all replicas used in twenty minutes."""
    for second in range(first, first + 600 * PACE, PACE):
        at = began + timedelta(seconds=second)
        for replica in range(REPLICAS):
            for name in USED:
                yield Sample(f"workerpool0-{replica}", name, at, math.sin(second / 60 + replica) + 1)


def _reported(began: datetime, number: int) -> Iterator[Sample]:
    for step in range(STEPS):
        at = began + timedelta(seconds=number + step / 10)
        yield Sample("workerpool0-0", "step", at, float(step))
        yield Sample("workerpool0-0", "value.loss", at, 1 / (1 + step + number % 7))


def _times(ask: Callable[[], Any]) -> list[float]:
    times: list[float] = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        assert ask()
        times.append(time.perf_counter() - began)
    return times


def _row(what: str, floor: str, times: list[float], goal: float) -> Row:
    return Row(what=what, floor=floor, ours=ms(times), value=median(times) * 1e3, goal=goal, unit="ms")


def _id(number: int) -> str:
    return f"{number:019d}"


def _text(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")

"""The answer of customJobs/ID:intervals: where the time of a job's runs went. The names are ours."""

from collections.abc import Iterable
from typing import Any

from trainshed.core.ledger import Interval
from trainshed.wire.job_status import render_exit
from trainshed.wire.scalars import time_text


def render_intervals(intervals: Iterable[Interval]) -> list[dict[str, Any]]:
    return [_interval(interval) for interval in intervals]


def _interval(interval: Interval) -> dict[str, Any]:
    name = interval.key.name
    answer: dict[str, Any] = {
        "task": name.task,
        "attempt": name.attempt,
        "run": interval.key.run,
        "class": interval.spent_on.value,
        "startTime": time_text(interval.from_at),
        "endTime": time_text(interval.to_at),
        "cpus": interval.cpus,
        "memoryBytes": str(interval.memory),
        "gpuCount": interval.gpus,
    }
    if interval.node:
        answer["node"] = interval.node
    if interval.devices:
        answer["gpus"] = list(interval.devices)
    if interval.exit is not None:
        answer["exit"] = render_exit(interval.exit)
    return answer

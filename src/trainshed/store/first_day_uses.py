"""Fills the sums by day from the intervals that are there when the table is made. A migration calls it, once.

Frozen with that migration: it reads and writes columns as they were then, and nothing that moves on. Of jobs
that were deleted before, the machine type and the type of GPU are not known.
"""

import json
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, cast

from trainshed.store.connection import SqlConnection

_INTERVALS = """
    SELECT job_id, pool, spent_on, from_at, to_at, project, location, node, cpus, memory, gpus
    FROM intervals WHERE node <> ''
"""
_SPECS = "SELECT id, spec FROM jobs"
_INSERT = """
    INSERT INTO day_uses (day, project, location, job_id, spent_on, node, machine_type, cpus, memory, gpus,
        accelerator, is_spot, micros)
    VALUES (:day, :project, :location, :job_id, :spent_on, :node, :machine_type, :cpus, :memory, :gpus,
        :accelerator, :is_spot, :micros)
"""
_TOTALS = """
    INSERT INTO day_totals (day, project, location, spent_on, node, machine_type, cpus, memory, gpus,
        accelerator, is_spot, micros)
    SELECT day, project, location, spent_on, node, machine_type, cpus, memory, gpus, accelerator, is_spot,
        SUM(micros) FROM day_uses
    GROUP BY day, project, location, spent_on, node, machine_type, cpus, memory, gpus, accelerator, is_spot
"""
_KEY = ("day", "project", "location", "job_id", "spent_on", "node", "machine_type", "cpus", "memory", "gpus")
_MICRO = timedelta(microseconds=1)


def fill_day_uses(connection: SqlConnection) -> None:
    specs = {str(id): _spec(text) for id, text in connection.rows(_SPECS)}
    sums: Counter[tuple[Any, ...]] = Counter()
    for job, pool, spent_on, from_at, to_at, project, location, node, cpus, memory, gpus in connection.rows(
        _INTERVALS
    ):
        if spent_on == "CHECKPOINTED":  # after the end of the last replica
            continue
        spec = specs.get(job, {})
        machine_type, accelerator = _machine(spec, pool)
        scheduling: dict[str, Any] = spec.get("scheduling") or {}
        is_spot = int(scheduling.get("strategy") == "SPOT")
        try:
            days = list(_days(datetime.fromisoformat(from_at), datetime.fromisoformat(to_at)))
        except ValueError:  # a damaged row
            continue
        for day, micros in days:
            what = (str(day), project, location, job, spent_on, node, machine_type, cpus, memory, gpus)
            sums[*what, accelerator if gpus else "", is_spot] += micros
    rows = [dict(zip((*_KEY, "accelerator", "is_spot"), key, strict=True)) for key in sums]
    connection.execute_each(
        _INSERT, [row | {"micros": micros} for row, micros in zip(rows, sums.values(), strict=True)]
    )
    connection.execute(_TOTALS)


def _spec(text: str) -> dict[str, Any]:
    try:
        spec: object = json.loads(text)
    except ValueError:  # a damaged row
        return {}
    return cast(dict[str, Any], spec) if isinstance(spec, dict) else {}


def _machine(spec: dict[str, Any], pool: int) -> tuple[str, str]:
    pools: list[dict[str, Any]] = spec.get("pools") or []
    row = pools[pool] if pool < len(pools) else {}
    return row.get("machine_type") or "", row.get("accelerator") or ""


def _days(from_at: datetime, to_at: datetime) -> Iterator[tuple[date, int]]:
    while from_at < to_at:
        day = from_at.astimezone(UTC).date()
        midnight = datetime.combine(day + timedelta(days=1), time(), UTC)
        yield day, (min(midnight, to_at) - from_at) // _MICRO
        from_at = midnight

"""Graphs of a job and comparisons of jobs as our own JSON, with arrays instead of an object for each point.

`api/graphs.py` calls it. The texts are made here and not by `json`: they have hundreds of thousands of
numbers, and six digits of each are as many as a graph can show. Times are seconds since 1970.
"""

import json
from collections.abc import Mapping, Sequence
from typing import cast

from trainshed.core.columns import Column, ColumnSummary, ReportedColumns
from trainshed.core.comparison import ComparedGroup, ComparedMetric, Comparison
from trainshed.core.graphs import JobGraphs
from trainshed.core.jobs.job import Job
from trainshed.core.metrics import Progress, unit_of
from trainshed.wire import enums
from trainshed.wire.job_status import render_events
from trainshed.wire.metrics import render_progress
from trainshed.wire.scalars import time_text


class JsonText(str):
    """A text that is JSON already."""

    __slots__ = ()


def render_graphs(graphs: JobGraphs, progress: Progress | None) -> bytes:
    usage = graphs.usage
    return _encoded(
        {
            "startTime": time_text(graphs.since),
            "endTime": time_text(graphs.until),
            "wholeStartTime": time_text(graphs.whole_since),
            "wholeEndTime": time_text(graphs.whole_until),
            "usage": {
                "times": moments(usage.times),
                "series": [
                    {"task": task, "name": name, "unit": unit_of(name), "values": numbers(column)}
                    for (task, name), column in sorted(usage.values.items())
                ],
            },
            "reported": [_reported(some) for some in graphs.reports],
            "marks": render_events(graphs.marks),
            "progress": render_progress(progress),
        }
    )


def _reported(some: ReportedColumns) -> dict[str, object]:
    return {
        "task": some.task,
        "times": moments(some.times),
        "steps": numbers(some.steps, 12),
        "series": [{"name": name, "values": numbers(column)} for name, column in some.values.items()],
    }


def render_comparison(comparison: Comparison, missing: Sequence[str], has_more: bool) -> bytes:
    return _encoded(
        {
            "over": comparison.over.value,
            "x": numbers(comparison.places, 12),
            "jobs": _json([_job(job) for job in comparison.jobs]),
            "metrics": [_metric(metric) for metric in comparison.metrics],
            "differences": [
                {"name": difference.name, "values": _json(difference.values)}
                for difference in comparison.differences
            ],
            "missing": list(missing),
            "hasMore": has_more,
        }
    )


def _job(job: Job) -> dict[str, object]:
    answer: dict[str, object] = {
        "name": job.name,
        "displayName": job.display_name,
        "state": enums.state_name(job.status.state),
        "createTime": time_text(job.created_at),
    }
    return answer | ({"labels": dict(job.labels)} if job.labels else {})


def _metric(metric: ComparedMetric) -> dict[str, object]:
    return {
        "name": metric.name,
        "series": [{"job": job, "values": numbers(column)} for job, column in metric.curves.items()],
        "groups": [_group(group) for group in metric.groups],
        "summaries": _json([_summary(job, total) for job, total in metric.summaries.items()]),
    }


def _group(group: ComparedGroup) -> dict[str, object]:
    return {
        "value": group.value,
        "jobs": list(group.jobs),
        "mean": numbers(group.band.mean),
        "min": numbers(group.band.least),
        "max": numbers(group.band.most),
        "std": numbers(group.band.deviation),
    }


def _summary(job: int, total: ColumnSummary) -> dict[str, object]:
    return {"job": job, "last": total.last, "min": total.least, "max": total.most, "mean": total.mean}


def moments(times: Sequence[float]) -> JsonText:
    """With milliseconds."""
    return JsonText(f"[{('%.3f,' * len(times))[:-1] % tuple(times)}]")


def numbers(column: Column, digits: int = 6) -> JsonText:
    form = f"%.{digits}g"
    if None not in column:
        return JsonText(f"[{(f'{form},' * len(column))[:-1] % tuple(column)}]")
    return JsonText(f"[{','.join('null' if value is None else form % value for value in column)}]")


def _json(value: object) -> JsonText:
    """All of it at once, which is much faster than piece by piece."""
    return JsonText(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def _encoded(answer: Mapping[str, object]) -> bytes:
    return _text(answer).encode(errors="replace")


def _text(value: object) -> str:
    if isinstance(value, JsonText):
        return value
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, object]", value)
        return f"{{{','.join(f'{json.dumps(key)}:{_text(item)}' for key, item in fields.items())}}}"
    if isinstance(value, list):
        return f"[{','.join(map(_text, cast('list[object]', value)))}]"
    return json.dumps(value, ensure_ascii=False)

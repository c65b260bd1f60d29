"""Metric series and progress as our own JSON. Times are seconds since 1970, counts are plain numbers."""

import math
from collections.abc import Iterable

from trainshed.core.metrics import Progress, Series
from trainshed.wire.scalars import duration_text, time_text


def render_series(series: Iterable[Series]) -> list[dict[str, object]]:
    return [
        {
            "task": item.task,
            "name": item.name,
            "unit": item.unit,
            "points": [[round(p.at.timestamp(), 3), _number(p.value)] for p in item.points],
        }
        for item in series
    ]


def render_progress(progress: Progress | None) -> dict[str, object]:
    """Empty where nothing was reported."""
    if progress is None:
        return {}
    result: dict[str, object] = {"task": progress.task, "updateTime": time_text(progress.at)}
    if progress.step is not None:
        result["step"] = _number(progress.step)
    if progress.total is not None:
        result["total"] = _number(progress.total)
    if progress.share is not None:
        result["fraction"] = round(progress.share, 6)
    if progress.left is not None:
        result["timeLeft"] = duration_text(progress.left)
    if progress.values:
        result["values"] = {name: _number(value) for name, value in sorted(progress.values.items())}
    return result


def _number(value: float) -> float | int | str:
    """NaN and infinities as text, as protocol buffers write them."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if float(value).is_integer() and abs(value) < 2**53:
        return int(value)
    return float(f"{value:.9g}")

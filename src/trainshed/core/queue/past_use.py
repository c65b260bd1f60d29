"""What projects had lately, so that those who had much wait for those who had little. Pure.

`control/past_use.py` calls it now and then; `core/queue/share_use.py` adds the result to what is in use. What
was used a week ago counts half as much as what was used today. Time of spot jobs does not count.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, time, timedelta
from math import log

from trainshed.core.day_use import DayUse
from trainshed.core.queue.share import CPUS, GPUS, MEMORY, Amounts

HALF_LIFE = timedelta(days=7)
COUNTED = 5 * HALF_LIFE  # what is older counts for nothing

_WHOLE = HALF_LIFE / timedelta(microseconds=1) / log(2)  # all time there was, each moment by its weight


def averages(uses: Iterable[DayUse], now: datetime) -> Mapping[str, Amounts]:
    """By project: what its jobs had at a time on average. A DayUse must name its day and its project."""
    totals: dict[str, dict[str, float]] = {}
    for use in uses:
        if use.is_spot or use.day is None:
            continue
        weight = use.micros * _weight(now - datetime.combine(use.day, time(12), UTC)) / _WHOLE
        amounts = totals.setdefault(use.project, {})
        counts = ((CPUS, use.cpus), (MEMORY, use.memory), (GPUS, use.gpus), (use.accelerator, use.gpus))
        for item, count in counts:
            if item and count:
                amounts[item] = amounts.get(item, 0) + count * weight
    return totals


def _weight(age: timedelta) -> float:
    return 0.5 ** (max(age, timedelta()) / HALF_LIFE)

"""The measurements that a client tells of a trial: their place among those before. Pure.

`service/trials.py` calls it. Measurements stay in the order of step and elapsed time, as Vertex AI has them.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from trainshed.core.tuning.measurement import Measurement
from trainshed.core.tuning.study import Study, Trial
from trainshed.core.tuning.study_end import is_better

MOST_TOLD = 1000  # measurements of a trial; of more, every second one is dropped


def placed(measurement: Measurement, trial: Trial, now: datetime) -> Measurement:
    """With the time since the trial's start, where the client gave neither step nor time."""
    if measurement.step or measurement.elapsed or trial.started_at is None:
        return measurement
    return replace(measurement, elapsed=max(0.0, (now - trial.started_at).total_seconds()))


def joined(study: Study, before: Sequence[Measurement], new: Measurement) -> tuple[Measurement, ...]:
    """All of them in order. Two of one step and time are one: the values of the later count."""
    by_place = {(earlier.step, earlier.elapsed): earlier for earlier in before}
    place = (new.step, new.elapsed)
    if place in by_place:
        new = replace(new, values={**by_place[place].values, **new.values})
    by_place[place] = new
    ordered = [by_place[key] for key in sorted(by_place)]
    return tuple(ordered if len(ordered) <= MOST_TOLD else _thinned(study, ordered))


def _thinned(study: Study, ordered: Sequence[Measurement]) -> list[Measurement]:
    """Without every second one, but with the best and the last one."""
    objective = study.spec.objectives[0]
    best = 0
    for at, measurement in enumerate(ordered):
        value, most = measurement.values.get(objective.metric), ordered[best].values.get(objective.metric)
        if value is not None and (most is None or is_better(value, most, maximize=objective.maximize)):
            best = at
    last = len(ordered) - 1
    return [ordered[at] for at in range(len(ordered)) if at % 2 == 0 or at in (best, last)]

"""SQL for many trials: pages in any order, outlines and figures, none of which read measurements needlessly.

`store/studies.py` calls it, inside of its transactions. It writes nothing.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from trainshed.core.tuning.study import Study, Trial, TrialState
from trainshed.core.tuning.trial_outline import (
    StudyFigures,
    TrialOrder,
    TrialOutline,
    TrialPage,
    TrialQuery,
    outline,
)
from trainshed.store.codec import dumps, loads, write_time
from trainshed.store.connection import SqlConnection
from trainshed.store.unreadable import Row, read_rows

_OUTLINES = "SELECT number, outline FROM trials WHERE study = :of_study ORDER BY number"
_BEST = """
    SELECT number, outline FROM trials WHERE study = :of_study AND state = 'SUCCEEDED' AND value IS NOT NULL
    ORDER BY value {direction}, number LIMIT 1
"""


def trial_values(study: Study, trial: Trial) -> dict[str, Any]:
    """The columns of a trial."""
    short = outline(study, trial)
    return {
        "study": trial.study,
        "number": trial.number,
        "state": trial.state.value,
        "client": trial.client,
        "job": trial.job,
        "value": short.value,
        "started_at": write_time(trial.started_at) if trial.started_at else None,
        "ended_at": write_time(trial.ended_at) if trial.ended_at else None,
        "seconds": short.seconds,
        "outline": dumps(short),
        "body": dumps(trial),
    }


def page_of_trials(connection: SqlConnection, query: TrialQuery) -> TrialPage:
    values: dict[str, Any] = {"of_study": query.study}
    where = "study = :of_study"
    if query.states:
        values |= {f"state{number}": state.value for number, state in enumerate(query.states)}
        where += f" AND state IN ({', '.join(f':state{number}' for number in range(len(query.states)))})"
    counted = connection.row(f"SELECT COUNT(*) FROM trials WHERE {where}", values)
    direction = "DESC" if query.is_descending else "ASC"
    column = query.order.value
    order = f"number {direction}"
    if query.order is not TrialOrder.NUMBER:
        order = f"({column} IS NULL), {column} {direction}, number"
    # The numbers first: to sort whole rows would move all measurements.
    numbers = f"SELECT number FROM trials WHERE {where} ORDER BY {order} LIMIT :most OFFSET :first"
    place = values | {"most": query.limit, "first": query.offset}
    wanted = [row[0] for row in connection.rows(numbers, place)]
    by_number = {trial.number: trial for trial in _trials(connection, query.study, wanted)}
    trials = tuple(by_number[number] for number in wanted if number in by_number)
    return TrialPage(trials, counted[0] if counted else 0)


def _trials(connection: SqlConnection, study: str, numbers: Sequence[int]) -> tuple[Trial, ...]:
    if not numbers:
        return ()
    values = {f"number{at}": number for at, number in enumerate(numbers)}
    names = ", ".join(f":{name}" for name in values)
    text = f"SELECT number, body FROM trials WHERE study = :of_study AND number IN ({names})"
    return read_rows(connection.rows(text, {"of_study": study, **values}), _to_trial, _name)


def outlines_of(connection: SqlConnection, study: str) -> tuple[TrialOutline, ...]:
    return read_rows(connection.rows(_OUTLINES, {"of_study": study}), _to_outline, _name)


def figures_of(connection: SqlConnection, studies: Sequence[Study]) -> Mapping[str, StudyFigures]:
    if not studies:
        return {}
    values = {f"study{number}": study.id for number, study in enumerate(studies)}
    names = ", ".join(f":{name}" for name in values)
    text = (
        "SELECT study, state, COUNT(*), COUNT(started_at) FROM trials "
        f"WHERE study IN ({names}) GROUP BY study, state"
    )
    counts: dict[str, dict[TrialState, int]] = {study.id: {} for study in studies}
    waiting: dict[str, int] = {}
    for study, state, count, started in connection.rows(text, values):
        counts[study][TrialState(state)] = count
        if state == TrialState.ACTIVE:
            waiting[study] = count - started
    return {
        study.id: StudyFigures(
            by_state=counts[study.id],
            waiting=waiting.get(study.id, 0),
            best=_best(connection, study),
        )
        for study in studies
    }


def _best(connection: SqlConnection, study: Study) -> TrialOutline | None:
    direction = "DESC" if study.spec.objectives[0].maximize else "ASC"
    rows = connection.rows(_BEST.format(direction=direction), {"of_study": study.id})
    return next(iter(read_rows(rows, _to_outline, _name)), None)


def _to_trial(row: Row) -> Trial:
    return loads(Trial, row[1])


def _to_outline(row: Row) -> TrialOutline:
    return loads(TrialOutline, row[1])


def _name(row: Row) -> str:
    return f"trial {row[0]}"

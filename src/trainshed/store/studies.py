"""SQL for studies and trials: one row each. Fields that no query uses are in its JSON.

`SqlStudyStore` implements `core.tuning.study_port.StudyStore` with the threads of `SqlStore`, which makes it.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from trainshed.core.errors import AlreadyExists, Conflict, NotFound
from trainshed.core.ports import Operation
from trainshed.core.tuning.study import Study, StudyState, Trial
from trainshed.core.tuning.study_port import StudyPage, StudyQuery
from trainshed.core.tuning.trial_outline import StudyFigures, TrialOutline, TrialPage, TrialQuery
from trainshed.store.codec import dump_plain, dumps, loads, write_time
from trainshed.store.conditions import to_sql
from trainshed.store.connection import SqlConnection, SqlIntegrityError, insert_into
from trainshed.store.rows import operation_values
from trainshed.store.tables import OPERATIONS, STUDIES, TRIALS
from trainshed.store.trials import figures_of, outlines_of, page_of_trials, trial_values
from trainshed.store.unreadable import Row, read_row, read_rows

_INSERT = insert_into("studies", STUDIES)
_INSERT_TRIAL = insert_into("trials", TRIALS)
_INSERT_OPERATION = insert_into("operations", OPERATIONS)
_SET = ", ".join(f"{name} = :{name}" for name in STUDIES if name not in ("id", "version", "idempotency_key"))
_UPDATE = f"UPDATE studies SET {_SET}, version = version + 1 WHERE id = :of_study AND version = :of_version"
_UPDATE_TRIAL = """
    UPDATE trials SET state = :state, client = :client, job = :job, value = :value, started_at = :started_at,
    ended_at = :ended_at, seconds = :seconds, outline = :outline, body = :body
    WHERE study = :study AND number = :number
"""
_ROW = "SELECT id, body, version FROM studies"
_BY_ID = f"{_ROW} WHERE id = :of_study"
_BY_KEY = f"{_ROW} WHERE project = :of_project AND idempotency_key = :of_key"
_FINAL = ", ".join(f"'{state.value}'" for state in StudyState if state.is_final)
_ACTIVE = f"{_ROW} WHERE state NOT IN ({_FINAL}) ORDER BY created_at, id"
_ALL_TRIALS = "SELECT number, body FROM trials WHERE study = :of_study ORDER BY number"
_TRIAL = "SELECT number, body FROM trials WHERE study = :of_study AND number = :of_number"
_DELETE = "DELETE FROM studies WHERE id = :of_study AND version = :of_version"
_DELETE_TRIALS = "DELETE FROM trials WHERE study = :of_study"
_DELETE_TRIAL = "DELETE FROM trials WHERE study = :of_study AND number = :of_number"

AskRead = Callable[[Callable[[SqlConnection], Any]], Awaitable[Any]]
AskWrite = Callable[[Callable[[SqlConnection], Any], Callable[[Any], None]], Awaitable[Any]]


class SqlStudyStore:
    def __init__(self, read: AskRead, write: AskWrite) -> None:
        self._read = read
        self._write = write

    async def insert_study(
        self, study: Study, idempotency_key: str = "", trials: Sequence[Trial] = ()
    ) -> Study:
        new = replace(study, version=1)
        return await self._write(
            lambda connection: _insert(connection, new, idempotency_key, trials), _ignore
        )

    async def study(self, project: str, location: str, study: str) -> Study:
        stored = await self.load_study(study)
        if stored is None or project not in ("-", stored.project) or location not in ("-", stored.location):
            raise NotFound(f"There is no study {study} in projects/{project}/locations/{location}.")
        return stored

    async def load_study(self, study: str) -> Study | None:
        return await self._read(lambda connection: _by_id(connection, study))

    async def keyed_study(self, project: str, key: str) -> Study | None:
        return await self._read(lambda connection: _by_key(connection, project, key))

    async def studies(self, query: StudyQuery) -> StudyPage:
        return await self._read(lambda connection: _page(connection, query))

    async def active_studies(self) -> tuple[Study, ...]:
        return await self._read(lambda connection: read_rows(connection.rows(_ACTIVE), _to_study, _name_of))

    async def write_study(
        self,
        study: Study,
        changed: Sequence[Trial] = (),
        new: Sequence[Trial] = (),
        removed: Sequence[int] = (),
    ) -> Study:
        def run(connection: SqlConnection) -> Study:
            for number in removed:
                connection.execute(_DELETE_TRIAL, {"of_study": study.id, "of_number": number})
            return _update(connection, study, changed, new)

        return await self._write(run, _ignore)

    async def trials(self, study: str) -> tuple[Trial, ...]:
        place = {"of_study": study}
        return await self._read(
            lambda connection: read_rows(connection.rows(_ALL_TRIALS, place), _to_trial, _name_of_trial)
        )

    async def earlier_trials(self, study: Study) -> tuple[tuple[Trial, ...], ...]:
        # Studies of older servers may name one of another project.
        earlier = [await self.load_study(prior) for prior in study.spec.prior_studies]
        return tuple(
            [
                await self.trials(prior.id)
                for prior in earlier
                if prior is not None and prior.project == study.project
            ]
        )

    async def trial(self, study: str, number: int) -> Trial | None:
        place = {"of_study": study, "of_number": number}

        def run(connection: SqlConnection) -> Trial | None:
            row = connection.row(_TRIAL, place)
            return None if row is None else read_row(row, _to_trial, _name_of_trial)

        return await self._read(run)

    async def trial_page(self, query: TrialQuery) -> TrialPage:
        return await self._read(lambda connection: page_of_trials(connection, query))

    async def outlines(self, study: str) -> tuple[TrialOutline, ...]:
        return await self._read(lambda connection: outlines_of(connection, study))

    async def figures(self, studies: Sequence[Study]) -> Mapping[str, StudyFigures]:
        return await self._read(lambda connection: figures_of(connection, studies))

    async def delete_study(self, study: Study, operation: Operation) -> None:
        await self._write(lambda connection: _delete(connection, study, operation), _ignore)


def _insert(connection: SqlConnection, study: Study, key: str, trials: Sequence[Trial]) -> Study:
    if key and (earlier := _by_key(connection, study.project, key)) is not None:
        if (earlier.display_name, earlier.spec, earlier.template) != (
            study.display_name,
            study.spec,
            study.template,
        ):
            raise AlreadyExists(
                f"The idempotency key {key!r} was used before, for another study ({earlier.id}). "
                "Send the same request with it, or a new key."
            )
        return earlier
    try:
        connection.execute(_INSERT, {**_values(study), "idempotency_key": key or None})
    except SqlIntegrityError as error:
        raise AlreadyExists(f"A study with the id {study.id} exists already.") from error
    for trial in trials:
        connection.execute(_INSERT_TRIAL, trial_values(study, trial))
    return study


def _update(connection: SqlConnection, study: Study, changed: Sequence[Trial], new: Sequence[Trial]) -> Study:
    values = _values(study) | {"of_study": study.id, "of_version": study.version}
    del values["id"], values["version"]
    if connection.execute(_UPDATE, values) != 1:
        raise _refused(connection, study)
    for trial in changed:
        if connection.execute(_UPDATE_TRIAL, trial_values(study, trial)) != 1:
            raise NotFound(f"There is no trial {trial.number} of study {study.id}.")
    for trial in new:
        try:
            connection.execute(_INSERT_TRIAL, trial_values(study, trial))
        except SqlIntegrityError as error:
            raise Conflict(f"Study {study.id} has a trial {trial.number} already.") from error
    return replace(study, version=study.version + 1)


def _delete(connection: SqlConnection, study: Study, operation: Operation) -> None:
    if connection.execute(_DELETE, {"of_study": study.id, "of_version": study.version}) != 1:
        raise _refused(connection, study)
    connection.execute(_DELETE_TRIALS, {"of_study": study.id})
    connection.execute(_INSERT_OPERATION, operation_values(operation))


def _refused(connection: SqlConnection, study: Study) -> Conflict | NotFound:
    if _by_id(connection, study.id) is None:
        return NotFound(f"There is no study {study.id}.")
    return Conflict(f"Study {study.id} was changed by somebody else meanwhile.")


def _by_id(connection: SqlConnection, study: str) -> Study | None:
    row = connection.row(_BY_ID, {"of_study": study})
    return None if row is None else read_row(row, _to_study, _name_of)


def _by_key(connection: SqlConnection, project: str, key: str) -> Study | None:
    row = connection.row(_BY_KEY, {"of_project": project, "of_key": key})
    return None if row is None else read_row(row, _to_study, _name_of)


def _page(connection: SqlConnection, query: StudyQuery) -> StudyPage:
    values: dict[str, Any] = {"most": query.limit + 1}
    conditions = ["TRUE"]
    for column, wanted in (("project", query.project), ("location", query.location)):
        if wanted != "-":
            conditions.append(f"{column} = :{column}")
            values[column] = wanted
    if query.kinds:
        names = [f":kind{number}" for number in range(len(query.kinds))]
        values |= {f"kind{number}": kind.value for number, kind in enumerate(query.kinds)}
        conditions.append(f"kind IN ({', '.join(names)})")
    if query.where is not None:
        conditions.append(to_sql(query.where, connection.dialect, values))
    if query.cursor is not None:
        conditions.append("(created_at, id) < (:cursor_at, :cursor_id)")
        values["cursor_at"], values["cursor_id"] = query.cursor
    text = f"{_ROW} WHERE {' AND '.join(conditions)} ORDER BY created_at DESC, id DESC LIMIT :most"
    rows = connection.rows(text, values)
    studies = read_rows(rows[: query.limit], _to_study, _name_of)
    if len(rows) <= query.limit or not studies:
        return StudyPage(studies=studies)
    last = studies[-1]
    return StudyPage(studies=studies, next_cursor=(write_time(last.created_at), last.id))


def _values(study: Study) -> dict[str, Any]:
    status = study.status
    return {
        "id": study.id,
        "project": study.project,
        "location": study.location,
        "display_name": study.display_name,
        "state": study.job_state.value,
        "kind": study.kind.value,
        "created_at": write_time(study.created_at),
        "updated_at": write_time(status.updated_at or study.created_at),
        "started_at": write_time(status.started_at) if status.started_at else None,
        "ended_at": write_time(status.ended_at) if status.ended_at else None,
        "labels": dump_plain(study.labels),
        "submitter": study.submitter,
        "body": dumps(study),
        "version": study.version,
    }


def _to_study(row: Row) -> Study:
    return replace(loads(Study, row[1]), version=row[2])


def _to_trial(row: Row) -> Trial:
    return loads(Trial, row[1])


def _name_of(row: Row) -> str:
    return f"study {row[0]}"


def _name_of_trial(row: Row) -> str:
    return f"trial {row[0]}"


def _ignore(_: object) -> None:
    """Nothing is kept in memory."""

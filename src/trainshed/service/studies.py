"""Use cases of studies: create, get, list, cancel, stop, go on, delete, and add trials.

The API calls it. Every change is a guarded write; where another writer was first, it reads again and retries.
It only changes what is stored and hints the loop of studies. It never starts or stops a job.
"""

import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from trainshed.core.errors import AlreadyExists, Conflict, Invalid, Violation
from trainshed.core.jobs.job import JobSpec
from trainshed.core.jobs.secret import JobSecrets
from trainshed.core.jobs.secret_port import SecretStore
from trainshed.core.ports import Clock, Operation
from trainshed.core.tuning.measurement_port import MakePrintedMetrics
from trainshed.core.tuning.search_space import TrialPoint
from trainshed.core.tuning.study import (
    ONE_TRIAL,
    Study,
    StudyKind,
    StudyLimits,
    StudySpec,
    StudyState,
    StudyStatus,
    StudyStopping,
    Trial,
    next_number,
)
from trainshed.core.tuning.study_end import study_end
from trainshed.core.tuning.study_port import StudyPage, StudyQuery, StudyStore
from trainshed.service.jobs import TRIES, check_location, new_id

Change = Callable[[Study], Study]


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyRequest:
    """A request for a study, already validated."""

    display_name: str
    spec: StudySpec
    kind: StudyKind = StudyKind.TUNING
    template: JobSpec | None = None
    limits: StudyLimits = ONE_TRIAL
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    extras: Mapping[str, object] = field(default_factory=dict[str, object])
    record: Mapping[str, object] = field(default_factory=dict[str, object])
    submitter: str = ""
    seed: int | None = None  # None: any
    points: tuple[TrialPoint, ...] = ()  # the first trials
    secrets: JobSecrets = field(default_factory=dict[int, Mapping[str, str]])  # of its template


async def _accept(template: JobSpec, parent: tuple[str, str], submitter: str) -> None:
    """Where nothing needs to be looked up."""


def _id_of(study: str) -> str:
    """Of a study that is named by its id or its full name."""
    return study.rpartition("/")[2]


def _with_ids(request: StudyRequest) -> StudyRequest:
    """With earlier studies named by their ids, each once."""
    ids = dict.fromkeys(map(_id_of, request.spec.prior_studies))
    return replace(request, spec=replace(request.spec, prior_studies=tuple(ids)))


@dataclass(slots=True)
class StudyService:
    store: StudyStore
    clock: Clock
    hint: Callable[[str], None]
    secrets: SecretStore | None = None
    # Raises Invalid or Exhausted for a template whose jobs would be refused there, to a submitter.
    check_template: Callable[[JobSpec, tuple[str, str], str], Awaitable[None]] = _accept
    tell: Callable[[Study, bool], None] = lambda study, is_deleted: None  # called after each change
    printed_metrics: MakePrintedMetrics | None = None  # raises Invalid for a pattern; None: not checked

    async def create(self, project: str, location: str, request: StudyRequest, key: str = "") -> Study:
        """Store a new study. The same idempotency key again returns the same study."""
        check_location(location, project)
        if not key or await self.store.keyed_study(project, key) is None:
            # As jobs are: what was acknowledged stays so, and `insert_study` compares the two.
            await self._check(request, (project, location))
        request = _with_ids(request)
        now, identity = self.clock.now(), new_id()
        study = Study(
            id=identity,
            project=project,
            location=location,
            display_name=request.display_name,
            spec=request.spec,
            kind=request.kind,
            template=request.template,
            limits=request.limits,
            labels=request.labels,
            extras=request.extras,
            record=request.record,
            submitter=request.submitter,
            seed=request.seed if request.seed is not None else random.SystemRandom().randrange(2**31),
            created_at=now,
            status=StudyStatus(updated_at=now),
        )
        study = _with_room(study, len(request.points))
        if request.secrets and self.secrets is not None:
            await self.secrets.keep(identity, request.secrets)
        try:
            stored = await self.store.insert_study(study, key, _given(study, 1, request.points, now))
        except AlreadyExists:
            await self._drop(identity, request.secrets)
            raise
        if stored.id != identity:
            await self._drop(identity, request.secrets)
        self.hint(stored.id)
        self.tell(stored, False)
        return stored

    async def _check(self, request: StudyRequest, parent: tuple[str, str]) -> None:
        """Refuse what cannot be read off it: no such code or earlier study, odd patterns, a past end."""
        if request.template is not None:
            await self.check_template(request.template, parent, request.submitter)
        if self.printed_metrics is not None and request.spec.pattern:
            self.printed_metrics(request.spec.pattern, [each.metric for each in request.spec.objectives])
        faults = [
            Violation(f"study_spec.prior_study_names[{at}]", f"names a study that is not there, {given!r}.")
            for at, given in enumerate(request.spec.prior_studies)
            if not await self._has_prior(parent[0], given)
        ]
        faults += _time_faults(request.spec.stopping, self.clock.now())
        if faults:
            raise Invalid(tuple(faults))

    async def _has_prior(self, project: str, given: str) -> bool:
        """Whether the project has a study with this id or name: of others nothing may be learned."""
        study = await self.store.load_study(_id_of(given))
        return study is not None and study.project == project and given in (study.id, study.name)

    async def _drop(self, study: str, secrets: JobSecrets) -> None:
        if secrets and self.secrets is not None:
            await self.secrets.remove(study)

    async def get(self, project: str, location: str, study: str) -> Study:
        return await self.store.study(project, location, study)

    async def find(self, query: StudyQuery) -> StudyPage:
        return await self.store.studies(query)

    async def trials(self, study: Study) -> tuple[Trial, ...]:
        return await self.store.trials(study.id)

    async def cancel(self, project: str, location: str, study: str) -> Study:
        """End it and its trials. Asking twice is allowed; an ended study is a Conflict."""
        return await self._end(project, location, study, StudyState.CANCELLED, "It was cancelled.")

    async def stop(self, project: str, location: str, study: str) -> Study:
        """End it with what it has: trials that run count with their last measurement."""
        return await self._end(project, location, study, StudyState.SUCCEEDED, "It was stopped.")

    async def resume(
        self, project: str, location: str, study: str, limits: StudyLimits | None = None
    ) -> Study:
        """Go on with a study that has ended, or give one that runs other limits.

        A Conflict where it would end again before its next trial: nobody should be told that it goes on.
        """

        def change(stored: Study) -> Study:
            if stored.status.state is StudyState.STOPPING:
                raise Conflict(f"Study {stored.name} is ending; go on with it when it has ended.")
            new = replace(stored, limits=limits or stored.limits)
            if not stored.is_final:
                return new
            status = replace(
                stored.status,
                state=StudyState.RUNNING,
                message="",
                outcome=None,
                ended_at=None,
                is_exhausted=False,
            )
            return replace(new, status=status)

        ended = await self.store.study(project, location, study)
        if ended.is_final:
            trials = await self.store.trials(ended.id)
            if end := study_end(change(ended), trials, self.clock.now()):
                raise Conflict(
                    f"Study {ended.name} would end again at once. {end.message} "
                    "If too few may run or fail, raise maxTrialCount or maxFailedTrialCount."
                )
        return await self._change(project, location, study, change)

    async def relabel(
        self,
        project: str,
        location: str,
        study: str,
        labels: Mapping[str, str],
        check: Callable[[Study], None],
    ) -> Study:
        """Replace all its labels. `check` is called with the current study and may raise."""

        def change(stored: Study) -> Study:
            check(stored)
            return stored if dict(stored.labels) == dict(labels) else replace(stored, labels=dict(labels))

        return await self._change(project, location, study, change)

    async def delete(self, project: str, location: str, study: str) -> Operation:
        """Delete an ended study and its trials. Their jobs stay."""
        for _ in range(TRIES):
            stored = await self.store.study(project, location, study)
            if not stored.is_final and stored.template is not None:
                raise Conflict(f"Study {stored.name} is in state {stored.status.state}; cancel it first.")
            operation = self._operation(stored, "delete")
            try:
                await self.store.delete_study(stored, operation)
            except Conflict:
                continue
            self.tell(stored, True)
            if self.secrets is not None:
                await self.secrets.remove(stored.id)
            return operation
        raise Conflict("The study changes too fast to be deleted; try again.")

    async def add_trials(
        self, project: str, location: str, study: str, points: Sequence[TrialPoint]
    ) -> tuple[Trial, ...]:
        """Put points of a person's own before all that will be suggested. Invalid with every violation."""
        for _ in range(TRIES):
            stored = await self.store.study(project, location, study)
            _check_points(stored, points)
            if stored.is_final:
                raise Conflict(f"Study {stored.name} has ended; go on with it first.")
            before = await self.store.trials(stored.id)
            try:
                changed = await self._add(stored, points)
            except Conflict:
                continue
            self.hint(stored.id)
            self.tell(changed, False)
            return (await self.store.trials(stored.id))[len(before) :]
        raise Conflict("The study changes too fast; try again.")

    async def _add(self, study: Study, points: Sequence[TrialPoint]) -> Study:
        first = next_number(study, await self.store.trials(study.id))
        new = _given(study, first, points, self.clock.now())
        return await self.store.write_study(_with_room(study, first - 1 + len(points)), (), new)

    async def _end(self, project: str, location: str, study: str, outcome: StudyState, message: str) -> Study:
        def change(stored: Study) -> Study:
            status = stored.status
            if status.state.is_final:
                raise Conflict(f"Study {stored.name} is in state {status.state}: it has ended.")
            if status.state is StudyState.STOPPING and status.outcome is outcome and not status.drains:
                return stored
            ending = replace(
                status, state=StudyState.STOPPING, outcome=outcome, drains=False, message=message
            )
            return replace(stored, status=ending)

        return await self._change(project, location, study, change)

    async def _change(self, project: str, location: str, study: str, change: Change) -> Study:
        for _ in range(TRIES):
            stored = await self.store.study(project, location, study)
            new = change(stored)
            if new is stored:
                return stored
            new = replace(new, status=replace(new.status, updated_at=self.clock.now()))
            try:
                stored = await self.store.write_study(new)
            except Conflict:
                continue
            self.hint(stored.id)
            self.tell(stored, False)
            return stored
        raise Conflict("The study changes too fast to be changed; try again.")

    def _operation(self, study: Study, kind: str) -> Operation:
        return Operation(
            name=f"projects/{study.project}/locations/{study.location}/operations/{new_id()}",
            kind=kind,
            target=study.name,
            created_at=self.clock.now(),
        )


def _given(study: Study, first: int, points: Sequence[TrialPoint], now: datetime) -> list[Trial]:
    """Trials of points that a person gave, numbered from `first`."""
    return [
        Trial(study=study.id, number=first + at, point=point, requested_at=now, is_given=True)
        for at, point in enumerate(points)
    ]


def _time_faults(stopping: StudyStopping, now: datetime) -> list[Violation]:
    """What is wrong with its rules of time for a study that is created now."""
    most, least = stopping.most_runtime, stopping.least_runtime
    path = "study_spec.study_stopping_config.maximum_runtime_constraint"
    if most is not None and most.end_at is not None and most.end_at <= now:
        sentence = f"must lie ahead, and {most.end_at:%Y-%m-%dT%H:%M:%SZ} has passed: give a later time."
        return [Violation(f"{path}.end_time", sentence)]
    if (
        most is None
        or least is None
        or (ends_in := most.left(now, now)) >= (may_end_in := least.left(now, now))
    ):
        return []
    sentence = (
        f"is reached in {ends_in.total_seconds():g} s, before the minimumRuntimeConstraint in "
        f"{may_end_in.total_seconds():g} s: raise the one, or lower the other."
    )
    return [Violation(path, sentence)]


def _with_room(study: Study, trials: int) -> Study:
    return replace(study, limits=replace(study.limits, trials=max(study.limits.trials, trials)))


def _check_points(study: Study, points: Sequence[TrialPoint]) -> None:
    wrong = [
        Violation(f"points[{at}]", "has not exactly one allowed value of each parameter that applies.")
        for at, point in enumerate(points)
        if not study.spec.space.contains(point)
    ]
    if wrong:
        raise Invalid(tuple(wrong))

"""Use cases of studies: create, get, list, cancel, stop, go on, delete, add trials; ask and tell.

The API calls it. Every change is a guarded write; where another writer was first, it reads again and retries.
It only changes what is stored and hints the loop of studies. It never starts or stops a job.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from trainshed.core.advance import completed, infeasible
from trainshed.core.errors import Conflict, Invalid, NotFound, Violation
from trainshed.core.job import JobSpec
from trainshed.core.measurement import Measurement
from trainshed.core.ports import Clock, Operation
from trainshed.core.search_space import TrialPoint
from trainshed.core.secret import JobSecrets
from trainshed.core.secret_port import SecretStore
from trainshed.core.stopping import should_stop
from trainshed.core.study import (
    Study,
    StudyKind,
    StudyLimits,
    StudySpec,
    StudyState,
    StudyStatus,
    Trial,
    TrialState,
)
from trainshed.core.study_end import study_end
from trainshed.core.study_port import StudyPage, StudyQuery, StudyStore
from trainshed.core.suggestion_port import Suggester
from trainshed.core.suggestion_request import suggestion_request
from trainshed.service.jobs import TRIES, check_location, new_id

Change = Callable[[Study], Study]


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyRequest:
    """A request for a study, already validated."""

    display_name: str
    spec: StudySpec
    kind: StudyKind = StudyKind.TUNING
    template: JobSpec | None = None
    limits: StudyLimits = StudyLimits()
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    extras: Mapping[str, object] = field(default_factory=dict[str, object])
    submitter: str = ""
    seed: int | None = None  # None: any
    points: tuple[TrialPoint, ...] = ()  # the first trials
    secrets: JobSecrets = field(default_factory=dict[int, Mapping[str, str]])  # of its template


@dataclass(slots=True)
class StudyService:
    store: StudyStore
    suggester: Suggester
    clock: Clock
    hint: Callable[[str], None]
    secrets: SecretStore | None = None

    async def create(self, project: str, location: str, request: StudyRequest, key: str = "") -> Study:
        """Store a new study. The same idempotency key again returns the same study."""
        check_location(location, project)
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
            submitter=request.submitter,
            seed=request.seed if request.seed is not None else random.SystemRandom().randrange(2**31),
            created_at=now,
            status=StudyStatus(updated_at=now),
        )
        if request.secrets and self.secrets is not None:
            await self.secrets.keep(identity, request.secrets)
        stored = await self.store.insert_study(study, key)
        if stored.id == identity and request.points:
            stored = await self._add(stored, request.points)
        self.hint(stored.id)
        return stored

    async def get(self, project: str, location: str, study: str) -> Study:
        return await self.store.study(project, location, study)

    async def find(self, query: StudyQuery) -> StudyPage:
        return await self.store.studies(query)

    async def trials(self, study: Study) -> tuple[Trial, ...]:
        return await self.store.trials(study.id)

    async def trial(self, study: Study, number: int) -> Trial:
        trial = await self.store.trial(study.id, number)
        if trial is None:
            raise NotFound(f"There is no trial {number} of {study.name}.")
        return trial

    async def cancel(self, project: str, location: str, study: str) -> Study:
        """End it and its trials. Asking twice is allowed; an ended study is a Conflict."""
        return await self._end(project, location, study, StudyState.CANCELLED, "It was cancelled.")

    async def stop(self, project: str, location: str, study: str) -> Study:
        """End it with what it has: trials that run count with their last measurement."""
        return await self._end(project, location, study, StudyState.SUCCEEDED, "It was stopped.")

    async def resume(
        self, project: str, location: str, study: str, limits: StudyLimits | None = None
    ) -> Study:
        """Go on with a study that has ended, or give one that runs other limits."""

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
                await self._add(stored, points)
            except Conflict:
                continue
            self.hint(stored.id)
            return (await self.store.trials(stored.id))[len(before) :]
        raise Conflict("The study changes too fast; try again.")

    # Ask and tell: the client runs the trials.

    async def ask(
        self, project: str, location: str, study: str, client: str, count: int
    ) -> tuple[Trial, ...]:
        """Trials for a client to run. One that asks again before it has completed its trials gets them again."""
        for _ in range(TRIES):
            stored = await self.store.study(project, location, study)
            trials = await self.store.trials(stored.id)
            open_ones = [t for t in trials if t.client == client and t.state is TrialState.ACTIVE]
            if open_ones and client:
                return tuple(open_ones[:count])
            now = self.clock.now()
            if stored.is_final or study_end(stored, trials, now) is not None:
                return ()
            waiting = [trial for trial in trials if trial.state is TrialState.REQUESTED][:count]
            taken = [replace(t, state=TrialState.ACTIVE, client=client, started_at=now) for t in waiting]
            new = await self._suggested(stored, trials, client, count - len(taken))
            if not taken and not new:
                return ()
            status = replace(
                stored.status,
                state=StudyState.RUNNING,
                started_at=stored.status.started_at or now,
                updated_at=now,
            )
            try:
                await self.store.write_study(replace(stored, status=status), taken, new)
            except Conflict:
                continue
            return (*taken, *new)
        raise Conflict("The study changes too fast; try again.")

    async def measure(
        self, project: str, location: str, study: str, number: int, measurement: Measurement
    ) -> Trial:
        def change(_: Study, trial: Trial) -> Trial:
            return replace(trial, measurements=(*trial.measurements, measurement))

        return await self._change_trial(project, location, study, number, change)

    async def complete(
        self,
        project: str,
        location: str,
        study: str,
        number: int,
        final: Measurement | None = None,
        infeasible_reason: str | None = None,
    ) -> Trial:
        """End a trial that a client ran. Without a final measurement, the study's selection decides."""

        def change(stored: Study, trial: Trial) -> Trial:
            now = self.clock.now()
            if infeasible_reason is not None:
                return infeasible(trial, infeasible_reason or "The client said so.", now)
            if final is not None:
                trial = replace(trial, measurements=(*trial.measurements, final))
            return completed(stored, trial, now)

        return await self._change_trial(project, location, study, number, change)

    async def stop_trial(self, project: str, location: str, study: str, number: int) -> Trial:
        """Ask for the early end of one trial; it counts with its last measurement."""

        def change(stored: Study, trial: Trial) -> Trial:
            return replace(trial, state=TrialState.STOPPING, stopped="Its end was asked for.")

        trial = await self._change_trial(project, location, study, number, change)
        self.hint(trial.study)
        return trial

    async def should_stop(self, project: str, location: str, study: str, number: int) -> str:
        """Why a client should end this trial early; empty where it should go on."""
        stored = await self.store.study(project, location, study)
        trials = await self.store.trials(stored.id)
        trial = next((trial for trial in trials if trial.number == number), None)
        if trial is None:
            raise NotFound(f"There is no trial {number} of {stored.name}.")
        if trial.state is TrialState.STOPPING:
            return trial.stopped
        rule = stored.spec.trial_stopping
        if rule is None or trial.is_final or not trial.measurements:
            return ""
        return should_stop(rule, trial, trials, stored.spec.objectives[0]) or ""

    async def _suggested(self, study: Study, trials: Sequence[Trial], client: str, count: int) -> list[Trial]:
        if count <= 0:
            return []
        request = suggestion_request(study, trials, count)
        now = self.clock.now()
        return [
            Trial(
                study=study.id,
                number=request.number + at,
                point=point,
                requested_at=now,
                started_at=now,
                state=TrialState.ACTIVE,
                client=client,
            )
            for at, point in enumerate(await self.suggester.suggest(request))
        ]

    async def _add(self, study: Study, points: Sequence[TrialPoint]) -> Study:
        first = max((trial.number for trial in await self.store.trials(study.id)), default=0) + 1
        now = self.clock.now()
        new = [
            Trial(study=study.id, number=first + at, point=point, requested_at=now, is_given=True)
            for at, point in enumerate(points)
        ]
        most = max(study.limits.trials, first - 1 + len(points))
        return await self.store.write_study(
            replace(study, limits=replace(study.limits, trials=most)), (), new
        )

    async def _end(self, project: str, location: str, study: str, outcome: StudyState, message: str) -> Study:
        def change(stored: Study) -> Study:
            status = stored.status
            if status.state.is_final:
                raise Conflict(f"Study {stored.name} is in state {status.state}: it has ended.")
            if status.state is StudyState.STOPPING and status.outcome is outcome:
                return stored
            return replace(
                stored,
                status=replace(status, state=StudyState.STOPPING, outcome=outcome, message=message),
            )

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
            return stored
        raise Conflict("The study changes too fast to be changed; try again.")

    async def _change_trial(
        self,
        project: str,
        location: str,
        study: str,
        number: int,
        change: Callable[[Study, Trial], Trial],
    ) -> Trial:
        for _ in range(TRIES):
            stored = await self.store.study(project, location, study)
            trial = await self.trial(stored, number)
            if trial.is_final:
                raise Conflict(f"Trial {number} of {stored.name} is in state {trial.state}: it has ended.")
            new = change(stored, trial)
            try:
                await self.store.write_study(stored, (new,))
            except Conflict:
                continue
            return new
        raise Conflict("The study changes too fast; try again.")

    def _operation(self, study: Study, kind: str) -> Operation:
        return Operation(
            name=f"projects/{study.project}/locations/{study.location}/operations/{new_id()}",
            kind=kind,
            target=study.name,
            created_at=self.clock.now(),
        )


def _check_points(study: Study, points: Sequence[TrialPoint]) -> None:
    wrong = [
        Violation(f"points[{at}]", "has not exactly one allowed value of each parameter that applies.")
        for at, point in enumerate(points)
        if not study.spec.space.contains(point)
    ]
    if wrong:
        raise Invalid(tuple(wrong))

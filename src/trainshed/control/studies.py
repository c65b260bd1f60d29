"""StudyLoop: moves studies: suggests points, starts a job for each, judges how they end.

A work queue calls `turn` for one study. Jobs hint it when they change, and where trials may be stopped early,
when their programs report. `core/tuning/advance.py` decides; this module reads what it needs and does what it
says. Everything is stored before it is acted upon: a point before its job, under a key by which a second
submit gives the first job.

A trial that its share has no room for, however little others use, waits: shares may be raised again.
"""

import functools
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from trainshed.control.queue import WorkQueue
from trainshed.control.study_pace import StudyPace
from trainshed.core.errors import Conflict, Exhausted, Forbidden, Invalid, NotFound
from trainshed.core.event import Reason, Waiting
from trainshed.core.jobs.job import Job, OwnerKind
from trainshed.core.ports import Clock, Store
from trainshed.core.tuning.advance import StudyPlan, TrialFacts, advance, infeasible
from trainshed.core.tuning.measurement import TrialReport
from trainshed.core.tuning.measurement_port import MeasurementReader, MeasurementWatch
from trainshed.core.tuning.study import Study, StudyState, Trial, TrialState
from trainshed.core.tuning.study_port import StudyStore
from trainshed.core.tuning.suggestion_port import Suggester
from trainshed.core.tuning.suggestion_request import suggestion_request

MOST_STEPS = 100  # of one turn, before others have theirs
TRIED_EVERY = timedelta(seconds=5)  # the next trial, while its share may not have so much


@dataclass(slots=True, kw_only=True)
class StudyLoop:
    studies: StudyStore
    jobs: Store
    measurements: MeasurementReader
    hints: MeasurementWatch
    suggester: Suggester
    clock: Clock
    queue: WorkQueue
    submit: Callable[[Study, Trial], Awaitable[Job]]  # the same trial again gives the same job
    find: Callable[[Study, Trial], Awaitable[Job | None]]  # the job that was submitted for a trial
    cancel: Callable[[Job], Awaitable[None]]
    tell: Callable[[Study], None]  # called after each change of a study
    # The trials of studies that are not final, as stored with that version of the study.
    _known: dict[str, tuple[int, tuple[Trial, ...]]] = field(
        default_factory=dict[str, tuple[int, tuple[Trial, ...]]]
    )
    _paces: dict[str, StudyPace] = field(default_factory=dict[str, StudyPace])  # by study
    _tried_again_at: dict[str, datetime] = field(default_factory=dict[str, datetime])  # where trials wait

    async def begin(self) -> None:
        self.queue.serve(self.turn)
        for study in await self.studies.active_studies():
            self.queue.hint(study.id)

    def follow(self, job: Job, is_deleted: bool) -> None:
        """Called at each commit of a job."""
        if job.owner is not None and job.owner.kind is OwnerKind.STUDY:
            self.queue.hint(job.owner.id)

    async def turn(self, identity: str) -> datetime | None:
        """Do all that can be done now; when to look again."""
        pace = self._paces.get(identity)
        if pace is None:
            turn_within = functools.partial(self.queue.within, identity)
            pace = self._paces[identity] = StudyPace(turn_within)
        pace.begin()
        try:
            again_at = await self._advanced(identity, pace)
        finally:
            asked_within = pace.end()
        if again_at is None or asked_within is None:
            return again_at
        return min(again_at, self.clock.now() + timedelta(seconds=asked_within))

    async def _advanced(self, identity: str, pace: StudyPace) -> datetime | None:
        reports: dict[int, TrialReport] = {}
        for _ in range(MOST_STEPS):
            study = await self.studies.load_study(identity)
            if study is None or study.is_final:
                self._known.pop(identity, None)
                self._paces.pop(identity, None)
                self._tried_again_at.pop(identity, None)
                return None
            trials = await self._trials(study)
            with pace.look():
                facts = await self._facts(study, trials, reports, pace.hint)
                plan = advance(study, trials, facts, self.clock.now())
                has_changed = bool(plan.changed) or plan.status != study.status
                if has_changed:
                    await self._write(replace(study, status=plan.status), plan.changed)
            if not has_changed and not await self._acted(study, trials, facts, plan):
                moments = plan.again_at, self._tried_again_at.get(identity)
                return min((at for at in moments if at is not None), default=None)
        return self.clock.now()

    async def _acted(
        self, study: Study, trials: Sequence[Trial], facts: Mapping[int, TrialFacts], plan: StudyPlan
    ) -> bool:
        """Whether something was stored: then there may be more to do."""
        for trial in plan.stop:
            await self._stop(facts[trial.number].job)
        if await self._launch(study, plan.launch):
            return True
        return await self._suggested(study, trials, plan.wanted) if plan.wanted else False

    async def _facts(
        self,
        study: Study,
        trials: Sequence[Trial],
        reports: dict[int, TrialReport],
        hint: Callable[[], None],
    ) -> dict[int, TrialFacts]:
        """What is known of trials that are not final. `reports`: what was read before in the same turn.

        A program that runs is read once in a turn: if each step found more, none would get to act.
        """
        metrics = [objective.metric for objective in study.spec.objectives]
        facts: dict[int, TrialFacts] = {}
        for trial in trials:
            if trial.is_final or not (trial.job or _is_to_end(study, trial)):
                continue
            job = await (self.jobs.load(trial.job) if trial.job else self.find(study, trial))
            report, is_hinted = None, False
            if job is not None and job.status.started_at is not None:
                if study.spec.trial_stopping is not None and not job.is_final:
                    # Before the read: what comes after it is hinted.
                    is_hinted = self.hints.watch(job, hint)
                report = reports.get(trial.number)
                if report is None or job.is_final:
                    report = await self.measurements.read(job, metrics, study.spec.pattern)
                    reports[trial.number] = report
            facts[trial.number] = TrialFacts(job=job, report=report, is_hinted=is_hinted)
        return facts

    async def _stop(self, job: Job | None) -> None:
        if job is None or job.is_final or job.status.cancel_asked_at is not None:
            return
        try:
            await self.cancel(job)
        except (Conflict, NotFound):
            return  # it has just ended

    async def _launch(self, study: Study, trials: Sequence[Trial]) -> bool:
        """Start these trials until one has to wait: all need the same. Whether something was stored."""
        now = self.clock.now()
        if trials and self._tried_again_at.get(study.id, now) > now:
            return False
        self._tried_again_at.pop(study.id, None)
        launched: list[Trial] = []
        waiting = None
        for trial in trials:
            try:
                launched.append(await self._launched(study, trial))
            except Exhausted as error:
                waiting = _waits(error)
                self._tried_again_at[study.id] = now + TRIED_EVERY
                break
        if not launched and waiting == study.status.waiting:
            return False
        if waiting != study.status.waiting:
            study = replace(study, status=replace(study.status, waiting=waiting, updated_at=now))
        await self._write(study, launched)
        return True

    async def _launched(self, study: Study, trial: Trial) -> Trial:
        """The trial with its job. One whose job is wrong is infeasible: no later submit would help."""
        try:
            job = await self.submit(study, trial)
        except (Invalid, Forbidden, NotFound) as error:
            return infeasible(trial, f"Its job was refused: {error.message}", self.clock.now())
        return replace(trial, state=TrialState.ACTIVE, job=job.id)

    async def _suggested(self, study: Study, trials: Sequence[Trial], count: int) -> bool:
        request = suggestion_request(study, trials, count, await self.studies.earlier_trials(study))
        points = await self.suggester.suggest(request)
        now = self.clock.now()
        new = [
            Trial(study=study.id, number=request.number + at, point=point, requested_at=now)
            for at, point in enumerate(points)
        ]
        is_exhausted = len(points) < count
        await self._write(replace(study, status=replace(study.status, is_exhausted=is_exhausted)), (), new)
        return True

    async def _trials(self, study: Study) -> tuple[Trial, ...]:
        version, trials = self._known.get(study.id, (0, ()))
        return trials if version == study.version else await self.studies.trials(study.id)

    async def _write(self, study: Study, changed: Sequence[Trial] = (), new: Sequence[Trial] = ()) -> None:
        """Write it where nobody else did meanwhile; else the next step reads what they wrote."""
        trials = await self._trials(study)
        try:
            stored = await self.studies.write_study(study, changed, new)
        except (Conflict, NotFound):
            self._known.pop(study.id, None)
            return
        by_number = {trial.number: trial for trial in changed}
        self._known[study.id] = (
            stored.version,
            (*(by_number.get(trial.number, trial) for trial in trials), *new),
        )
        for trial in changed:
            if trial.is_final and trial.job:
                self.measurements.forget(trial.job)
        self.tell(stored)


def _waits(error: Exhausted) -> Waiting:
    return Waiting(
        reason=Reason.WAITS_FOR_SHARE,
        message=f"Its next trial cannot begin. {error.message}",
        remedy="It begins by itself when its share may have so much again. Or stop the study.",
    )


def _is_to_end(study: Study, trial: Trial) -> bool:
    """A trial that runs as a job, and that the next step may end before it knows of the job."""
    is_ending = study.status.state is StudyState.STOPPING or trial.state is TrialState.STOPPING
    return study.template is not None and is_ending

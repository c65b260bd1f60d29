"""Use cases of trials that a client runs: ask, measure, complete, delete, and whether to stop.

The API calls it. Every change is a guarded write; where another writer was first, it reads again and retries.
Changes of one study wait for each other: else each of a hundred clients that ask at once would compute
suggestions that only one of them could store.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from weakref import WeakValueDictionary

from trainshed.core.errors import Conflict, Invalid, NotFound, Violation
from trainshed.core.ports import Clock
from trainshed.core.tuning.advance import completed, infeasible
from trainshed.core.tuning.early_stop import early_stops
from trainshed.core.tuning.given_trial import GivenTrial
from trainshed.core.tuning.measurement import Measurement
from trainshed.core.tuning.study import Study, StudyState, StudyStopping, Trial, TrialState, next_number
from trainshed.core.tuning.study_end import room_left, study_end
from trainshed.core.tuning.study_port import StudyStore
from trainshed.core.tuning.suggestion_port import Suggester
from trainshed.core.tuning.suggestion_request import suggestion_request
from trainshed.core.tuning.told_measurement import joined, placed
from trainshed.service.jobs import TRIES

ASKED_FOR = "Its end was asked for."
NO_REASON = "The client said so."
NO_RULES = StudyStopping()


@dataclass(slots=True)
class TrialService:
    store: StudyStore
    suggester: Suggester
    clock: Clock
    hint: Callable[[str], None]
    tell: Callable[[Study, bool], None] = lambda study, is_deleted: None  # called after each change
    _turns: WeakValueDictionary[str, asyncio.Lock] = field(
        default_factory=WeakValueDictionary[str, asyncio.Lock]
    )

    async def get(self, study: Study, number: int) -> Trial:
        trial = await self.store.trial(study.id, number)
        if trial is None:
            raise NotFound(f"There is no trial {study.name}/trials/{number}.")
        return trial

    async def ask(
        self, project: str, location: str, study: str, client: str, count: int
    ) -> tuple[Trial, ...]:
        """Trials for a client to run: those it has not completed, those that wait, and new ones.

        Fewer than `count` where the study has ended or allows no more.
        """
        async with self._turn(study):
            for _ in range(TRIES):
                stored = await self.store.study(project, location, study)
                trials = await self.store.trials(stored.id)
                try:
                    return await self._given(stored, trials, client, count)
                except Conflict:
                    continue
        raise Conflict("The study changes too fast; try again.")

    async def _given(
        self, study: Study, trials: Sequence[Trial], client: str, count: int
    ) -> tuple[Trial, ...]:
        now = self.clock.now()
        own = [t for t in trials if client and t.client == client and t.state is TrialState.ACTIVE][:count]
        if study.is_final or study.status.state is StudyState.STOPPING or len(own) == count:
            return tuple(own)
        if study_end(study, trials, now) is not None:
            self.hint(study.id)
            return tuple(own)
        waiting = [trial for trial in trials if trial.state is TrialState.REQUESTED][: count - len(own)]
        taken = [replace(t, state=TrialState.ACTIVE, client=client, started_at=now) for t in waiting]
        wanted = count - len(own) - len(taken)
        room = room_left(study, trials, now)
        wanted = 0 if study.status.is_exhausted else wanted if room is None else min(wanted, room)
        new = await self._suggested(study, trials, client, wanted) if wanted else []
        is_exhausted = study.status.is_exhausted or len(new) < wanted
        if taken or new or is_exhausted != study.status.is_exhausted:
            status = replace(
                study.status,
                state=StudyState.RUNNING,
                is_exhausted=is_exhausted,
                started_at=study.status.started_at or now,
                updated_at=now,
            )
            self._look_at(await self._write(replace(study, status=status), taken, new))
        return (*own, *taken, *new)

    async def create(self, project: str, location: str, study: str, given: GivenTrial) -> Trial:
        """Store a trial of a person's own. Its point lies in the space."""
        async with self._turn(study):
            for _ in range(TRIES):
                stored = await self.store.study(project, location, study)
                if stored.is_final or stored.status.state is StudyState.STOPPING:
                    raise Conflict(f"Study {stored.name} has ended: it takes no more trials.")
                trials = await self.store.trials(stored.id)
                trial = _given_trial(stored, next_number(stored, trials), given, self.clock.now())
                try:
                    stored = await self._write(stored, (), (trial,))
                except Conflict:
                    continue
                self._look_at(stored)
                return trial
        raise Conflict("The study changes too fast; try again.")

    async def measure(
        self, project: str, location: str, study: str, number: int, measurement: Measurement
    ) -> Trial:
        def change(stored: Study, trial: Trial) -> Trial:
            now = self.clock.now()
            if trial.state is TrialState.REQUESTED:
                trial = replace(trial, state=TrialState.ACTIVE, started_at=now)
            all_of_them = joined(stored, trial.measurements, placed(measurement, trial, now))
            return replace(trial, measurements=all_of_them)

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
            trial = replace(trial, started_at=trial.started_at or now)
            return _ended(stored, trial, final, infeasible_reason, now)

        return await self._change_trial(project, location, study, number, change)

    async def delete(self, project: str, location: str, study: str, number: int) -> None:
        """Its number is never given again."""
        async with self._turn(study):
            for _ in range(TRIES):
                stored = await self.store.study(project, location, study)
                await self.get(stored, number)
                if stored.template is not None:
                    raise Conflict(f"Trials of {stored.name} run as jobs: they are deleted with it.")
                # Its point may be suggested again.
                status = stored.status if stored.is_final else replace(stored.status, is_exhausted=False)
                last = max(stored.last_number, number)
                try:
                    stored = await self._write(
                        replace(stored, status=status, last_number=last), removed=(number,)
                    )
                except Conflict:
                    continue
                self._look_at(stored)  # without it the last progress may be longer ago
                return
        raise Conflict("The study changes too fast; try again.")

    async def stop_trial(self, project: str, location: str, study: str, number: int) -> Trial:
        """Ask for the early end of one trial; it counts with its last measurement."""

        def change(stored: Study, trial: Trial) -> Trial:
            if trial.state is TrialState.STOPPING:
                return trial
            if trial.state is TrialState.REQUESTED and stored.template is None:
                return infeasible(trial, f"It had not begun. {ASKED_FOR}", self.clock.now())
            return replace(trial, state=TrialState.STOPPING, stopped=ASKED_FOR)

        trial = await self._change_trial(project, location, study, number, change)
        self.hint(trial.study)
        return trial

    async def should_stop(self, project: str, location: str, study: str, number: int) -> str:
        """Why a client should end this trial early; empty where it should go on. It is stored, too."""
        stored = await self.store.study(project, location, study)
        trials = await self.store.trials(stored.id)
        trial = next((trial for trial in trials if trial.number == number), None)
        if trial is None:
            raise NotFound(f"There is no trial {stored.name}/trials/{number}.")
        if trial.is_final:
            return "It has ended."
        if trial.state is TrialState.STOPPING:
            return trial.stopped or ASKED_FOR
        why = early_stops(stored, trials, (trial,)).get(number, "")
        if why:
            await self._change_trial(
                project,
                location,
                study,
                number,
                lambda _, trial: replace(trial, state=TrialState.STOPPING, stopped=why),
            )
        return why

    async def _suggested(self, study: Study, trials: Sequence[Trial], client: str, count: int) -> list[Trial]:
        request = suggestion_request(study, trials, count, await self.store.earlier_trials(study))
        points = await self.suggester.suggest(request)
        now = self.clock.now()  # to suggest may take its time, which is none of the trials'
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
            for at, point in enumerate(points)
        ]

    async def _change_trial(
        self,
        project: str,
        location: str,
        study: str,
        number: int,
        change: Callable[[Study, Trial], Trial],
    ) -> Trial:
        async with self._turn(study):
            for _ in range(TRIES):
                stored = await self.store.study(project, location, study)
                trial = await self.get(stored, number)
                if trial.is_final:
                    name = f"{stored.name}/trials/{number}"
                    raise Conflict(f"Trial {name} is in state {trial.state}: it is completed already.")
                new = change(stored, trial)
                if new is trial:
                    return trial
                try:
                    await self._write(stored, (new,))
                except Conflict:
                    continue
                if new.is_final:
                    self._look_at(stored)
                return new
        raise Conflict("The study changes too fast; try again.")

    async def _write(
        self,
        study: Study,
        changed: Sequence[Trial] = (),
        new: Sequence[Trial] = (),
        removed: Sequence[int] = (),
    ) -> Study:
        stored = await self.store.write_study(study, changed, new, removed)
        self.tell(stored, False)
        return stored

    def _turn(self, study: str) -> asyncio.Lock:
        return self._turns.setdefault(study, asyncio.Lock())

    def _look_at(self, study: Study) -> None:
        """Hint the loop where what was stored may end the study. It would read all trials for nothing."""
        if study.status.is_exhausted or study.spec.stopping != NO_RULES:
            self.hint(study.id)


def _given_trial(study: Study, number: int, given: GivenTrial, now: datetime) -> Trial:
    trial = Trial(
        study=study.id,
        number=number,
        point=given.point,
        requested_at=now,
        is_given=True,
        client=given.client,
        state=TrialState.ACTIVE if given.client else TrialState.REQUESTED,
        started_at=now if given.client else None,
    )
    for measurement in given.measurements:
        trial = replace(trial, measurements=joined(study, trial.measurements, measurement))
    if not given.is_completed and given.infeasible is None:
        return trial
    return _ended(study, replace(trial, started_at=now), given.final, given.infeasible, now)


def _ended(study: Study, trial: Trial, final: Measurement | None, why: str | None, now: datetime) -> Trial:
    if why is not None:
        return infeasible(trial, why or NO_REASON, now)
    if final is not None:
        final = placed(final, trial, now)
        missing = [o.metric for o in study.spec.objectives if o.metric not in final.values]
        if missing:
            sentence = f"has no value of {' and '.join(missing)}, which the study is about."
            raise Invalid((Violation("final_measurement.metrics", sentence),))
    return completed(study, trial, now, final=final)

"""Use cases of trials that a client runs: ask, measure, complete, and whether to stop.

The API calls it. Every change is a guarded write; where another writer was first, it reads again and retries.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from trainshed.core.advance import completed, infeasible
from trainshed.core.errors import Conflict, NotFound
from trainshed.core.measurement import Measurement
from trainshed.core.ports import Clock
from trainshed.core.stopping import should_stop
from trainshed.core.study import Study, StudyState, Trial, TrialState
from trainshed.core.study_end import study_end
from trainshed.core.study_port import StudyStore
from trainshed.core.suggestion_port import Suggester
from trainshed.core.suggestion_request import suggestion_request
from trainshed.service.jobs import TRIES


@dataclass(slots=True)
class TrialService:
    store: StudyStore
    suggester: Suggester
    clock: Clock
    hint: Callable[[str], None]

    async def get(self, study: Study, number: int) -> Trial:
        trial = await self.store.trial(study.id, number)
        if trial is None:
            raise NotFound(f"There is no trial {number} of {study.name}.")
        return trial

    async def ask(
        self, project: str, location: str, study: str, client: str, count: int
    ) -> tuple[Trial, ...]:
        """Trials for a client to run. One that asks again gets those again that it has not completed."""
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
            trial = await self.get(stored, number)
            if trial.is_final:
                raise Conflict(f"Trial {number} of {stored.name} is in state {trial.state}: it has ended.")
            new = change(stored, trial)
            try:
                await self.store.write_study(stored, (new,))
            except Conflict:
                continue
            return new
        raise Conflict("The study changes too fast; try again.")

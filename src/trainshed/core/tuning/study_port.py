"""StudyStore: remembers studies and their trials. `control/studies.py` and `service/studies.py` use it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from trainshed.core.ports import Operation
from trainshed.core.query import Condition
from trainshed.core.tuning.study import Study, StudyKind, Trial
from trainshed.core.tuning.trial_outline import StudyFigures, TrialOutline, TrialPage, TrialQuery


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyQuery:
    """Studies of a project and location ("-" means any), newest first."""

    project: str = "-"
    location: str = "-"
    kinds: tuple[StudyKind, ...] = ()  # empty: all
    where: Condition | None = None
    limit: int = 100
    cursor: tuple[str, str] | None = None  # from the page before


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyPage:
    studies: tuple[Study, ...]
    next_cursor: tuple[str, str] | None = None


class StudyStore(Protocol):
    """Remembers studies and trials.

    1. a write that returned survives kill -9.
    2. write_study is guarded: Conflict, and nothing changed, unless the row still has study.version.
    3. a study and the trials of one write land together or not at all.
    4. two trials of a study never have the same number: the second is a Conflict.
    5. insert_study with a known idempotency key gives the study made first and inserts nothing.
    6. outlines, figures and pages have the trials as they were last written.
    7. earlier_trials has nothing of a study of another project, whatever the study names.
    """

    async def insert_study(
        self, study: Study, idempotency_key: str = "", trials: Sequence[Trial] = ()
    ) -> Study: ...

    async def study(self, project: str, location: str, study: str) -> Study:
        """By project, location and id. "-" means any project or location. NotFound where there is none."""
        ...

    async def load_study(self, study: str) -> Study | None: ...

    async def keyed_study(self, project: str, key: str) -> Study | None:
        """The study that was inserted with that idempotency key."""
        ...

    async def studies(self, query: StudyQuery) -> StudyPage: ...

    async def active_studies(self) -> tuple[Study, ...]:
        """All that are not final."""
        ...

    async def write_study(
        self,
        study: Study,
        changed: Sequence[Trial] = (),
        new: Sequence[Trial] = (),
        removed: Sequence[int] = (),
    ) -> Study:
        """Replace the study where its version still is study.version; the study with its next version.

        Its trials are written with it. `removed` has the numbers of those that are deleted.
        """
        ...

    async def trials(self, study: str) -> tuple[Trial, ...]:
        """All of them, by number."""
        ...

    async def earlier_trials(self, study: Study) -> tuple[tuple[Trial, ...], ...]:
        """Those of each earlier study that it names and that is there."""
        ...

    async def trial(self, study: str, number: int) -> Trial | None: ...

    async def trial_page(self, query: TrialQuery) -> TrialPage: ...

    async def outlines(self, study: str) -> tuple[TrialOutline, ...]:
        """All trials in short, by number."""
        ...

    async def figures(self, studies: Sequence[Study]) -> Mapping[str, StudyFigures]:
        """Of each study, by its id."""
        ...

    async def delete_study(self, study: Study, operation: Operation) -> None:
        """Delete the study and its trials, guarded by version; store the operation."""
        ...

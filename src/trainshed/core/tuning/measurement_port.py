"""The port to what trials measure, and the ports that its reader stands on.

`control/measurements.py` implements MeasurementReader, `control/measurement_hints.py` MeasurementWatch.
Studies call both for each of their trials.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from trainshed.core.jobs.job import Job
from trainshed.core.names import ReplicaName
from trainshed.core.tuning.measurement import ReportedEntry, TrialReport


class MeasurementReader(Protocol):
    """Reads what the program of a trial reports, in whichever way.

    1. a job that runs and one that has ended can be read, also by the next server.
    2. the primary replica counts; another only for metrics that the primary reports in no way.
    3. what was read stays, though the program's file keeps only its latest reports. Between two calls the
       collector looks at the files every two seconds, from the first call on.
    4. a call that finds nothing new is cheap. Nothing that a program writes makes it fail, nor takes memory
       without bounds.
    """

    async def read(self, job: Job, metrics: Sequence[str], pattern: str = "") -> TrialReport:
        """`pattern`: a regular expression for lines of the output; empty: `NAME=NUMBER`, `NAME: NUMBER`.

        Raises Invalid where the pattern is not understood.
        """
        ...

    def forget(self, job_id: str) -> None:
        """The trial is over, or its job is deleted. A later read begins anew."""
        ...


class MeasurementWatch(Protocol):
    """Says when to read. A hint may come for nothing; one that is lost costs time only."""

    def watch(self, job: Job, hint: Callable[[], None]) -> bool:
        """Call `hint` soon after the program of a running job has said something, until its output is over.

        A second call changes nothing. False: some of what it may report comes without a hint.
        """
        ...


class ReportedHistory(Protocol):
    """What replicas report through files: hypertune's, and that of `trainshed.report`."""

    async def reported(self, names: Sequence[ReplicaName]) -> tuple[ReportedEntry, ...]:
        """All that is known of these, thinned where it is much. From now on they are looked at often."""
        ...

    def watch(self, job: str, hint: Callable[[], None]) -> bool:
        """After each `reported` of the job's replicas, call `hint` once they have reported more.

        False where nobody tells.
        """
        ...

    def unwatch(self, job: str) -> None: ...


@dataclass(frozen=True, slots=True)
class PrintedValue:
    name: str
    value: float
    step: int | None = None  # None: the line does not say


class PrintedMetrics(Protocol):
    """Finds metrics in lines of output, in time in proportion to the line."""

    def values(self, text: str) -> list[PrintedValue]:
        """The last value of each wanted metric in the line."""
        ...

    def names(self, text: str) -> list[str]:
        """All metrics in the line, wanted or not."""
        ...


class MakePrintedMetrics(Protocol):
    def __call__(self, pattern: str, metrics: Sequence[str]) -> PrintedMetrics:
        """Raises Invalid where the pattern is not understood."""
        ...

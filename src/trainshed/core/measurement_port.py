"""Stand-in until the real one comes."""

from collections.abc import Sequence
from typing import Protocol

from trainshed.core.job import Job
from trainshed.core.measurement import TrialReport


class MeasurementReader(Protocol):
    async def read(self, job: Job, metrics: Sequence[str], pattern: str = "") -> TrialReport: ...

    def forget(self, job_id: str) -> None: ...

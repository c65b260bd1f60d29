"""A Study: a search for good parameters, and its Trials: the points that are tried. Frozen values.

A trial of a study with a `template` runs as a job. A trial of one without is run by whoever asked for it: the
client tells its measurements. `store/studies.py` stores these classes by their field names: never rename one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from trainshed.core.event import Waiting
from trainshed.core.jobs.job import JobSpec, JobState
from trainshed.core.tuning.measurement import Measurement
from trainshed.core.tuning.search_space import SearchSpace, TrialPoint
from trainshed.core.tuning.stopping_rule import StoppingRule
from trainshed.core.tuning.suggestion_port import Algorithm, NoiseLevel, Objective

MAX_PARALLEL = 1000
MAX_TRIALS = 100_000
PARTIAL = "partial"  # in the record of a study: its template is not all of what its trials run


class StudyState(StrEnum):
    PENDING = "PENDING"  # no trial has begun
    RUNNING = "RUNNING"
    STOPPING = "STOPPING"  # no new trials; those that run are being ended
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"

    @property
    def is_final(self) -> bool:
        return self in (StudyState.SUCCEEDED, StudyState.FAILED, StudyState.CANCELLED)


class TrialState(StrEnum):
    """Vertex AI's states."""

    REQUESTED = "REQUESTED"  # its point is stored; nothing has begun
    ACTIVE = "ACTIVE"
    STOPPING = "STOPPING"  # asked to end early; it counts with its last measurement
    SUCCEEDED = "SUCCEEDED"
    INFEASIBLE = "INFEASIBLE"

    @property
    def is_final(self) -> bool:
        return self in (TrialState.SUCCEEDED, TrialState.INFEASIBLE)


class Selection(StrEnum):
    """Which measurement of a trial counts."""

    LAST = "LAST_MEASUREMENT"
    BEST = "BEST_MEASUREMENT"


class StudyKind(StrEnum):
    """The grammar that a study came in. It changes how it is shown, not how it is run."""

    TUNING = "tuning"  # a hyperparameterTuningJob
    ASKED = "asked"  # a study of the Vizier service: clients ask and tell
    OLDER = "older"  # an AI Platform job with hyperparameters
    KATIB = "katib"  # an Experiment of Katib


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeLimit:
    """A length of time since the study was created, a moment, or neither."""

    length: timedelta | None = None
    end_at: datetime | None = None

    def left(self, created_at: datetime, now: datetime) -> timedelta:
        """Until it is reached; zero or less once it is. A length: its end may lie beyond all dates."""
        of_length = self.length - (now - created_at) if self.length is not None else timedelta.max
        return min(of_length, self.end_at - now) if self.end_at is not None else of_length

    def is_reached(self, created_at: datetime, now: datetime) -> bool:
        return self.left(created_at, now) <= timedelta()


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyStopping:
    """When a study ends by itself. The least rules must hold before one of the others ends it."""

    asap: bool = False  # a rule that ends the study also ends its running trials; else they may finish
    least_runtime: RuntimeLimit | None = None
    most_runtime: RuntimeLimit | None = None
    least_trials: int = 0
    most_trials: int = 0  # 0: no such rule
    trials_without_progress: int = 0
    time_without_progress: timedelta | None = None
    target: float | None = None  # a value of the first objective that is good enough


@dataclass(frozen=True, slots=True, kw_only=True)
class StudySpec:
    space: SearchSpace
    objectives: tuple[Objective, ...]
    algorithm: Algorithm = Algorithm.DEFAULT
    noise: NoiseLevel = NoiseLevel.LOW
    selection: Selection = Selection.LAST
    trial_stopping: StoppingRule | None = None  # None: trials run to their end
    stopping: StudyStopping = StudyStopping()
    pattern: str = ""  # of lines on stdout that report a metric; empty: NAME=NUMBER
    # Ids of studies of its project whose trials are known from the start; in a request also their names.
    prior_studies: tuple[str, ...] = ()
    extras: Mapping[str, object] = field(default_factory=dict[str, object])  # echoed, not used


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyLimits:
    """How many trials. A study without a template has none of these limits."""

    trials: int = 1
    parallel: int = 1
    failed: int = 0  # failed trials that end the study; 0: `advance` has a rule of its own


ONE_TRIAL = StudyLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyStatus:
    state: StudyState = StudyState.PENDING
    message: str = ""  # why it ended
    waiting: Waiting | None = None  # why its next trial cannot begin yet; trials that run go on
    outcome: StudyState | None = None  # of a study that is STOPPING: what it becomes
    drains: bool = False  # of a study that is STOPPING: trials that run may finish
    is_exhausted: bool = False  # its search space has no further point
    started_at: datetime | None = None
    ended_at: datetime | None = None
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    id: str
    project: str
    location: str
    display_name: str
    spec: StudySpec
    created_at: datetime
    seed: int
    kind: StudyKind = StudyKind.TUNING
    template: JobSpec | None = None  # None: clients run the trials
    limits: StudyLimits = StudyLimits()
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    extras: Mapping[str, object] = field(default_factory=dict[str, object])  # echoed, not used
    # What is kept of a request in another grammar; only its reader understands it.
    record: Mapping[str, object] = field(default_factory=dict[str, object])
    submitter: str = ""
    last_number: int = 0  # the highest number of a trial that was deleted
    status: StudyStatus = StudyStatus()
    version: int = 0

    @property
    def is_final(self) -> bool:
        return self.status.state.is_final

    @property
    def is_partial(self) -> bool:
        """Whether a job of its template and a point would not be the job of a trial."""
        return bool(self.record.get(PARTIAL))

    @property
    def job_state(self) -> JobState:
        """As lists of jobs show and find it."""
        match self.status.state:
            case StudyState.STOPPING:
                is_cancelled = self.status.outcome is StudyState.CANCELLED
                return JobState.CANCELLING if is_cancelled else JobState.RUNNING
            case state:
                return JobState(state.value)

    @property
    def name(self) -> str:
        """Its resource name: that of Vizier's studies, or of tuning jobs."""
        resource = "studies" if self.kind is StudyKind.ASKED else "hyperparameterTuningJobs"
        return f"projects/{self.project}/locations/{self.location}/{resource}/{self.id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    study: str  # its id
    number: int  # from 1
    point: TrialPoint
    requested_at: datetime
    state: TrialState = TrialState.REQUESTED
    is_given: bool = False  # a person asked for this point
    client: str = ""  # who asked for it, and gets it again when asking again
    job: str = ""  # the id of the job that runs it
    measurements: tuple[Measurement, ...] = ()
    final: Measurement | None = None
    infeasible: str = ""  # why
    stopped: str = ""  # why it was ended early
    started_at: datetime | None = None
    ended_at: datetime | None = None

    @property
    def is_final(self) -> bool:
        return self.state.is_final


def next_number(study: Study, trials: Sequence[Trial]) -> int:
    """The number of the study's next trial. That of a deleted one is never given again."""
    return max(study.last_number, max((trial.number for trial in trials), default=0)) + 1

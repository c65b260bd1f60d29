"""A Job: what a person asked for, and its status. Frozen values; a change is a new value.

Everything uses it. `store/codec.py` stores these classes by their field names: never rename a field.
`Pool.role` and the words of `Job.origin` are not stored: the reader of the job's grammar sets them, at the
submit and each time the store reads the job.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from trainshed.core.event import Reason, Waiting
from trainshed.core.jobs.hang import DEFAULT_WATCH, HangRule, Suspicion
from trainshed.core.jobs.nfs import NfsMount
from trainshed.core.jobs.origin import Origin
from trainshed.core.jobs.replica import Replica
from trainshed.core.jobs.verdict import Verdict
from trainshed.core.names import ReplicaName, RunKey
from trainshed.core.queue.fleet import Admission, Claim

MAX_POOLS = 10
MAX_REPLICAS = 1000  # a pool
MAX_ENV = 100  # a pool

PIPELINE = "pipeline"  # the kind of origin of a training pipeline's job
NOT_STORED = {"stored": False}  # metadata of fields that `store/codec.py` leaves out


class JobState(StrEnum):
    QUEUED = "QUEUED"
    PENDING = "PENDING"  # admitted; its replicas are starting
    RUNNING = "RUNNING"
    CANCELLING = "CANCELLING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"

    @property
    def is_final(self) -> bool:
        return self in FINAL


FINAL = frozenset({JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """A homogeneous group of replicas. Position is role: an empty pool keeps the others in place."""

    machine_type: str = ""
    cpus: float = 0
    memory: int = 0
    accelerator: str = ""
    accelerators: int = 0
    replicas: int = 0
    image: str = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    packages: tuple[str, ...] = ()  # Python packages to install, with the module to run
    module: str = ""
    is_reducer: bool = False
    nfs: tuple[NfsMount, ...] = ()
    disk: int = 0  # bytes a replica may fill; 0: no limit
    scratch: tuple[str, ...] = ()  # folders each run finds empty, by their paths
    extras: Mapping[str, object] = field(default_factory=dict[str, object])  # echoed, not used
    role: str = field(default="", metadata=NOT_STORED)  # its name in CLUSTER_SPEC; empty: workerpoolN

    @property
    def is_empty(self) -> bool:
        return self.replicas == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartRule:
    """Which failures are retried, and how often. The defaults are Vertex AI's."""

    retry_codes: tuple[tuple[int, int], ...] = ((129, 255),)  # inclusive ranges
    replica_restarts: int = 5
    job_retries: int = 3
    backoff: timedelta = timedelta(seconds=0.5)  # doubles each time
    backoff_most: timedelta = timedelta(seconds=30)
    whole_gang: bool = False  # a replica's restart restarts the whole job
    disabled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduling:
    timeout: timedelta = timedelta(days=7)
    max_wait: timedelta | None = None
    strategy: str = ""  # as Google names them
    priority: int = 0
    grace: timedelta = timedelta(seconds=30)  # the Kubernetes default, the same on all backends
    drain: timedelta = timedelta(seconds=60)  # how long others may run after the primary has succeeded
    success_pools: tuple[int, ...] = ()  # all their replicas must succeed; empty: the primary alone
    hold: timedelta = timedelta()  # how long replicas of a failed job are held for inspection
    restart: RestartRule = RestartRule()
    hang: HangRule = DEFAULT_WATCH

    @property
    def is_spot(self) -> bool:
        """Whether it runs outside all shares, and gives way to jobs that do not."""
        return self.strategy in ("SPOT", "LOW_COST")  # the older name


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    pools: tuple[Pool, ...]
    scheduling: Scheduling = Scheduling()
    output: str = ""  # base output directory
    web_access: bool = False
    code: str = ""  # the id of the folder its replicas run in (core.supplies.code); empty: none
    working_directory: str = ""  # where in its code each replica starts; empty: at the top
    requirements: tuple[str, ...] = ()  # lines of a requirements file, on top of each pool's runtime
    isolated: bool = False  # its replicas reach each other and this server, and nothing else
    persistent_resource: str = ""  # the id of the one it runs in, of its project and location; empty: none
    extras: Mapping[str, object] = field(default_factory=dict[str, object])


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a job failed, in the words its owner reads first."""

    reason: Reason
    message: str
    task: str = ""
    verdict: Verdict | None = None  # of a job that is over


class Outcome(StrEnum):
    """What follows once all replicas of a closing attempt are gone."""

    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    RETRY = "RETRY"
    PREEMPTED = "PREEMPTED"  # back to the queue, for a new attempt


@dataclass(frozen=True, slots=True, kw_only=True)
class Closing:
    """The stored decision to end the current attempt. Replicas are stopped because of it, never before."""

    outcome: Outcome
    since: datetime
    failure: Failure | None = None
    lost: timedelta | None = None  # the work since its last checkpoint, where it is preempted


@dataclass(frozen=True, slots=True, kw_only=True)
class Requeue:
    """When a job was put back into the queue, and why."""

    at: datetime
    message: str
    in_vain: int = 0  # how often in a row it had stored nothing of its run
    pauses_until: datetime | None = None  # before that it starts only where it has a right to its share
    began: datetime | None = None  # the run that it lost, where it pauses


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """The state of a job: the part of it that changes."""

    state: JobState = JobState.QUEUED
    attempt: int = 0
    uncounted: int = 0  # attempts that began because one was interrupted
    admission: Admission | None = None
    replicas: tuple[Replica, ...] = ()
    closing: Closing | None = None
    waiting: Waiting | None = None
    hang: Suspicion | None = None  # a suspected hang
    failure: Failure | None = None
    claim: Claim | None = None  # jobs are being stopped for it
    requeue: Requeue | None = None  # the last, where it was preempted
    cancel_asked_at: datetime | None = None
    preparing_since: datetime | None = None  # when its preparation began, where it needed any
    prepared_at: datetime | None = None
    admitted_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    updated_at: datetime | None = None


class OwnerKind(StrEnum):
    PIPELINE = "pipeline"
    STUDY = "study"


@dataclass(frozen=True, slots=True)
class Owner:
    """The resource that a job belongs to, fixed at its submit."""

    kind: OwnerKind
    id: str

    def __str__(self) -> str:
        return f"{self.kind.value}/{self.id}"

    @classmethod
    def parse(cls, text: str) -> "Owner":
        """The owner that `str` wrote. Raises ValueError for any other text."""
        kind, slash, identity = text.partition("/")
        if not slash or not identity or kind not in tuple(OwnerKind):
            kinds = " or ".join(f"{known.value}/ID" for known in OwnerKind)
            raise ValueError(f"must be {kinds}, not '{text[:60]}'")
        return cls(OwnerKind(kind), identity)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    id: str
    project: str
    location: str
    display_name: str
    spec: JobSpec
    created_at: datetime
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    status: Status = Status()
    version: int = 0
    extras: Mapping[str, object] = field(default_factory=dict[str, object])  # echoed, not used
    owner: Owner | None = None
    origin: Origin | None = None  # None: the request was a customJob
    submitter: str = ""  # the user's name as the client gave it: information, not proof

    @property
    def is_final(self) -> bool:
        return self.status.state.is_final

    @property
    def name(self) -> str:
        return f"projects/{self.project}/locations/{self.location}/customJobs/{self.id}"

    @property
    def persistent_resource(self) -> str:
        """The full name of the persistent resource that it names; empty where it names none."""
        resource = self.spec.persistent_resource
        parent = f"projects/{self.project}/locations/{self.location}"
        return f"{parent}/persistentResources/{resource}" if resource else ""

    @property
    def kind(self) -> str:
        """The kind of its origin; empty for a customJob."""
        return "" if self.origin is None else self.origin.kind

    def key(self, replica: Replica) -> RunKey:
        """The identity of the given replica's current run."""
        return RunKey(ReplicaName(self.id, self.status.attempt, replica.pool, replica.index), replica.run)


def waits_since(job: Job) -> datetime:
    """When the job came to the queue, for the last time."""
    return job.created_at if job.status.requeue is None else job.status.requeue.at


def planned_replicas(spec: JobSpec) -> tuple[Replica, ...]:
    """All replicas of a fresh attempt, primary first."""
    return tuple(
        Replica(pool=number, index=index)
        for number, pool in enumerate(spec.pools)
        for index in range(pool.replicas)
    )


def primary(spec: JobSpec) -> tuple[int, int]:
    """The pool and index of the primary replica: the first one there is."""
    first = next(number for number, pool in enumerate(spec.pools) if not pool.is_empty)
    return first, 0

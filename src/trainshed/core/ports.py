"""The ports: small protocols between the core and the outside. Each numbered promise has a contract test.

A promise holds for every implementation, the fakes included. What only some backends can do is an ability: an
attribute of the backend with a type of its own, or None. Nobody asks for a class.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from trainshed.core.accounts.directory import Directory
from trainshed.core.accounts.permission import Principal
from trainshed.core.caller_port import Callers
from trainshed.core.columns import ColumnQuery, Columns
from trainshed.core.event import Event
from trainshed.core.job_figures_port import JobFigures
from trainshed.core.jobs.job import Job, JobSpec, Status
from trainshed.core.jobs.launch import Launch
from trainshed.core.jobs.readiness import PreparationProgress, Readiness
from trainshed.core.jobs.replica import Handle, Observation
from trainshed.core.metrics import Measure, MetricQuery, Report, Sample, Series
from trainshed.core.names import ReplicaName, RunKey
from trainshed.core.query import JobQuery
from trainshed.core.queue.fleet import Admission, Node
from trainshed.core.queue.share import ShareTree
from trainshed.core.shell_port import Shells
from trainshed.core.stats_port import NodeStats, Stacks, Stats
from trainshed.core.supplies.image_port import ImageInventory, ImageStore
from trainshed.core.view import Views


class Clock(Protocol):
    """The one source of time. It never runs backwards and does not follow a jump of the wall clock."""

    def now(self) -> datetime: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    name: str
    survives_server: bool  # replicas go on while no server runs
    kills_escapees: bool  # a process that double-forked away is found and killed too
    measures: frozenset[Measure] = frozenset()  # what its Stats measures
    moves: bool = False  # a replica whose node is gone can be launched all the same, and runs on another
    private_network: bool = False  # the replicas of a job have a network of their own, and names in it
    starts_at_once: int = 4  # of a job: an engine is slow to start each


class Backend(Protocol):
    """Starts, sees and stops replicas.

    1. launch is idempotent: the same RunKey twice gives the first Handle and one run, also across a crash.
    2. launch of run n makes sure that every earlier run of the same name is gone first.
    3. observe shows every run launched and not removed, with its true exit status once all of it is gone.
    4. a run whose exit status nobody holds is LOST, never guessed.
    5. stop(force=False) asks once, however often called; stop(force=True) kills all of it, escapees too.
    6. stopping or removing what is not there is no error.
    7. remove forgets a job's ended runs and leaves no process, cgroup or private file but the logs.
    8. a program that cannot be started ends with code 127 (not found) or 126, and says why on its stderr.
    9. output goes to the files that RunFiles names, in order, whatever the server does. All of it is there
       when the end of the run is shown.
    10. nothing blocks the event loop.
    11. what prepare has called READY can be launched at once, until somebody takes it away again.
    12. what is PREPARING becomes READY or FAILED by itself, and every job that waits for it is hinted then.
    13. FAILED stays FAILED for the jobs that waited for it; the next job that asks begins anew.
    14. a run launched to be held is HELD, with its exit status, once its program has ended badly and was not
        asked to; its place stays until it is stopped or a later run is launched. Where that cannot be done
        its note says so.
    15. a program finds each peer by all names that its launch has for it. Where that cannot be done its note
        says so.
    """

    @property
    def capabilities(self) -> Capabilities: ...

    # The abilities: None where the backend does not have them.

    @property
    def stats(self) -> Stats | None: ...

    @property
    def stacks(self) -> Stacks | None: ...

    @property
    def shells(self) -> Shells | None: ...

    @property
    def views(self) -> Views | None: ...

    @property
    def images(self) -> ImageStore | None: ...

    @property
    def image_inventories(self) -> Sequence[ImageInventory]: ...

    @property
    def callers(self) -> Callers | None: ...

    @property
    def node_stats(self) -> NodeStats | None: ...

    async def start(self) -> None:
        """Find what an earlier server left running, and watch it."""
        ...

    async def close(self) -> None:
        """Stop watching. Replicas go on."""
        ...

    async def nodes(self) -> tuple[Node, ...]: ...

    def refuse_image(self, image: str) -> str | None:
        """A sentence naming the image and what would run it, or None where it can run here."""
        ...

    def prepare(self, spec: JobSpec, job: str = "") -> Readiness:
        """The readiness of what the job needs before it can start; starts the preparation.

        Without a job id no preparation starts. Cheap: for what is ready only a lookup.
        """
        ...

    def preparing(self) -> tuple[PreparationProgress, ...]:
        """How far everything is that is being prepared now, for whichever jobs."""
        ...

    def render(self, launch: Launch) -> Mapping[str, object]:
        """What would be started, as plain data. Pure."""
        ...

    async def launch(self, launch: Launch) -> Handle: ...

    async def observe(self, job: str) -> tuple[Observation, ...]: ...

    async def stop(self, key: RunKey, *, force: bool) -> None: ...

    async def remove(self, job: str) -> None: ...

    async def jobs(self) -> frozenset[str]:
        """The ids of all jobs of which anything is left here."""
        ...

    async def address(self, admission: Admission, spec: JobSpec, avoid: frozenset[int]) -> Admission:
        """The admission with the host and port by which replicas reach each other, and the master's port.

        They stay the same however often a replica is started again. Where replicas share the ports of their
        machine, nobody listens on them now and none is of `avoid`.
        """
        ...

    def on_change(self, hint: Callable[[str], None]) -> None:
        """Call hint(job) soon after anything of that job changes. Hints may be lost or spurious."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPage:
    jobs: tuple[Job, ...]
    next_cursor: tuple[str, str] | None = None  # (value of the order, id) after which the next page begins


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """A finished long-running operation, stored so that clients can get it."""

    name: str
    kind: str  # e.g. "delete"
    target: str
    created_at: datetime


class Store(JobFigures, Protocol):
    """Remembers jobs, events and operations.

    1. a write that returned survives kill -9 and, on a sane disk, a power cut.
    2. write is guarded: Conflict, and nothing changed, unless the row still has job.version.
    3. status and events of one write land together or not at all.
    4. insert with a known idempotency key gives the job made first and inserts nothing.
    5. find pages in a stable order, newest first unless the query says otherwise, however many jobs come and
       go between pages.
    6. active gives every job that is not final, and costs nothing for those that are.
    7. relabel is guarded as write is, and touches nothing but labels and version.
    8. write keeps the intervals that end with it (core.ledger) together with the status, each once; they are
       never changed, and stay when the job is deleted.
       The sums by day (core.day_use) are kept in the same write.
    9. on_commit tells every job that is not final, then each commit of a job, in the order of its versions
       and before its caller is answered.
    10. where a database lost commits, each job goes on from what the database has: after a Conflict, load
        gives that, and on_commit tells it.
    """

    async def start(self) -> None: ...

    async def close(self) -> None: ...

    async def insert(self, job: Job, events: Sequence[Event], idempotency_key: str = "") -> Job:
        """Store a new job with version 1. With a key that the project used before: return the earlier job."""
        ...

    async def get(self, project: str, location: str, job: str) -> Job:
        """The job by project, location and id. "-" means any project or location."""
        ...

    async def load(self, job: str) -> Job | None:
        """The job by id alone, for the control loops. None where it does not exist."""
        ...

    async def keyed(self, project: str, key: str) -> Job | None:
        """The job inserted with that key; None where there is none."""
        ...

    async def find(self, query: JobQuery) -> JobPage: ...

    async def active(self) -> tuple[Job, ...]: ...

    def on_commit(self, follow: Callable[[Job, bool], None]) -> None:
        """Call follow(job, is_deleted) now for every job that is not final, and at each commit of any job."""
        ...

    async def catch_up(self) -> None:
        """Make sure that followers know what is stored, also where the answer to a commit was lost."""
        ...

    async def write(
        self, job: Job, status: Status, events: Sequence[Event] = (), *, flush: bool = True
    ) -> Job:
        """Replace the status where the version still is job.version; the new job with the next version.

        Without `flush` a power cut, but no kill, may take it back: for what would be decided anew anyway.
        """
        ...

    async def relabel(self, job: Job, labels: Mapping[str, str]) -> Job:
        """Replace all labels where the version still is job.version; the new job with the next version."""
        ...

    async def delete(self, job: Job, operation: Operation) -> None:
        """Delete an ended job and its events, guarded by version; store the operation."""
        ...

    async def operation(self, name: str) -> Operation: ...

    async def operations(self, project: str, limit: int, after: str = "") -> tuple[Operation, ...]:
        """The project's operations in the order of their names, behind the given one."""
        ...

    async def deleted(self, among: frozenset[str]) -> frozenset[str]:
        """Those of the given ids whose jobs were deleted; ids that never existed are not among them."""
        ...

    async def events(self, job: str, after: int = 0, limit: int = 1000) -> tuple[Event, ...]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Sink:
    stdout: str
    stderr: str


@dataclass(frozen=True, slots=True)
class ReportSource:
    """Where a replica may report progress: the file that `MetricStore.sink` named, and its output."""

    name: ReplicaName
    stdout: str


class MetricStore(Protocol):
    """Keeps what replicas use and report.

    1. what record took survives kill -9, at every resolution.
    2. query gives each series in order of time, no moment twice, from since to until.
    3. the last 30 minutes are kept as recorded, 6 hours every 10 s at least, the rest every 60 s.
    4. the room a job takes is bounded, however long it runs.
    5. a damaged or half-written file costs its own points, never an answer.
    6. remove leaves nothing of the job.
    """

    async def start(self) -> None: ...

    async def close(self) -> None: ...

    def sink(self, name: ReplicaName) -> str:
        """The file a replica may report into; its folder is made where missing."""
        ...

    async def reports(self, sources: Sequence[ReportSource]) -> Mapping[ReplicaName, Report]:
        """The latest report of each replica that has reported since the last call, or ever."""
        ...

    async def record(self, samples: Mapping[str, Sequence[Sample]]) -> None:
        """Store samples by job, each series in order of time. What cannot be stored is dropped and logged."""
        ...

    async def query(self, job: str, query: MetricQuery) -> tuple[Series, ...]: ...

    async def columns(self, queries: Mapping[str, ColumnQuery]) -> Mapping[str, Columns]:
        """The series of each job, over moments that they share. Every moment kept or enough of them."""
        ...

    async def remove(self, job: str) -> None: ...


class RunFiles(Protocol):
    """The server's files for what replicas write, by the replica: all its runs append to the same.

    A backend is made with it. Where the replicas see the server's disk, they write straight into the files;
    elsewhere the backend would append to them what it receives.
    """

    def output(self, name: ReplicaName) -> Sink:
        """The files for its output; made with their folder where missing."""
        ...

    def report(self, name: ReplicaName) -> str:
        """The file for its progress, which TRAINSHED_REPORT names to the program; empty where none can be.

        The file of cloudml-hypertune lies beside it (core.metrics.hypertune_file).
        """
        ...


class Authenticator(Protocol):
    def authenticate(self, authorization: str | None) -> Principal:
        """Who asks, by the header. Raises Unauthenticated (it is wrong) or Forbidden (there is none)."""
        ...


class PresentRights(Protocol):
    """What callers may do now, for calls that last longer than a moment."""

    def of(self, principal: Principal) -> Principal:
        """With the rights that it has now. Raises Unauthenticated where its token has ended."""
        ...

    def listen(self, principal: Principal, listener: Callable[[], None]) -> AbstractContextManager[None]:
        """Until the context ends, `listener` is called whenever these rights may have changed."""
        ...


class DirectoryStore(Protocol):
    """Keeps the accounts, in memory and where no kill can take them away."""

    directory: Directory  # as it is now
    listeners: set[Callable[[], None]]  # called after each change

    def change(self, changed: Callable[[Directory], Directory]) -> Directory:
        """What `changed` makes of it, once that is kept. Where it raises nothing has changed."""
        ...


class ShareStore(Protocol):
    """Keeps the shares that were set by the API, in memory and where no kill can take them away."""

    def __call__(self) -> ShareTree | None:
        """As they are set now; None: they are not."""
        ...

    def put(self, document: Mapping[str, object], check: Callable[[ShareTree | None], None]) -> None:
        """Shares as the file has them; an empty one removes them. Raises Invalid with every violation.

        `check` gets them before they are kept, and raises Invalid for those that cannot be.
        """
        ...


class SessionSigner(Protocol):
    """SessionSigner of browsers, each for somebody who has shown the server's token or one of an account.

    1. a session is known to every server of the home until it ends, or until the token changes.
    2. without the home's secret nobody can make one.
    3. a session has the rights that the token it was made with has now.
    4. a session that was ended is nobody's from then on, on every server of the home.
    """

    cookie: str  # the name of the cookie that holds a session

    def issue(self, now: datetime, token: str = "") -> tuple[str, timedelta]:
        """A new session, and how long it lasts. `token` is the id of an account's, or empty."""
        ...

    def principal(self, session: str, now: datetime) -> Principal | None:
        """Whose session it is; None where it is over or was not issued here."""
        ...

    def end(self, session: str, now: datetime) -> None:
        """Ends it for good. What was not issued here is passed over."""
        ...

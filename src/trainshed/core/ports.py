"""The seams: small protocols between the core and the world. Each numbered promise has a contract test.

A promise holds for every implementation, the fakes included; what only some can do is a declared
capability, never guessed by class.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from trainshed.core.code import Manifest, Piece
from trainshed.core.event import Event
from trainshed.core.fleet import Node
from trainshed.core.job import Job, JobSpec, JobState, Status
from trainshed.core.launch import Launch
from trainshed.core.logs import Line, LogQuery
from trainshed.core.metrics import Measure, MetricQuery, Report, Sample, Series, Usage
from trainshed.core.names import ReplicaName, RunKey
from trainshed.core.query import JobQuery
from trainshed.core.readiness import Readiness
from trainshed.core.replica import Handle, Observation
from trainshed.core.runtime import Runtime
from trainshed.core.stacks import Dump


class Clock(Protocol):
    """The one source of time. It never runs backwards and does not follow a jump of the wall clock."""

    def now(self) -> datetime: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    name: str
    survives_server: bool  # replicas go on while no server runs
    kills_escapees: bool  # a process that double-forked away is found and killed too
    measures: frozenset[Measure] = frozenset()  # what its Stats tells; none: it has no Stats
    stacks: bool = False  # it has Stacks


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
    9. output goes to the files named in the Launch, in order, whatever the server does.
    10. nothing blocks the event loop.
    11. what prepare has called READY can be launched at once, until somebody takes it away again.
    12. what is PREPARING becomes READY or FAILED by itself, and every job that waits for it is hinted then.
    13. FAILED stays FAILED for the jobs that waited for it; the next job that asks begins anew.
    """

    capabilities: Capabilities

    async def start(self) -> None:
        """Find again what an earlier server left running, and begin to watch it."""
        ...

    async def close(self) -> None:
        """Stop watching. Replicas go on."""
        ...

    async def nodes(self) -> tuple[Node, ...]: ...

    def refuse_image(self, image: str) -> str | None:
        """A sentence naming the image and what would run it, or None where it can run here."""
        ...

    def prepare(self, spec: JobSpec, job: str = "") -> Readiness:
        """Where what the job needs before it can start stands, and begin it where nobody has.

        Without a job nothing is begun. Cheap: for what is ready a look-up, however often asked.
        """
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

    async def free_ports(self, count: int, avoid: frozenset[int]) -> tuple[int, ...]:
        """Ports nobody listens on now, none of `avoid`."""
        ...

    def on_change(self, hint: Callable[[str], None]) -> None:
        """Call hint(job) soon after anything of that job changes. Hints may be lost or spurious."""
        ...


class Runtimes(Protocol):
    """Named environments (framework, version) that stand in for images; for backends that have no images.

    1. an image that is not refused has a runtime, and readiness always comes to READY or FAILED.
    2. however many jobs ask at once, a runtime is made once; half of one, left by a killed server, is none.
    3. python gives the interpreter of a READY one; Unavailable where it is not there (any more).
    4. none is taken away while a job that is not over wants it.
    """

    def refuse(self, image: str) -> str | None:
        """A sentence naming the image and what would run it, or None where there is a runtime for it."""
        ...

    def readiness(self, image: str, requirements: tuple[str, ...], job: str = "") -> Readiness:
        """As Backend.prepare, for one image and the lines on top of it."""
        ...

    def python(self, image: str, requirements: tuple[str, ...] = ()) -> str: ...

    def warm_imports(self, image: str) -> tuple[str, ...]:
        """The modules that take long to import, worth having imported before a program starts."""
        ...

    def on_change(self, hint: Callable[[str], None]) -> None:
        """Call hint(job) soon after the readiness of what the job waits for moves."""
        ...


class RuntimeShelf(Protocol):
    """The runtimes as people see them: what is built, and how to have one built or removed."""

    def all(self) -> tuple[Runtime, ...]:
        """Those that are there, being built, or could be."""
        ...

    def get(self, identity: str) -> Runtime: ...

    def begin(self, image: str, requirements: tuple[str, ...]) -> Runtime:
        """Have it built, unless it is there or being built. NotFound where there is none for the image."""
        ...

    def ids(self, specs: Iterable[JobSpec]) -> frozenset[str]:
        """Which of them these ask for, those they are laid on included."""
        ...

    async def remove(self, identities: Iterable[str]) -> None:
        """Take them away, or stop building them. The caller has seen to it that no job wants them."""
        ...


class Stats(Protocol):
    """An ability of a backend whose capabilities name what it measures.

    1. sample shows every run that is alive, its whole process tree, and no other.
    2. counters never run backwards while a run lives, also when its children end.
    3. what is not among the declared measures is None (no GPUs); a run without GPUs has none either.
    4. nothing blocks the event loop.
    """

    async def sample(self) -> Mapping[RunKey, Usage]: ...


class Stacks(Protocol):
    """An ability of a backend whose capabilities say so: where the programs of its runs are.

    1. stacks shows those of the given runs that are alive, each with its whole process tree, and no other.
    2. a program does not notice: it is neither ended nor stopped nor made to print, and goes on as before.
    3. it is bounded in time and size; what could not be told is said in the Dump's fault.
    4. nothing blocks the event loop; asked by many at once, it is done one after the other.
    """

    async def stacks(self, keys: Sequence[RunKey]) -> Mapping[RunKey, Dump]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    jobs: tuple[Job, ...]
    next_cursor: tuple[str, str] | None = None  # (created_at, id) after which the next page begins


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """A long-running operation that has been done, kept so that clients can ask for it."""

    name: str
    kind: str  # e.g. "delete"
    target: str
    created_at: datetime


class Store(Protocol):
    """Remembers jobs, events and operations.

    1. a write that returned survives kill -9 and, on a sane disk, a power cut.
    2. write is guarded: Conflict, and nothing changed, unless the row still has job.version.
    3. status and events of one write land together or not at all.
    4. insert with a known idempotency key gives the job made first and inserts nothing.
    5. find pages in a stable order, newest first, however many jobs come and go between pages.
    6. active gives every job that is not final, and costs nothing for those that are.
    """

    async def start(self) -> None: ...

    async def close(self) -> None: ...

    async def insert(self, job: Job, events: Sequence[Event], idempotency_key: str = "") -> Job:
        """Keep a new job; its version becomes 1. With a key seen before in the project: the earlier job."""
        ...

    async def get(self, project: str, location: str, job: str) -> Job: ...

    async def load(self, job: str) -> Job | None:
        """The job by id alone: what the loop needs. None where it does not exist."""
        ...

    async def find(self, query: JobQuery) -> Page: ...

    async def active(self) -> tuple[Job, ...]: ...

    async def write(
        self, job: Job, status: Status, events: Sequence[Event] = (), *, flush: bool = True
    ) -> Job:
        """Replace the status where the version still is job.version; the new job with the next version.

        Without `flush` a power cut, but no kill, may take it back: for what would be decided anew anyway.
        """
        ...

    async def delete(self, job: Job, operation: Operation) -> None:
        """Forget an ended job and its events, guarded by version; keep the operation."""
        ...

    async def operation(self, name: str) -> Operation: ...

    async def deleted(self, among: frozenset[str]) -> frozenset[str]:
        """Those of the given ids whose jobs were deleted: not those it has merely never heard of."""
        ...

    async def events(self, job: str, after: int = 0, limit: int = 1000) -> tuple[Event, ...]: ...

    async def counts(self) -> Mapping[JobState, int]: ...

    async def codes(self) -> frozenset[str]:
        """Every folder a job refers to, by id."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Sink:
    stdout: str
    stderr: str


class LogStore(Protocol):
    """Keeps what replicas print.

    1. the time and place of a line are fixed once given out: asked twice, the answer is the same.
    2. lines come in one total order, (at_ns, insert_id), insert ids unique and sorted as text.
    3. any bytes go in; text comes out; no line is longer than 256 KiB (longer ones come in pieces).
    4. nothing is lost by kill -9; lines printed while no server ran are there afterwards.
    5. a job over its quota loses the middle of its output, and a marker line says how much.
    6. memory does not grow with the size of a log.
    """

    async def start(self) -> None: ...

    async def close(self) -> None: ...

    def sink(self, name: ReplicaName) -> Sink:
        """The files a replica writes into; made with their folder where missing."""
        ...

    async def read(self, job: str, query: LogQuery) -> tuple[Line, ...]:
        """At most query.limit lines, in order; fewer, never none, where they are very long."""
        ...

    def follow(self, job: str, query: LogQuery) -> AsyncIterator[tuple[Line, ...]]:
        """Batches as they come, oldest first; ends once finish(job) was called and all is read."""
        ...

    async def finish(self, job: str) -> None:
        """No more output will come: give out a last unended line, stop watching, end the followers."""
        ...

    async def remove(self, job: str) -> None: ...

    async def jobs(self) -> frozenset[str]:
        """Every job of which there is output."""
        ...


@dataclass(frozen=True, slots=True)
class ReportSource:
    """Where a replica may speak of its progress: the file that `MetricStore.sink` named, and its output."""

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
        """The last word of each replica that has said anything since the last look at it, or ever."""
        ...

    async def record(self, samples: Mapping[str, Sequence[Sample]]) -> None:
        """Keep samples by job, each series in order of time. What cannot be kept is left out, and logged."""
        ...

    async def query(self, job: str, query: MetricQuery) -> tuple[Series, ...]: ...

    async def remove(self, job: str) -> None: ...


class CodeStore(Protocol):
    """Keeps the folders jobs run in, by content (core.code).

    1. what take has counted, and a folder of which missing found nothing, survive kill -9 and a power cut.
    2. nothing is kept under a hash it does not have; of an upload that breaks off, whole blobs are kept.
    3. what is damaged later is noticed when read, never given out as whole, and asked for again by missing.
    4. lay_out makes exactly the files, modes and links of the folder, none shared with another copy.
    5. lay_out leaves all or nothing, also by kill -9; a folder that is there already is left as it is.
    6. tidy removes only what no job, no folder and no upload of the last day needs.
    7. nothing blocks the event loop.
    """

    async def start(self) -> None: ...

    async def close(self) -> None: ...

    async def missing(self, manifest: Manifest) -> tuple[str, ...]:
        """The contents still to be sent, each once. With none of them missing the folder is kept."""
        ...

    async def take(self, pieces: AsyncIterator[Sequence[Piece]]) -> int:
        """Keep blobs as they come: of each its header, then its bytes. How many were kept for good."""
        ...

    async def manifest(self, code: str) -> Manifest:
        """The folder of that id; NotFound where there is none."""
        ...

    def read(self, code: str, sha256: str) -> AsyncIterator[bytes]:
        """What the files of that hash in that folder hold. NotFound, at any chunk, where it is not whole."""
        ...

    async def hold(self, code: str) -> bool:
        """Whether there is such a folder; if so it stays for a day at least, job or no job."""
        ...

    async def lay_out(self, code: str, folder: str) -> None:
        """Make the folder a copy of the code, unless there is one. Unavailable where it cannot be made."""
        ...

    async def tidy(self, used: frozenset[str]) -> int:
        """Remove folders not among `used` a day after they were first seen so, and contents nobody needs.

        How many folders went.
        """
        ...


class Authenticator(Protocol):
    def check(self, authorization: str | None) -> None:
        """Raise Unauthenticated (wrong) or Forbidden (none given) unless the header lets the caller in."""
        ...

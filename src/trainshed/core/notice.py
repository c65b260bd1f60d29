"""Notices: which change of a job is told, to whom, and in which words. Pure: no clock, no sockets.

The store calls `notices_of` and `wants` for each write of a status where the server has channels, and keeps
what they give in the same transaction. `core/notice_message.py` makes requests and mails of it. A notice has
all that is told: the job may be deleted before it is delivered. `store/codec.py` stores these classes by
their field names: never rename a field.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from trainshed.core.event import Event, Reason
from trainshed.core.explain.explanation import lasting
from trainshed.core.jobs.job import Job, JobState, OwnerKind, Status

FIRST_PAUSE, LONGEST_PAUSE = timedelta(seconds=1), timedelta(hours=1)  # between two tries; doubled each time
GIVEN_UP_AFTER = timedelta(days=1)  # a notice that nobody took for so long is dropped
MOST_WAITING = 1000  # notices of one channel; the oldest are dropped
MOST_CHANNELS = 300  # of a server: each end of a job asks them all
MOST_OWN = 3  # of one user
QUIET = timedelta(minutes=10)  # after an interruption of a job, further ones are not told
LONGEST_SENTENCE = 700  # characters


class NoticeKind(StrEnum):
    """What a notice is about. People and scripts use these words."""

    ENDED = "ended"  # succeeded or cancelled; a channel that asks for it is told of failures too
    FAILED = "failed"
    HUNG = "hung"
    INTERRUPTED = "interrupted"
    BUDGET = "budget"
    TEST = "test"  # somebody asked for it; no channel can ask for it


CHOICES = tuple(kind for kind in NoticeKind if kind is not NoticeKind.TEST)  # what a channel may ask for


class NoticeWay(StrEnum):
    WEBHOOK = "webhook"
    SLACK = "slack"
    MAIL = "mail"


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeChannel:
    """Who is told, and how. Address and secret are kept apart (`core.jobs.secret_port`), by its id."""

    id: str
    name: str
    project: str  # empty: of all projects
    way: NoticeWay
    shown: str  # the address without what is secret in it
    on: tuple[NoticeKind, ...]
    created_at: datetime
    labels: Mapping[str, str] = field(default_factory=dict[str, str])  # only jobs that have all of them
    owner: str = ""  # who added it, by the name that the client gave: information, not proof
    user: str = ""  # whose jobs it is told of; empty: everybody's

    @property
    def key(self) -> str:
        """Its name among those of its project: users name theirs as they like."""
        return f"{self.user}/{self.name}" if self.user else self.name

    def wants(self, notice: "Notice") -> bool:
        kinds = (notice.kind, NoticeKind.ENDED) if notice.kind is NoticeKind.FAILED else (notice.kind,)
        return (
            self.project in ("", notice.project)
            and self.user in ("", notice.submitter)
            and any(kind in self.on for kind in kinds)
            and all(notice.labels.get(key) == value for key, value in self.labels.items())
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """What is told. The id is the same however often and to how many channels it is sent."""

    id: str
    kind: NoticeKind
    project: str
    at: datetime
    sentence: str
    location: str = ""
    job: str = ""  # empty: it is about no job
    display_name: str = ""
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    submitter: str = ""
    state: JobState | None = None
    reason: str = ""
    verdict: str = ""  # the verdict on one line
    task: str = ""  # the replica that failed first
    attempt: int = 0
    created_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None

    @property
    def order(self) -> tuple[datetime, str]:
        return self.at, self.id


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingNotice:
    """A notice that one channel has not taken yet."""

    notice: Notice
    due_at: datetime
    tries: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelFigures:
    """How a channel fares."""

    waiting: int = 0
    given_up: int = 0  # notices that were dropped, ever
    last_success_at: datetime | None = None
    last_error_at: datetime | None = None
    last_error: str = ""


def pause_after(failures: int) -> timedelta:
    """How long to wait after so many failures in a row."""
    return min(FIRST_PAUSE * 2 ** min(max(failures, 1) - 1, 30), LONGEST_PAUSE)


def notices_of(job: Job, status: Status, events: Sequence[Event]) -> tuple[Notice, ...]:
    """What is told of a write of this status with these events. Trials of a study tell nothing."""
    if job.owner is not None and job.owner.kind is OwnerKind.STUDY:
        return ()
    if status.state.is_final and not job.is_final:
        return (_end(job, status),)
    hang = next((event for event in events if event.reason is Reason.HANG_SUSPECTED), None)
    if hang is not None:
        return (_about(job, status, NoticeKind.HUNG, hang, "stacks"),)
    if (interruption := _interruption(job, status, events)) is not None:
        return (_about(job, status, NoticeKind.INTERRUPTED, interruption, "events"),)
    return ()


def budget_notice(identity: str, project: str, sentence: str, at: datetime) -> Notice:
    """A warning about a budget. Its id says which warning it is, so that one is told once."""
    return Notice(
        id=f"budget-{identity}",
        kind=NoticeKind.BUDGET,
        project=project,
        at=at,
        sentence=plain(sentence),
        reason="BUDGET",
    )


def check_notice(channel: NoticeChannel, identity: str, at: datetime) -> Notice:
    """What `trainshed notify test` sends."""
    where = f"project {channel.project}" if channel.project else "all projects"
    where += f" that {channel.user} submitted" if channel.user else ""
    kinds = ", ".join(kind.value for kind in channel.on)
    return Notice(
        id=f"test-{identity}",
        kind=NoticeKind.TEST,
        project=channel.project,
        at=at,
        sentence=f"Trainshed tells this channel, {channel.name}, of jobs of {where}: {kinds}.",
    )


def plain(text: str) -> str:
    """The text on one line, without control characters, and not too long."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= LONGEST_SENTENCE else f"{line[: LONGEST_SENTENCE - 1]}…"


def _end(job: Job, status: Status) -> Notice:
    failure, length = status.failure, ""
    if status.ended_at is not None:
        begun = status.started_at
        length = f" after {lasting(status.ended_at - begun)}" if begun else " before it ran"
    if status.state is not JobState.FAILED:
        verb = "succeeded" if status.state is JobState.SUCCEEDED else "was cancelled"
        sentence = f"{_name(job)} {verb}{length}."
        return _notice(job, status, NoticeKind.ENDED, plain(sentence), status.state.value)
    verdict = failure.verdict if failure else None
    why = failure.message if failure else "no reason is known."
    if verdict is not None and verdict.task and verdict.ending:
        is_told = not verdict.summary or verdict.summary == f"it {verdict.ending}"
        why = f"{verdict.task} {verdict.ending}" + (f": {verdict.summary}" if not is_told else ".")
    sentence = f"{plain(f'{_name(job)} failed{length}: {why}')} — trainshed logs {job.id}"
    reason = failure.reason.value if failure else ""
    return _notice(job, status, NoticeKind.FAILED, sentence, reason)


def _about(job: Job, status: Status, kind: NoticeKind, event: Event, command: str) -> Notice:
    message = event.message if event.task else event.message[:1].lower() + event.message[1:]
    words = f"{_name(job)} was interrupted" if kind is NoticeKind.INTERRUPTED else _name(job)
    sentence = f"{plain(f'{words}: {message}')} — trainshed {command} {job.id}"
    return _notice(job, status, kind, sentence, event.reason.value, event.task)


def _interruption(job: Job, status: Status, events: Sequence[Event]) -> Event | None:
    """The event of a restart that somebody else brought about; None where one was told just before."""
    before = {(r.pool, r.index): r.uncounted for r in job.status.replicas}
    is_retry = status.uncounted > job.status.uncounted
    restarted = {r.task for r in status.replicas if r.uncounted > before.get((r.pool, r.index), 0)}
    for event in events:
        is_own = event.reason is Reason.REPLICA_RESTARTED and event.task in restarted
        if is_own or (is_retry and event.reason in (Reason.JOB_RETRIED, Reason.REQUEUED)):
            return None if _is_quiet(job.status, event.at) else event
    return None


def _is_quiet(before: Status, now: datetime) -> bool:
    return any(
        replica.interruptions
        and replica.previous is not None
        and replica.previous.ended_at is not None
        and now - replica.previous.ended_at < QUIET
        for replica in before.replicas
    )


def _name(job: Job) -> str:
    return f"Job {job.display_name} ({job.id})"


def _notice(job: Job, status: Status, kind: NoticeKind, sentence: str, reason: str, task: str = "") -> Notice:
    failure = status.failure
    verdict = failure.verdict if failure else None
    return Notice(
        id=f"{job.id}-{job.version + 1}-{kind.value}",
        kind=kind,
        project=job.project,
        location=job.location,
        at=status.updated_at or job.created_at,
        sentence=sentence,
        job=job.id,
        display_name=job.display_name,
        labels=job.labels,
        submitter=job.submitter,
        state=status.state,
        reason=reason,
        verdict=plain(verdict.sentence) if verdict else "",
        task=task or (failure.task if failure else ""),
        attempt=status.attempt,
        created_at=job.created_at,
        started_at=status.started_at,
        ended_at=status.ended_at,
    )

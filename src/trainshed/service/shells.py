"""Use cases of shells inside replicas: issue a ticket, redeem it, open and close a shell.

`api/shells.py` calls it. Whoever may cancel a job may ask for a ticket. A browser cannot send a token with a
WebSocket; it sends the ticket instead. A ticket is valid once, for 30 seconds, for one run, one command and
the page that asked. Tickets are only in memory. What is typed and printed is never stored.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from trainshed.core.errors import Conflict, Exhausted, Forbidden, NotFound
from trainshed.core.hold import held_until
from trainshed.core.job import Job
from trainshed.core.names import RunKey
from trainshed.core.ports import Clock, Store
from trainshed.core.replica import Phase, Replica
from trainshed.core.shell_port import Screen, Shells, Terminal

LIFE = timedelta(seconds=30)
MOST_TICKETS = 256  # issued and not used yet
MOST_OPEN = 64  # shells
PRIMARY = "workerpool0-0"


@dataclass(frozen=True, slots=True)
class ReplicaPlace:
    """A replica, as requests name it."""

    project: str
    location: str
    job: str
    task: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    word: str
    place: ReplicaPlace
    key: RunKey
    command: tuple[str, ...]
    screen: Screen | None
    origin: str | None  # of the page that asked; None: it was not a page
    until_at: datetime


@dataclass(slots=True)
class ShellService:
    store: Store
    shells: Shells | None  # None: the backend has no shells
    clock: Clock
    _tickets: dict[str, Ticket] = field(default_factory=dict[str, Ticket])
    _open: int = 0

    async def issue(
        self, place: ReplicaPlace, command: Sequence[str], screen: Screen | None, origin: str | None
    ) -> Ticket:
        if self.shells is None:
            raise Conflict("The backend of this server has no shells.")
        key = await self._running(place)
        now = self.clock.now()
        for word in [word for word, ticket in self._tickets.items() if ticket.until_at < now]:
            del self._tickets[word]
        if len(self._tickets) >= MOST_TICKETS:
            raise Exhausted(f"{MOST_TICKETS} shells were asked for and not opened; try again in a moment.")
        ticket = Ticket(
            word=secrets.token_urlsafe(24),
            place=place,
            key=key,
            command=tuple(command),
            screen=screen,
            origin=origin,
            until_at=now + LIFE,
        )
        self._tickets[ticket.word] = ticket
        return ticket

    def redeem(self, word: str, place: ReplicaPlace, origin: str | None) -> Ticket:
        """The ticket, which cannot be used again. Forbidden where it is not valid for this place and page."""
        ticket = self._tickets.pop(word, None)
        if ticket is None:
            raise Forbidden("This ticket for a shell is unknown or was used; ask for another.")
        if ticket.until_at < self.clock.now():
            raise Forbidden("This ticket for a shell is too old; ask for another.")
        if ticket.place != place or ticket.origin != origin:
            raise Forbidden("This ticket is for a shell elsewhere, or for another page; ask for another.")
        return ticket

    async def open(self, ticket: Ticket) -> Terminal:
        if self.shells is None or await self._running(ticket.place) != ticket.key:
            raise Conflict(f"{ticket.place.task} was started anew meanwhile; ask for another shell.")
        if self._open >= MOST_OPEN:
            raise Exhausted(f"{MOST_OPEN} shells are open on this server; close one first.")
        self._open += 1
        try:
            return await self.shells.open_shell(ticket.key, ticket.command, ticket.screen)
        except BaseException:
            self._open -= 1
            raise

    async def close(self, terminal: Terminal) -> None:
        """Close a shell that `open` returned. Call it once for each."""
        try:
            await terminal.close()
        finally:
            self._open -= 1

    async def _running(self, place: ReplicaPlace) -> RunKey:
        job = await self.store.get(place.project, place.location, place.job)
        replicas = {r.task: r for r in job.status.replicas}
        if job.is_final:
            raise Conflict(
                f"Job {job.name} is over ({job.status.state}): there is nothing to open a shell in."
            )
        replica = replicas.get(place.task)
        if replica is None and replicas:
            names = ", ".join(list(replicas)[:5]) + (" …" if len(replicas) > 5 else "")
            raise NotFound(f"Job {job.name} has no replica '{place.task[:60]}'; it has {names}.")
        if replica is None or not _may_be_entered(job, replica):
            raise Conflict(f"{place.task} of job {job.name} does not run: {_standing(job, replica)}.")
        return job.key(replica)


def _may_be_entered(job: Job, replica: Replica) -> bool:
    """Whether the replica runs, or has failed and may be held for inspection (the backend knows whether)."""
    if replica.phase is Phase.ENDED:
        failed = replica.exit is not None and not replica.exit.ok
        return failed and held_until(job, job.status) is not None
    return replica.phase is Phase.RUNNING


def _standing(job: Job, replica: Replica | None) -> str:
    if replica is None:
        return f"the job is {job.status.state}"
    return f"it is {replica.phase}" if replica.exit is None else f"it {replica.exit}"

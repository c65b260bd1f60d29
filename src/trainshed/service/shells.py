"""Use cases of shells inside replicas: issue a ticket, redeem it, open and close a shell.

`api/shells.py` calls it. Whoever may cancel a job may ask for a ticket. A browser cannot send a token with a
WebSocket; it sends the ticket instead. A ticket is valid once, for 30 seconds, for one run, one command and
the page that asked, as long as who asked may have a shell. Tickets are only in memory. What is typed and
printed is never stored.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from trainshed.core.accounts.permission import Permission, Principal, Resource, allowed
from trainshed.core.errors import Conflict, Exhausted, Forbidden, NotFound
from trainshed.core.jobs.hold import held_until
from trainshed.core.jobs.job import Job
from trainshed.core.jobs.replica import Phase, Replica
from trainshed.core.names import RunKey
from trainshed.core.ports import Clock, PresentRights, Store
from trainshed.core.shell_port import Screen, Shells, Terminal
from trainshed.service.begun import PATIENCE, once_begun, why_not_begun
from trainshed.service.tickets import Tickets

LIFE = timedelta(seconds=30)
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
class ShellOrder:
    """What a ticket opens."""

    place: ReplicaPlace
    key: RunKey
    command: tuple[str, ...]
    screen: Screen | None
    origin: str | None  # of the page that asked; None: it was not a page
    principal: Principal  # who asked


@dataclass(frozen=True, slots=True)
class ShellTicket:
    word: str
    until_at: datetime
    order: ShellOrder


@dataclass(slots=True)
class ShellService:
    store: Store
    shells: Shells | None  # None: the backend has no shells
    clock: Clock
    rights: PresentRights
    patience: float = PATIENCE  # seconds for that a replica may take to start
    _tickets: Tickets[ShellOrder] = field(default_factory=lambda: Tickets[ShellOrder]("a shell", LIFE))
    _open: int = 0

    async def issue(
        self,
        place: ReplicaPlace,
        command: Sequence[str],
        screen: Screen | None,
        origin: str | None,
        principal: Principal,
    ) -> ShellTicket:
        if self.shells is None:
            raise Conflict("The backend of this server has no shells.")
        key = _running(await once_begun(lambda: self._job(place), place.task, self.patience), place)
        order = ShellOrder(
            place=place, key=key, command=tuple(command), screen=screen, origin=origin, principal=principal
        )
        word, until_at = self._tickets.issue(order, self.clock.now())
        return ShellTicket(word, until_at, order)

    def redeem(self, word: str, place: ReplicaPlace, origin: str | None) -> ShellOrder:
        """What the ticket opens, once. Forbidden where it is not valid for this place and page."""
        order = self._tickets.redeem(word, self.clock.now())
        if order.place != place or order.origin != origin:
            raise Forbidden("This ticket is for a shell elsewhere, or for another page; ask for another.")
        self._check(order)
        return order

    def _check(self, order: ShellOrder) -> None:
        principal, resource = self.rights.of(order.principal), Resource(order.place.project)
        if not (decision := allowed(principal, Permission.JOBS_SHELL, resource)):
            raise Forbidden(decision.reason)

    async def open(self, order: ShellOrder) -> Terminal:
        self._check(order)
        if self.shells is None or _running(await self._job(order.place), order.place) != order.key:
            raise Conflict(f"{order.place.task} was started anew meanwhile; ask for another shell.")
        if self._open >= MOST_OPEN:
            raise Exhausted(f"{MOST_OPEN} shells are open on this server; close one first.")
        self._open += 1
        try:
            return await self.shells.open_shell(order.key, order.command, order.screen)
        except BaseException:
            self._open -= 1
            raise

    async def close(self, terminal: Terminal) -> None:
        """Close a shell that `open` returned. Call it once for each."""
        try:
            await terminal.close()
        finally:
            self._open -= 1

    async def _job(self, place: ReplicaPlace) -> Job:
        return await self.store.get(place.project, place.location, place.job)


def _running(job: Job, place: ReplicaPlace) -> RunKey:
    """The run that is there now; Conflict where there is none to enter."""
    replicas = {r.task: r for r in job.status.replicas}
    if job.is_final:
        raise Conflict(f"Job {job.name} is over ({job.status.state}): there is nothing to open a shell in.")
    replica = replicas.get(place.task)
    if replica is None and replicas:
        names = ", ".join(list(replicas)[:5]) + (" …" if len(replicas) > 5 else "")
        raise NotFound(f"Job {job.name} has no replica '{place.task[:60]}'; it has {names}.")
    if replica is None or not _may_be_entered(job, replica):
        standing = _standing(job, replica).removesuffix(".")
        raise Conflict(f"{place.task} of job {job.name} does not run: {standing}.")
    return job.key(replica)


def _may_be_entered(job: Job, replica: Replica) -> bool:
    """Whether the replica runs, or has failed and may be held for inspection (the backend knows whether)."""
    if replica.phase is Phase.ENDED:
        failed = replica.exit is not None and not replica.exit.ok
        return failed and held_until(job, job.status) is not None
    return replica.phase is Phase.RUNNING


def _standing(job: Job, replica: Replica | None) -> str:
    if replica is None:
        return f"the job is {job.status.state}{why_not_begun(job)}"
    if replica.phase is Phase.PLANNED:
        return f"it is {replica.phase}{why_not_begun(job)}"
    return f"it is {replica.phase}" if replica.exit is None else f"it {replica.exit}"

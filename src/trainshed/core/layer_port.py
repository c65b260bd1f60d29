"""The seam to what is installed on top of an image before a job starts: packages, and how pip is set here."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from trainshed.core.package import Package
from trainshed.core.readiness import Readiness
from trainshed.core.verdict import Verdict


class NotInstallable(Exception):
    """What a job asked for cannot be had, or must not be unpacked: never, however often it is tried."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict.summary)
        self.verdict = verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallKit:
    """What one installation finds, laid out on this machine: nothing of it stays in an image."""

    plan: dict[str, object]  # for the program that installs; it may hold credentials
    shown: tuple[tuple[str, str], ...] = ()  # paths of this machine and where they are inside, read only
    addresses: tuple[str, ...] = ()  # where pip looks


class PipListener(Protocol):
    """Listens to pip."""

    def hear(self, line: str) -> None: ...

    @property
    def now(self) -> str:
        """What it is doing."""
        ...

    def last_words(self) -> tuple[str, ...]:
        """The lines that say why it failed."""
        ...


class Supplies(Protocol):
    """Gives what is put on top of images.

    1. what an address of a package leads to is looked up once for each job, and stays so for all of its runs.
    2. a package that is hostile, or no longer what the job began with, is Unfit.
    3. credentials are in the kit's plan and addresses alone: what a Hearing says holds none.
    """

    def of(self, uris: tuple[str, ...], job: str) -> tuple[Package, ...] | None:
        """The job's packages; None where not all are fetched yet."""
        ...

    def readiness(self, uris: tuple[str, ...], job: str) -> Readiness:
        """Of packages that are not all there."""
        ...

    async def lay_out(
        self, packages: tuple[Package, ...], requirements: tuple[str, ...], jobs: Iterable[str], inside: str
    ) -> InstallKit:
        """`inside` is the folder below which things are shown in the container."""
        ...

    def listen(self) -> PipListener: ...

    def judge(self, code: int, lines: tuple[str, ...]) -> Verdict: ...

"""The port to what is installed on top of an image before a job starts: packages, and the settings of pip.

`runtimes/` implements it; `backends/container` calls it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from trainshed.core.jobs.readiness import Readiness
from trainshed.core.jobs.verdict import Verdict
from trainshed.core.supplies.package import Package


class NotInstallable(Exception):
    """What a job asked for cannot be installed, or must not be unpacked. A retry cannot help."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict.summary)
        self.verdict = verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallKit:
    """The input of one installation, as files of this machine. Nothing of it stays in the image."""

    plan: dict[str, object]  # for the program that installs; it may hold credentials
    shown: tuple[tuple[str, str], ...] = ()  # paths here and in the container, read only
    addresses: tuple[str, ...] = ()  # where pip looks


class PipListener(Protocol):
    """Reads the output of pip."""

    def hear(self, line: str) -> None: ...

    @property
    def now(self) -> str:
        """What pip is doing."""
        ...

    def last_words(self) -> tuple[str, ...]:
        """The lines that say why pip failed."""
        ...


class Supplies(Protocol):
    """Provides what is installed on top of images.

    1. what an address of a package leads to is looked up once for each job, and stays so for all of its runs.
    2. a package that is hostile, or no longer what the job began with, is NotInstallable.
    3. credentials are only in the kit's plan and addresses, never in what a PipListener returns.
    """

    def of(self, uris: tuple[str, ...], job: str) -> tuple[Package, ...] | None:
        """The job's packages; None where not all are fetched yet."""
        ...

    def readiness(self, uris: tuple[str, ...], job: str) -> Readiness:
        """The readiness of packages that are not all fetched."""
        ...

    async def lay_out(
        self, packages: tuple[Package, ...], requirements: tuple[str, ...], jobs: Iterable[str], inside: str
    ) -> InstallKit:
        """Write the input of an installation. `inside` is the folder of the container in which it appears."""
        ...

    def listen(self) -> PipListener: ...

    def judge(self, code: int, lines: tuple[str, ...]) -> Verdict: ...

"""The ports to named environments that replace images. Each numbered promise has a contract test.

`runtimes/` implements them; the process backend and `service/runtimes.py` call them.
"""

from collections.abc import Callable, Iterable
from typing import Protocol

from trainshed.core.jobs.job import Job
from trainshed.core.jobs.readiness import PreparationProgress, Readiness
from trainshed.core.supplies.runtime import Runtime, RuntimeNeed


class Runtimes(Protocol):
    """Named environments (framework, version) that replace images in backends that have no images.

    1. an image that is not refused has a runtime, and readiness always comes to READY or FAILED.
    2. however many jobs ask at once, a runtime is made once; half of one, left by a killed server, is none.
    3. python gives the interpreter of a READY one; Unavailable where it is not there (any more).
    4. none is taken away while a job that is not over wants it.
    5. what an address of a package leads to is looked up once for each job, and stays so for all of its runs.
    """

    def refuse(self, image: str) -> str | None:
        """A sentence naming the image and what would run it, or None where there is a runtime for it."""
        ...

    def readiness(self, need: RuntimeNeed, job: str = "") -> Readiness:
        """As Backend.prepare, for one image and what is on top of it."""
        ...

    def python(self, need: RuntimeNeed, job: str = "") -> str: ...

    def warm_imports(self, image: str) -> tuple[str, ...]:
        """The modules that take long to import, worth having imported before a program starts."""
        ...

    def preparing(self) -> tuple[PreparationProgress, ...]:
        """As Backend.preparing."""
        ...

    def on_change(self, hint: Callable[[str], None]) -> None:
        """Call hint(job) soon after the readiness of what the job waits for moves."""
        ...


class RuntimeStore(Protocol):
    """The runtimes as people see them: what is built, and how to have one built or removed."""

    def all(self) -> tuple[Runtime, ...]:
        """All runtimes: those built, being built, and those that could be."""
        ...

    def get(self, identity: str) -> Runtime: ...

    def begin(self, image: str, requirements: tuple[str, ...]) -> Runtime:
        """Build it, unless it is built or being built. NotFound where there is none for the image."""
        ...

    def ids(self, jobs: Iterable[Job]) -> frozenset[str]:
        """The runtimes that these jobs need, with those they are laid on."""
        ...

    async def remove(self, identities: Iterable[str]) -> None:
        """Remove them, or stop building them. The caller has checked that no job needs them."""
        ...

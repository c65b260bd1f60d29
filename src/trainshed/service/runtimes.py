"""Use cases of runtimes: list them, build one in advance, follow a build, remove what no job needs.

`api/runtimes.py` calls it. It refuses to remove a runtime that a job which is not over needs. It never builds
itself: that is the `RuntimeStore`.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import PurePath

from trainshed.core import requirements
from trainshed.core.errors import Conflict, Invalid, NotFound, Violation
from trainshed.core.job import Job
from trainshed.core.ports import Store
from trainshed.core.runtime import Runtime, RuntimePhase, WarmInterpreter, with_below
from trainshed.core.runtime_port import RuntimeStore

PACE = 0.5  # seconds between two looks at a build that is followed


@dataclass(slots=True)
class RuntimeService:
    store: Store
    runtimes: RuntimeStore
    warmth: Callable[[], tuple[WarmInterpreter, ...]] = tuple[WarmInterpreter, ...]

    async def all(self) -> tuple[Runtime, ...]:
        """Every runtime with its warm interpreter and the jobs that need it and are not over.

        Then the warm interpreters that belong to no runtime.
        """
        warm = {interpreter.python: interpreter for interpreter in self.warmth()}
        jobs = self._needing(await self.store.active())
        runtimes: list[Runtime] = []
        for runtime in self.runtimes.all():
            python = next((path for path in warm if _belongs(path, runtime)), None)
            interpreter = warm.pop(python) if python else None
            runtimes.append(replace(runtime, warm=interpreter, jobs=tuple(jobs.get(runtime.id, ()))))
        others = (
            Runtime(id="", name=path, phase=RuntimePhase.READY, warm=interpreter)
            for path, interpreter in warm.items()
        )
        return (*runtimes, *others)

    def _needing(self, jobs: Iterable[Job]) -> dict[str, list[str]]:
        """The ids of the jobs, by the runtimes they need. Jobs that ask for the same are looked at once."""
        alike: dict[object, list[Job]] = {}
        for job in jobs:
            pools = tuple((pool.image, pool.packages) for pool in job.spec.pools)
            own = job.id if any(packages for _, packages in pools) else ""  # pinned for each job
            alike.setdefault((pools, job.spec.requirements, own), []).append(job)
        needing: dict[str, list[str]] = {}
        for group in alike.values():
            for identity in self.runtimes.ids(group[:1]):
                needing.setdefault(identity, []).extend(job.id for job in group)
        return needing

    def build(self, name: str, lines: tuple[str, ...]) -> Runtime:
        violations = [Violation("name", "Which runtime? Such as trainshed/pytorch.")] if not name else []
        violations += [Violation(f"requirements[{n}]", why) for n, why in requirements.faults(lines)]
        if violations:
            raise Invalid(tuple(violations))
        return self.runtimes.begin(name, lines)

    async def follow(self, identity: str) -> AsyncIterator[Runtime]:
        """The runtime, again at every change, until its build is over."""
        last: Runtime | None = None
        while True:
            try:
                now = self.runtimes.get(identity)
            except NotFound:
                if last is None:
                    raise
                now = replace(
                    last, phase=RuntimePhase.ABSENT, message=f"{last.name} was removed while it was built."
                )
            if now != last:
                yield now
            if now.phase is not RuntimePhase.BUILDING:
                return
            last = now
            await asyncio.sleep(PACE)

    async def remove(self, identity: str) -> Runtime:
        runtime = self.runtimes.get(identity)
        if not identity:
            raise Conflict("That is the server's own interpreter: there is nothing to remove.")
        if runtime.phase is RuntimePhase.ABSENT:
            raise Conflict(f"{runtime.name} is not built: there is nothing to remove.")
        jobs = [job for job in await self.store.active() if identity in self.runtimes.ids((job,))]
        if jobs:
            more = f" and {len(jobs) - 1} more" if len(jobs) > 1 else ""
            raise Conflict(
                f"{runtime.name} is wanted by job {jobs[0].id} '{jobs[0].display_name}'{more}, not over yet: "
                "wait for the end, or cancel first."
            )
        above = [item.id for item in self.runtimes.all() if item.below == identity]
        if above:
            wanted = self.runtimes.ids(await self.store.active())
            if wanted.intersection(above):
                raise Conflict(f"Another runtime that a job wants is laid on {runtime.name}.")
        await self.runtimes.remove((*above, identity))
        return runtime

    async def prune(self) -> tuple[Runtime, ...]:
        """Remove every built runtime that no job needs."""
        everything = self.runtimes.all()
        wanted = with_below(self.runtimes.ids(await self.store.active()), everything)
        unused = tuple(
            item
            for item in everything
            if item.id and item.id not in wanted and item.phase in (RuntimePhase.READY, RuntimePhase.FAILED)
        )
        await self.runtimes.remove(item.id for item in unused)
        return tuple(item for item in unused if item.phase is RuntimePhase.READY)


def _belongs(python: str, runtime: Runtime) -> bool:
    """The interpreter of an environment is below the folder that is named by its id."""
    return runtime.id in PurePath(python).parts if runtime.id else python == sys.executable

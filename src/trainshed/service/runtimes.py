"""Use cases of runtimes: list them, build one in advance, follow a build, remove what no job needs.

`api/runtimes.py` calls it. It refuses to remove a runtime that a job which is not over needs. What is on top
of a runtime, and what its build says, is told to those who see a project that uses it. It never builds
itself: that is the `RuntimeStore`.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath

from trainshed.core.accounts.permission import Principal
from trainshed.core.errors import Conflict, Invalid, NotFound, Violation
from trainshed.core.jobs.job import Job
from trainshed.core.ports import Store
from trainshed.core.supplies import requirements
from trainshed.core.supplies.runtime import Runtime, RuntimePhase, WarmInterpreter, with_below
from trainshed.core.supplies.runtime_port import RuntimeStore
from trainshed.service.wanted import wanted_by

PACE = 0.5  # seconds between two looks at a build that is followed


@dataclass(slots=True)
class RuntimeService:
    store: Store
    runtimes: RuntimeStore
    warmth: Callable[[], tuple[WarmInterpreter, ...]] = tuple[WarmInterpreter, ...]
    # The projects in which a runtime was built ahead, by its id, since the server started.
    _asked: dict[str, set[str]] = field(default_factory=dict[str, set[str]])

    async def all(self, principal: Principal) -> tuple[Runtime, ...]:
        """Every runtime with its warm interpreter and the jobs that need it and are not over.

        Then the warm interpreters that belong to no runtime. Cut to what the principal may see.
        """
        warm = {interpreter.python: interpreter for interpreter in self.warmth()}
        jobs = self._needing(await self.store.active())
        runtimes: list[Runtime] = []
        for runtime in self.runtimes.all():
            python = next((path for path in warm if _belongs(path, runtime)), None)
            interpreter = warm.pop(python) if python else None
            cut = self._cut(runtime, jobs.get(runtime.id, ()), principal)
            runtimes.append(replace(cut, warm=interpreter))
        others = (
            Runtime(id="", name=path, phase=RuntimePhase.READY, warm=interpreter)
            for path, interpreter in warm.items()
        )
        return (*runtimes, *others)

    def _cut(self, runtime: Runtime, jobs: Sequence[Job], principal: Principal) -> Runtime:
        """The runtime with those jobs, as far as the principal may see it."""
        seen = replace(runtime, jobs=tuple(job.id for job in jobs if principal.sees(job.project)))
        if seen.jobs or principal.sees_all or any(map(principal.sees, self._asked.get(runtime.id, ()))):
            return seen
        if runtime.is_layered:
            seen = replace(seen, requirements=(), message="")
        return replace(seen, packages=(), lines=())

    def _needing(self, jobs: Iterable[Job]) -> dict[str, list[Job]]:
        """The jobs by the runtimes they need. Those that ask for the same are looked at once."""
        alike: dict[object, list[Job]] = {}
        for job in jobs:
            pools = tuple((pool.image, pool.packages) for pool in job.spec.pools)
            own = job.id if any(packages for _, packages in pools) else ""  # pinned for each job
            alike.setdefault((pools, job.spec.requirements, own), []).append(job)
        needing: dict[str, list[Job]] = {}
        for group in alike.values():
            for identity in self.runtimes.ids(group[:1]):
                needing.setdefault(identity, []).extend(group)
        return needing

    def build(self, name: str, lines: tuple[str, ...], project: str) -> Runtime:
        violations = [Violation("name", "Which runtime? Such as trainshed/pytorch.")] if not name else []
        violations += [Violation(f"requirements[{n}]", why) for n, why in requirements.faults(lines)]
        if violations:
            raise Invalid(tuple(violations))
        runtime = self.runtimes.begin(name, lines)
        self._asked.setdefault(runtime.id, set()).add(project)
        return runtime

    async def follow(self, identity: str, principal: Principal) -> AsyncIterator[Runtime]:
        """The runtime, again at every change, until its build is over. Cut to what the principal may see."""
        last: Runtime | None = None
        active = () if principal.sees_all else await self.store.active()
        jobs = [job for job in active if identity in self.runtimes.ids((job,))]
        while True:
            try:
                now = replace(self._cut(self.runtimes.get(identity), jobs, principal), jobs=())
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

    async def remove(self, identity: str, principal: Principal) -> Runtime:
        runtime = self.runtimes.get(identity)
        if not identity:
            raise Conflict("That is the server's own interpreter: there is nothing to remove.")
        if runtime.phase is RuntimePhase.ABSENT:
            raise Conflict(f"{runtime.name} is not built: there is nothing to remove.")
        jobs = [job for job in await self.store.active() if identity in self.runtimes.ids((job,))]
        if jobs:
            raise Conflict(wanted_by(runtime.name, jobs, principal))
        above = [item.id for item in self.runtimes.all() if item.below == identity]
        if above:
            wanted = self.runtimes.ids(await self.store.active())
            if wanted.intersection(above):
                raise Conflict(f"Another runtime that a job wants is laid on {runtime.name}.")
        await self.runtimes.remove((*above, identity))
        for gone in (*above, identity):
            self._asked.pop(gone, None)
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
        for item in unused:
            self._asked.pop(item.id, None)
        return tuple(item for item in unused if item.phase is RuntimePhase.READY)


def _belongs(python: str, runtime: Runtime) -> bool:
    """The interpreter of an environment is below the folder that is named by its id."""
    return runtime.id in PurePath(python).parts if runtime.id else python == sys.executable

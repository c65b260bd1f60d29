"""What people may do with runtimes: see them, have one built before a job needs it, remove what nobody wants.

It knows which jobs are not over, and so what must stay. It builds nothing itself.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from pathlib import PurePath

from trainshed.core import requirements
from trainshed.core.errors import Conflict, Invalid, NotFound, Violation
from trainshed.core.ports import Store
from trainshed.core.runtime import Runtime, RuntimePhase, WarmInterpreter, with_below
from trainshed.core.runtime_port import RuntimeStore

PACE = 0.5  # seconds between two words to a follower


@dataclass(slots=True)
class RuntimeService:
    store: Store
    shelf: RuntimeStore
    warmth: Callable[[], tuple[WarmInterpreter, ...]] = tuple[WarmInterpreter, ...]

    def all(self) -> tuple[Runtime, ...]:
        """Every runtime, with its kiln; interpreters kept warm that are no runtime's come last."""
        kilns = {kiln.python: kiln for kiln in self.warmth()}
        found: list[Runtime] = []
        for item in self.shelf.all():
            python = next((path for path in kilns if _belongs(path, item)), None)
            found.append(replace(item, warm=kilns.pop(python)) if python else item)
        others = (
            Runtime(id="", name=path, phase=RuntimePhase.READY, warm=kiln) for path, kiln in kilns.items()
        )
        return (*found, *others)

    def build(self, name: str, lines: tuple[str, ...]) -> Runtime:
        found = [Violation("name", "Which runtime? Such as trainshed/pytorch.")] if not name else []
        found += [Violation(f"requirements[{n}]", why) for n, why in requirements.faults(lines)]
        if found:
            raise Invalid(tuple(found))
        return self.shelf.begin(name, lines)

    async def follow(self, identity: str) -> AsyncIterator[Runtime]:
        """The runtime, again whenever there is something new to say of it, until its build is over."""
        last: Runtime | None = None
        while True:
            try:
                now = self.shelf.get(identity)
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
        result = self.shelf.get(identity)
        if not identity:
            raise Conflict("That is the server's own interpreter: there is nothing to remove.")
        if result.phase is RuntimePhase.ABSENT:
            raise Conflict(f"{result.name} is not built: there is nothing to remove.")
        jobs = [job for job in await self.store.active() if identity in self.shelf.ids((job,))]
        if jobs:
            more = f" and {len(jobs) - 1} more" if len(jobs) > 1 else ""
            raise Conflict(
                f"{result.name} is wanted by job {jobs[0].id} '{jobs[0].display_name}'{more}, not over yet: "
                "wait for the end, or cancel first."
            )
        above = [item.id for item in self.shelf.all() if item.below == identity]
        if above:
            wanted = self.shelf.ids(await self.store.active())
            if wanted.intersection(above):
                raise Conflict(f"Another runtime that a job wants is laid on {result.name}.")
        await self.shelf.remove((*above, identity))
        return result

    async def prune(self) -> tuple[Runtime, ...]:
        """Remove everything built that no job wants."""
        everything = self.shelf.all()
        wanted = with_below(self.shelf.ids(await self.store.active()), everything)
        unused = tuple(
            item
            for item in everything
            if item.id and item.id not in wanted and item.phase in (RuntimePhase.READY, RuntimePhase.FAILED)
        )
        await self.shelf.remove(item.id for item in unused)
        return tuple(item for item in unused if item.phase is RuntimePhase.READY)


def _belongs(python: str, one: Runtime) -> bool:
    """An environment's interpreter stands below the folder that has its id for a name."""
    return one.id in PurePath(python).parts if one.id else python == sys.executable

"""The container backend as the one that may not be there: looked for, made where an engine answers.

The second of a Router. Whoever puts a server together says how the backend is made; until then nothing of it
is imported. It remembers why there is none, to tell the jobs that wait for it; and, on disk, which engine has
what is left of jobs: another one would know nothing of them, and they would be run a second time.
"""

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from trainshed.backends.container import find
from trainshed.backends.container.find import AnsweringEngine, NoEngine
from trainshed.core.errors import TrainshedError, Unavailable
from trainshed.core.image import refusal
from trainshed.core.metrics import Measure
from trainshed.core.ports import Backend, Capabilities
from trainshed.core.readiness import Readiness, ReadinessState

CAPABILITIES = Capabilities(
    name="container",
    survives_server=True,
    kills_escapees=True,
    measures=frozenset(Measure),
    stacks=True,
    views=True,
    private_network=True,
    shells=True,
    images=True,
)
READY = 60.0  # seconds in which an engine that answers must have told all that is asked at the start
_ENGINE = "engine"  # the file that says whose containers these are
_WAITS = "It is looked for again every few seconds, and the job starts when it answers."


class EngineFinder:
    def __init__(
        self,
        home: Path,
        engine: str,
        environ: Mapping[str, str],
        make: Callable[[AnsweringEngine], Awaitable[Backend]],
    ) -> None:
        self.capabilities = CAPABILITIES
        self._home, self._engine, self._environ, self._make = home, engine, environ, make
        self._message, self._remedy = "It runs in a container: an engine is being looked for.", ""

    def left(self) -> frozenset[str]:
        return find.left(self._home)

    def was_there(self) -> bool:
        return self._engine != find.NONE and bool(self._kept())

    def refuse(self, image: str, sentence: str) -> str | None:
        there = find.places(self._engine, self._environ)
        if isinstance(there, NoEngine):
            return _added(sentence, there)
        if fault := refusal(image):
            return fault
        # Where there has been one it may come back, and the job waits for it.
        if self._home.exists() or find.is_within_reach(there):
            return None
        return _added(sentence, find.silence(there, (), self._environ))

    def absence(self) -> Readiness:
        return Readiness(standing=ReadinessState.PREPARING, message=self._message, remedy=self._remedy)

    async def look(self) -> AnsweringEngine | NoEngine:
        """Who answers now, for people to read."""
        kept = self._kept() if self._engine != find.NONE and self.left() else ""
        result = await find.look(kept or self._engine, self._environ)
        if isinstance(result, NoEngine) and kept:
            remedy = f"start it again, or where it is gone for good remove {self._home / _ENGINE} and restart"
            return NoEngine(f"{result.why}, which has containers of this server", remedy)
        if isinstance(result, AnsweringEngine) and not self._has_init():
            return NoEngine(
                f"{result} answers, but their init cannot be made without a C compiler", "install one"
            )
        return result

    async def find(self) -> Backend:
        found = await self.look()
        if isinstance(found, NoEngine):
            raise self._note(f"It runs in a container, and there is no engine: {found.why}.", found.remedy)
        try:
            async with asyncio.timeout(READY):
                made = await self._make(found)
        except TimeoutError:
            message = f"It runs in a container, and {found} does not get ready within {READY:g} s."
            raise self._note(message) from None
        except (TrainshedError, OSError) as error:
            message = f"It runs in a container, and {found} cannot be used: {error}"
            raise self._note(message) from error
        self._keep(found)
        return made

    def _has_init(self) -> bool:
        return shutil.which("cc") is not None or next(self._home.glob("bin/init-*"), None) is not None

    def _kept(self) -> str:
        try:
            return (self._home / _ENGINE).read_text().strip()
        except OSError:
            return ""

    def _keep(self, found: AnsweringEngine) -> None:
        if self._kept() != found.socket:
            self._home.mkdir(mode=0o700, parents=True, exist_ok=True)
            draft = self._home / f".{_ENGINE}"
            draft.write_text(found.socket)
            draft.replace(self._home / _ENGINE)

    def _note(self, message: str, remedy: str = "") -> Unavailable:
        self._message = message
        self._remedy = f"{remedy[:1].upper()}{remedy[1:]}. {_WAITS}" if remedy else _WAITS
        return Unavailable(message)


def _added(sentence: str, silence: NoEngine) -> str:
    return f"{sentence} There is none: {silence.why}; {silence.remedy}."

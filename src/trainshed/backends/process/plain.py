"""The one runtime of a backend that was given none: the interpreter as it is. Always ready, costs nothing."""

from collections.abc import Callable
from dataclasses import dataclass

from trainshed.backends.process.render import refuse
from trainshed.core.errors import Unavailable
from trainshed.core.readiness import READY, Readiness


@dataclass(frozen=True, slots=True)
class PlainRuntime:
    path: str
    version: str

    def refuse(self, image: str) -> str | None:
        return refuse(image, self.version)

    def readiness(self, image: str, requirements: tuple[str, ...], job: str = "") -> Readiness:
        return READY

    def python(self, image: str, requirements: tuple[str, ...] = ()) -> str:
        if requirements:
            raise Unavailable("This server installs no packages: requirements cannot be met.")
        return self.path

    def warm_imports(self, image: str) -> tuple[str, ...]:
        return ()

    def on_change(self, hint: Callable[[str], None]) -> None:
        """Nothing ever changes."""

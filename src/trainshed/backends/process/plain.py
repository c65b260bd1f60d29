"""What a backend without runtimes uses: the interpreter as it is, always ready, without packages.

Also the sentences for what a process cannot have: its own network, folders, mounts.
"""

import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from trainshed.backends.process.render import refuse
from trainshed.core.errors import Unavailable
from trainshed.core.jobs.nfs import NfsMount
from trainshed.core.jobs.readiness import READY, PreparationProgress, Readiness, ReadinessState
from trainshed.core.jobs.verdict import Cause, Verdict
from trainshed.core.supplies.runtime import RuntimeNeed

_NO_WALLS = "The job asks for no network but its own, and a process has its machine's."
NO_WALLS = Readiness(
    standing=ReadinessState.FAILED,
    message=_NO_WALLS,
    verdict=Verdict(
        cause=Cause.BAD_ARGUMENTS,
        summary=_NO_WALLS,
        advice="Give every worker pool a container image, or leave `network: none` out.",
    ),
)


NO_HOLD = "It cannot be held for a look: there is no C compiler to build what holds it."
_NO_FOLDERS = "The job asks for folders of its own at certain paths, and a process has its machine's folders."
NO_FOLDERS = Readiness(
    standing=ReadinessState.FAILED,
    message=_NO_FOLDERS,
    verdict=Verdict(
        cause=Cause.BAD_ARGUMENTS,
        summary=_NO_FOLDERS,
        advice="Give every worker pool a container image, or write below TMPDIR.",
    ),
)


def unmounted(mounts: Sequence[NfsMount]) -> str:
    """A sentence where a process does not find what it asks for: it sees what its machine has mounted."""
    lacking = [mount.target for mount in mounts if not Path(mount.target).is_dir()]
    if not lacking:
        return ""
    return f"There is no {', '.join(lacking)}: for a process somebody has to mount it on its machine."


@dataclass(frozen=True, slots=True)
class PlainRuntime:
    path: str
    version: str

    def refuse(self, image: str) -> str | None:
        return refuse(image, self.version)

    def readiness(self, need: RuntimeNeed, job: str = "") -> Readiness:
        return READY

    def python(self, need: RuntimeNeed, job: str = "") -> str:
        if need.requirements or need.packages:
            raise Unavailable("This server installs no packages: requirements cannot be met.")
        return self.path

    def warm_imports(self, image: str) -> tuple[str, ...]:
        return ()

    def preparing(self) -> tuple[PreparationProgress, ...]:
        return ()

    def on_change(self, hint: Callable[[str], None]) -> None:
        """Nothing ever changes."""


def version_of(python: str) -> str:
    """The interpreter's, as "3.11"."""
    if python == sys.executable:
        return f"{sys.version_info.major}.{sys.version_info.minor}"
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        return subprocess.run(
            [python, "-c", code], check=True, capture_output=True, text=True, timeout=60
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError) as error:
        raise Unavailable(f"The interpreter {python} does not run: {error}.") from error

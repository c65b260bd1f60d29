"""ImageSupplies: the promises of `Supplies`, kept with the packages that runtimes fetch too.

What it lays out is shown to a container of the image, which installs it there with the image's own
interpreter. Pip and setuptools are the server's own, lent for images that have none. It may assume that all
calls come from one event loop.
"""

import asyncio
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from trainshed.core.jobs.readiness import Readiness
from trainshed.core.jobs.verdict import Verdict
from trainshed.core.supplies.layer_port import InstallKit
from trainshed.core.supplies.package import Package
from trainshed.core.supplies.requirements import normal
from trainshed.runtimes import install, tools
from trainshed.runtimes.indexes import Indexes, config_files, indexes, read_files
from trainshed.runtimes.packages import Judge, Packages
from trainshed.runtimes.progress import PipProgress

_NEWEST = "3.99"  # an interpreter that is unknown yet: whether it is too old is found out inside


@dataclass(slots=True)
class Listener:
    """A Progress that repeats no credentials."""

    secrets: frozenset[str]
    progress: PipProgress = field(default_factory=lambda: PipProgress(doing="it begins"))

    def hear(self, line: str) -> None:
        for secret in self.secrets:
            line = line.replace(secret, "****")
        self.progress.hear(line)

    @property
    def now(self) -> str:
        count = len(self.progress.packages)
        return f"installing {count} package{'' if count == 1 else 's'}" if count else self.progress.doing

    def last_words(self) -> tuple[str, ...]:
        return self.progress.last_words()


@dataclass(slots=True)
class ImageSupplies:
    packages: Packages
    verdict: Judge
    environ: Mapping[str, str]

    def of(self, uris: tuple[str, ...], job: str) -> tuple[Package, ...] | None:
        return self.packages.of(uris, job)

    def readiness(self, uris: tuple[str, ...], job: str) -> Readiness:
        return self.packages.readiness(uris, job)

    async def lay_out(
        self, packages: tuple[Package, ...], requirements: tuple[str, ...], jobs: Iterable[str], inside: str
    ) -> InstallKit:
        files = await self.packages.at_hand(packages, jobs)
        settings = await asyncio.to_thread(self.indexes, inside)
        lent = await asyncio.to_thread(_lent, inside)
        has_tools = any(place.startswith(f"{inside}/tools/") for place in lent.values())
        plans = [await install.plan(*file, _NEWEST, has_tools=has_tools) for file in files]
        shown = {str(item.path): f"{inside}/packages/{at}/{item.path.name}" for at, item in enumerate(plans)}
        steps = [{"isolated": item.isolated, "path": shown[str(item.path)]} for item in plans]
        plan: dict[str, object] = {
            "env": dict(settings.env),
            "packages": steps,
            "requirements": list(normal(requirements)),
            "pip": next((item.removesuffix("/pip") for item in lent.values() if "/tools/" not in item), ""),
            "tools": f"{inside}/tools" if has_tools else "",
        }
        return InstallKit(
            plan=plan, shown=(*shown.items(), *lent.items(), *settings.shown), addresses=settings.addresses
        )

    def listen(self) -> Listener:
        return Listener(self.indexes("").secrets)

    def judge(self, code: int, lines: tuple[str, ...]) -> Verdict:
        return self.verdict(code, lines)

    def indexes(self, inside: str) -> Indexes:
        """It blocks, for as long as it takes to read a few small files."""
        return indexes(read_files(config_files(self.environ, sys.prefix)), self.environ, inside)


def _lent(inside: str) -> dict[str, str]:
    """The server's own pip and setuptools: paths here, and inside. It blocks."""
    from importlib.metadata import PackageNotFoundError, distribution

    result: dict[str, str] = {}
    try:
        at = Path(str(distribution("pip").locate_file("pip")))
        result[str(at)] = f"{inside}/pip/pip"
    except PackageNotFoundError:
        import ensurepip

        for wheel in sorted((Path(ensurepip.__file__).parent / "_bundled").glob("pip-*.whl"))[-1:]:
            result[str(wheel)] = f"{inside}/pip.whl"
    for part in tools.parts():
        result[os.path.realpath(part)] = f"{inside}/tools/{part.name}"
    return result

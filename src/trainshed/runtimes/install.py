"""How packages get into an environment: what each needs to be built, and the words pip is told.

A source distribution that setuptools alone builds is built with the server's own, so that no index is needed;
any other gets what it asks for from where pip looks. It may assume addresses that have been checked. It
unpacks nothing and runs no pip: a child with little memory and time looks into each file first.
"""

import asyncio
import contextlib
import itertools
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from trainshed.core.supplies.package import FREE, MOST_FILES, RATIO, UNPACKED, Package
from trainshed.runtimes import tools
from trainshed.runtimes.refusal import hostile, replaced

if TYPE_CHECKING:
    from importlib.metadata import Distribution

_ARCHIVE = Path(__file__).with_name("archive.py")
_LIMITS = tuple(map(str, (UNPACKED, MOST_FILES, FREE, RATIO)))

# What of the server's environment a job's setup.py may see: where tools and packages are found, no secrets.
_LENT = frozenset({"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "LD_LIBRARY_PATH"}) | {
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
    *("http_proxy", "https_proxy", "all_proxy", "no_proxy"),
    *("CC", "CXX", "CFLAGS", "CXXFLAGS", "LDFLAGS", "CUDA_HOME", "MAX_JOBS"),
}
_LENT_PREFIXES = ("LC_", "PIP_")


@dataclass(frozen=True, slots=True)
class InstallPlan:
    """A package that may be unpacked, and whether pip has to find what builds it."""

    package: Package
    path: Path
    isolated: bool


def lent(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment variables for building packages of jobs."""
    return {
        name: value for name, value in environ.items() if name in _LENT or name.startswith(_LENT_PREFIXES)
    }


async def plan(package: Package, path: Path, python: str, *, has_tools: bool) -> InstallPlan:
    """Check the file in a separate process, which it may crash. PackageRefused if it must not be unpacked."""
    result = await _looked_into(path)
    if result is None:
        raise hostile(package, "takes more memory or time to look into than any package needs")
    if result["sha256"] != package.sha256:
        with contextlib.suppress(OSError):
            await asyncio.to_thread(path.unlink)
        raise replaced(package)
    if result["refused"]:
        raise hostile(package, str(result["refused"]))
    needs = cast("list[str] | None", result["needs"])
    return InstallPlan(
        package, path, needs is not None and not (has_tools and tools.can_build(needs, python))
    )


async def _looked_into(path: Path) -> dict[str, object] | None:
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-S", str(_ARCHIVE), str(path), *_LIMITS),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        output, _ = await child.communicate()
    finally:
        if child.returncode is None:
            child.kill()
            await asyncio.shield(child.wait())
    try:
        return json.loads(output) if child.returncode == 0 else None
    except ValueError:
        return None


def steps(plans: Iterable[InstallPlan], indexes: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """What pip is told, one time after the other: the packages themselves, in order, without what they need.

    By address, because pip takes brackets in a path for extras.
    """
    for isolated, some in itertools.groupby(plans, lambda plan: plan.isolated):
        how = tuple(indexes) if isolated else ("--no-index", "--no-build-isolation")
        yield ("--no-deps", "--force-reinstall", *how, *(item.path.as_uri() for item in some))


def needing(packages: Path, before: frozenset[str]) -> tuple[str, ...]:
    """The lines by which pip finds what the packages installed since `before` need. It blocks."""
    requiring = (item for item in _distributions(packages) if item.requires)
    return tuple(sorted({f"{item.metadata['Name']}=={item.version}" for item in requiring} - before))


def present(packages: Path) -> frozenset[str]:
    return frozenset(f"{item.metadata['Name']}=={item.version}" for item in _distributions(packages))


def _distributions(packages: Path) -> Iterable["Distribution"]:
    from importlib.metadata import distributions  # slow to import, and not needed to start a server

    return distributions(path=[str(packages)])

"""What a job needs on top of its image: the digest and the words of packages and requirements. Pure.

Derived images of containers and layers of pods call it. It knows neither engines nor clusters.
"""

import json
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from trainshed.core.jobs.readiness import Readiness, ReadinessState
from trainshed.core.jobs.verdict import Cause, Verdict
from trainshed.core.supplies.package import Package
from trainshed.core.supplies.requirements import normal
from trainshed.core.supplies.runtime import RuntimeNeed

INSTALLER = Path(__file__).with_name("installer.py")  # a program, not a module of ours
NOT_FOUND = 127  # how the installation ends where the image has no Python
ONCE = "It is made once and kept; the job starts by itself then."
_FORM = "1"  # change it to install everything anew


def digest_of(image: str, packages: Sequence[Package], requirements: Sequence[str]) -> str:
    """Packages in order, as a later one may replace files of an earlier one; requirements in any order."""
    content = [(package.sha256, package.name) for package in packages]
    made_of = [_FORM, image, content, normal(requirements)]
    return sha256(json.dumps(made_of).encode()).hexdigest()[:32]


def counted(need: RuntimeNeed) -> str:
    counts = ((len(need.packages), "package"), (len(need.requirements), "requirement"))
    return " and ".join(f"{count} {what}{'' if count == 1 else 's'}" for count, what in counts if count)


def failed(title: str, verdict: Verdict) -> Readiness:
    return Readiness(
        standing=ReadinessState.FAILED,
        message=f"Packages could not be installed: {title}.",
        remedy=verdict.advice,
        verdict=verdict,
    )


def no_installer(title: str) -> Readiness:
    summary = "This server installs no packages."
    advice = "Put them into the image itself."
    return failed(title, Verdict(cause=Cause.UNKNOWN, summary=summary, lines=(summary,), advice=advice))


def no_python(image: str, build: str = "") -> Verdict:
    """`build` is how one builds an image there."""
    summary = f"Image {image} has no Python: neither python3 nor python is on its PATH."
    advice = (
        "Packages and requirements are installed with the image's own interpreter: take an image that "
        f"has one, or build one with all it needs{build}."
    )
    return Verdict(cause=Cause.COMMAND_NOT_FOUND, summary=summary, lines=(summary,), advice=advice)

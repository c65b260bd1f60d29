"""Layers on top of images: what each is called, where it lies, and the pod that installs it. Pure.

    home/layers/DIGEST/site    modules, first on PYTHONPATH of pods
                       bin     programs, first on PATH

The digest says image, packages and requirements: the same on the same image is installed once, whichever jobs
ask. layers.py calls it.
"""

import json
from collections.abc import Sequence
from hashlib import sha256

from trainshed.backends.cluster.api import Object
from trainshed.backends.cluster.pod import PodFrame, render_pod
from trainshed.core.fleet import Placement
from trainshed.core.image import parse
from trainshed.core.launch import Launch
from trainshed.core.names import RunKey
from trainshed.core.package import Package
from trainshed.core.readiness import Readiness, ReadinessState
from trainshed.core.requirements import normal
from trainshed.core.runtime import RuntimeNeed
from trainshed.core.verdict import Cause, Verdict

INSIDE = "/trainshed/code"  # where the pod that installs finds all that it needs
LENT = "/.trainshed/lent"
NOT_FOUND = 127
ONCE = "It is made once and kept; the job starts by itself then."
_FORM = "1"  # change it to install everything anew
_LEAST: Object = {"cpu": "100m", "memory": "256Mi"}


def digest_of(image: str, packages: Sequence[Package], requirements: Sequence[str]) -> str:
    """Packages in order, as a later one may replace files of an earlier one; requirements in any order."""
    content = [(package.sha256, package.name) for package in packages]
    made_of = [_FORM, parse(image).canonical, content, normal(requirements)]
    return sha256(json.dumps(made_of).encode()).hexdigest()[:32]


def title(need: RuntimeNeed) -> str:
    counts = ((len(need.packages), "package"), (len(need.requirements), "requirement"))
    more = " and ".join(f"{count} {what}{'' if count == 1 else 's'}" for count, what in counts if count)
    return f"{more} for image {need.image}"


def render_installer(key: RunKey, image: str, frame: PodFrame) -> Object:
    """A pod on any node, whose user is root: the packages of an image are root's."""
    launch = Launch(
        key=key,
        image=image,
        command=("python3", f"{INSIDE}/layer_installer.py"),
        args=(),
        placement=Placement(pool=0, index=0, node="", host="", cpus=1, memory=0),
    )
    pod = render_pod(launch, frame, anywhere=True)
    [container] = pod["spec"]["containers"]
    container["resources"] = {"requests": _LEAST}
    container["securityContext"] = {"allowPrivilegeEscalation": False, "runAsUser": 0}
    return pod


def failed(need: RuntimeNeed, verdict: Verdict) -> Readiness:
    return Readiness(
        standing=ReadinessState.FAILED,
        message=f"Packages could not be installed: {title(need)}.",
        remedy=verdict.advice,
        verdict=verdict,
    )


def no_installer(need: RuntimeNeed) -> Readiness:
    return failed(need, _verdict("This server installs no packages.", "Put them into the image itself."))


def no_python(need: RuntimeNeed) -> Readiness:
    return failed(
        need,
        _verdict(
            f"Image {need.image} has no Python: neither python3 nor python is on its PATH.",
            "Packages and requirements are installed with the image's own interpreter: take an image that "
            "has one, or build one with all it needs.",
            Cause.COMMAND_NOT_FOUND,
        ),
    )


def _verdict(summary: str, advice: str, cause: Cause = Cause.UNKNOWN) -> Verdict:
    return Verdict(cause=cause, summary=summary, lines=(summary,), advice=advice)

"""Layers on top of images: what each is called, where it lies, and the pod that installs it. Pure.

    home/layers/DIGEST/site    modules, first on PYTHONPATH of pods
                       bin     programs, first on PATH

The digest says image, packages and requirements: the same on the same image is installed once, whichever jobs
ask. layers.py calls it.
"""

from collections.abc import Sequence

from trainshed.backends.cluster.objects import Object
from trainshed.backends.cluster.pod import PodFrame, render_pod
from trainshed.backends.machine.additions import counted, digest_of
from trainshed.core.jobs.launch import Launch
from trainshed.core.names import RunKey
from trainshed.core.queue.fleet import Placement
from trainshed.core.supplies.image import parse
from trainshed.core.supplies.package import Package
from trainshed.core.supplies.runtime import RuntimeNeed

INSIDE = "/trainshed/code"  # where the pod that installs finds all that it needs
LENT = "/.trainshed/lent"
_LEAST: Object = {"cpu": "100m", "memory": "256Mi"}


def layer_digest(image: str, packages: Sequence[Package], requirements: Sequence[str]) -> str:
    return digest_of(parse(image).canonical, packages, requirements)


def title(need: RuntimeNeed) -> str:
    return f"{counted(need)} for image {need.image}"


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

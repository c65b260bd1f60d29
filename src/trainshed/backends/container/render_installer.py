"""What a derived image is called, and the container in which one is made. Pure.

    FROM the job's image, by its id
    + its packages and requirements, installed by the image's own interpreter

The digest says both: the same on the same image is made once, whichever jobs ask. What the installation is
told of indexes is in a file that is shown to it, and so in no layer, name, label or variable.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from trainshed.backends.container.render import INSIDE, LABEL, Mount, mounted, security_options
from trainshed.backends.machine.additions import counted
from trainshed.backends.machine.image_config import PYTHON
from trainshed.core.jobs.limits import PROCESSES
from trainshed.core.supplies.image import DERIVED, ImageConfig
from trainshed.core.supplies.runtime import RuntimeNeed

LENT = f"{INSIDE}/lent"


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallerFiles:
    """The files of one installation on this machine."""

    init: str
    installer: str
    plan: str
    record: str
    log: str
    tmp: str
    loopback: str = ""  # the folder in which the server waits for sockets


def repository(home: str) -> str:
    return f"{DERIVED}{home}"


def image_name(home: str, digest: str) -> str:
    return f"{repository(home)}:{digest}"


def container_name(home: str, digest: str) -> str:
    return f"{LABEL}-{home}-derive-{digest}"


def title(need: RuntimeNeed) -> str:
    return f"image {need.image} with {counted(need)} on top"


def body(
    image: ImageConfig,
    files: InstallerFiles,
    shown: Sequence[tuple[str, str]],
    *,
    ports: Sequence[int] = (),
    labels: dict[str, str],
    memory: int = 0,
) -> dict[str, object]:
    """The container that installs: limited as any, but root, who owns an image's packages."""
    own = (
        Mount(source=files.init, target=f"{INSIDE}/init", read_only=True),
        Mount(source=files.record, target=f"{INSIDE}/record"),
        Mount(source=files.log, target=f"{INSIDE}/out"),
        Mount(source=files.log, target=f"{INSIDE}/err"),
        Mount(source=files.installer, target=f"{INSIDE}/fit.py", read_only=True),
        Mount(source=files.plan, target=f"{INSIDE}/plan.json", read_only=True),
        Mount(source=files.tmp, target=f"{INSIDE}/tmp"),
        *(Mount(source=here, target=inside, read_only=True) for here, inside in shown),
        *((Mount(source=files.loopback, target=f"{INSIDE}/hatch", read_only=True),) if ports else ()),
    )
    listens = [word for port in ports for word in ("--hatch", str(port))]
    return {
        "Image": image.id,
        "Entrypoint": [f"{INSIDE}/init", *listens],
        "Cmd": [PYTHON, f"{INSIDE}/fit.py"],
        "User": "0",
        "WorkingDir": "/",
        "Labels": labels,
        "Tty": False,
        "OpenStdin": False,
        "HostConfig": {
            "Mounts": [mounted(mount) for mount in own],
            "PidsLimit": PROCESSES,
            **({"Memory": memory, "MemorySwap": memory} if memory else {}),
            **security_options(),
        },
    }


def changes(image: ImageConfig, digest: str) -> tuple[str, ...]:
    """Commit options that keep the base image's command, user and folder."""
    return (
        f"ENTRYPOINT {json.dumps(list(image.entrypoint))}",
        f"CMD {json.dumps(list(image.command))}",
        f"USER {image.user or '0'}",
        f"WORKDIR {image.workdir or '/'}",
        f"LABEL {LABEL}.derived={digest}",
        f"LABEL {LABEL}.base={image.id}",
    )

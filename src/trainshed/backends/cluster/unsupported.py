"""What a job asks for that pods of ours do not have yet, in a sentence. Pure.

`backend.py` asks it before a job starts: one that would run without what it needs fails at once instead.
"""

from trainshed.core.job import JobSpec
from trainshed.core.launch import Launch
from trainshed.core.view import wants_view

REMEDY = "Build all of it into the container image, or run the job on a server without --kubernetes."


def unsupported(spec: JobSpec) -> str:
    """Empty where the job has all it needs."""
    pools = [pool for pool in spec.pools if not pool.is_empty]
    if spec.code:
        return "In Kubernetes a job cannot have a code folder yet."
    if spec.requirements or any(pool.packages for pool in pools):
        return "In Kubernetes nothing can be installed on top of an image yet."
    if spec.isolated:
        return "In Kubernetes a job cannot be cut off from the network yet."
    if wants_view(spec):
        return (
            "In Kubernetes buckets are not mounted yet, so a job can have no output below gs:// and no /gcs."
        )
    if any(not pool.command and not pool.module for pool in pools):
        return "In Kubernetes each pool needs a command: the image's own entry point is not known yet."
    return ""


def unfound_names(launch: Launch) -> str:
    """A note, where peers have names of other tools; empty where they have only those of their tasks."""
    if not any(launch.names):
        return ""
    return (
        "In Kubernetes peers are not found by their names of other tools yet, only by those of their tasks."
    )

"""What one replica may use, and what it shares with the others of its job. Pure.

The backends, `core/jobs/launching.py` and the service call it. A replica has the limits of its machine type.
Where the job was cut to fit the machines here, no replica is limited to its cut: the job's replicas on a
machine share one limit, the sum of what was admitted there, and the size of each is only its weight.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from trainshed.core.jobs.job import JobSpec
from trainshed.core.queue.fleet import Admission, Placement
from trainshed.core.queue.machine import in_gib

LEAST_MEMORY = 32 << 20  # bytes: with less neither an interpreter nor a container starts
PROCESSES = 4096  # processes and threads of a replica, and more for many CPUs
PROCESSES_PER_CPU = 1024  # of its own
PROCESSES_PER_SEEN_CPU = 64  # of the machine's: libraries start a thread for each in each loader process
_CLOSE = 1e-9  # shares of a CPU are floats


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedRoom:
    """What the replicas of a job share on one machine. 0: not cut, so each replica has its own limit."""

    cpus: float = 0
    memory: int = 0
    asked_memory: int = 0  # what this replica asked for, before the cut
    sharers: int = 1  # replicas that share it


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryLimit:
    """How much memory a run may use."""

    most: int  # bytes: of this run, or of all runs of its job on this machine where shared
    weight: int  # bytes: its part of a shared limit
    shared: bool = False
    words: str = ""  # the limit in a sentence, for a verdict


def shared_room(spec: JobSpec, admission: Admission, place: Placement) -> SharedRoom | None:
    """What the replica at this place shares; None where its job was not cut there."""
    here = [other for other in admission.placements if other.node == place.node]
    pools = spec.pools
    cpus_cut = any(other.cpus < pools[other.pool].cpus - _CLOSE for other in here)
    memory_cut = any(other.memory < pools[other.pool].memory for other in here)
    if not cpus_cut and not memory_cut:
        return None
    return SharedRoom(
        cpus=sum(other.cpus for other in here) if cpus_cut else 0,
        memory=sum(other.memory for other in here) if memory_cut else 0,
        asked_memory=pools[place.pool].memory,
        sharers=len(here),
    )


def memory_limit(place: Placement, room: SharedRoom | None) -> MemoryLimit:
    if room is None or not room.memory:
        words = f"its limit is {in_gib(place.memory)}"
        return MemoryLimit(most=max(place.memory, LEAST_MEMORY), weight=place.memory, words=words)
    others = room.sharers - 1
    share = f"share {in_gib(room.memory)} with {others} more" if others else in_gib(room.memory)
    words = (
        f"this job asked for {in_gib(room.asked_memory)} on this replica and was cut to {share}, "
        "because this machine has no more"
    )
    return MemoryLimit(most=max(room.memory, LEAST_MEMORY), weight=place.memory, shared=True, words=words)


def process_limit(place: Placement, room: SharedRoom | None, *, machine_cpus: int, machine_room: int) -> int:
    """How many processes and threads a replica may have where no setting says so.

    More than any framework needs, but never more than half of what the machine can have, so that one replica
    leaves enough for the others. `machine_room` is what it can have; 0: not known.
    """
    cpus = max(place.cpus, room.cpus if room else 0)
    wanted = max(PROCESSES, round(cpus * PROCESSES_PER_CPU), machine_cpus * PROCESSES_PER_SEEN_CPU)
    return min(wanted, machine_room // 2) if machine_room else wanted


def too_many_processes(most: int) -> str:
    """What happened to a run that the kernel refused a process, for a verdict."""
    return f"the kernel refused it a process or a thread: its limit is {most} processes and threads"


def without_gpus(spec: JobSpec, placements: Iterable[Placement]) -> str:
    """A sentence where replicas that asked for GPUs are given none; empty where all have some."""
    asking = {number: pool for number, pool in enumerate(spec.pools) if pool.accelerators}
    wanting = [place for place in placements if place.pool in asking]
    bare = [place for place in wanting if not place.gpus]
    if not bare:
        return ""
    asked = sum(asking[place.pool].accelerators for place in wanting)
    kinds = ", ".join(dict.fromkeys(asking[place.pool].accelerator or "GPU" for place in bare))
    if len(bare) == len(wanting):
        who = f"The job asked for {asked} GPU{'s' if asked != 1 else ''} ({kinds}) and gets none"
        why = "because the machines here have none"
    else:
        who = f"{len(bare)} of the {len(wanting)} replicas that asked for GPUs ({kinds}) get none"
        why = "because the machines here have too few"
    return f"{who}, {why}: what insists on CUDA or NCCL will fail there, the rest runs on the CPU."

"""What holds where each replica has an address of its own: its name and ports, and who had them before. Pure.

The backends of containers and of clusters call it.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

from trainshed.backends.machine.run import KnownRun
from trainshed.core.errors import Conflict
from trainshed.core.names import RunKey, task_name
from trainshed.core.queue.fleet import Admission

_PORT, _MASTER_PORT = 2222, 2223  # no other replica has the address, so the ports can be the same
R = TypeVar("R", bound=KnownRun)


def name_by_task(admission: Admission) -> Admission:
    """The admission with the names of tasks as hosts, and the same ports for all."""
    places = tuple(
        replace(place, host=task_name(place.pool, place.index), port=_PORT) for place in admission.placements
    )
    return replace(admission, placements=places, master_port=_MASTER_PORT)


def others_at_its_place(runs: Iterable[R], key: RunKey) -> list[R]:
    """The other runs of the replica, of any attempt. Conflict where a later one has been started."""
    place = key.name.pool, key.name.index
    others = [run for run in runs if run.key != key and (run.key.name.pool, run.key.name.index) == place]
    if any(run.key.name == key.name and run.key.run > key.run for run in others):
        raise Conflict(f"A later run than {key} has been started.")
    return others

"""machineTypes: the machine types and accelerators that a job may ask for, whether a node has them or not."""

from dataclasses import dataclass

from trainshed.api.call import Call, Json
from trainshed.core.queue.machine import Catalogue
from trainshed.wire.machine_type import render_catalogue


@dataclass(slots=True)
class MachineTypeHandlers:
    catalogue: Catalogue

    async def find(self, call: Call) -> Json:
        return render_catalogue(self.catalogue)

"""The port to the job whose program is at the other end of a connection to this server.

`assembly/api.py` asks it for connections that bring no token; the backends implement it.
"""

from dataclasses import dataclass
from typing import Protocol

Address = tuple[str, int]  # host and port


@dataclass(frozen=True, slots=True, kw_only=True)
class CallerConnection:
    peer: Address
    here: Address
    init: int = 0  # the pid of the container's init that passed the connection on; 0: none did
    job: str = ""  # of the pod whose init passed the connection on; empty: none did


class Callers(Protocol):
    """An ability of a backend: it knows the connections of its programs."""

    async def job_of(self, connection: CallerConnection) -> str:
        """The id of the job whose program opened the connection; empty where it is none of this backend's."""
        ...

"""Who is alive in the cluster, by its own word: programs in pods send packets to this machine.

What Kubernetes and the server say of a pod may be wrong; a program that sends is alive. Packets of a node
that is cut off do not come.
"""

import ipaddress
import socket
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from scripts.cluster_parts.node import name_of
from scripts.cluster_parts.place import Place

MOST = 512  # bytes of a packet


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """One run, from the first to the last that was heard of it (seconds of the steady counter)."""

    run: str  # job.attempt.pool.index.restart
    node: str
    first: float
    last: float

    @property
    def replica(self) -> tuple[str, str]:
        """Its job, and its place in it, whatever the attempt."""
        job, _, pool, index, _ = self.run.rsplit(".", 4)
        return job, f"{pool}.{index}"


@dataclass(slots=True)
class Beats:
    """Listens from `with` to its end."""

    place: Place
    _lives: dict[str, Life] = field(default_factory=dict[str, Life])
    _socket: socket.socket = field(default_factory=lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    _enough: threading.Event = field(default_factory=threading.Event)

    @property
    def address(self) -> str:
        return f"{self.place.addresses.machine}:{self._socket.getsockname()[1]}"

    def lives(self) -> Mapping[str, Life]:
        return dict(self._lives)

    def __enter__(self) -> Self:
        self._socket.bind((self.place.addresses.machine, 0))
        self._socket.settimeout(0.5)
        threading.Thread(target=self._listen, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._enough.set()
        self._socket.close()

    def _listen(self) -> None:
        while not self._enough.is_set():
            try:
                packet, (address, _) = self._socket.recvfrom(MOST)
            except TimeoutError:
                continue
            except OSError:
                return
            run, now = packet.decode(), time.monotonic()
            known = self._lives.get(run) or Life(run=run, node=self._node(address), first=now, last=now)
            self._lives[run] = replace(known, last=now)

    def _node(self, address: str) -> str:
        for number in self.place.numbers():
            if ipaddress.ip_address(address) in ipaddress.ip_network(self.place.addresses.pods_of(number)):
                return name_of(number)
        return "?"

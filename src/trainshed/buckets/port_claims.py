"""PortClaims: reserves ports before a program listens on them, so that no other server here chooses them.

Between looking whether a port is free and listening on it seconds may pass, and two servers that begin
together look at the same moment. A claim is a name that the kernel gives once, and takes back when its
process ends. It says nothing of programs that are not ours.
"""

import socket
import sys


class PortClaims:
    def __init__(self) -> None:
        self._held: dict[int, socket.socket] = {}

    def take(self, port: int) -> bool:
        """Whether it is ours now, or was already."""
        if port in self._held or sys.platform != "linux":
            return True
        claim = socket.socket(socket.AF_UNIX)
        try:
            claim.bind(f"\0trainshed-port-{port}")
        except OSError:
            claim.close()
            return False
        self._held[port] = claim
        return True

    def close(self) -> None:
        while self._held:
            self._held.popitem()[1].close()

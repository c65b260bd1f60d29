"""Counts what TCP connections have carried, by the kernel's own count for each socket (netlink's sock_diag).

stats.py calls it, from one thread. A process's sockets are known by the inodes behind its descriptors, so a
run needs no network namespace to be counted. Connections within the machine count as any other. UDP does not
count, nor what a connection carried between the last look and its close. Where the kernel does not answer,
`works` is false and nothing is counted.
"""

import contextlib
import os
import socket
import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

_SOCK_DIAG = 4  # NETLINK_SOCK_DIAG
_BY_FAMILY = 20  # SOCK_DIAG_BY_FAMILY
_DUMP = 0x301  # NLM_F_REQUEST | NLM_F_DUMP
_ERROR, _DONE = 2, 3  # NLMSG_ERROR, NLMSG_DONE
_INFO = 2  # INET_DIAG_INFO
_STATES = 0xFFF & ~(1 << 6 | 1 << 10)  # all but TIME_WAIT and LISTEN, which carry nothing
_HEADER = struct.Struct("=IHHII")  # nlmsghdr
_REQUEST = struct.Struct("=BBBxI48x")  # inet_diag_req_v2
_INODE = struct.Struct("=I")
_INODE_AT, _ATTRIBUTES_AT = 68, 72  # in inet_diag_msg
_COUNTS = struct.Struct("=QQ")  # bytes acknowledged and received ...
_COUNTS_AT = 120  # ... in tcp_info
_PATIENCE = 1.0  # seconds

Counts: TypeAlias = Mapping[int, tuple[int, int]]  # by a socket's inode: bytes received, bytes sent


class Traffic:
    def __init__(self) -> None:
        self.works = True
        try:
            self.look()
        except OSError:
            self.works = False

    def look(self) -> Counts:
        """What each connection of this machine has carried so far. OSError where the kernel does not tell."""
        result: dict[int, tuple[int, int]] = {}
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _SOCK_DIAG) as kernel:
            kernel.settimeout(_PATIENCE)
            for family in (socket.AF_INET, socket.AF_INET6):
                request = _REQUEST.pack(family, socket.IPPROTO_TCP, 1 << (_INFO - 1), _STATES)
                kernel.send(_HEADER.pack(_HEADER.size + len(request), _BY_FAMILY, _DUMP, 1, 0) + request)
                result.update(_answers(kernel))
        return result


def _answers(kernel: socket.socket) -> Iterator[tuple[int, tuple[int, int]]]:
    while True:
        data = kernel.recv(1 << 16)
        at = 0
        while at + _HEADER.size <= len(data):
            length, kind, *_ = _HEADER.unpack_from(data, at)
            if kind == _DONE:
                return
            if kind == _ERROR or length < _HEADER.size:
                raise OSError("the kernel does not tell of its connections")
            if (counts := counts_of(data[at + _HEADER.size : at + length])) is not None:
                yield counts
            at += length + 3 & ~3


def counts_of(message: bytes) -> tuple[int, tuple[int, int]] | None:
    """A connection's inode and what it carried, from one inet_diag_msg; None where it does not say. Pure."""
    if len(message) < _ATTRIBUTES_AT:
        return None
    [inode] = _INODE.unpack_from(message, _INODE_AT)
    at = _ATTRIBUTES_AT
    while at + 4 <= len(message):
        length, kind = struct.unpack_from("=HH", message, at)
        if kind == _INFO and min(length, len(message) - at) >= 4 + _COUNTS_AT + _COUNTS.size:
            sent, received = _COUNTS.unpack_from(message, at + 4 + _COUNTS_AT)
            return inode, (received, sent)
        at += max(length + 3 & ~3, 4)
    return None


def sockets_of(pids: Iterable[int], proc: str = "/proc") -> set[int]:
    """The inodes of all sockets these processes hold open."""
    result: set[int] = set()
    for pid in pids:
        folder = f"{proc}/{pid}/fd"
        with contextlib.suppress(OSError):  # gone, or another's
            for name in os.listdir(folder):
                with contextlib.suppress(OSError):
                    target = os.readlink(f"{folder}/{name}")
                    if target.startswith("socket:["):
                        result.add(int(target[8:-1]))
    return result


class Carried:
    """What the connections of one run have carried, those that are closed included."""

    __slots__ = ("_seen", "received", "sent")

    def __init__(self) -> None:
        self._seen: dict[int, tuple[int, int]] = {}
        self.received = self.sent = 0

    def add(self, counts: Counts, sockets: set[int]) -> None:
        seen = {inode: counts[inode] for inode in sockets if inode in counts}
        for inode, (received, sent) in seen.items():
            before = self._seen.get(inode, (0, 0))
            # Less than before: the connection is another one that got the same number.
            self.received += received - before[0] if received >= before[0] else received
            self.sent += sent - before[1] if sent >= before[1] else sent
        self._seen = seen

"""The names of a cluster: a DNS server for A records of services, as pods look for them.

`scripts/cluster` runs it in the control plane's namespace. It watches services and endpoints, so an answer
follows a change at once, and nothing may be kept by whoever asks. It answers for cluster.local alone and
asks nobody else: any other name does not exist. While the API is away it answers with what it knew last.
"""

import json
import socket
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from scripts.cluster_parts.api import Api

PORT = 53
ZONE = ["svc", "cluster", "local"]
A_RECORD = 1
NO_SUCH_NAME = 3
LARGEST = 2000  # bytes: what resolvers of C libraries take in one packet
Key = tuple[str, str]


@dataclass(slots=True)
class Records:
    """Namespace and name -> object, as the API gave it last."""

    services: dict[Key, Any] = field(default_factory=dict)
    endpoints: dict[Key, Any] = field(default_factory=dict)

    def look_up(self, name: str) -> list[str] | None:
        """The addresses of a name, none where it exists without any; None where it does not exist."""
        labels = name.lower().rstrip(".").split(".")
        if labels[-3:] != ZONE:
            return [] if labels in (ZONE[1:], ZONE[2:]) else None
        match labels[:-3]:
            case []:
                return []
            case [namespace]:
                return [] if any(key[0] == namespace for key in list(self.services)) else None
            case [service, namespace]:
                return self._service((namespace, service))
            case [host, service, namespace]:
                return self._ready((namespace, service), host) or None
            case _:
                return None

    def _service(self, key: Key) -> list[str] | None:
        if key not in self.services:
            return None
        address = self.services[key]["spec"].get("clusterIP", "")
        if address == "None":  # headless: without a pod there is no such name, as in clusters elsewhere
            return self._ready(key) or None
        return [address] if address else []

    def _ready(self, key: Key, host: str | None = None) -> list[str]:
        """Endpoints list a pod that is not ready as ready where the service publishes those."""
        if self.services.get(key, {}).get("spec", {}).get("clusterIP") != "None":
            return []
        subsets = self.endpoints.get(key, {}).get("subsets") or []
        rows = [row for subset in subsets for row in subset.get("addresses") or []]
        return [
            row["ip"] for row in rows if host in (None, row.get("hostname") or row["ip"].replace(".", "-"))
        ]


def reply(query: bytes, look_up: Callable[[str], list[str] | None]) -> bytes:
    """The packet that answers a packet; raises IndexError, ValueError or struct.error where it is none."""
    labels, at = [], 12
    while length := query[at]:
        labels.append(query[at + 1 : at + 1 + length].decode("ascii"))
        at += length + 1
    question = query[12 : at + 5]
    (kind,) = struct.unpack(">H", query[at + 1 : at + 3])
    addresses = look_up(".".join(labels))
    room = (LARGEST - 12 - len(question)) // 16
    listed = (addresses or [])[:room] if kind == A_RECORD else []
    flags = 0x8400 | (struct.unpack(">H", query[2:4])[0] & 0x0100) | 0x0080
    flags |= NO_SUCH_NAME if addresses is None else 0
    packet = query[:2] + struct.pack(">HHHHH", flags, 1, len(listed), 0, 0) + question
    for address in listed:
        packet += b"\xc0\x0c" + struct.pack(">HHIH", A_RECORD, 1, 0, 4) + socket.inet_aton(address)
    return packet


def follow(api: Api, kind: str, keep: Callable[[dict[Key, Any]], None]) -> None:
    """For ever: list, then watch until that breaks."""
    while True:
        try:
            listed = api.get(f"/api/v1/{kind}", timeout=10)
            if listed.ok:
                rows = {_key(row): row for row in listed.body["items"]}
                keep(rows)
                since = listed.body["metadata"]["resourceVersion"]
                path = f"/api/v1/{kind}?watch=1&allowWatchBookmarks=true&resourceVersion={since}"
                for line in api.lines(path, timeout=120):
                    _apply(json.loads(line), rows)
        except (OSError, ValueError) as reason:
            print(f"names: {kind}: {reason!r}", flush=True)
        time.sleep(0.2)


def _apply(event: Any, rows: dict[Key, Any]) -> None:
    if event["type"] == "ERROR":
        raise ValueError(event["object"])
    if event["type"] == "BOOKMARK":
        return
    if event["type"] == "DELETED":
        rows.pop(_key(event["object"]), None)
    else:
        rows[_key(event["object"])] = event["object"]


def _key(row: Any) -> Key:
    return row["metadata"]["namespace"], row["metadata"]["name"]


def serve(api: Api, address: str) -> None:
    records = Records()
    for kind in ("services", "endpoints"):
        keep = lambda rows, kind=kind: setattr(records, kind, rows)  # noqa: E731
        threading.Thread(target=follow, args=(api, kind, keep), daemon=True).start()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as door:
        door.bind((address, PORT))
        while True:
            query, sender = door.recvfrom(4096)
            try:
                door.sendto(reply(query, records.look_up), sender)
            except (IndexError, ValueError, struct.error, OSError) as reason:
                print(f"names: {sender}: {reason!r}", flush=True)

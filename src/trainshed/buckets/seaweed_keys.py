"""What a SeaweedFS of ours is told: keys made once and kept for nobody else's eyes, ports kept over restarts.

Two identities: the server's own, which may do everything, and that of jobs, which may use the objects of the
buckets and nothing else. Beside the files it writes nothing and starts nothing.
"""

import contextlib
import json
import os
import secrets
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from trainshed.buckets.port_claims import PortClaims
from trainshed.buckets.trouble import translated
from trainshed.disk.folder_sync import write_durably

REGION = "us-east-1"
_GRPC = 10_000  # that SeaweedFS adds to each port for a second one
_PORTS = range(21_000, 22_000)  # below the kernel's own range, also the second ones
SOCKETS = Path("/tmp")  # where SeaweedFS has a socket beside each port, as seaweedfs-PART-PORT.sock


@dataclass(frozen=True, slots=True)
class KeyPair:
    access: str
    secret: str


@dataclass(frozen=True, slots=True)
class SeaweedKeys:
    own: KeyPair
    jobs: KeyPair
    inner: str  # what the parts of SeaweedFS sign their own requests with


@dataclass(frozen=True, slots=True)
class SeaweedPorts:
    s3: int
    filer: int
    volume: int
    master: int

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.s3}"


def keys_of(folder: Path) -> SeaweedKeys:
    """Those of the folder; made at the first start."""
    path = folder / "keys.json"
    fields = _read(path)
    if not fields:
        pairs: dict[str, Any] = {
            who: [secrets.token_hex(10).upper(), secrets.token_hex(20)] for who in ("own", "jobs")
        }
        fields = {**pairs, "inner": secrets.token_hex(32)}
        write(path, fields)
    return SeaweedKeys(KeyPair(*fields["own"]), KeyPair(*fields["jobs"]), fields["inner"])


def ports_of(folder: Path, claims: PortClaims) -> SeaweedPorts:
    """Those of last time, so that running programs still find it, unless somebody else has one now."""

    def is_ours(port: int) -> bool:
        return all(_is_free(item) for item in (port, port + _GRPC)) and claims.take(port)

    ports_before = _read(folder / "ports.json")
    if ports_before and all(is_ours(port) for port in ports_before.values()):
        return SeaweedPorts(**ports_before)
    free = filter(is_ours, _PORTS)
    ports = SeaweedPorts(next(free), next(free), next(free), next(free))
    write(folder / "ports.json", {name: getattr(ports, name) for name in SeaweedPorts.__slots__})
    return ports


def identities(keys: SeaweedKeys, buckets: Iterable[str]) -> dict[str, object]:
    """SeaweedFS's own file of who may do what."""
    granted = [f"{action}:{bucket}" for bucket in buckets for action in ("Read", "Write", "List", "Tagging")]
    return {
        "identities": [
            _identity("trainshed", keys.own, ["Admin", "Read", "Write", "List", "Tagging"]),
            _identity("jobs", keys.jobs, granted),
        ]
    }


def variables(pair: KeyPair, endpoint: str) -> dict[str, str]:
    """What boto3, the aws command and obstore look for."""
    return {
        "AWS_ACCESS_KEY_ID": pair.access,
        "AWS_SECRET_ACCESS_KEY": pair.secret,
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_ALLOW_HTTP": "true",
    }


def job_variables(pair: KeyPair, endpoint: str, buckets: Iterable[str]) -> dict[str, str]:
    """The same, and the names that guides to training from S3 print."""
    return {
        **variables(pair, endpoint),
        "endpoint_url": endpoint,
        "aws_access_key_id": pair.access,
        "aws_secret_access_key": pair.secret,
        "signature_version": "s3v4",
        "region_name": REGION,
        **{f"{bucket}bucket": bucket for bucket in buckets if bucket.isidentifier()},
    }


def write(path: Path, fields: Mapping[str, object]) -> None:
    """Whole or not at all, and for its owner only."""
    with translated(f"{path} cannot be written"):
        write_durably(path, json.dumps(fields))


def _identity(name: str, pair: KeyPair, actions: list[str]) -> dict[str, object]:
    credentials = [{"accessKey": pair.access, "secretKey": pair.secret}]
    return {"name": name, "credentials": credentials, "actions": actions}


def _read(path: Path) -> dict[str, Any]:
    try:
        return cast("dict[str, Any]", json.loads(path.read_text()))
    except FileNotFoundError:
        return {}
    except ValueError:
        return {}  # cut off by a full disk: as if there were none


def _is_free(port: int) -> bool:
    if _has_foreign_socket(port):
        return False
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _has_foreign_socket(port: int) -> bool:
    """Whether another user's stands there, perhaps left over: SeaweedFS can neither use nor remove it."""
    if (own := os.geteuid()) == 0:
        return False
    with contextlib.suppress(FileNotFoundError):  # its server ends meanwhile
        return any(path.lstat().st_uid != own for path in SOCKETS.glob(f"seaweedfs-*-{port}.sock"))
    return True

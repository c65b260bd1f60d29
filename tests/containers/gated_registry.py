"""A registry of one tiny image that answers when a test lets it: for what happens while one is pulled."""

import asyncio
import errno
import gzip
import hashlib
import io
import json
import platform
import tarfile
from enum import Enum

MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
MACHINES = {"aarch64": "arm64", "x86_64": "amd64"}
_TURN = 120.0  # seconds in which another test has ended


class Gate(Enum):
    SHUT = "answers nobody"
    OPEN = "has the image"
    EMPTY = "says that there is none"


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def _layer() -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        info = tarfile.TarInfo("hello")
        info.size = 5
        tar.addfile(info, io.BytesIO(b"hello"))
    return made.getvalue()


class GatedRegistry:
    def __init__(self, port: int, host: str = "127.0.0.1") -> None:
        layer, machine = _layer(), platform.machine()
        packed = gzip.compress(layer, mtime=0)
        config = json.dumps(
            {
                "architecture": MACHINES.get(machine, machine),
                "os": "linux",
                "config": {},
                "rootfs": {"type": "layers", "diff_ids": [_digest(layer)]},
            }
        ).encode()
        self._manifest = json.dumps(
            {
                "schemaVersion": 2,
                "mediaType": MANIFEST,
                "config": _part("application/vnd.docker.container.image.v1+json", config),
                "layers": [_part("application/vnd.docker.image.rootfs.diff.tar.gzip", packed)],
            }
        ).encode()
        self._blobs = {_digest(blob): blob for blob in (packed, config)}
        self._gate, self._moved = Gate.SHUT, asyncio.Event()
        self._host, self._port = host, port
        self._server: asyncio.Server | None = None

    def image(self, name: str) -> str:
        return f"{self._host}:{self._port}/{name}"

    async def start(self) -> None:
        """Nodes know one port: tests that run beside this one have it in turn."""
        async with asyncio.timeout(_TURN):
            while self._server is None:
                try:
                    self._server = await asyncio.start_server(self._answer, self._host, self._port)
                except OSError as error:
                    if error.errno != errno.EADDRINUSE:
                        raise
                    await asyncio.sleep(0.1)

    async def close(self) -> None:
        self.turn(Gate.EMPTY)
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    def turn(self, gate: Gate) -> None:
        self._gate = gate
        self._moved.set()
        self._moved = asyncio.Event()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            first = await reader.read(1)
            if first == b"\x16":  # engines try TLS first, and would wait long for an answer
                return
            words = (first + await reader.readline()).split()
            while (await reader.readline()).strip():
                pass
            if words:
                status, kind, body = await self._find(words[1].decode())
                writer.write(
                    f"HTTP/1.1 {status} -\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
                    f"Docker-Content-Digest: {_digest(body)}\r\nConnection: close\r\n\r\n".encode()
                )
                if words[0] != b"HEAD":
                    writer.write(body)
                await writer.drain()
        except OSError:
            return
        finally:
            writer.close()

    async def _find(self, path: str) -> tuple[int, str, bytes]:
        if path == "/v2/":
            return 200, "application/json", b"{}"
        while self._gate is Gate.SHUT:
            await self._moved.wait()
        if self._gate is Gate.OPEN and "/manifests/" in path:
            return 200, MANIFEST, self._manifest
        blob = self._blobs.get(path.rpartition("/")[2])
        if self._gate is Gate.OPEN and blob is not None:
            return 200, "application/octet-stream", blob
        said = {"errors": [{"code": "MANIFEST_UNKNOWN", "message": "manifest unknown"}]}
        return 404, "application/json", json.dumps(said).encode()


def _part(kind: str, data: bytes) -> dict[str, object]:
    return {"mediaType": kind, "size": len(data), "digest": _digest(data)}

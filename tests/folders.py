"""Folders for tests: files as a mapping, the manifest and the frames a client would send of them."""

import hashlib
from collections.abc import Mapping
from typing import Any

from tests.live import JOBS, PARENT, Answer, LiveServer, pool

Files = Mapping[str, bytes | tuple[str, bytes]]  # path -> content, or (mode, content)

PLAIN, EXECUTABLE, LINK = "100644", "100755", "120000"


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def parts(files: Files) -> dict[str, tuple[str, bytes]]:
    return {path: (PLAIN, one) if isinstance(one, bytes) else one for path, one in files.items()}


def manifest(files: Files) -> dict[str, Any]:
    return {
        "files": [
            {"path": path, "sha256": sha256(content), "size": len(content), "mode": mode}
            for path, (mode, content) in parts(files).items()
        ]
    }


def code_id(files: Files) -> str:
    """Computed as the agreement says, not as the server does."""
    rows = [
        f"{mode} {sha256(content)} {len(content)} ".encode() + path.encode() + b"\0"
        for path, (mode, content) in sorted(parts(files).items(), key=lambda row: row[0].encode())
    ]
    return hashlib.sha256(b"".join(rows)).hexdigest()


def frame(content: bytes, name: str = "") -> bytes:
    return f"{name or sha256(content)} {len(content)}\n".encode() + content


def frames(files: Files, only: set[str] | None = None) -> bytes:
    contents = {sha256(content): content for _, content in parts(files).values()}
    return b"".join(frame(content) for name, content in contents.items() if only is None or name in only)


def missing(server: LiveServer, files: Files) -> Answer:
    return server.request("POST", f"{PARENT}/code:missing", manifest(files))


def upload(server: LiveServer, data: bytes) -> Answer:
    return server.request(
        "POST", f"{PARENT}/code:upload", data, headers={"Content-Type": "application/octet-stream"}
    )


def keep(server: LiveServer, files: Files) -> str:
    """Send a folder as a client does; its id."""
    asked = missing(server, files)
    assert asked.status == 200, asked.body
    if asked.json["missing"]:
        sent = upload(server, frames(files, set(asked.json["missing"])))
        assert sent.json == {"received": len(asked.json["missing"])}, sent.body
        asked = missing(server, files)
    assert asked.json["missing"] == [], asked.body
    return str(asked.json["code"])


def fetch(server: LiveServer, code: str) -> dict[str, tuple[str, bytes]]:
    """The folder as it comes back."""
    found: dict[str, tuple[str, bytes]] = {}
    for file in server.get(f"{PARENT}/code/{code}")["files"]:
        blob = server.request("GET", f"{PARENT}/code/{code}/blobs/{file['sha256']}")
        assert blob.status == 200, blob.body
        found[file["path"]] = (file["mode"], blob.body)
    return found


def submit(server: LiveServer, code: str, *command: str, replicas: int = 1, **spec: object) -> Answer:
    job_spec = {"workerPoolSpecs": [pool(command, replicas=replicas)], "code": code, **spec}
    return server.request("POST", JOBS, {"displayName": "with code", "jobSpec": job_spec})

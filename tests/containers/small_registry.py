"""A registry of one image, with an index, that may want a token and keeps its blobs elsewhere."""

import base64
import contextlib
import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
TOKEN = "a-token"


def digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


class SmallRegistry(ThreadingHTTPServer):
    """`config` is what the image says of itself; `user` must be shown where given; `realm` gives tokens."""

    daemon_threads = True

    def __init__(self, config: dict[str, Any], architecture: str, **wanted: str) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.wanted = wanted
        self.seen: list[tuple[str, str]] = []  # path and authorization of each request
        self.config = json.dumps({"architecture": architecture, "os": "linux", "config": config}).encode()
        part = {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": digest(self.config)}
        self.manifest = json.dumps({"schemaVersion": 2, "config": part, "layers": []}).encode()
        rows = [
            {"digest": f"sha256:{'0' * 64}", "platform": {"os": "linux", "architecture": "s390x"}},
            {"digest": digest(self.manifest), "platform": {"os": "linux", "architecture": architecture}},
        ]
        self.index = json.dumps({"schemaVersion": 2, "manifests": rows}).encode()

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"


class _Answer(BaseHTTPRequestHandler):
    server: SmallRegistry  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_GET(self) -> None:
        shown = self.headers.get("Authorization", "")
        registry, wanted = self.server, self.server.wanted
        self.server.seen.append((self.path, shown))
        if self.path.startswith("/token"):
            known = base64.b64encode(wanted.get("user", "").encode()).decode()
            if "user" in wanted and shown != f"Basic {known}":
                return self._say(401, b"{}")
            return self._say(200, json.dumps({"token": TOKEN}).encode())
        if self.path.startswith("/stored/"):
            return self._say(200, registry.config)
        if "realm" in wanted and shown != f"Bearer {TOKEN}":
            realm = wanted["realm"].replace("HOST", registry.host)
            scope = f'Bearer realm="{realm}",service="s",scope="repository:team/app:pull"'
            return self._say(401, b"{}", **{"WWW-Authenticate": scope})
        if self.path == f"/v2/team/app/blobs/{digest(registry.config)}":
            return self._say(307, b"", Location=wanted.get("store", "/stored/config"))
        manifests = {"1": registry.index, digest(registry.manifest): registry.manifest}
        document = manifests.get(self.path.removeprefix("/v2/team/app/manifests/"))
        if document is None:
            said = {"errors": [{"code": "MANIFEST_UNKNOWN", "message": "manifest unknown to the registry"}]}
            return self._say(404, json.dumps(said).encode())
        return self._say(200, document)

    def _say(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        return


@contextlib.contextmanager
def a_small_registry(
    config: dict[str, Any], architecture: str = "arm64", **wanted: str
) -> Iterator[SmallRegistry]:
    with SmallRegistry(config, architecture, **wanted) as registry:
        thread = threading.Thread(target=registry.serve_forever, daemon=True)
        thread.start()
        yield registry
        registry.shutdown()
        thread.join()

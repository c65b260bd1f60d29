"""RenamingProxy: an API server at which a group of a test stands under the name of one that is built in.

Kubernetes 1.20 has a group `scheduling.k8s.io/v1beta1` of its own, without PodGroups, and no definition can
add to it. So a test defines PodGroups in a group of its own, and a server under test asks through this proxy.
It passes everything on, renames that group in paths and bodies, and remembers the bodies that were posted.
"""

import http.client
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.kubernetes.cluster import Cluster

_SHOWN, _REAL = "scheduling.k8s.io/v1beta1", "scheduling.test.trainshed.dev/v1beta1"
REAL_GROUP = _REAL.partition("/")[0]
_PIECE = 65536  # bytes
_LONGEST = 120.0  # seconds for an answer, or a piece of a watch


class RenamingProxy:
    def __init__(self, cluster: Cluster, folder: Path) -> None:
        proxy, self.posted = self, list[Any]()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *args: object) -> None:
                return None

            def do_GET(self) -> None:
                size = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(size) if size else None
                if self.command == "POST" and body:
                    proxy.posted.append(json.loads(body))
                connection = cluster.api.connect(_LONGEST)
                try:
                    self._pass_on(connection, body)
                finally:
                    connection.close()

            do_POST = do_PATCH = do_PUT = do_DELETE = do_GET

            def _pass_on(self, connection: http.client.HTTPSConnection, body: bytes | None) -> None:
                kept = ("Content-Type", "Accept")
                headers = {name: self.headers[name] for name in kept if name in self.headers}
                sent = body and body.replace(_SHOWN.encode(), _REAL.encode())
                connection.request(self.command, self.path.replace(_SHOWN, _REAL), sent, headers)
                answer = connection.getresponse()
                self.send_response(answer.status)
                self.send_header("Content-Type", answer.headers.get("Content-Type") or "application/json")
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                while piece := answer.read1(_PIECE):
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                    self.wfile.flush()
                self.wfile.write(b"0\r\n\r\n")

            def handle(self) -> None:
                try:
                    super().handle()
                except (OSError, http.client.HTTPException):
                    self.close_connection = True  # the server under test has gone

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        address = f"http://127.0.0.1:{self._server.server_address[1]}"
        self.kubeconfig = folder / "kubeconfig"
        self.kubeconfig.write_text(
            json.dumps(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "current-context": "c",
                    "clusters": [{"name": "c", "cluster": {"server": address}}],
                    "users": [{"name": "u", "user": {}}],
                    "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                }
            )
        )

    def __enter__(self) -> "RenamingProxy":
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

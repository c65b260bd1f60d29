"""Kubernetes' API over HTTPS with the standard library: what `up`, the cluster's names and its tests ask.

A refusal is a value, not an exception: callers wait for things that are refused at first.
"""

import http.client
import json
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    text: str

    @property
    def ok(self) -> bool:
        return self.status < 400

    @property
    def body(self) -> Any:
        return json.loads(self.text)


class Api:
    """As one user, by the certificate of that name. Raises OSError where nobody answers."""

    def __init__(self, address: str, certificates: Path, user: str = "admin") -> None:
        self._address = address
        self._context = ssl.create_default_context(cafile=str(certificates / "ca.crt"))
        self._context.load_cert_chain(certificates / f"{user}.crt", certificates / f"{user}.key")

    def connect(self, timeout: float) -> http.client.HTTPSConnection:
        host, port = self._address.removeprefix("https://").rsplit(":", 1)
        return http.client.HTTPSConnection(host, int(port), timeout=timeout, context=self._context)

    def ask(self, method: str, path: str, body: Any = None, kind: str = JSON, timeout: float = 60) -> Answer:
        connection = self.connect(timeout)
        try:
            sent = None if body is None else json.dumps(body)
            connection.request(method, path, sent, {"Content-Type": kind, "Accept": f"{JSON}, */*"})
            answer = connection.getresponse()
            return Answer(answer.status, answer.read().decode(errors="replace"))
        except http.client.HTTPException as broken:
            raise ConnectionError(f"{method} {path}: {broken!r}") from broken
        finally:
            connection.close()

    def get(self, path: str, timeout: float = 60) -> Answer:
        return self.ask("GET", path, timeout=timeout)

    def lines(self, path: str, timeout: float) -> Iterator[bytes]:
        """Of an answer that goes on: a watch, a log that is followed."""
        connection = self.connect(timeout)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            if answer.status != 200:
                raise ConnectionError(f"GET {path}: {answer.status}")
            yield from answer
        except http.client.HTTPException as broken:
            raise ConnectionError(f"GET {path}: {broken!r}") from broken
        finally:
            connection.close()

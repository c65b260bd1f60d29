"""The named secrets of a project as methods. The server gives no value back."""

import base64
from urllib.parse import quote

from trainshed.client.connection import Connection, Json
from trainshed.client.errors import ApiError


class NamedSecretsClient:
    def __init__(self, connection: Connection, project: str) -> None:
        self._connection = connection
        self._path = f"/v1/projects/{quote(project, safe='')}/secrets"

    def all(self) -> list[Json]:
        return self._connection.request("GET", self._path).get("secrets", [])

    def get(self, name: str) -> Json:
        return self._connection.request("GET", self._of(name))

    def set(self, name: str, value: bytes) -> Json:
        """The new version. A secret that is not there is made first."""
        body: Json = {"payload": {"data": base64.b64encode(value).decode()}}
        try:
            return self._connection.request("POST", f"{self._of(name)}:addVersion", body)
        except ApiError as error:
            if error.code != 404:
                raise
        try:
            self._connection.request("POST", f"{self._path}?secretId={quote(name, safe='')}", {})
        except ApiError as error:
            if error.code != 409:  # somebody else was first
                raise
        return self._connection.request("POST", f"{self._of(name)}:addVersion", body)

    def delete(self, name: str) -> None:
        self._connection.request("DELETE", self._of(name))

    def rotate_key(self) -> Json:
        return self._connection.request("POST", "/v1/secrets:rotateKey", {}, timeout=600)

    def _of(self, name: str) -> str:
        return f"{self._path}/{quote(name, safe='')}"

"""Channels of notices of the server as methods. The project "-" means the whole server."""

from collections.abc import Mapping
from urllib.parse import quote, urlencode

from trainshed.client.connection import Connection, Json


class NoticesClient:
    def __init__(self, connection: Connection, project: str) -> None:
        self._connection = connection
        self._path = f"/v1/projects/{quote(project, safe='')}/noticeChannels"

    def add(self, name: str, body: Mapping[str, object]) -> Json:
        return self._connection.request("POST", f"{self._path}?{urlencode({'channelId': name})}", dict(body))

    def all(self) -> list[Json]:
        return self._connection.request("GET", self._path).get("noticeChannels", [])

    def delete(self, name: str) -> None:
        self._connection.request("DELETE", f"{self._path}/{quote(name, safe='')}")

    def test(self, name: str) -> Json:
        return self._connection.request("POST", f"{self._path}/{quote(name, safe='')}:test", {})

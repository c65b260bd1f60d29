"""Channels of notices of the server as methods. The project "-" means the whole server."""

from collections.abc import Mapping
from urllib.parse import quote, urlencode

from trainshed.client.connection import Connection, Json


class NoticesClient:
    """`is_own`: those for jobs of whoever asks. `user`: those for jobs of that user."""

    def __init__(self, connection: Connection, project: str, *, is_own: bool = False, user: str = "") -> None:
        self._connection = connection
        self._path = (
            f"/v1/projects/{quote(project, safe='')}/{'ownNoticeChannels' if is_own else 'noticeChannels'}"
        )
        self._user = {"user": user} if user else {}

    def add(self, name: str, body: Mapping[str, object]) -> Json:
        query = urlencode({"channelId": name})
        return self._connection.request("POST", f"{self._path}?{query}", {**body, **self._user})

    def all(self) -> list[Json]:
        return self._connection.request("GET", self._about("")).get("noticeChannels", [])

    def delete(self, name: str) -> None:
        self._connection.request("DELETE", self._about(f"/{quote(name, safe='')}"))

    def test(self, name: str) -> Json:
        return self._connection.request("POST", self._about(f"/{quote(name, safe='')}:test"), {})

    def _about(self, rest: str) -> str:
        return f"{self._path}{rest}" + (f"?{urlencode(self._user)}" if self._user else "")

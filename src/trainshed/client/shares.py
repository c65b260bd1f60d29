"""How the machines of the server are divided, as methods."""

from trainshed.client.connection import Connection, Json


class SharesClient:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def all(self) -> list[Json]:
        return self._connection.request("GET", "/v1/shares").get("shares", [])

    def set(self, document: Json) -> list[Json]:
        """These in place of all; an empty document removes them."""
        return self._connection.request("PUT", "/v1/shares", document).get("shares", [])

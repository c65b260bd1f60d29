"""Image caches of the server as methods."""

from collections.abc import Sequence
from urllib.parse import quote, urlencode

from trainshed.client.connection import Connection, Json


class ImageCachesClient:
    def __init__(self, connection: Connection, place: str) -> None:
        self._connection = connection
        self._path = f"{place}/imageCaches"

    def create(self, name: str, images: Sequence[str], *, retention_days: int = 0) -> Json:
        body = {"images": list(images), "retentionDays": retention_days}
        return self._connection.request("POST", f"{self._path}?{urlencode({'imageCacheId': name})}", body)

    def all(self) -> list[Json]:
        return self._connection.request("GET", self._path).get("imageCaches", [])

    def get(self, name: str) -> Json:
        return self._connection.request("GET", f"{self._path}/{quote(name, safe='')}")

    def delete(self, name: str) -> None:
        self._connection.request("DELETE", f"{self._path}/{quote(name, safe='')}")

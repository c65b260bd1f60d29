"""Manifests and image caches of the server as methods."""

from collections.abc import Iterator, Sequence
from urllib.parse import quote, urlencode

from trainshed.client.connection import Connection, Json


class ManifestsClient:
    def __init__(self, connection: Connection, place: str) -> None:
        self._connection = connection
        self._path = f"{place}/manifests"

    def apply(self, document: Json, *, dry_run: bool = False, again: bool = False) -> Json:
        """What became of it: {kind, name, outcome, notes} and the customJob or the imageCache."""
        asked = {"dryRun": "true"} if dry_run else {}
        asked |= {"again": "true"} if again else {}
        query = f"?{urlencode(asked)}" if asked else ""
        # Asked twice it is done once, unless it is to be done again.
        return self._connection.request(
            "POST", f"{self._path}:apply{query}", document, repeatable=dry_run or not again
        )

    def all(self, kind: str, name: str = "") -> Iterator[Json]:
        """{kind, name, job} of each that was applied, newest first."""
        token = ""
        while True:
            asked = {"kind": kind} | ({"name": name} if name else {})
            asked |= {"pageToken": token} if token else {}
            page = self._connection.request("GET", f"{self._path}?{urlencode(asked)}")
            yield from page.get("manifests", [])
            token = page.get("nextPageToken", "")
            if not token:
                return


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

"""Kubernetes' manifests on the server as methods: apply one, and list those that were applied."""

from collections.abc import Iterator
from urllib.parse import urlencode

from trainshed.client import Client, Json


class ManifestsClient:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._path = f"{client.place()}/manifests"

    def apply(self, document: Json, *, dry_run: bool = False, again: bool = False) -> Json:
        """What became of it: {kind, name, outcome, notes} and the customJob or the imageCache."""
        asked = {"dryRun": "true"} if dry_run else {}
        asked |= {"again": "true"} if again else {}
        query = f"?{urlencode(asked)}" if asked else ""
        # Asked twice it is done once, unless it is to be done again.
        return self._client.ask(
            "POST", f"{self._path}:apply{query}", document, repeatable=dry_run or not again
        )

    def all(self, kind: str, name: str = "") -> Iterator[Json]:
        """{kind, name, job} of each that was applied, newest first."""
        token = ""
        while True:
            asked = {"kind": kind} | ({"name": name} if name else {})
            asked |= {"pageToken": token} if token else {}
            page = self._client.ask("GET", f"{self._path}?{urlencode(asked)}")
            yield from page.get("manifests", [])
            token = page.get("nextPageToken", "")
            if not token:
                return

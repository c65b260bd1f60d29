"""The server's images as methods. What takes its time is an iterator of what is said of it.

The last word of such an iterator is the outcome; where it fails it raises ApiError, also in the middle.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from urllib.parse import urlencode

from trainshed.client.connection import Connection, Json


class ImagesClient:
    def __init__(self, connection: Connection, place: str) -> None:
        self._connection = connection
        self._path = f"{place}/images"

    def all(self) -> list[Json]:
        return self._connection.request("GET", self._path).get("images", [])

    def pull(self, name: str) -> Iterator[Json]:
        """Have it on the server, as it is in its registry now. It goes on where one stops listening."""
        return self._connection.steps(f"{self._path}:pull", {"name": name})

    def push(self, name: str) -> Iterator[Json]:
        return self._connection.steps(f"{self._path}:push", {"name": name})

    def build(
        self,
        context: Iterable[bytes],
        tags: Sequence[str],
        *,
        dockerfile: str = "Dockerfile",
        args: Mapping[str, str] | None = None,
        more: Mapping[str, str] | None = None,
    ) -> Iterator[Json]:
        """From a tar of files; `more` has target, pull, noCache and labels."""
        asked = {"tag": ",".join(tags), "dockerfile": dockerfile, **(more or {})}
        if args:
            asked["buildArgs"] = json.dumps(dict(args))
        return self._connection.steps(f"{self._path}:build?{urlencode(asked)}", iter(context))

    def load(self, archive: Iterable[bytes]) -> Iterator[Json]:
        return self._connection.steps(f"{self._path}:load", iter(archive))

    def save(self, names: Sequence[str]) -> Iterator[bytes]:
        """An archive that `load` takes, here or elsewhere, in pieces. Interrupted where it breaks off."""
        return self._connection.pieces(f"{self._path}:save?{urlencode({'names': ','.join(names)})}", 600.0)

    def tag(self, name: str, new: str) -> None:
        self._connection.request("POST", f"{self._path}:tag", {"name": name, "tag": new}, repeatable=True)

    def remove(self, names: Sequence[str], *, force: bool = False) -> list[str]:
        """What went: names, and ids of contents that have no other name."""
        body = {"names": list(names), "force": force}
        return self._connection.request("POST", f"{self._path}:remove", body).get("removed", [])

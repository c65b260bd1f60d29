"""What jobs used and what it cost, as methods."""

from trainshed.client.address import query
from trainshed.client.connection import Connection, Json
from trainshed.client.errors import ApiError

PAGE = 1000
TRIES = 3


class CostsClient:
    def __init__(self, connection: Connection, place: str) -> None:
        """`place` is the path of a project and location; empty: of the whole server."""
        self._connection, self._path = connection, f"{place or '/v1'}/costs"

    def find(self, *, by: str, since: str | None, until: str | None, limit: int | None = None) -> Json:
        """The first `limit` rows, or all, and the total of all: {rows, total, totalSize, currency}.

        All are of one report: where the server no longer has it, it is read from the start.
        """
        asked: dict[str, str | None] = {"groupBy": by, "from": since, "to": until}
        for _ in range(TRIES - 1):
            try:
                return self._read(asked, limit)
            except ApiError as error:
                if not any(violation.field == "page_token" for violation in error.violations):
                    raise
        return self._read(asked, limit)

    def _read(self, asked: dict[str, str | None], limit: int | None) -> Json:
        rows: list[Json] = []
        token = ""
        while True:
            size = PAGE if limit is None else min(PAGE, limit - len(rows))
            page = {**asked, "pageSize": size, "pageToken": token or None}
            answer = self._connection.request("GET", self._path + query(page))
            rows += answer.get("rows", [])
            token = answer.pop("nextPageToken", "")
            if not token or (limit is not None and len(rows) >= limit):
                return {**answer, "rows": rows}

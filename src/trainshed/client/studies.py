"""Studies, as hyperparameterTuningJobs, with our own views of them, as methods.

A study is given by its id or its full resource name, also that of a study of the Vizier service. Answers
are the server's JSON.
"""

import os
from urllib.parse import quote, urlencode

from trainshed.client.api import Client

TYPE_CHECKING = False  # the module typing takes longer to import than a job takes to submit
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from trainshed.client.connection import Json

PAGE = 500  # studies or trials asked for at a time
OWN_VIEW = "trainshed"
RESOURCE = "hyperparameterTuningJobs"


class StudiesClient:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._anywhere = client.place("-")  # the same project, in any location

    def create(self, body: "Json", *, key: str = "") -> "Json":
        """With the same `key` twice it is still one study."""
        path = f"{self._client.place()}/{RESOURCE}"
        return self._client.ask("POST", path, body, key=key or os.urandom(16).hex())

    def get(self, study: str) -> "Json":
        """As Google's API has it, with all trials."""
        return self._client.ask("GET", self.path(study))

    def view(self, study: str) -> "Json":
        """Without trials, but with the row of our own lists, as `trainshed`."""
        return self._client.ask("GET", f"{self.path(study)}?view={OWN_VIEW}")

    def all(
        self, *, filter: str = "", limit: int | None = None, view: str = "", location: str | None = None
    ) -> "Iterator[Json]":
        """Newest first; pages are fetched as they are needed. With view="trainshed" they are our own rows."""
        path = f"{self._client.place(location)}/{RESOURCE}"
        yield from self._pages(path, RESOURCE, limit, {"filter": filter, "view": view})

    def rows(
        self, *, filter: str = "", limit: int | None = None, location: str | None = None
    ) -> "Iterator[Json]":
        """Our own rows: studies without their trials, with counts and the best value."""
        return self.all(filter=filter, limit=limit, view=OWN_VIEW, location=location)

    def trials(
        self,
        study: str,
        *,
        filter: str = "",
        order_by: str = "",
        limit: int | None = None,
        page: int = PAGE,
    ) -> "Iterator[Json]":
        """Ordered by id, value, start_time or duration, `desc` behind it. Without measurements."""
        asked = {"filter": filter, "orderBy": order_by, "view": OWN_VIEW}
        yield from self._pages(f"{self.path(study)}/trials", "trials", limit, asked, page)

    def analysis(self, study: str) -> "Json":
        return self._client.ask("GET", f"{self.path(study)}:analysis")

    def curves(self, study: str, *, trials: "Sequence[str]" = (), most: int = 0) -> "Json":
        """Of these trials, or of the best ones."""
        query = {"trials": ",".join(trials)} if trials else {"most": most} if most else {}
        return self._client.ask("GET", f"{self.path(study)}:curves{_query(query)}")

    def best(self, study: str) -> "Json":
        return self._client.ask("GET", f"{self.path(study)}:best")

    def cancel(self, study: str) -> None:
        self._client.ask("POST", f"{self.path(study)}:cancel", {})

    def stop(self, study: str) -> "Json":
        """End it with what it has."""
        return self._client.ask("POST", f"{self.path(study)}:stop", {})

    def resume(self, study: str, limits: "Json | None" = None) -> "Json":
        """Go on, or give it other limits: maxTrialCount, parallelTrialCount, maxFailedTrialCount."""
        return self._client.ask("POST", f"{self.path(study)}:resume", limits or {})

    def add_trials(self, study: str, points: "Sequence[Json]") -> "list[Json]":
        answer = self._client.ask("POST", f"{self.path(study)}:addTrials", {"points": list(points)})
        return answer.get("trials", [])

    def stop_trial(self, study: str, trial: str) -> "Json":
        return self._client.ask("POST", f"{self.path(study)}/trials/{_quoted(trial)}:stop", {})

    def delete(self, study: str) -> None:
        self._client.ask("DELETE", self.path(study))

    def entries(self, project: str, study: str, since: str = "", task: str = "") -> "Iterator[Json]":
        """Log entries of the trials' jobs, from a timestamp on. `study` is its id, or a jobId."""
        terms = [f'resource.labels.job_id="{study}"']
        if since:
            terms.append(f'timestamp>="{since}"')
        if task:
            terms.append(f'resource.labels.task_name="{task}"')
        body: Json = {
            "resourceNames": [f"projects/{project}"],
            "filter": " AND ".join(terms),
            "orderBy": "timestamp asc",
            "pageSize": 1000,
        }
        while True:
            page = self._client.ask("POST", "/v2/entries:list", body, repeatable=True)
            yield from page.get("entries", [])
            if not (token := page.get("nextPageToken")):
                return
            body["pageToken"] = token

    def path(self, study: str) -> str:
        if "/" in study:
            return f"/v1/{quote(study, errors='surrogateescape')}"
        return f"{self._anywhere}/{RESOURCE}/{_quoted(study)}"

    def _pages(
        self, path: str, name: str, limit: int | None, asked: "Mapping[str, str]", most: int = PAGE
    ) -> "Iterator[Json]":
        token = ""
        while limit is None or limit > 0:
            size = most if limit is None else min(most, limit)
            page = self._client.ask("GET", path + _query({**asked, "pageSize": size, "pageToken": token}))
            rows: list[Json] = page.get(name, [])
            yield from rows[:limit]
            limit = None if limit is None else limit - len(rows)
            if not (token := page.get("nextPageToken", "")):
                return


def _query(values: "Mapping[str, str | int]") -> str:
    given = {name: value for name, value in values.items() if value}
    return f"?{urlencode(given, errors='surrogateescape')}" if given else ""


def _quoted(text: str) -> str:
    return quote(text, safe="", errors="surrogateescape")

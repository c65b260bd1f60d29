"""The older API's jobs, `projects/P/jobs/ID`: named by the person who submits them, the same in every region.

Each is one of the server's jobs like any other; `behind` finds it, for what the older API has no words for.
"""

import os
from datetime import datetime
from urllib.parse import quote, urlencode

from trainshed.client.api import Client
from trainshed.client.errors import ClientError

TYPE_CHECKING = False  # the module typing takes longer to import than a job takes to submit
if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainshed.client.connection import Json

PAGE = 100


class TrainingJobsClient:
    def __init__(self, client: Client) -> None:
        self._client = client

    def create(self, body: "Json") -> "Json":
        return self._client.ask("POST", self._parent, body, key=os.urandom(16).hex())

    def get(self, job: str) -> "Json":
        return self._client.ask("GET", self.path(job))

    def all(self, limit: int | None = None) -> "Iterator[Json]":
        """Every job, or the first `limit`; pages are fetched as they are needed."""
        token = ""
        while limit is None or limit > 0:
            size = PAGE if limit is None else min(PAGE, limit)
            page = self._client.ask("GET", f"{self._parent}?{_page(size, token)}")
            jobs: list[Json] = page.get("jobs", [])
            yield from jobs[:limit]
            token = page.get("nextPageToken", "")
            limit = None if limit is None else limit - len(jobs)
            if not token:
                return

    def packages(self) -> "set[str]":
        """The addresses of packages that the newest jobs use."""
        return {uri for job in self.all(PAGE) for uri in job.get("trainingInput", {}).get("packageUris", ())}

    def cancel(self, job: str) -> None:
        self._client.ask("POST", f"{self.path(job)}:cancel", {})

    def update_labels(self, job: str, labels: "dict[str, str]") -> "Json":
        """These and no others."""
        return self._client.ask("PATCH", f"{self.path(job)}?updateMask=labels", {"labels": labels})

    def behind(self, job: "Json") -> "Json":
        """The same job among customJobs, as the server tells it there."""
        named = str(job["jobId"])
        escaped = named.replace("\\", "\\\\").replace('"', '\\"')
        for item in self._client.jobs(filter=f'display_name="{escaped}"', location="-"):
            if item.get("displayName") == named and _made_at(item) == _made_at(job):
                return item
        raise ClientError(f"the server has no lines of the job {named}")

    def path(self, job: str) -> str:
        """A job is given by its id or as projects/P/jobs/ID."""
        if job.startswith("projects/"):
            return f"/v1/{quote(job, errors='surrogateescape')}"
        return f"{self._parent}/{_quoted(job)}"

    @property
    def _parent(self) -> str:
        return f"/v1/projects/{_quoted(self._client.project)}/jobs"


def _page(size: int, token: str) -> str:
    return urlencode({"pageSize": size, **({"pageToken": token} if token else {})})


def _quoted(text: str) -> str:
    return quote(text, safe="", errors="surrogateescape")


def _made_at(job: "Json") -> datetime:
    return datetime.fromisoformat(str(job["createTime"]))

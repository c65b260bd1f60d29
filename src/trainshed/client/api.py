"""The server's methods as methods of `Client`. The command line and Python programs call it.

A job is given by its id or its full resource name. Answers are the server's JSON. A Client has one kept-alive
connection: give each thread its own Client. It never polls: the server holds a request until there is news.
"""

import os
import time

from trainshed.client.address import query, quoted
from trainshed.client.connection import PAUSES, Connection, Json, lines
from trainshed.client.discovery import DEFAULT_LOCATION, DEFAULT_PROJECT
from trainshed.client.errors import Interrupted, Unreachable
from trainshed.client.notation import loads
from trainshed.client.parts import ClientParts
from trainshed.client.resume import RetryBudget, resumed

TYPE_CHECKING = False  # the module typing takes longer to import than a job takes to submit
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from types import TracebackType

    from trainshed.client.discovery import Target
    from trainshed.client.studies import StudiesClient

FINAL = frozenset(
    {"JOB_STATE_SUCCEEDED", "JOB_STATE_FAILED", "JOB_STATE_CANCELLED", "JOB_STATE_EXPIRED"}
    | {"SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED"}
)
PAGE = 500  # jobs asked for at a time
WAIT = 30.0  # seconds the server holds one wait open


class Client(ClientParts):
    def __init__(
        self,
        url: str,
        token: str | None = None,
        project: str = DEFAULT_PROJECT,
        location: str = DEFAULT_LOCATION,
        *,
        pauses: tuple[float, ...] = PAUSES,
        ca: str = "",
    ) -> None:
        self.url = url
        self._ca = ca
        self.project = project
        self.location = location
        self._token = token
        self._connection = Connection(url, token, pauses, ca)

    @classmethod
    def of(cls, target: "Target", *, pauses: tuple[float, ...] = PAUSES) -> "Client":
        return cls(target.url, target.token, target.project, target.location, pauses=pauses, ca=target.ca)

    def another(self) -> "Client":
        """A client like this one with a connection of its own, for another thread."""
        return Client(self.url, self._token, self.project, self.location, ca=self._ca)

    def elsewhere(self, parent: str) -> "Client":
        """A client like this one, over the same connection, for projects/P/locations/L."""
        _, project, _, location = parent.split("/")
        other = Client(self.url, self._token, project, location, ca=self._ca)
        other._connection = self._connection
        return other

    def open(self) -> None:
        """Connects now, so that the connection is ready when the first request is."""
        self._connection.open()

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: "TracebackType | None"
    ) -> None:
        self.close()

    def ask(
        self,
        method: str,
        path: str,
        body: "Json | None" = None,
        *,
        key: str = "",
        repeatable: "bool | None" = None,
    ) -> "Json":
        """Sends a request that has no method here. With a `key`, a repeated request is safe."""
        headers = {"Idempotency-Key": key} if key else None
        return self._connection.request(
            method, path, body, headers=headers, repeatable=True if key else repeatable
        )

    def studies(self) -> "StudiesClient":
        """The studies of the same server: searches for good parameters."""
        from trainshed.client.studies import StudiesClient

        return StudiesClient(self)

    def health(self) -> "Json":
        return self._connection.request("GET", "/healthz")

    def submit(
        self,
        display_name: str,
        job_spec: "Json",
        labels: "Mapping[str, str] | None" = None,
        *,
        key: str | None = None,
    ) -> "Json":
        """Creates a job and returns it. With the same `key` twice it is still one job."""
        body: Json = {"displayName": display_name, "jobSpec": job_spec}
        if labels:
            body["labels"] = dict(labels)
        return self.create(body, key=key)

    def create(
        self, body: "Json", *, key: str | None = None, parent: str = "", secrets_of: str = ""
    ) -> "Json":
        """As `submit`, with the whole CustomJob as the caller wrote it.

        `parent` (projects/P/locations/L) is where the job is made; by default this client's own. The answer
        is the job, with `warnings` about what the server cannot give it. `secrets_of` is the id of the job
        that the body was copied from: values that are masked are those of that job.
        """
        headers = {"Idempotency-Key": key or os.urandom(16).hex()}
        path = f"/v1/{quoted(parent, '/')}/customJobs" if parent else self._parent()
        path += "?view=trainshed"  # with warnings, where there are any
        path += f"&secretsOf={quoted(secrets_of)}" if secrets_of else ""
        return self._connection.request("POST", path, body, headers=headers, repeatable=True)

    def retry(self, job: str, display_name: str = "") -> "Json":
        """Submits a job once more, as a job of its own. The answer is the new job, as that of `create`."""
        body: Json = {"displayName": display_name} if display_name else {}
        headers = {"Idempotency-Key": os.urandom(16).hex()}
        path = f"{self._path(job)}:retry"
        return self._connection.request("POST", path, body, headers=headers, repeatable=True)

    def get(self, job: str) -> "Json":
        return self._connection.request("GET", self._path(job))

    def jobs(
        self,
        *,
        filter: str = "",
        order_by: str = "",
        limit: int | None = None,
        location: str | None = None,
        view: str = "",
    ) -> "Iterator[Json]":
        """Jobs, newest first unless `order_by` says otherwise; pages are fetched as they are needed.

        With view="trainshed" each job that waits has the field `waiting`: reason, message, remedy.
        """
        asked = {"filter": filter, "orderBy": order_by, "view": view, "pageToken": ""}
        while limit is None or limit > 0:
            size = PAGE if limit is None else min(PAGE, limit)
            page = self._connection.request(
                "GET", self._parent(location) + query({"pageSize": size, **asked})
            )
            jobs: list[Json] = page.get("customJobs", [])
            yield from jobs[:limit]
            asked["pageToken"] = page.get("nextPageToken", "")
            limit = None if limit is None else limit - len(jobs)
            if not asked["pageToken"]:
                return

    def elsewhere_count(self, *, filter: str = "") -> int:
        """How many jobs of the project are in other locations than this client's."""
        path = f"{self._parent()}:count{query({'filter': filter})}"
        return int(self._connection.request("GET", path)["elsewhere"])

    def cancel(self, job: str) -> None:
        self._connection.request("POST", self._path(job) + ":cancel", {})

    def delete(self, job: str) -> None:
        self._connection.request("DELETE", self._path(job))

    def status(self, job: str) -> "Json":
        """Everything known of a job: why it waits, each replica, what was cut, why it failed."""
        return self._connection.request("GET", self._path(job) + ":status")

    def environment(self, job: str, task: str | None = None) -> "list[Json]":
        """The variables of each replica of an admitted job, or of one: [{task, environment}]."""
        answer = self._connection.request("GET", f"{self._path(job)}:environment{query({'task': task})}")
        return answer.get("replicas", [])

    def why(self, job: str) -> "Json":
        """Why a job stands where it stands, what would start it now, and when it may start."""
        return self._connection.request("GET", self._path(job) + ":why")

    def stacks(self, job: str, task: str | None = None) -> Json:
        """Where each replica of a running job is, or one of them; those in the same place in groups."""
        return self._connection.request("GET", f"{self._path(job)}:stacks{query({'task': task})}")

    def explain(self, body: "Json") -> "Json":
        """As `create`, but nothing is kept: whether the job would be accepted, and would wait, and why."""
        return self._connection.request("POST", f"{self._parent()}:explain", body, repeatable=True)

    def missing(self, entries: "list[Json]") -> "Json":
        """Which contents of a folder the server lacks. If none is missing, the server keeps the folder."""
        return self._connection.request(
            "POST", f"{self.place()}/code:missing", {"files": entries}, repeatable=True
        )

    def upload(self, length: int, frames: "Iterable[bytes]") -> "Json":
        """Sends contents that `code.Parcel.frames` made. The server keeps each complete one."""
        return self._connection.send(f"{self.place()}/code:upload", frames, length)

    def manifest(self, code: str, place: str = "") -> "list[Json]":
        """The files of a folder the server keeps; `place` is the path of its project and location."""
        answer = self._connection.request("GET", f"{place or self.place()}/code/{quoted(code)}")
        return answer.get("files", [])

    def content(self, code: str, digest: str, place: str = "") -> "Iterator[bytes]":
        """A file of that folder, in pieces as they come."""
        path = f"{place or self.place()}/code/{quoted(code)}/blobs/{quoted(digest)}"
        return self._connection.pieces(path)

    def metrics(self, job: str, *, window: float = 600, step: float = 0) -> "Json":
        """What a job used in its last `window` seconds, a point every `step` of them; and its progress."""
        asked = {"window": f"{window:.3f}s", "step": f"{step:.3f}s"}
        return self._connection.request("GET", f"{self._path(job)}:metrics{query(asked)}")

    def usage(self, location: str | None = None) -> "Json":
        """Every job that runs now, with the last minute of what it used and its progress."""
        return self._connection.request("GET", f"{self._parent(location)}:usage")

    def events(self, job: str) -> "list[Json]":
        answer = self._connection.request("GET", self._path(job) + ":events")
        return answer.get("events", [])

    def intervals(self, job: str) -> "list[Json]":
        """Where the time of its runs went, run by run in order of time: [{task, attempt, run, class}]."""
        answer = self._connection.request("GET", self._path(job) + ":intervals")
        return answer.get("intervals", [])

    def costs_of(self, job: str) -> "Json":
        """What a job used and cost up to now: {total: {cost, cpuHours, gpuHours, goodput, classes}}."""
        return self._connection.request("GET", self._path(job) + ":costs")

    def wait(self, job: str, timeout: float | None = None) -> "Json":
        """The job once it has ended, or as it is after `timeout` seconds. Outlasts a server's restart."""
        until = None if timeout is None else time.monotonic() + timeout
        patience = RetryBudget()
        while True:
            left = WAIT if until is None else max(0.0, min(WAIT, until - time.monotonic()))
            path = f"{self._path(job)}:wait?timeout={left:.3f}s"
            asked_at = time.monotonic()
            try:
                answer = self._connection.request("GET", path, timeout=left + 30)
            except (Unreachable, Interrupted) as error:
                patience.spend(error)
                continue
            patience.restore()
            if is_final(answer) or (until is not None and time.monotonic() >= until):
                return answer
            if time.monotonic() - asked_at < left / 2:
                time.sleep(0.1)  # a proxy may end long requests early; do not ask it without pause

    def tail(
        self,
        job: str,
        *,
        follow: bool = False,
        task: str | None = None,
        attempt: int | None = None,
        limit: int | None = None,
        since: str | None = None,
    ) -> "Iterator[Json]":
        """Log lines, oldest first, or the last `limit` of them; with `follow` until the job has ended.

        `since` is a time, or a number of seconds back from now such as "600s". A stream that breaks off is
        resumed with no line lost or doubled.
        """
        chosen = {"task": task, "attempt": attempt, "since": since}
        if not follow:
            yield from self._lines(job, {**chosen, "limit": limit})
            return
        last = ""
        if limit is not None:
            for entry in self._lines(job, {**chosen, "limit": limit}):
                last = entry.get("insertId", "")
                yield entry
        yield from self._lines(job, {"follow": "true", **chosen}, last)

    def output(
        self,
        job: str,
        *,
        follow: bool = False,
        task: str | None = None,
        attempt: int | None = None,
        limit: int | None = None,
        since: str | None = None,
    ) -> "Iterator[tuple[Json, bytes]]":
        """What replicas wrote, byte for byte: whose bytes (task, attempt, stream), and up to a MiB of them.

        The rest is as with `tail`. A frame with `marker` says in a line which bytes are gone.
        """
        from trainshed.client.output import frames

        asked = {"task": task, "attempt": attempt, "limit": limit, "since": since}
        if follow:
            asked["follow"] = "true"

        def behind(after: str) -> str:
            return f"{self._path(job)}:output{query({**asked, 'after': after})}"

        return resumed(self._connection, behind, frames)

    def watch(self, job: str = "", *, location: str | None = None) -> "Iterator[Json]":
        """Hints that jobs have changed, of one (by its id) or of all: {name, version}, or {everything: true}.

        The first says to look at everything. May be lost or doubled: look, never believe. Without end.
        """
        from trainshed.client.hints import hints

        def behind(after: str) -> str:
            return f"{self._parent(location)}:watch{query({'job': job, 'after': after})}"

        return resumed(self._connection, behind, hints)

    def _lines(self, job: str, asked: "Mapping[str, object]", after: str = "") -> "Iterator[Json]":
        """The stream's lines behind the given one. The order is total: one id says how far we got."""

        def behind(after: str) -> str:
            return f"{self._path(job)}:tail{query({**asked, 'after': after})}"

        return resumed(self._connection, behind, _entries, after)

    def _parent(self, location: str | None = None) -> str:
        return f"{self.place(location)}/customJobs"

    def _path(self, job: str) -> str:
        if "/" in job:
            return f"/v1/{quoted(job, '/')}"
        return f"{self._parent('-')}/{quoted(job)}"  # an id means one job, whatever its location


def is_final(job: "Json") -> bool:
    return job.get("state") in FINAL


def _entries(pieces: "Iterable[bytes]") -> "Iterator[tuple[str, Json]]":
    for line in lines(pieces):
        entry: Json = loads(line)
        yield entry.get("insertId", ""), entry

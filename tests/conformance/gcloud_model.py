"""What the real gcloud puts on the wire: recorded requests, and a small faithful model of stream-logs.

Kept apart from any client of ours and from the server's code. The loop has gcloud's shape: the job is
fetched once, at the start; entries are asked for after the last position, older than five seconds, a thousand
at a time; positions compare as text; every `check` seconds it asks itself whether to stop, which it does only
after two polls in a row without an entry, and only if the first answer had an endTime.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.live import LOCATION, PROJECT, Answer, LiveServer

BATCH = 1000
TRACKS = {"ga": ("v1", ""), "beta": ("v1beta1", "beta."), "alpha": ("v1beta1", "alpha.")}


def headers(command: str) -> dict[str, str]:
    return {
        "accept": "application/json",
        "accept-encoding": "gzip, deflate",
        "content-type": "application/json",
        "user-agent": f"google-cloud-sdk gcloud/528.0.0 command/gcloud.{command} "
        "invocation-id/3f2a8e environment/None environment-version/None client-os/LINUX "
        "client-os-ver/6.18.0 client-pltf-arch/aarch64 interactive/False from-script/True python/3.12.9 "
        "term/dumb  (Linux 6.18.0)",
        "x-goog-user-project": PROJECT,
    }


@dataclass(slots=True)
class Gcloud:
    """One track of `gcloud ai custom-jobs`, or of `hp-tuning-jobs`, as requests."""

    server: LiveServer
    track: str = "ga"
    group: str = "custom-jobs"

    @property
    def parent(self) -> str:
        resource = {"custom-jobs": "customJobs", "hp-tuning-jobs": "hyperparameterTuningJobs"}[self.group]
        return f"/projects/{PROJECT}/locations/{LOCATION}/{resource}"

    def call(self, verb: str, path: str, command: str, body: object = None, query: str = "") -> Answer:
        version, prefix = TRACKS[self.track]
        root = "/v2" if path.startswith("/entries") else f"/{version}"
        return self.server.request(
            verb,
            f"{root}{path}?alt=json{query}",
            body,
            headers=headers(f"{prefix}{command}"),
            timeout=300,
        )

    def create(self, body: object) -> Answer:
        return self.call("POST", self.parent, f"ai.{self.group}.create", body)

    def list(self, token: str = "") -> Answer:
        more = f"&pageToken={token}" if token else ""
        return self.call("GET", self.parent, f"ai.{self.group}.list", query=f"&pageSize=100{more}")

    def describe(self, name: str) -> Answer:
        return self.call("GET", f"/{name}", f"ai.{self.group}.describe")

    def cancel(self, name: str) -> Answer:
        return self.call("POST", f"/{name}:cancel", f"ai.{self.group}.cancel", {})

    def stream_logs(self, name: str) -> "Streamed":
        """All entries `stream-logs` would print; raises TimeoutError where it would not end."""
        version, prefix = TRACKS[self.track]
        command = f"{prefix}ai.{self.group}.stream-logs"
        first = self.server.request("GET", f"/{version}/{name}?alt=json", headers=headers(command))
        assert first.status == 200, first.body
        return Streamed(self.server, command, name.rsplit("/", 1)[-1], "endTime" in first.json)


@dataclass(slots=True)
class Position:
    timestamp: str = "1970-01-01T01:00:00.000000000Z"
    insert_id: str = ""
    sends_insert_id: bool = False  # only once it has printed two entries of one timestamp

    def update(self, timestamp: str, insert_id: str) -> bool:
        if timestamp < self.timestamp or (timestamp == self.timestamp and insert_id <= self.insert_id):
            return False
        self.sends_insert_id = timestamp == self.timestamp
        self.timestamp, self.insert_id = timestamp, insert_id
        return True

    @property
    def lower_bound(self) -> str:
        if not self.sends_insert_id:
            return f'timestamp>="{self.timestamp}"'
        at = self.timestamp
        return f'((timestamp="{at}" AND insertId>"{self.insert_id}") OR timestamp>"{at}")'


@dataclass(slots=True)
class Streamed:
    """The loop. `poll` and `check` are gcloud's 1 to 60 s and 10 s, made shorter."""

    server: LiveServer
    command: str
    job_id: str
    ended_at_first: bool
    poll: float = 0.05
    check: float = 0.2
    limit: float = 90.0  # seconds after which it is taken for never ending
    polls: int = 0
    dropped: list[Any] = field(default_factory=list[Any])

    def __iter__(self) -> Iterator[Any]:
        position, empty = Position(), 0
        began = checked = time.monotonic()
        while True:
            entries = self._entries(position)
            empty = 0 if entries else empty + 1
            yield from entries
            now = time.monotonic()
            if now - began > self.limit:
                raise TimeoutError(f"stream-logs of {self.job_id} did not end in {self.limit} s")
            if now - checked >= self.check:
                checked = now
                if empty >= 2 and self.may_end():
                    return
            time.sleep(self.poll)

    def may_end(self) -> bool:
        return self.ended_at_first

    @property
    def terms(self) -> tuple[str, ...]:
        return ('resource.type="ml_job"', f'resource.labels.job_id="{self.job_id}"')

    def _entries(self, position: Position) -> list[Any]:
        upper = datetime.now(UTC) - timedelta(seconds=5)
        self.polls += 1
        terms = (
            *self.terms,
            position.lower_bound,
            f'timestamp<"{upper:%Y-%m-%dT%H:%M:%S.%f}Z"',
        )
        body: dict[str, Any] = {
            "filter": " AND ".join(terms),
            "orderBy": "timestamp asc",
            "pageSize": BATCH,
            "resourceNames": [f"projects/{PROJECT}"],
        }
        found: list[Any] = []
        while len(found) < BATCH:
            answer = self.server.request(
                "POST", "/v2/entries:list?alt=json", body, headers=headers(self.command), timeout=300
            )
            assert answer.status == 200, answer.body
            found += answer.json.get("entries", [])
            if not answer.json.get("nextPageToken"):
                break
            body["pageToken"] = answer.json["nextPageToken"]
        kept: list[Any] = []
        for entry in found[:BATCH]:
            place = entry["timestamp"], entry.get("insertId", "")
            if position.update(*place):
                kept.append(entry)
            elif place != (position.timestamp, position.insert_id):  # the last entry comes twice
                self.dropped.append(entry)
        return kept


def message(entry: Any) -> str:
    payload = entry.get("jsonPayload")
    return str(payload["message"] if payload else entry.get("textPayload", ""))


def task(entry: Any) -> str:
    return str(entry["resource"]["labels"].get("task_name", "unknown_task"))


def printed_environment(server: LiveServer) -> dict[str, str]:
    """What `eval "$(trainshed env)"` leaves in a shell."""
    trainshed = Path(sys.executable).parent / "trainshed"
    plain = {k: v for k, v in os.environ.items() if not k.startswith(("CLOUDSDK_", "TRAINSHED_", "GOOGLE_"))}
    done = subprocess.run(
        ["sh", "-c", f'eval "$({trainshed} env --project p1)" && env -0'],
        env=plain | {"TRAINSHED_HOME": str(server.home)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(row.split("=", 1) for row in done.stdout.split("\0") if "=" in row)

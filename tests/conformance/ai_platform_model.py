"""What the real `gcloud ai-platform` puts on the wire: its requests as recorded, and its stream-logs.

The loop is that of `gcloud ai`, but for two things: the filter knows the older name of the resource too, and
the job is fetched anew whenever it asks itself whether to stop.
"""

from dataclasses import dataclass
from typing import Any

from tests.conformance.gcloud_model import Streamed, headers
from tests.live import PROJECT, Answer, LiveServer

JOBS = f"/v1/projects/{PROJECT}/jobs"
OPERATIONS = f"/v1/projects/{PROJECT}/operations"


@dataclass(slots=True)
class AiPlatform:
    server: LiveServer

    def call(self, verb: str, path: str, command: str, body: object = None, query: str = "") -> Answer:
        return self.server.request(
            verb, f"{path}?alt=json{query}", body, headers=headers(f"ai-platform.{command}")
        )

    def submit(self, body: object) -> Answer:
        return self.call("POST", JOBS, "jobs.submit.training", body)

    def list(self, token: str = "", size: int = 100) -> Answer:
        more = f"&pageToken={token}" if token else ""
        return self.call("GET", JOBS, "jobs.list", query=f"&pageSize={size}{more}")

    def describe(self, job: str) -> Answer:
        return self.call("GET", f"{JOBS}/{job}", "jobs.describe")

    def cancel(self, job: str) -> Answer:
        return self.call("POST", f"{JOBS}/{job}:cancel", "jobs.cancel", {})

    def update(self, job: str, labels: dict[str, str], etag: str = "") -> Answer:
        body: dict[str, Any] = {"labels": labels} | ({"etag": etag} if etag else {})
        return self.call("PATCH", f"{JOBS}/{job}", "jobs.update", body, "&updateMask=labels")

    def stream_logs(self, job: str, command: str = "jobs.stream-logs", task: str = "") -> "LegacyStream":
        assert self.describe(job).status == 200
        return LegacyStream(self.server, f"ai-platform.{command}", job, ended_at_first=False, task=task)


@dataclass(slots=True)
class LegacyStream(Streamed):
    task: str = ""

    def may_end(self) -> bool:
        path = f"{JOBS}/{self.job_id}?alt=json"
        return "endTime" in self.server.request("GET", path, headers=headers(self.command)).json

    @property
    def terms(self) -> tuple[str, ...]:
        one = f'(resource.labels.task_name="{self.task}" OR labels.task_name="{self.task}")'
        return (
            '(resource.type="ml_job" OR resource.type="cloudml_job")',
            f'resource.labels.job_id="{self.job_id}"',
            *((one,) if self.task else ()),
        )


def printed(entry: Any) -> tuple[str, str, str]:
    """The columns gcloud prints of an entry: severity, task, message."""
    labels = entry.get("labels", {})
    task = entry["resource"]["labels"].get("task_name") or labels["ml.googleapis.com/task_name"]
    return entry.get("severity", "DEFAULT"), task, entry["jsonPayload"]["message"]

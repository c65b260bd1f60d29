"""Commands run in this process against a scripted server, and what they printed."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.unit.client.scripted import END, Asked, Handler, Script, entry, failure, frame
from trainshed.cli.main import run

PARENT = "projects/local/locations/us-central1/customJobs"


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str


@dataclass
class Terminal:
    """`jobs` are what the scripted server has; what it was asked is in `script`."""

    script: Script
    capture: pytest.CaptureFixture[str]
    jobs: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    cancelled: Callable[[], None] = lambda: None  # what happens once a job was asked to end

    def __call__(self, *args: str) -> Result:
        self.capture.readouterr()
        code = run(list(args))
        out, err = self.capture.readouterr()
        return Result(code, out, err)

    def add(self, identity: str, **fields: Any) -> str:
        name = f"{PARENT}/{identity}"
        self.jobs[identity] = {"name": name, "displayName": f"job-{identity}", **fields}
        return name

    @property
    def sent(self) -> Any:
        """The body of the last create."""
        return next(one.body for one in reversed(self.script.asked) if one.method == "POST")

    def answer(self, asked: Asked, handler: Handler) -> tuple[int, Any] | None:
        path = asked.path.partition("?")[0]
        _, _, rest = path.partition("/customJobs")
        identity, _, verb = rest.removeprefix("/").partition(":")
        if not identity and asked.method == "POST":
            return 200, {
                **asked.body,
                "name": f"{path.removeprefix('/v1/')}/999",
                "state": "JOB_STATE_QUEUED",
            }
        if not identity:
            return 200, {"customJobs": list(self.jobs.values())}
        if identity not in self.jobs:
            return failure(404, "NOT_FOUND", f"There is no job {identity}.")
        if verb == "tail":
            handler.begin_stream()
            handler.piece(entry(1, "loss 0.5") + entry(2, "saved") + entry(3, "loss 0.25"))
            return handler.end_stream()
        if verb == "output":
            handler.begin_stream()
            handler.piece(frame(1, b"loss 0.5\nsaved\n") + frame(2, b"loss 0.25\n") + END)
            return handler.end_stream()
        if verb == "environment":
            variables = {"RANK": "0", "TF_CONFIG": '{"a": "it\'s"}'}
            return 200, {"replicas": [{"task": "workerpool0-0", "environment": variables}]}
        if verb == "events":
            said = {"severity": "INFO", "message": "Submitted.", "time": "2026-01-31T12:00:00Z"}
            return 200, {"events": [said]}
        if verb == "retry":
            parent = path.removeprefix("/v1/").rpartition("/")[0]
            return 200, self.jobs[identity] | asked.body | {"name": f"{parent}/999"}
        if verb == "cancel":
            self.cancelled()
        return 200, {} if verb == "cancel" else self.jobs[identity]

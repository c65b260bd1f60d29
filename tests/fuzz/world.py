"""The real application over real stores, in this process. Nothing runs jobs: they stay queued."""

import asyncio
import contextlib
import json
import logging
import time
import traceback
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.types import ASGIApp, Message

from tests.fuzz.requests import BODIES, JOB, STUDY, FuzzedRequest
from tests.fuzz.values import written
from tests.live import JOBS
from trainshed.assembly.assembly import Assembly, assemble
from trainshed.settings.table import Settings

PATIENT = (":wait", ":watch", ":follow", ":output", ":tail")  # answers that may come as late as is asked for


@dataclass(frozen=True, slots=True)
class FuzzAnswer:
    status: int
    body: bytes
    cpu: float  # seconds that this process worked for it


class TracebackCollector(logging.Handler):
    """Keeps what the server logs with a stack trace, by the place where it was raised."""

    def __init__(self) -> None:
        super().__init__()
        self.places: dict[str, str] = {}

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            last = traceback.extract_tb(error.__traceback__)[-1]
            text = f"{record.getMessage()[:300]}\n{''.join(traceback.format_exception(error))[-1800:]}"
            self.places.setdefault(f"{last.filename}:{last.lineno}", text)


@dataclass(slots=True)
class FuzzWorld:
    app: ASGIApp
    assembly: Assembly
    token: str

    async def send(self, request: FuzzedRequest) -> FuzzAnswer:
        """The answer; one that takes its time by design is cut off."""
        start = time.process_time()
        status, body = 0, bytearray()
        pieces = [request.body[: len(request.body) // 2], request.body[len(request.body) // 2 :]]
        ended = asyncio.Event()

        async def receive() -> dict[str, Any]:
            if pieces:
                return {"type": "http.request", "body": pieces.pop(0), "more_body": bool(pieces)}
            await ended.wait()
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            else:
                body.extend(message.get("body", b"")[: 1 << 16])

        scope = {
            "type": "http",
            "method": request.verb,
            "path": request.decoded,
            "raw_path": request.path.encode("ascii"),
            "query_string": request.query.encode("ascii"),
            "headers": [(name.encode(), value) for name, value in request.headers],
        }
        is_patient = request.decoded.endswith(PATIENT) or "follow" in request.query
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.05 if is_patient else 60):
                await self.app(scope, receive, send)
        ended.set()
        return FuzzAnswer(status or (499 if is_patient else 0), bytes(body), time.process_time() - start)

    async def names(self) -> dict[str, list[str]]:
        """Makes two of each that a method can make, so that requests find something, and lists go on."""
        auth = (("host", b"127.0.0.1:8080"), ("authorization", f"Bearer {self.token}".encode()))

        async def made(path: str, body: object, query: str = "") -> str:
            content = body if isinstance(body, bytes) else written(body).encode()
            answer = await self.send(FuzzedRequest("POST", path, query, auth, content))
            assert answer.status == 200, (path, answer)
            return str(json.loads(answer.body).get("name", "")).rpartition("/")[2]

        parent = JOBS.removesuffix("/customJobs")
        (pipeline,), (training,), (pod, job, _) = (
            BODIES[end] for end in ("/trainingPipelines", "/jobs", "/manifests:apply")
        )
        names = {
            "job": [await made(JOBS, JOB) for _ in "12"],
            "pipeline": [await made(f"{parent}/trainingPipelines", pipeline) for _ in "12"],
        }
        study = await made(f"{parent}/studies", STUDY | {"displayName": "kept"})
        for client in "ab":
            await made(f"{parent}/studies/{study}/trials:suggest", {"suggestionCount": 2, "clientId": client})
        for manifest in (pod, job):
            await made(f"{parent}/manifests:apply", manifest)
        for number in "12":
            await made("/v1/projects/p1/jobs", training | {"jobId": f"job_{number}"})
            await made("/storage/v1/b", {"name": f"fuzz-{number}"}, "project=p1")
        await made("/storage/v1/b", {"name": "fuzz"}, "project=p1")
        for name in ("x", "y", "z"):
            await made("/upload/storage/v1/b/fuzz/o", b"abc", f"uploadType=media&name={name}")
        return names | {
            "project": ["p1"],
            "location": ["us-central1"],
            "job": [*names["job"], "job_1"],
            "bucket": ["fuzz"],
            "target": ["fuzz"],
            "object": ["x", "y", "z"],
            "name": ["x", "new", "a/b"],
            "task": ["workerpool0-0"],
            "file": ["x/main.js"],
            "account": ["default"],
            "study": [study],
            "trial": ["1", "2", "3", "4"],
        }


@contextlib.asynccontextmanager
async def fuzz_world(home: Path) -> AsyncIterator[FuzzWorld]:
    settings = Settings.from_args(
        ["--home", str(home), "--engine", "none", "--cpus", "4", "--memory", "8GiB"]
    )
    assembly = assemble(settings, "http://127.0.0.1:8080")
    storage = assembly.storage
    runtimes = assembly.backends.runtimes
    stores = (storage.store, storage.logs, storage.code, storage.metrics, runtimes, storage.buckets)
    for store in stores:
        await store.start()
    try:
        yield FuzzWorld(assembly.api.app, assembly, (home / "token").read_text())
    finally:
        await assembly.studies.suggester.close()
        await storage.buckets.close()
        await storage.code.close()
        await runtimes.close()
        await storage.logs.close()
        await storage.log_drops.close()
        await storage.store.close()

"""Requests that are nearly right: made from the method table, the schemas and the names that handlers read.

All choices come from one Random, so a seed repeats them.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote, unquote

import trainshed
from tests.fuzz.values import TEXTS, mutated, odd, of_schema, text, written
from tests.live import pool
from trainshed.api.call import SOCKET, Method
from trainshed.dialects.ai_platform.schema import TrainingJobBody
from trainshed.wire.base import Message
from trainshed.wire.image_cache import CacheBody
from trainshed.wire.job_schema import CustomJob
from trainshed.wire.training_pipeline import TrainingPipeline

CONTAINER = {"name": "c", "image": "trainshed/python:3", "command": ["true"]}
LIMITS = {"limits": {"cpu": "1e3m", "memory": "1Gi", "nvidia.com/gpu": 1}}
PORT = {"containerPort": 1}
JOB: dict[str, Any] = {
    "displayName": "fuzz",
    "labels": {"a": "b"},
    "jobSpec": {
        "workerPoolSpecs": [pool(["true"], env={"A": "b"}, args=["x"])],
        "scheduling": {"timeout": "3600s", "restartJobOnWorkerRestart": True},
        "baseOutputDirectory": {"outputUriPrefix": "gs://fuzz/out"},
    },
}
INPUT = {"scaleTier": "BASIC", "masterConfig": {"imageUri": "x"}, "region": "us-central1", "args": ["a"]}
PART = "Content-Type: application/http\r\nContent-ID: <{}>\r\n\r\n{} HTTP/1.1\r\n\r\n{}\r\n"
# The end of a path to bodies that the method takes.
BODIES: dict[str, Sequence[Any]] = {
    "/customJobs": (JOB,),
    ":explain": (JOB, {"customJob": JOB}),
    "/trainingPipelines": (
        {
            "displayName": "p",
            "trainingTaskDefinition": "gs://google-cloud-aiplatform/schema/trainingjob/definition/custom_task_1.0.0.yaml",
            "trainingTaskInputs": JOB["jobSpec"],
            "modelToUpload": {"displayName": "m", "containerSpec": {"imageUri": "i", "ports": [PORT]}},
        },
    ),
    "/jobs": ({"jobId": "fuzz", "trainingInput": INPUT, "labels": {"a": "b"}},),
    "/manifests:apply": (
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "annotations": {"k8s.aliyun.com/eci-use-specs": "2-4Gi,ecs.c5.large"}},
            "spec": {"restartPolicy": "Never", "containers": [CONTAINER | {"resources": LIMITS}]},
        },
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "j"},
            "spec": {"completions": 1, "template": {"spec": {"containers": [CONTAINER]}}},
        },
        {
            "apiVersion": "eci.alibabacloud.com/v1",
            "kind": "ImageCache",
            "metadata": {"name": "c"},
            "spec": {"images": ["a"], "imageCacheSize": 20, "retentionDays": 3},
        },
    ),
    "/imageCaches": ({"id": "c", "images": ["a"], "retentionDays": 1},),
    "entries:list": (
        {
            "resourceNames": ["projects/p1"],
            "filter": 'resource.labels.job_id="1" AND timestamp>="2026-01-01T00:00:00Z"',
            "pageSize": 10,
            "orderBy": "timestamp desc",
            "pageToken": "x",
        },
    ),
    ":shell": ({"task": "workerpool0-0", "command": ["true"], "screen": {"rows": 1, "columns": 1}},),
    ":build": ({"runtime": "python", "name": "x", "requirements": ["a==1"]},),
    ":prune": ({"olderThan": "1s"},),
    ":tag": ({"name": "a", "tag": "b"},),
    ":remove": ({"names": ["a"], "force": True},),
    "/storage/v1/b": ({"name": "fuzz-2", "location": "US", "labels": {"a": "b"}},),
    "/b/{bucket}": (
        {
            "versioning": {"enabled": True},
            "lifecycle": {"rule": [{"action": {"type": "Delete"}, "condition": {"age": 3, "isLive": False}}]},
        },
    ),
    "/compose": ({"sourceObjects": [{"name": "x", "generation": "1"}], "destination": {"contentType": "a"}},),
    "{object}": ({"metadata": {"a": "b"}, "contentType": "text/html", "customTime": "2026-01-01T00:00:00Z"},),
}
SCHEMAS: dict[str, type[Message]] = {
    "/customJobs": CustomJob,
    ":explain": CustomJob,
    "/trainingPipelines": TrainingPipeline,
    "/jobs": TrainingJobBody,
    "/imageCaches": CacheBody,
}
HEADERS = (
    "range", "if-match", "if-none-match", "x-goog-if-generation-match", "x-goog-if-metageneration-match",
    "x-goog-hash", "x-goog-copy-source", "x-goog-gcs-idempotency-token", "x-upload-content-length",
    "x-upload-content-type", "content-range", "content-md5", "content-encoding", "content-disposition",
    "idempotency-key", "user-agent", "metadata-flavor", "x-goog-meta-a", "content-length", "accept-encoding",
)  # fmt: skip
_READ = re.compile(r'(?:query\.get|flag|number|query\[)\(?(?:call\.query, |query, )?"([$\w-]+)"')


@dataclass(frozen=True, slots=True)
class FuzzedRequest:
    verb: str
    path: str  # as sent, percent-encoded
    query: str = ""
    headers: tuple[tuple[str, bytes], ...] = ()
    body: bytes = b""

    @property
    def decoded(self) -> str:
        return unquote(self.path)


@dataclass(slots=True)
class RequestMaker:
    """`names` are values that exist, by the name of a path's parameter."""

    random: Random
    methods: Sequence[Method]
    token: str
    names: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    _weights: list[float] = field(init=False)

    def __post_init__(self) -> None:
        self._weights = [_weight(method) for method in self.methods]

    def make(self) -> FuzzedRequest:
        random = self.random
        (method,) = random.choices(self.methods, self._weights)
        prefix = f"/t/{self.token}" if method.keyed or (method.storage and random.random() < 0.2) else ""
        path = re.sub(r"\{(\w+)(\.\.\.)?\}", lambda match: self._value(match[1]), method.path)
        body = self._body(method) if method.verb in ("POST", "PUT", "PATCH") else b""
        headers = self._headers(method)
        return FuzzedRequest(method.verb, prefix + path, self._query(method), headers, body)

    def _value(self, name: str) -> str:
        random = self.random
        if random.random() < 0.85 and (known := self.names.get(name)):
            return quote(random.choice(known), safe="")
        if random.random() < 0.2:
            return random.choice(("%ED%A0%80", "%00", "%FF", "%2F", "%2E%2E", "%0A", "%25"))
        return quote(random.choice(TEXTS)[:3000] or "x", safe="", errors="replace")

    def _query(self, method: Method) -> str:
        random = self.random
        if random.random() < 0.3:
            return ""
        names = query_names(method.handler.__module__) if random.random() < 0.8 else query_names()
        pairs = [(random.choice(names or ("x",)), self._query_value()) for _ in range(random.randint(1, 3))]
        return "&".join(f"{quote(name)}={quote(value[:9000], errors='replace')}" for name, value in pairs)

    def _query_value(self) -> str:
        known = self.names.get("pageToken", []) + self.names.get("upload_id", [])
        return self.random.choice(known) if known and self.random.random() < 0.2 else text(self.random)

    def _headers(self, method: Method) -> tuple[tuple[str, bytes], ...]:
        random = self.random
        given = [("host", b"127.0.0.1:8080")]
        if random.random() < 0.98:
            given.append(("authorization", f"Bearer {self.token}".encode()))
        kind = b"multipart/related; boundary=b" if method.streams else b"application/json"
        if random.random() < 0.05:
            kind = random.choice((b"", b"\xff", b"x/y", b"multipart/related; boundary*=x'y'%ff"))
        given.append(("content-type", kind))
        if random.random() < 0.4:
            for _ in range(random.randint(1, 3)):
                value = random.choice(TEXTS).encode("utf-8", "replace")[:4000]
                given.append((random.choice(HEADERS), re.sub(rb"[\0-\x1f\x7f]", b"?", value)))
        return tuple(given)

    def _body(self, method: Method) -> bytes:
        random = self.random
        end = next((end for end in BODIES if method.path.endswith(end)), "")
        kind = random.random()
        if method.streams and kind < 0.9:
            return self._stream(method)
        if kind < 0.1:
            return random.choice(
                (b"", b"{", b"[]", b"\xff", b'"\xed\xa0\x80"', b'{"a":1,"a":2}', b"{" * 9999)
            )
        if kind < 0.4 and end in SCHEMAS:
            value: Any = of_schema(random, SCHEMAS[end])
        else:
            value = random.choice(BODIES[end]) if end else {random.choice(TEXTS): odd(random)}
            for _ in range(random.choice((1, 1, 1, 2, 5))):
                value = mutated(random, value)
        return written(value).encode("utf-8", "surrogatepass")

    def _stream(self, method: Method) -> bytes:
        random = self.random
        if method.path.endswith("/batch/storage/v1"):
            parts = [
                PART.format(random.choice(("a+1", text(random))), self._line(), self._inner())
                for _ in range(random.randint(0, 4))
            ]
            body = "".join(f"--b\r\n{part}" for part in parts) + "--b--"
        elif random.random() < 0.3:
            about = written(mutated(random, {"name": "x", "contentType": "a/b", "metadata": {"a": "b"}}))
            body = f"--b\r\nContent-Type: x\r\n\r\n{about}\r\n--b\r\n\r\n{text(random)}\r\n--b--"
        elif random.random() < 0.3:
            number, tag = text(random), text(random)
            part = f"<Part><PartNumber>{number}</PartNumber><ETag>{tag}</ETag></Part>"
            body = f"<CompleteMultipartUpload>{part}</CompleteMultipartUpload>"
        else:
            file = {"path": "a", "sha256": "0" * 64, "size": 1, "mode": "file"}
            body = written(mutated(random, {"files": [file, file]}))
        return body.encode("utf-8", "surrogatepass")[: random.choice((10, 200, 1 << 20))]

    def _inner(self) -> str:
        return written(odd(self.random)) if self.random.random() < 0.2 else self.random.choice(("", "{}"))

    def _line(self) -> str:
        random = self.random
        small = [method for method in self.methods if method.storage and not method.streams]
        method = random.choice(small)
        path = re.sub(r"\{(\w+)(\.\.\.)?\}", lambda match: self._value(match[1]), method.path)
        word = random.choice((method.verb, "\ud800", "GET GET")) if random.random() < 0.1 else method.verb
        start = random.choice(("", "", "http://[", "//[x", "?")) if random.random() < 0.1 else ""
        return f"{word} {start}{path}?{self._query(method)}"


def _weight(method: Method) -> float:
    """More for methods with a body of their own, less for what is there twice."""
    if method.verb == SOCKET:
        return 0
    has_body = method.verb != "GET" and method.path.endswith(("/batch/storage/v1", *BODIES))
    weight = 8 if has_body else 1
    return weight * (0.2 if "v1beta1" in method.path or "{rest" in method.path else 1)


@cache
def query_names(module: str = "") -> tuple[str, ...]:
    """Every name that the handlers of the module, or of all modules, read from a query."""
    folder = Path(trainshed.__file__).parent
    if module.startswith("trainshed."):
        files = [(folder.parent / module.replace(".", "/")).with_suffix(".py")]
    else:
        files = [path for part in ("api", "wire", "dialects") for path in (folder / part).rglob("*.py")]
    names = {name for path in files for name in _READ.findall(path.read_text())}
    conditions = {"ifGenerationMatch", "ifMetagenerationMatch", "ifSourceGenerationMatch", "fields"}
    return tuple(sorted(names | (conditions if "storage" in module else set())))

"""Requests that are right but for one thing: made from the method table, schemas and the server's answers.

All choices come from one Random, so a seed repeats them.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, cast
from urllib.parse import parse_qsl, quote, unquote, urlencode

import trainshed
from tests.fuzz.values import (
    forged,
    kind_of,
    leaves,
    refusal,
    replaced,
    reshaped,
    value_at,
    with_field,
    written,
    wrong,
)
from tests.live import IMAGE, pool
from trainshed.api.call import SOCKET, Method
from trainshed.dialects.ai_platform.schema import TrainingJobBody
from trainshed.wire.base import Message
from trainshed.wire.image_cache import CacheBody
from trainshed.wire.job_schema import CustomJob
from trainshed.wire.notice_channel import ChannelBody
from trainshed.wire.training_pipeline import CUSTOM_TASK, TrainingPipeline
from trainshed.wire.vizier import StudyFields, TrialFields

CONTAINER = {"name": "c", "image": IMAGE, "command": ["true"], "env": [{"name": "A", "value": "b"}]}
LIMITS = {"limits": {"cpu": "1", "memory": "1Gi"}}
JOB: dict[str, Any] = {
    "displayName": "fuzz",
    "labels": {"a": "b"},
    "jobSpec": {
        "workerPoolSpecs": [pool(["true"], env={"A": "b"}, args=["x"])],
        "scheduling": {"timeout": "3600s", "restartJobOnWorkerRestart": True},
        "baseOutputDirectory": {"outputUriPrefix": "gs://fuzz/out"},
    },
}
MODEL = {"displayName": "m", "containerSpec": {"imageUri": "i", "ports": [{"containerPort": 1}]}}
INPUT = {"scaleTier": "BASIC", "masterConfig": {"imageUri": IMAGE}, "region": "us-central1", "args": ["a"]}
PODS = {"restartPolicy": "Never", "containers": [CONTAINER | {"resources": LIMITS}]}
TERMS = 'resource.labels.job_id="1" AND timestamp>="2026-01-01T00:00:00Z"'
PART = (
    "--b\r\nContent-Type: application/http\r\nContent-ID: <{id}>\r\n\r\n"
    "{verb} {target} HTTP/1.1\r\n\r\n{body}\r\n"
)
ABOUT = {"name": "x", "contentType": "a/b", "metadata": {"a": "b"}, "customTime": "2026-01-01T00:00:00Z"}
MEASUREMENT = {"stepCount": "1", "elapsedDuration": "1.5s", "metrics": [{"metricId": "acc", "value": 0.5}]}
STUDY: dict[str, Any] = {
    "displayName": "fuzz",
    "studySpec": {
        "metrics": [{"metricId": "acc", "goal": "MAXIMIZE"}],
        "parameters": [
            {
                "parameterId": "lr",
                "doubleValueSpec": {"minValue": 0.1, "maxValue": 1.0, "defaultValue": 0.5},
                "scaleType": "UNIT_LOG_SCALE",
            },
        ],
        "medianAutomatedStoppingSpec": {"useElapsedDuration": True},
        "studyStoppingConfig": {"maxNumTrials": 50, "maximumRuntimeConstraint": {"maxDuration": "3600s"}},
        "measurementSelectionType": "BEST_MEASUREMENT",
    },
}
FILE = {"path": "a", "sha256": "0" * 64, "size": 1, "mode": "file"}
# The end of a path to bodies that the method takes.
BODIES: dict[str, Sequence[Any]] = {
    "/customJobs": (JOB,),
    ":explain": (JOB,),
    "/trainingPipelines": (
        {
            "displayName": "p",
            "trainingTaskDefinition": CUSTOM_TASK,
            "trainingTaskInputs": JOB["jobSpec"],
            "modelToUpload": MODEL,
        },
    ),
    "/jobs": ({"jobId": "fuzz", "trainingInput": INPUT, "labels": {"a": "b"}},),
    "/jobs/{job}": ({"labels": {"a": "c"}},),
    "/manifests:apply": (
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {"a": "b"}}, "spec": PODS},
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"},
        "spec": {"template": {"spec": PODS}}},
        {
            "apiVersion": "eci.alibabacloud.com/v1",
            "kind": "ImageCache",
            "metadata": {"name": "c"},
            "spec": {"images": ["a"], "imageCacheSize": 20, "retentionDays": 3},
        },
    ),
    "/studies": (STUDY,),
    "studies:lookup": ({"displayName": "fuzz"},),
    "trials:suggest": ({"suggestionCount": 2, "clientId": "a"},),
    "/trials": ({"parameters": [{"parameterId": "lr", "value": 0.5}], "state": "ACTIVE", "clientId": "a",
    "measurements": [MEASUREMENT], "finalMeasurement": MEASUREMENT},),
    ":addTrialMeasurement": ({"measurement": MEASUREMENT},),
    ":complete": ({"finalMeasurement": MEASUREMENT}, {"trialInfeasible": True, "infeasibleReason": "no"}),
    "/noticeChannels": (
        {"webhook": "http://127.0.0.1:9/x", "on": ["failed"], "labels": {"a": "b"}, "secret": "x" * 16},
    ),
    "/ownNoticeChannels": ({"webhook": "http://127.0.0.1:9/x", "on": ["failed"], "user": "ann"},),
    "/imageCaches": ({"images": ["a"], "retentionDays": 1, "imageCacheSize": 1},),
    "entries:list": (
        {"resourceNames": ["projects/p1"], "filter": TERMS, "pageSize": 10, "orderBy": "timestamp desc",
        "pageToken": ""},
    ),
    ":shell": ({"task": "workerpool0-0", "command": ["true"], "screen": {"rows": 1, "columns": 1}},),
    ":build": ({"runtime": "python", "name": "x", "requirements": ["a==1"]},),
    ":prune": ({"olderThan": "1s"},),
    ":tag": ({"name": "a", "tag": "b"},),
    ":remove": ({"names": ["a"], "force": True},),
    "code:missing": ({"files": [FILE]},),
    "/storage/v1/b": ({"name": "fuzz-2", "location": "US", "storageClass": "STANDARD",
    "labels": {"a": "b"}},),
    "/b/{bucket}": (
        {
            "versioning": {"enabled": True},
            "labels": {"a": "b"},
            "lifecycle": {"rule": [{"action": {"type": "Delete"}, "condition": {"age": 3,
            "matchesPrefix": ["a"]}}]},
        },
    ),
    "/compose": ({"sourceObjects": [{"name": "x"}], "destination": {"contentType": "a",
    "metadata": {"a": "b"}}},),
    "{object}": ({key: value for key, value in ABOUT.items() if key != "name"},),
    "{name}": ({"metadata": {"a": "b"}, "contentType": "a/b", "storageClass": "STANDARD"},),
}  # fmt: skip
SCHEMAS: dict[str, type[Message]] = {
    "/customJobs": CustomJob,
    ":explain": CustomJob,
    "/trainingPipelines": TrainingPipeline,
    "/jobs": TrainingJobBody,
    "/imageCaches": CacheBody,
    "/noticeChannels": ChannelBody,
    "/ownNoticeChannels": ChannelBody,
    "/studies": StudyFields,
    "/trials": TrialFields,
}
QUERY = {
    "pageSize": "1", "maxResults": "1", "max-keys": "1", "filter": "", "readMask": "name",
    "fields": "kind", "limit": "5",
    "attempt": "0", "generation": "1", "ifGenerationMatch": "1", "ifMetagenerationMatch": "1",
    "sourceGeneration": "1",
    "task": "workerpool0-0", "since": "60s", "prefix": "x", "delimiter": "/", "uploadType": "media",
    "name": "x",
    "project": "p1", "updateMask": "labels", "imageCacheId": "c", "channelId": "c", "tag": "a",
    "buildArgs": "{}", "machineType": "n1",
}  # fmt: skip
NEEDED = (
    "project",
    "uploadType",
    "name",
    "updateMask",
    "imageCacheId",
    "channelId",
    "tag",
)  # nothing behind is reached without
HEADERS = {
    "range": "bytes=0-1", "if-match": "x", "if-none-match": "x", "x-goog-if-generation-match": "1",
    "x-goog-hash": "md5=x",
    "x-goog-copy-source": "/fuzz/x", "x-goog-gcs-idempotency-token": "a", "x-upload-content-length": "3",
    "x-upload-content-type": "a/b", "content-range": "bytes 0-2/3", "content-md5": "x",
    "content-encoding": "gzip",
    "content-disposition": "inline", "idempotency-key": "a", "user-agent": "gcloud",
    "metadata-flavor": "Google",
    "x-goog-meta-a": "b", "content-length": "3", "x-goog-storage-class": "STANDARD", "content-type": "a/b",
}  # fmt: skip
PARAMETERS = {
    "customJobs": "job", "trainingPipelines": "pipeline", "models": "model", "operations": "operation",
    "imageCaches": "cache", "noticeChannels": "channel", "ownNoticeChannels": "channel",
    "runtimes": "runtime", "studies": "study", "trials": "trial",
}  # fmt: skip
MOST_NAMES = 20
SECTIONS = {"path": 1, "query": 4, "headers": 1, "body": 7}  # how often the wrong thing stands there
_READ = re.compile(
    r'(?:query\.get|flag|number|query\[|_texts|parse_names)\(?(?:call\.query, |query, )?"([$\w-]+)"'
)


@dataclass(frozen=True, slots=True)
class FuzzedRequest:
    verb: str
    path: str  # as sent, percent-encoded
    query: str = ""
    headers: tuple[tuple[str, bytes], ...] = ()
    body: bytes = b""
    refusal: str = ""  # why no server may do what it asks

    @property
    def decoded(self) -> str:
        return unquote(self.path)


@dataclass(slots=True)
class RequestMaker:
    """`names` are values that exist, by the name of a path's parameter."""

    random: Random
    methods: Sequence[Method]
    token: str
    names: dict[str, list[str]]
    _pages: dict[str, tuple[dict[str, str], str]] = field(
        default_factory=dict[str, tuple[dict[str, str], str]]
    )
    _weights: list[float] = field(init=False)

    def __post_init__(self) -> None:
        self._weights = [_weight(method) for method in self.methods]

    def make(self) -> FuzzedRequest:
        (method,) = self.random.choices(self.methods, self._weights)
        parts, reason = self.right(method), ""
        for _ in range(self.random.choice((0, *[1] * 15, 2))):
            parts, reason = self._broken(method, parts)
        return self.rendered(method, parts, reason)

    def learn(self, request: FuzzedRequest, answer: bytes) -> None:
        """Takes the names and page tokens of an answer, so that later requests find more."""
        try:
            body = json.loads(answer)
            name, token = body.get("name"), body.get("nextPageToken")
        except (ValueError, AttributeError):
            return
        if token:
            asked = {name: value for name, value in parse_qsl(request.query) if name != "pageToken"}
            self._pages[request.path] = (asked, token)
        if match := re.search(r"/(\w+)/([^/]+)$", str(name)):
            known = self.names.setdefault(PARAMETERS.get(match[1], match[1]), [])
            known.append(match[2])
            del known[:-MOST_NAMES]

    def right(self, method: Method) -> dict[str, Any]:
        """The parts of a request that is right, as far as is known here."""
        random = self.random
        asked = {name: QUERY[name] for name in query_names(method.handler.__module__) if name in QUERY}
        headers = {name: value for name, value in HEADERS.items() if random.random() < 0.02}
        return {
            "path": {name: random.choice(self.names.get(name, ["x"])) for name in _parameters(method)},
            "query": {name: item for name, item in asked.items() if name in NEEDED or random.random() < 0.1},
            "headers": headers,
            "body": self._body(method),
        }

    def _body(self, method: Method) -> Any:
        random = self.random
        if method.verb not in ("POST", "PUT", "PATCH"):
            return {}
        if method.path.endswith("/batch/storage/v1"):
            small = [row for row in self.methods if row.storage and not row.streams]
            return [self._batched(random.choice(small)) for _ in range(random.randint(1, 3))]
        if end := next((end for end in BODIES if method.path.endswith(end)), ""):
            return random.choice(BODIES[end])
        if method.streams:
            return random.choice(
                ({"about": ABOUT, "data": "abc"}, {"number": "1", "tag": "x"}, {"data": "abc"})
            )
        return {}

    def _batched(self, method: Method) -> dict[str, Any]:
        parts = self.right(method)
        target = f"{_filled(method, parts['path'])}?{_encoded(parts['query'])}"
        return {"id": "a+1", "verb": method.verb, "target": target, "body": parts["body"]}

    def _broken(self, method: Method, parts: dict[str, Any]) -> tuple[dict[str, Any], str]:
        """The parts with one of them wrong, and why no server may accept that."""
        random = self.random
        names = {"query": query_names(method.handler.__module__) or query_names(), "headers": tuple(HEADERS)}
        sections = [name for name in SECTIONS if name in names or parts[name]]
        (section,) = random.choices(sections, [SECTIONS[name] for name in sections])
        schema = next((SCHEMAS[end] for end in SCHEMAS if method.path.endswith(end)), None)
        body = parts["body"]
        if section == "body" and schema is not None and isinstance(body, dict) and random.random() < 0.25:
            return parts | {"body": with_field(random, cast("dict[str, Any]", body), schema)}, ""
        if section in names:
            examples = QUERY if section == "query" else HEADERS
            name, kind = self._of_some_kind(
                {name: kind_of(name, examples.get(name)) for name in names[section]}
            )
            if name == "pageToken" and (page := self._pages.get(_filled(method, parts["path"]))):
                asked, token = page
                chosen = random.choice((token, token[:-3], forged(random, token), forged(random, token)))
                return parts | {"query": asked | {"pageToken": chosen}}, ""
            return parts | {section: parts[section] | {name: str(wrong(random, kind))}}, ""
        fields = {
            path: kind_of(".".join(map(str, path)), value_at(parts, path))
            for path in leaves(parts[section], (section,))
        }
        path, kind = self._of_some_kind(fields)
        if section == "body" and random.random() < 0.2:
            path = path[: random.randint(1, len(path))]
            value, reason = reshaped(random, value_at(parts, path))
        else:
            value = wrong(random, kind)
            reason = refusal(kind, value) if section == "body" else ""
        is_name = method.storage and path[-1] == "name"  # an object's may have any character
        is_kept = _is_json(method, path) and not is_name and not method.path.endswith("entries:list")
        return replaced(parts, path, value), reason if is_kept else ""

    def _of_some_kind(self, kinds: dict[Any, str]) -> tuple[Any, str]:
        """A field and its kind. Each kind comes as often as the others, however few fields are of it."""
        kind = self.random.choice(sorted(set(kinds.values())))
        return self.random.choice([name for name, of in kinds.items() if of == kind]), kind

    def rendered(self, method: Method, parts: dict[str, Any], reason: str = "") -> FuzzedRequest:
        random = self.random
        prefix = f"/t/{self.token}" if method.keyed or (method.storage and random.random() < 0.1) else ""
        body = _content(method, parts["body"])
        if random.random() < 0.01:
            body = random.choice((b"", b"{", b"[]", b"\xff", b'"\xed\xa0\x80"', body[:20]))
            reason = ""
        given = {"host": "127.0.0.1:8080", "authorization": f"Bearer {self.token}"}
        given["content-type"] = "multipart/related; boundary=b" if method.streams else "application/json"
        headers = tuple(
            (name, re.sub(rb"[\0-\x1f\x7f]", b"?", str(value).encode("utf-8", "replace"))[:4000])
            for name, value in (given | parts["headers"]).items()
        )
        path, query = prefix + _filled(method, parts["path"]), _encoded(parts["query"])
        return FuzzedRequest(method.verb, path, query, headers, body, reason)


def _parameters(method: Method) -> list[str]:
    return re.findall(r"\{(\w+)", method.path)


def _filled(method: Method, values: dict[str, Any]) -> str:
    """A half of a surrogate pair becomes bytes that are not UTF-8."""
    return re.sub(
        r"\{(\w+)(\.\.\.)?\}",
        lambda match: quote(str(values[match[1]])[:3000], safe="", errors="surrogatepass"),
        method.path,
    )


def _encoded(query: dict[str, str]) -> str:
    return urlencode({name: value[:9000] for name, value in query.items()}, errors="surrogatepass")


def _is_json(method: Method, path: tuple[Any, ...]) -> bool:
    """Whether the part at the path is in JSON that the method reads."""
    return path[0] == "body" and (not method.streams or method.path.endswith("code:missing"))


def _content(method: Method, body: Any) -> bytes:
    match body:
        case [{"target": _}, *_] if method.streams:
            parts = [
                part | {"body": written(part.get("body", {}))} for part in body if isinstance(part, dict)
            ]
            text = "".join(PART.format_map(_Part(part)) for part in parts) + "--b--"
        case {"about": about, "data": data}:
            text = f"--b\r\nContent-Type: x\r\n\r\n{written(about)}\r\n--b\r\n\r\n{data}\r\n--b--"
        case {"number": number, "tag": tag}:
            part = f"<Part><PartNumber>{number}</PartNumber><ETag>{tag}</ETag></Part>"
            text = f"<CompleteMultipartUpload>{part}</CompleteMultipartUpload>"
        case {"data": data}:
            text = str(data)
        case {} if not body:
            text = ""
        case _:
            text = written(body)
    return text.encode("utf-8", "surrogatepass")


class _Part(dict[str, Any]):
    def __missing__(self, key: str) -> str:
        return ""


def _weight(method: Method) -> float:
    """More for methods that read much, less for what is there twice, removes, or works for long."""
    if method.verb == SOCKET:
        return 0
    seldom = ("v1beta1", "{rest", ":explain", ":why", ":watch", ":prune")
    if method.verb == "DELETE" or any(word in method.path for word in seldom):
        return 0.1
    if method.verb != "GET":
        return 6 if method.path.endswith(("/batch/storage/v1", *BODIES)) else 1
    return 10 if "filter" in query_names(method.handler.__module__) and not method.path.endswith("}") else 1


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
    recipe = {"tag", "buildArgs", "labels", "dockerfile"}  # that `wire/image.py` reads
    more = conditions if "storage" in module else recipe if module.endswith("api.images") else set[str]()
    return tuple(sorted(names | more))

"""batch/storage/v1: many small requests in one, each answered as if it had come alone.

No uploads and no downloads, as with Google. The credentials of the whole request apply; those of the parts
are ignored.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from email.parser import BytesHeaderParser
from http import HTTPStatus
from urllib.parse import SplitResult, parse_qsl, urlsplit

from trainshed.api.audit_trail import named_project
from trainshed.api.call import Call, Json, Method, RawAnswer, Reply, Trace
from trainshed.api.request_gate import request_target
from trainshed.api.route import Route
from trainshed.wire.json_body import parse_object
from trainshed.wire.multipart import boundary_of
from trainshed.wire.storage import fault

MOST_REQUESTS = 1000
MOST_BATCH = 16 << 20  # bytes
_MARK = "batch_trainshed"


@dataclass(frozen=True, slots=True)
class BatchedRequest:
    identity: str
    verb: str
    target: SplitResult
    body: Json


class StorageBatchHandlers:
    def __init__(self, methods: Sequence[Method]) -> None:
        self._routes = [Route(method) for method in methods if not method.streams]

    async def answer(self, call: Call) -> Reply:
        body = await call.whole_body()
        mark = b"--" + boundary_of(call.headers.get("content-type", ""))
        parts = [part for part in body.split(mark)[1:] if part.strip() and not part.startswith(b"--")]
        if len(parts) > MOST_REQUESTS:
            raise fault("", f"A batch has at most {MOST_REQUESTS} requests; this one has {len(parts)}.")
        # All are parsed before the first runs: a malformed batch changes nothing.
        answers = [await self._answer_request(call, inner) for inner in [_parsed(part) for part in parts]]
        content = b"".join([*answers, f"--{_MARK}--\r\n".encode()])
        return RawAnswer(content, headers={"content-type": f"multipart/mixed; boundary={_MARK}"})

    async def _answer_request(self, call: Call, inner: BatchedRequest) -> bytes:
        target = request_target({"path": inner.target.path})
        reply: Reply = RawAnswer(b'{"error": {"code": 404, "message": "There is no such method."}}', 404)
        for route in self._routes:
            if route.method.verb == inner.verb and (path := route.match(target)) is not None:
                query = dict(parse_qsl(inner.target.query, keep_blank_values=True))
                trace = Trace(call.trace.address, inner.verb, target.shown_path)
                trace.project = named_project(route.method, path, query)
                trace.finds_projects = call.trace.finds_projects
                asked = Call(
                    path=path,
                    query=query,
                    body=inner.body,
                    headers={},
                    base_url=call.base_url,
                    principal=call.principal,
                    look=call.look,
                    rights=call.rights,
                    trace=trace,
                )
                reply = await route.answer(asked)
                call.trace.parts.append((route.method, trace, _raw(reply).status))
                break
        return _render_reply(inner.identity, reply)


def _parsed(part: bytes) -> BatchedRequest:
    # Lines may end with CRLF or LF, also inside the request.
    outer, _, rest = part.replace(b"\r\n", b"\n").lstrip(b"\n").partition(b"\n\n")
    line, _, rest = rest.lstrip(b"\n").partition(b"\n")
    _, _, data = rest.partition(b"\n\n")
    words = line.decode("utf-8", "replace").split()
    if len(words) != 3:
        raise fault("", "A part of the batch does not begin with a request.")
    body = parse_object(data, "The body of a request in the batch") if data.strip() else {}
    # With a byte that is not ASCII it is an object, of which only its text is wanted.
    identity = " ".join(str(BytesHeaderParser().parsebytes(outer + b"\n\n").get("content-id", "")).split())
    try:
        target = urlsplit(words[1])
    except ValueError as error:
        raise fault("", f"The address '{words[1][:200]}' in the batch is malformed: {error}.") from error
    return BatchedRequest(identity.strip("<>"), words[0], target, body)


def _raw(reply: Reply) -> RawAnswer:
    return reply if isinstance(reply, RawAnswer) else RawAnswer()


def _render_reply(identity: str, reply: Reply) -> bytes:
    raw = _raw(reply)
    content = raw.content if isinstance(raw.content, bytes) else b""
    head = (
        f"--{_MARK}\r\nContent-Type: application/http\r\nContent-ID: <response-{identity}>\r\n\r\n"
        f"HTTP/1.1 {raw.status} {HTTPStatus(raw.status).phrase}\r\n"
        f"Content-Type: application/json; charset=UTF-8\r\nContent-Length: {len(content)}\r\n\r\n"
    )
    return head.encode("utf-8", "replace") + content + b"\r\n"

"""Buckets for the command line: objects listed, sent, fetched, copied and deleted over HTTP.

Threads may share one `StorageClient`: each thread has its own connection. A file that is fetched appears
under its name once it is whole; what is sent or fetched is compared with the server's CRC32C, or its MD5
where it tells no other. Where a connection breaks, large files go on from what the server has, and everything
else is tried anew.
"""

import base64
import contextlib
import hashlib
import http.client
import json
import os
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Any, Literal, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from trainshed.client.errors import ApiError, ClientError, Interrupted, Unreachable
from trainshed.client.trust import client_context, untrusted

PIECE = 1 << 20
PIECEWISE = 32 << 20  # bytes beyond which a file is sent so that it can go on after a break
PAUSES = (0.2, 1.0, 2.0, 4.0, 8.0)  # seconds, between tries
TIMEOUT = 300.0

Progress = Callable[[int], None]
Kind = Literal["crc32c", "md5"]
KINDS: tuple[Kind, ...] = ("crc32c", "md5")
_T = TypeVar("_T")


class Sum:
    """A checksum as the storage API writes it: CRC32C, which costs a tenth of MD5, or that."""

    def __init__(self, kind: Kind) -> None:
        import google_crc32c

        self.kind: Kind = kind
        self._new: Callable[[], Any] = google_crc32c.Checksum
        if kind == "md5":
            self._new = lambda: hashlib.md5(usedforsecurity=False)
        self.clear()

    def clear(self) -> None:
        self._sum: Any = self._new()

    def update(self, piece: bytes) -> None:
        self._sum.update(piece)

    @property
    def header(self) -> str:
        return f"{self.kind}={self.text}"

    @property
    def text(self) -> str:
        return base64.b64encode(self._sum.digest()).decode()

    def compare(self, expected: str | None, what: str) -> None:
        if expected and expected != self.text:
            raise ClientError(f"{what} is not what was sent: its {self.kind.upper()} is {expected}")


class StorageClient:
    def __init__(self, url: str, token: str | None, ca: str = "") -> None:
        """`ca` is a file with the certificate of who signs for the server."""
        self.url = url.rstrip("/")
        parts = urlsplit(self.url)
        self._context = client_context(ca) if parts.scheme == "https" else None
        self._host, self._base = parts.netloc, parts.path
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._local = threading.local()
        self._has_answered = False

    def close(self) -> None:
        """This thread's connection; another question opens another."""
        connection: http.client.HTTPConnection | None = getattr(self._local, "connection", None)
        if connection is not None:
            self._local.connection = None
            connection.close()

    # ---- buckets

    def buckets(self, project: str) -> list[dict[str, Any]]:
        return list(self._pages("/storage/v1/b", {"project": project}, "items"))

    def bucket(self, bucket: str) -> dict[str, Any]:
        return self._json("GET", f"/storage/v1/b/{quote(bucket, safe='')}")

    def create_bucket(self, bucket: str, project: str, location: str) -> None:
        self._json(
            "POST", f"/storage/v1/b?{urlencode({'project': project})}", {"name": bucket, "location": location}
        )

    def update_bucket(self, bucket: str, body: Mapping[str, Any]) -> None:
        self._json("PATCH", f"/storage/v1/b/{quote(bucket, safe='')}", body)

    def delete_bucket(self, bucket: str) -> None:
        self._json("DELETE", f"/storage/v1/b/{quote(bucket, safe='')}")

    # ---- objects

    def objects(
        self, bucket: str, prefix: str = "", delimiter: str = "", *, versions: bool = False
    ) -> Iterator[dict[str, Any]]:
        """Objects as the API tells them, with their old versions where asked; prefixes as `{"prefix": …}`."""
        query = {"prefix": prefix, "delimiter": delimiter, **({"versions": "true"} if versions else {})}
        for page in self._answers(f"/storage/v1/b/{quote(bucket, safe='')}/o", query):
            yield from ({"prefix": item} for item in page.get("prefixes", ()))
            yield from page.get("items", ())

    def get(self, bucket: str, name: str, generation: str = "") -> dict[str, Any]:
        return self._json("GET", _object(bucket, name) + _query(generation=generation))

    def delete(self, bucket: str, name: str, generation: str = "", *, version: str = "") -> None:
        """Where a generation is given, only while it is that one; where a version is, that one for good."""
        query = _query(ifGenerationMatch=generation, generation=version)
        self._json("DELETE", _object(bucket, name) + query)

    def copy(self, source: tuple[str, str], target: tuple[str, str], generation: str = "") -> int:
        place = f"rewriteTo/b/{quote(target[0], safe='')}/o/{quote(target[1], safe='')}"
        query = _query(sourceGeneration=generation)
        return int(self._json("POST", f"{_object(*source)}/{place}{query}", {})["objectSize"])

    def send(
        self, file: IO[bytes], bucket: str, name: str, progress: Progress, *, only_new: bool = False
    ) -> str:
        """The generation it became. Where it is to be new, an object that is there already is a 412."""
        query = {"name": name, **({"ifGenerationMatch": "0"} if only_new else {})}
        path = f"/upload/storage/v1/b/{quote(bucket, safe='')}/o?{urlencode(query)}"
        if os.fstat(file.fileno()).st_size > PIECEWISE:
            return self._send_in_pieces(file, bucket, name, path, progress)
        data = file.read()
        crc = Sum("crc32c")
        crc.update(data)
        headers = {"Content-Type": _kind_of(name), "X-Goog-Hash": crc.header}
        path = f"{path}&uploadType=media"
        answer = self._tried(lambda: json.loads(self._asked("POST", path, data, headers).read()))
        progress(len(data))
        crc.compare(answer.get("crc32c"), f"{bucket}/{name}")
        return str(answer.get("generation", ""))

    def _send_in_pieces(self, file: IO[bytes], bucket: str, name: str, path: str, progress: Progress) -> str:
        """An upload that the server keeps in mind: after a break it tells how much it has.

        The file is read once. Its sum is known at the end, so the request that makes the object comes last,
        has the sum, and brings no bytes.
        """
        size, crc = os.fstat(file.fileno()).st_size, Sum("crc32c")
        path = f"{path}&uploadType=resumable"
        kind = {"X-Upload-Content-Type": _kind_of(name), "Content-Type": "application/json"}
        begun = self._tried(lambda: _emptied(self._asked("POST", path, b"{}", kind)))
        upload = f"{path}&{urlencode({'upload_id': begun['X-GUploader-UploadID']})}"

        def rest(at: int) -> Iterator[bytes]:
            file.seek(0)
            crc.clear()
            for end, is_sent in ((at, False), (size, True)):
                while piece := file.read(min(PIECE, end - file.tell())):
                    crc.update(piece)
                    if is_sent:
                        yield piece
                        progress(len(piece))

        def go_on() -> dict[str, Any]:
            answer = self._asked("PUT", upload, b"", {"Content-Range": "bytes */*"})
            content = answer.read()
            if answer.status != 308:
                return json.loads(content)
            last = answer.headers.get("Range", "").rpartition("-")[2]
            at = int(last) + 1 if last else 0
            pieces = rest(at)
            if at < size:
                span = {"Content-Range": f"bytes {at}-{size - 1}/*", "Content-Length": str(size - at)}
                _emptied(self._asked("PUT", upload, pieces, span))
            for _ in pieces:  # where the server had all of them before: they are summed
                pass
            end = {"Content-Range": f"bytes */{size}", "X-Goog-Hash": crc.header}
            return json.loads(self._asked("PUT", upload, b"", end).read())

        try:
            answer = self._tried(go_on)
        except BaseException:
            self.close()  # it may be in the middle of a request
            with contextlib.suppress(ClientError):
                self._asked("DELETE", upload)  # leave nothing half there
            raise
        crc.compare(answer.get("crc32c"), f"{bucket}/{name}")
        return str(answer.get("generation", ""))

    def fetch(
        self, bucket: str, name: str, file: IO[bytes], progress: Progress, generation: str = ""
    ) -> None:
        """All of one content: where it breaks off, the rest of the same one is asked for."""
        got = 0
        known: dict[str, str] = {}
        sum_: Sum | None = None

        def go_on() -> None:
            nonlocal got, generation, known, sum_
            query = {"alt": "media", **({"generation": generation} if generation else {})}
            span = {"Range": f"bytes={got}-"} if got else {}
            answer = self._asked("GET", f"/download{_object(bucket, name)}?{urlencode(query)}", None, span)
            size = got + int(answer.headers["Content-Length"])
            generation = answer.headers.get("x-goog-generation", "")
            given = answer.headers.get("x-goog-hash", "").split(",")
            known = dict(item.split("=", 1) for item in given if "=" in item)
            if sum_ is None:
                sum_ = Sum("crc32c" if "crc32c" in known else "md5")
            while piece := self._read(answer):
                sum_.update(piece)
                file.write(piece)
                got += len(piece)
                progress(len(piece))
            if got != size:
                self.close()
                raise Interrupted(f"{bucket}/{name} broke off after {got} of {size} bytes")

        self._tried(go_on)
        if sum_ is not None:
            sum_.compare(known.get(sum_.kind), f"{bucket}/{name}")

    def _read(self, answer: http.client.HTTPResponse) -> bytes:
        try:
            return answer.read(PIECE)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise Interrupted(str(error) or type(error).__name__) from error

    def _tried(self, work: Callable[[], _T]) -> _T:
        """Again, where nothing answers any more or an answer breaks off. A server that has never answered is
        not waited for.
        """
        for pause in PAUSES:
            try:
                return work()
            except (Unreachable, Interrupted):
                if not self._has_answered:
                    raise
                time.sleep(pause)
        return work()

    # ---- HTTP

    def _answers(self, path: str, query: Mapping[str, str]) -> Iterator[dict[str, Any]]:
        token = ""
        while True:
            page = self._json("GET", f"{path}?{urlencode({**query, 'pageToken': token})}")
            yield page
            token = page.get("nextPageToken", "")
            if not token:
                return

    def _pages(self, path: str, query: Mapping[str, str], key: str) -> Iterator[dict[str, Any]]:
        for page in self._answers(path, query):
            yield from page.get(key, ())

    def _json(self, verb: str, path: str, body: object = None) -> dict[str, Any]:
        headers = {"Content-Type": "application/json"} if body is not None else {}
        data = json.dumps(body).encode() if body is not None else None
        content = self._asked(verb, path, data, headers).read()
        return json.loads(content) if content else {}

    def _asked(
        self,
        verb: str,
        path: str,
        body: bytes | Iterator[bytes] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> http.client.HTTPResponse:
        connection: http.client.HTTPConnection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = self._new_connection()
        try:
            connection.request(verb, self._base + path, body, {**self._headers, **(headers or {})})
            answer = connection.getresponse()
            self._has_answered = True
            if answer.status >= 300 and answer.status != 308:  # 308: an upload is not over
                raise ApiError.read(answer.status, answer.reason, answer.read())
        except (OSError, http.client.HTTPException) as error:
            self.close()
            if isinstance(error, ssl.SSLError):
                raise untrusted(self.url, error) from error
            raise Unreachable(self.url, str(error) or type(error).__name__) from error
        return answer

    def _new_connection(self) -> http.client.HTTPConnection:
        if self._context is None:
            return http.client.HTTPConnection(self._host, timeout=TIMEOUT)
        return http.client.HTTPSConnection(self._host, timeout=TIMEOUT, context=self._context)


def _emptied(answer: http.client.HTTPResponse) -> http.client.HTTPMessage:
    answer.read()
    return answer.headers


def _query(**given: str) -> str:
    asked = {key: value for key, value in given.items() if value}
    return f"?{urlencode(asked)}" if asked else ""


def _object(bucket: str, name: str) -> str:
    return f"/storage/v1/b/{quote(bucket, safe='')}/o/{quote(name, safe='')}"


def _kind_of(name: str) -> str:
    import mimetypes

    return mimetypes.guess_type(name)[0] or "application/octet-stream"

"""The storage API on the wire: what no client shows, and what must be refused."""

import base64
import hashlib
import http.client
import json
import os
import socket
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

from tests.live import PATIENCE, Answer, LiveServer

Unique = Callable[[str], str]


@pytest.fixture
def bucket(server: LiveServer, unique: Unique) -> str:
    name = unique("wire")
    assert server.request("POST", "/storage/v1/b?project=p1", {"name": name}).status == 200
    return name


def put(
    server: LiveServer, bucket: str, name: str, content: bytes = b"0123456789", **query: object
) -> Answer:
    more = "".join(f"&{key}={value}" for key, value in query.items())
    path = f"/upload/storage/v1/b/{bucket}/o?uploadType=media&name={quote(name, safe='')}{more}"
    return server.request("POST", path, content, headers={"Content-Type": "text/plain"})


def one(bucket: str, name: str, query: str = "") -> str:
    return f"/storage/v1/b/{bucket}/o/{quote(name, safe='')}{query}"


def refused(answer: Answer, code: int, reason: str) -> Any:
    assert answer.status == code, answer.body
    assert answer.error["code"] == code
    assert answer.error["errors"][0]["reason"] == reason
    return answer.error["message"]


# ---- objects


def test_an_object_is_told_in_full(server: LiveServer, bucket: str) -> None:
    told = put(server, bucket, "a/ü.txt").json
    assert told["kind"] == "storage#object"
    assert (told["name"], told["bucket"], told["size"]) == ("a/ü.txt", bucket, "10")
    assert (told["crc32c"], told["md5Hash"]) == ("KAwGng==", "eB5eJF1ptWaXm4bijSPyxw==")
    assert (told["contentType"], told["storageClass"], told["metageneration"]) == (
        "text/plain",
        "STANDARD",
        "1",
    )
    assert told["generation"].isdigit()
    assert told["timeCreated"].endswith("Z")
    assert base64.b64decode(told["etag"])
    assert server.request("GET", one(bucket, "a/ü.txt")).json == told
    link = urlsplit(told["mediaLink"])
    assert server.request("GET", f"{link.path}?{link.query}").body == b"0123456789"


def test_fields_cut_the_answer(server: LiveServer, bucket: str) -> None:
    put(server, bucket, "x")
    assert server.request("GET", one(bucket, "x", "?fields=name,size")).json == {"name": "x", "size": "10"}
    listing = server.request("GET", f"/storage/v1/b/{bucket}/o?fields=items(name),nextPageToken").json
    assert listing == {"items": [{"name": "x"}]}
    assert server.request("GET", f"/storage/v1/b/{bucket}/o?fields=items/name").json == listing
    refused(server.request("GET", one(bucket, "x", "?fields=items(name")), 400, "invalid")


@pytest.mark.parametrize(
    ("asked", "code", "expected", "told"),
    [
        ("bytes=2-4", 206, b"234", "bytes 2-4/10"),
        ("bytes=7-", 206, b"789", "bytes 7-9/10"),
        ("bytes=-2", 206, b"89", "bytes 8-9/10"),
        ("bytes=5-100", 206, b"56789", "bytes 5-9/10"),
        ("bytes=0-", 200, b"0123456789", None),
        ("bytes=1-2,5-6", 200, b"0123456789", None),
        ("rubbish", 200, b"0123456789", None),
    ],
)
def test_ranges(
    server: LiveServer, bucket: str, asked: str, code: int, expected: bytes, told: str | None
) -> None:
    put(server, bucket, "x")
    for path in (one(bucket, "x", "?alt=media"), f"/download{one(bucket, 'x', '?alt=media')}"):
        answer = server.request("GET", path, headers={"Range": asked})
        assert (answer.status, answer.body, answer.headers.get("content-range")) == (code, expected, told)
        assert answer.headers["x-goog-hash"] == "crc32c=KAwGng==,md5=eB5eJF1ptWaXm4bijSPyxw=="


def test_a_range_behind_the_end_is_refused_with_the_size(server: LiveServer, bucket: str) -> None:
    put(server, bucket, "x")
    answer = server.request("GET", one(bucket, "x", "?alt=media"), headers={"Range": "bytes=10-"})
    assert (answer.status, answer.headers["content-range"]) == (416, "bytes */10")


def test_preconditions_are_412_to_writers_and_304_to_readers(server: LiveServer, bucket: str) -> None:
    told = put(server, bucket, "x").json
    generation = told["generation"]
    refused(put(server, bucket, "x", ifGenerationMatch=0), 412, "conditionNotMet")
    refused(put(server, bucket, "x", ifGenerationNotMatch=generation), 412, "conditionNotMet")
    refused(server.request("DELETE", one(bucket, "x", "?ifMetagenerationMatch=7")), 412, "conditionNotMet")
    refused(server.request("GET", one(bucket, "x", "?generation=1")), 404, "notFound")
    refused(server.request("GET", one(bucket, "x", "?ifGenerationMatch=one")), 400, "invalid")
    for media in ("", "&alt=media"):
        answer = server.request("GET", one(bucket, "x", f"?ifGenerationNotMatch={generation}{media}"))
        assert (answer.status, answer.body) == (304, b"")
    assert put(server, bucket, "x", ifGenerationMatch=generation).status == 200


def test_a_wrong_hash_makes_no_object(server: LiveServer, bucket: str) -> None:
    path = f"/upload/storage/v1/b/{bucket}/o?uploadType=media&name=x"
    answer = server.request("POST", path, b"abc", headers={"X-Goog-Hash": "crc32c=AAAAAA=="})
    assert "doesn't match calculated CRC32C" in refused(answer, 400, "invalid")
    refused(server.request("GET", one(bucket, "x")), 404, "notFound")


def test_text_that_is_no_unicode_is_refused_and_harms_nobody(server: LiveServer, bucket: str) -> None:
    put(server, bucket, "x")
    odd = b'{"metadata": {"k": "\\ud800", "\\udfff": "v"}, "contentType": "\\udc00"}'
    headers = {"Content-Type": "application/json"}
    assert server.request("PATCH", one(bucket, "x"), odd, headers=headers).status == 400
    assert server.request("GET", one(bucket, "x")).status == 200
    assert server.request("GET", one(bucket, "x", "?alt=media")).body == b"0123456789"
    begun = f"/upload/storage/v1/b/{bucket}/o?uploadType=resumable&name=y"
    assert server.request("POST", begun, odd, headers=headers).status == 400
    assert put(server, bucket, "z").status == 200


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("location", "\0"),
        ("location", "\x1b[2J"),
        ("storageClass", "a\x01"),
        ("labels", {"a": "\n"}),
        ("lifecycle", {"rule": [{"action": {"type": "Delete"}, "condition": {"matchesPrefix": ["\0"]}}]}),
    ],
)
def test_control_characters_in_what_a_bucket_keeps_are_refused(
    server: LiveServer, bucket: str, field: str, value: object
) -> None:
    made = server.request("POST", "/storage/v1/b?project=p1", {"name": f"{bucket}-2", field: value})
    assert field in refused(made, 400, "invalid")
    assert field in refused(
        server.request("PATCH", f"/storage/v1/b/{bucket}", {field: value}), 400, "invalid"
    )


def test_control_characters_in_stored_headers_are_refused(server: LiveServer, bucket: str) -> None:
    path = f"/upload/storage/v1/b/{bucket}/o?uploadType=media&name=x"
    answer = server.request("POST", path, b"abc", headers={"Content-Type": "a/b\x85"})
    assert "contentType" in refused(answer, 400, "invalid")


@pytest.mark.parametrize("asked", [None, "bytes=2-4", "bytes=-2"])
def test_head_says_what_get_says_without_the_body(server: LiveServer, bucket: str, asked: str | None) -> None:
    put(server, bucket, "x")
    headers = {"Range": asked} if asked else {}
    for path in (one(bucket, "x", "?alt=media"), f"/download{one(bucket, 'x', '?alt=media')}"):
        told, head = (server.request(verb, path, headers=headers) for verb in ("GET", "HEAD"))
        assert (head.status, head.body) == (told.status, b"")
        for name in ("content-length", "content-range", "content-type", "etag", "x-goog-hash"):
            assert head.headers.get(name) == told.headers.get(name)
    assert server.request("HEAD", one(bucket, "x")).headers["content-type"].startswith("application/json")
    assert server.request("HEAD", one(bucket, "none", "?alt=media")).status == 404
    assert (
        server.request("HEAD", one(bucket, "x", "?alt=media"), headers={"Range": "bytes=10-"}).status == 416
    )


@pytest.mark.parametrize(
    "body",
    [
        {"contentType": "text/plain\r\nX-Evil: 1"},
        {"cacheControl": "a\nb"},
        {"customTime": "tomorrow"},
        {"customTime": "2026-02-30T00:00:00Z"},
        {"customTime": "2026-02-03"},
    ],
)
def test_attributes_that_cannot_be_are_refused(server: LiveServer, bucket: str, body: dict[str, str]) -> None:
    before = put(server, bucket, "x").json
    answer = server.request("PATCH", one(bucket, "x"), body)
    assert next(iter(body)) in refused(answer, 400, "invalid")
    refused(put(server, bucket, "y", contentEncoding="a%0Ab"), 400, "invalid")
    assert server.request("GET", one(bucket, "x")).json == before
    assert server.request("PATCH", one(bucket, "x"), {"customTime": "2026-02-03T04:05:06.7Z"}).status == 200


@pytest.mark.parametrize(
    "wrong",
    [
        {"generation": {}},
        {"generation": []},
        {"generation": False},
        {"objectPreconditions": [1]},
        {"objectPreconditions": {"ifGenerationMatch": {}}},
    ],
)
def test_a_source_of_another_kind_is_not_composed(
    server: LiveServer, bucket: str, wrong: dict[str, object]
) -> None:
    put(server, bucket, "x")
    path = one(bucket, "all") + "/compose"
    refused(server.request("POST", path, {"sourceObjects": [{"name": "x", **wrong}]}), 400, "invalid")
    right = {"name": "x", "generation": None, "objectPreconditions": None}
    assert server.request("POST", path, {"sourceObjects": [right]}).status == 200


TOKEN = "x-goog-gcs-idempotency-token"


def listed(server: LiveServer, bucket: str) -> list[str]:
    return [item["name"] for item in server.get(f"/storage/v1/b/{bucket}/o").get("items", ())]


def test_compose_deletes_its_sources_and_is_answered_again_as_the_first_time(
    server: LiveServer, bucket: str
) -> None:
    """As gcloud sends it from 576 on."""
    for part in "abc":
        put(server, bucket, f"parts/{part}", part.encode())
    body = {
        "sourceObjects": [{"name": f"parts/{part}"} for part in "abc"],
        "destination": {"contentType": "text/x"},
        "deleteSourceObjects": True,
    }
    path = one(bucket, "whole", "/compose?ifGenerationMatch=0")
    failed = server.request("POST", one(bucket, "whole", "/compose?ifGenerationMatch=5"), body)
    refused(failed, 412, "conditionNotMet")
    assert len(listed(server, bucket)) == 3
    first = server.request("POST", path, body, headers={TOKEN: "t1"})
    assert first.status == 200, first.body
    assert (first.json["size"], first.json["componentCount"]) == ("3", 3)
    assert listed(server, bucket) == ["whole"]
    again = server.request("POST", path, body, headers={TOKEN: "t1"})
    assert (again.status, again.json) == (200, first.json)
    refused(server.request("POST", path, body, headers={TOKEN: "t2"}), 404, "notFound")
    refused(server.request("POST", path, {**body, "deleteSourceObjects": "no"}), 400, "invalid")


def test_a_source_that_is_the_destination_is_not_deleted(server: LiveServer, bucket: str) -> None:
    put(server, bucket, "log", b"1")
    put(server, bucket, "more", b"2")
    body = {"sourceObjects": [{"name": "log"}, {"name": "more"}], "deleteSourceObjects": True}
    assert server.request("POST", one(bucket, "log", "/compose"), body).status == 200
    assert listed(server, bucket) == ["log"]
    assert server.request("GET", one(bucket, "log", "?alt=media")).body == b"12"


def test_requests_with_a_token_are_carried_out_once(server: LiveServer, bucket: str) -> None:
    put(server, bucket, "x")
    calls: list[tuple[str, str, object]] = [
        ("POST", f"/upload/storage/v1/b/{bucket}/o?uploadType=media&name=up&ifGenerationMatch=0", b"up"),
        ("PATCH", one(bucket, "x", "?ifMetagenerationMatch=1"), {"metadata": {"a": "b"}}),
        ("POST", one(bucket, "x", f"/copyTo/b/{bucket}/o/copy?ifGenerationMatch=0"), {}),
        ("POST", one(bucket, "x", f"/rewriteTo/b/{bucket}/o/rewritten?ifGenerationMatch=0"), {}),
        ("POST", one(bucket, "x", "/moveTo/o/moved"), {}),
        ("DELETE", one(bucket, "copy"), None),
    ]
    for verb, path, body in calls:
        answers = [server.request(verb, path, body, headers={TOKEN: "same"}) for _ in range(2)]
        assert [answer.status for answer in answers] == [204, 204] if verb == "DELETE" else [200, 200]
        assert answers[0].body == answers[1].body, path
        assert server.request(verb, path, body, headers={TOKEN: "other"}).status in (404, 412), path
    assert listed(server, bucket) == ["moved", "rewritten", "up"]


# ---- old versions


def test_versions_are_told_read_restored_and_deleted_by_generation(server: LiveServer, bucket: str) -> None:
    path = f"/storage/v1/b/{bucket}"
    on = server.request("PATCH", path, {"versioning": {"enabled": True}})
    assert (on.status, on.json["versioning"], on.json["metageneration"]) == (200, {"enabled": True}, "2")
    first = put(server, bucket, "x", b"first").json["generation"]
    put(server, bucket, "x", b"second")
    assert server.request("DELETE", one(bucket, "x")).status == 204
    assert "items" not in server.get(f"{path}/o")
    told: list[Any] = []
    token = ""
    while True:
        page = server.get(f"{path}/o?versions=true&maxResults=1&pageToken={token}")
        told += page["items"]
        if not (token := page.get("nextPageToken", "")):
            break
    assert [(item["name"], "timeDeleted" in item) for item in told] == [("x", True)] * 2
    assert told == server.get(f"{path}/o?versions=true")["items"]
    assert server.request("GET", one(bucket, "x", f"?alt=media&generation={first}")).body == b"first"
    refused(server.request("GET", one(bucket, "x")), 404, "notFound")
    restored = server.request("POST", one(bucket, "x", f"/restore?generation={first}"), {})
    assert restored.status == 200, restored.body
    assert server.request("GET", one(bucket, "x", "?alt=media")).body == b"first"
    copied = server.request(
        "POST", one(bucket, "x", f"/rewriteTo/b/{bucket}/o/y?sourceGeneration={first}"), {}
    )
    assert copied.json["resource"]["size"] == "5"
    refused(server.request("DELETE", path), 409, "conflict")
    assert server.request("DELETE", one(bucket, "x", f"?generation={first}")).status == 204
    refused(server.request("GET", one(bucket, "x", f"?generation={first}")), 404, "notFound")
    refused(server.request("GET", f"{path}/o?versions=true&pageToken=eAp6"), 400, "invalid")
    refused(server.request("POST", one(bucket, "x", "/restore"), {}), 400, "invalid")
    off = server.request("PATCH", path, {"versioning": {"enabled": False}})
    assert "versioning" not in off.json


def test_a_rule_of_a_bucket_deletes_what_it_names(server: LiveServer, bucket: str) -> None:
    path = f"/storage/v1/b/{bucket}"
    for name in ("tmp/a", "tmp/b", "kept"):
        put(server, bucket, name)
    rules = {"rule": [{"action": {"type": "Delete"}, "condition": {"age": 0, "matchesPrefix": ["tmp/"]}}]}
    assert server.request("PATCH", path, {"lifecycle": rules}).json["lifecycle"] == rules
    deadline = time.monotonic() + PATIENCE
    while listed(server, bucket) != ["kept"] and time.monotonic() < deadline:
        time.sleep(0.05)
    assert listed(server, bucket) == ["kept"]
    assert "lifecycle" not in server.request("PATCH", path, {"lifecycle": None}).json


# ---- multipart, as gcloud sends it


def test_a_boundary_in_single_quotes_and_bare_line_ends(server: LiveServer, bucket: str) -> None:
    content = b"\r\n--not the mark\r\nends with a return\r"
    body = (
        b'--===1==\nContent-Type: application/json\n\n{"name": "m"}\n'
        b"--===1==\nContent-Type: text/x\n\n" + content + b"\n--===1==--"
    )
    answer = server.request(
        "POST",
        f"/upload/storage/v1/b/{bucket}/o?uploadType=multipart",
        body,
        headers={"Content-Type": "multipart/related; boundary='===1=='"},
    )
    assert answer.status == 200, answer.body
    assert answer.json["contentType"] == "text/x"
    assert server.request("GET", one(bucket, "m", "?alt=media")).body == content


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"--x\r\n\r\n{}\r\n",
        b'--x\r\n\r\n{"name": "cut"}\r\n--x\r\n\r\nbytes',
        b"--x\r\n\r\n[1\r\n--x\r\n",
    ],
)
def test_a_broken_multipart_body_makes_no_object(server: LiveServer, bucket: str, body: bytes) -> None:
    answer = server.request(
        "POST",
        f"/upload/storage/v1/b/{bucket}/o?uploadType=multipart",
        body,
        headers={"Content-Type": 'multipart/related; boundary="x"'},
    )
    refused(answer, 400, "invalid")
    assert "items" not in server.get(f"/storage/v1/b/{bucket}/o")


# ---- uploads in pieces


def begin(server: LiveServer, bucket: str, name: str, query: str = "", **more: str) -> str:
    path = f"/upload/storage/v1/b/{bucket}/o?uploadType=resumable{query}"
    headers = {"X-Upload-Content-Type": "text/x", **more}
    answer = server.request("POST", path, {"name": name}, headers=headers)
    assert answer.status == 200, answer.body
    location = urlsplit(answer.headers["location"])
    return f"{location.path}?{location.query}"


def piece(server: LiveServer, path: str, said: str, content: bytes = b"", **headers: str) -> Answer:
    return server.request("PUT", path, content, headers={"Content-Range": f"bytes {said}", **headers})


def test_pieces_of_unknown_and_known_size_make_an_object(server: LiveServer, bucket: str) -> None:
    path = begin(server, bucket, "x")
    assert "range" not in piece(server, path, "*/*").headers
    assert piece(server, path, "0-3/*", b"0123").status == 308
    asked = piece(server, path, "*/*")
    assert (asked.status, asked.headers["range"]) == (308, "bytes=0-3")
    assert piece(server, path, "2-5/*", b"2345").headers["range"] == "bytes=0-5"  # two are known already
    refused(piece(server, path, "8-9/10", b"89"), 400, "invalid")
    made = piece(server, path, "6-9/10", b"6789")
    assert (made.status, made.json["size"], made.json["contentType"]) == (200, "10", "text/x")
    again = piece(server, path, "*/*")
    assert (again.status, again.json) == (200, made.json)
    assert server.request("GET", one(bucket, "x", "?alt=media")).body == b"0123456789"


def test_an_upload_can_be_ended_by_naming_its_size(server: LiveServer, bucket: str) -> None:
    path = begin(server, bucket, "x")
    piece(server, path, "0-3/*", b"0123")
    assert piece(server, path, "*/4").json["size"] == "4"
    empty = begin(server, bucket, "empty")
    assert piece(server, empty, "*/0").json["size"] == "0"
    whole = begin(server, bucket, "whole")
    assert server.request("PUT", whole, b"all of it").json["size"] == "9"


def test_bytes_without_a_range_are_the_whole(server: LiveServer, bucket: str) -> None:
    content = os.urandom(1 << 18) + b"0123456789"
    path = begin(server, bucket, "x")
    assert piece(server, path, f"0-{(1 << 18) - 1}/*", content[: 1 << 18]).status == 308
    for wrong in (b"0123456789", b"", b"other" + content[5:], content[: (1 << 18) - 1]):
        assert "already" in refused(server.request("PUT", path, wrong), 400, "invalid")
    assert piece(server, path, "*/*").headers["range"] == f"bytes=0-{(1 << 18) - 1}"
    made = server.request("PUT", path, content)
    assert (made.status, made.json["size"]) == (200, str(len(content)))
    assert server.request("GET", one(bucket, "x", "?alt=media")).body == content
    assert server.request("PUT", path, content).json == made.json


def test_an_upload_has_the_length_it_was_begun_with(mortal: LiveServer) -> None:
    mortal.post("/storage/v1/b", {"name": "declared"})
    path = begin(mortal, "declared", "x", **{"X-Upload-Content-Length": "20"})
    mortal.kill()
    mortal.start()
    for answer in (
        mortal.request("PUT", path, b"0123456789"),
        piece(mortal, path, "0-9/10", b"0123456789"),
        piece(mortal, path, "*/10"),
        piece(mortal, path, "0-20/*", b"0" * 21),
    ):
        message = refused(answer, 400, "invalid")
        assert "20 bytes" in message
        assert ("one of 10." in message) or ("one of 21." in message)
    refused(mortal.request("GET", one("declared", "x")), 404, "notFound")
    assert piece(mortal, path, "0-9/*", b"0123456789").status == 308
    assert piece(mortal, path, "10-19/20", b"0123456789").json["size"] == "20"
    wrong = {"X-Upload-Content-Length": "many"}
    begun = "/upload/storage/v1/b/declared/o?uploadType=resumable&name=y"
    refused(mortal.request("POST", begun, {}, headers=wrong), 400, "invalid")


@pytest.mark.parametrize("said", ["5-1/*", "0-9/5", "3-9/0"])
def test_a_range_that_cannot_be_is_refused(server: LiveServer, bucket: str, said: str) -> None:
    path = begin(server, bucket, "x")
    refused(piece(server, path, said, b"0123456789"), 400, "invalid")
    assert "range" not in piece(server, path, "*/*").headers


def test_a_connection_that_breaks_keeps_what_came(server: LiveServer, bucket: str) -> None:
    """All but what was in flight: far more is sent than sockets hold."""
    content = os.urandom(24 << 20)
    path = begin(server, bucket, "x")
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    connection.putrequest("PUT", path)
    connection.putheader("Authorization", f"Bearer {server.token}")
    connection.putheader("Content-Range", f"bytes 0-{len(content) - 1}/{len(content)}")
    connection.putheader("Content-Length", str(len(content)))
    connection.endheaders(content[: 20 << 20])
    assert connection.sock is not None
    connection.sock.shutdown(socket.SHUT_RDWR)
    connection.close()
    deadline = time.monotonic() + PATIENCE
    while not (asked := piece(server, path, f"*/{len(content)}")).headers.get("range"):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    received = int(asked.headers["range"].partition("-")[2]) + 1
    assert 1 << 20 < received <= 20 << 20
    made = piece(server, path, f"{received}-{len(content) - 1}/{len(content)}", content[received:])
    assert made.json["md5Hash"] == base64.b64encode(hashlib.md5(content).digest()).decode()


def test_an_upload_survives_a_killed_server(mortal: LiveServer) -> None:
    mortal.post("/storage/v1/b", {"name": "survives"})
    path = begin(mortal, "survives", "x")
    piece(mortal, path, "0-3/*", b"0123")
    mortal.kill()
    mortal.start()
    assert piece(mortal, path, "*/*").headers["range"] == "bytes=0-3"
    piece(mortal, path, "4-9/10", b"456789", **{"X-Goog-Hash": "crc32c=KAwGng=="})
    assert mortal.request("GET", one("survives", "x", "?alt=media")).body == b"0123456789"


def test_an_abandoned_upload_is_gone(server: LiveServer, bucket: str) -> None:
    path = begin(server, bucket, "x")
    assert server.request("DELETE", path).status == 499
    refused(piece(server, path, "*/*"), 404, "notFound")
    refused(piece(server, begin(server, bucket, "y"), "rubbish"), 400, "invalid")


def test_the_precondition_of_an_upload_holds_at_its_end(server: LiveServer, bucket: str) -> None:
    path = begin(server, bucket, "x", "&ifGenerationMatch=0")
    put(server, bucket, "x", b"first")
    refused(piece(server, path, "0-3/4", b"late"), 412, "conditionNotMet")
    assert server.request("GET", one(bucket, "x", "?alt=media")).body == b"first"


# ---- buckets


def test_a_bucket_is_made_once_told_and_not_removed_while_it_holds_anything(
    server: LiveServer, bucket: str
) -> None:
    refused(server.request("POST", "/storage/v1/b?project=p1", {"name": bucket}), 409, "conflict")
    refused(server.request("POST", "/storage/v1/b", {"name": "Not A Name"}), 400, "invalid")
    put(server, bucket, "x")
    assert "not empty" in refused(server.request("DELETE", f"/storage/v1/b/{bucket}"), 409, "conflict")
    assert server.request("DELETE", one(bucket, "x")).status == 204
    assert server.request("DELETE", f"/storage/v1/b/{bucket}").status == 204
    refused(server.request("GET", f"/storage/v1/b/{bucket}"), 404, "notFound")
    refused(put(server, bucket, "x"), 404, "notFound")


def test_buckets_of_another_project_are_not_listed(server: LiveServer, bucket: str, unique: Unique) -> None:
    def names(query: str) -> list[str]:
        return [one["name"] for one in server.request("GET", f"/storage/v1/b{query}").json.get("items", [])]

    assert bucket in names("?project=p1")
    assert bucket in names("")
    assert bucket not in names("?project=other")
    assert names("?project=p1&maxResults=1") == names("?project=p1")[:1]


def test_what_gcloud_asks_besides_is_answered(server: LiveServer, bucket: str) -> None:
    assert server.get(f"/storage/v1/b/{bucket}/storageLayout")["hierarchicalNamespace"] == {"enabled": False}
    assert "items" not in server.get(f"/storage/v1/b/{bucket}/managedFolders")


OFF = {
    "location": "EU",
    "storageClass": "STANDARD",
    "versioning": {"enabled": False},
    "lifecycle": {"rule": []},
    "retentionPolicy": None,
    "defaultEventBasedHold": False,
    "website": {"mainPageSuffix": None},
    "cors": [],
    "billing": {"requesterPays": False},
    "autoclass": {"enabled": False},
    "iamConfiguration": {"uniformBucketLevelAccess": {"enabled": True}, "publicAccessPrevention": "enforced"},
    "softDeletePolicy": {"retentionDurationSeconds": "604800"},
}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("versioning", {"enabled": "yes"}),
        ("lifecycle", {"rule": {}}),
        ("lifecycle", {"rule": [{"action": {"type": "Delete"}}]}),
        ("lifecycle", {"rule": [{"action": {"type": "Delete"}, "condition": {"age": -1}}]}),
        ("lifecycle", {"rule": [{"action": {"type": "Delete"}, "condition": {"createdBefore": "soon"}}]}),
        ("lifecycle", {"rule": [{"action": {"type": "Delete"}, "condition": {"daysSinceCustomTime": 3}}]}),
        ("lifecycle", {"rule": [{"action": {"type": "SetStorageClass"}, "condition": {"age": 1}}]}),
        ("retentionPolicy", {"retentionPeriod": "60"}),
        ("defaultEventBasedHold", True),
        ("encryption", {"defaultKmsKeyName": "k"}),
        ("website", {"mainPageSuffix": "index.html"}),
        ("cors", [{"origin": ["*"]}]),
    ],
)
def test_a_bucket_is_not_promised_to_do_what_it_does_not(
    server: LiveServer, bucket: str, unique: Unique, field: str, value: object
) -> None:
    other, path = unique("off"), f"/storage/v1/b/{bucket}"
    for verb, where, name in (
        ("POST", "/storage/v1/b", other),
        ("PATCH", path, bucket),
        ("PUT", path, bucket),
    ):
        body = {**OFF, "name": name, "labels": {"a": "b"}, field: value}
        assert field in refused(server.request(verb, where, body), 400, "invalid")
    assert "labels" not in server.get(path)
    refused(server.request("GET", f"/storage/v1/b/{other}"), 404, "notFound")
    retained = server.request("POST", "/storage/v1/b?enableObjectRetention=True", {"name": other})
    refused(retained, 400, "invalid")
    asked = "/storage/v1/b?project=p1&enableObjectRetention=False&projection=noAcl"
    assert server.request("POST", asked, {**OFF, "name": other}).status == 200
    assert server.request("PATCH", path, {**OFF, "labels": {"a": "b"}}).json["labels"] == {"a": "b"}


def test_whoever_may_do_everything_has_every_permission(server: LiveServer, bucket: str) -> None:
    path = "iam/testPermissions?permissions=storage.objects.get&permissions=storage.buckets.delete"
    told = server.get(f"/storage/v1/b/{bucket}/{path}")
    assert told["permissions"] == ["storage.objects.get", "storage.buckets.delete"]
    refused(server.request("GET", f"/storage/v1/b/{bucket}-none/{path}"), 404, "notFound")


@pytest.mark.parametrize(
    ("verb", "path"),
    [
        ("GET", "b/B/iam"),
        ("PUT", "b/B/iam"),
        ("GET", "b/B/acl"),
        ("POST", "b/B/o/x/acl"),
        ("POST", "b/B/notificationConfigs"),
        ("GET", "projects/p1/serviceAccount"),
        ("POST", "projects/p1/hmacKeys"),
        ("DELETE", "b/B/o/a/b"),
    ],
)
def test_what_is_not_offered_is_refused_in_json(
    server: LiveServer, bucket: str, verb: str, path: str
) -> None:
    path = f"/storage/v1/{path.replace('B', bucket)}"
    body = {} if verb in ("PUT", "POST") else None
    for answer in (
        server.request(verb, path, body),
        server.request(verb, f"/t/{server.token}{path}", body, token=None),
    ):
        message = refused(answer, 404, "notFound")
        assert "not offered here" in message
        assert server.token not in message
    assert server.request(verb, path, body, token=None).status == 403


# ---- the door


def test_only_storage_takes_a_token_in_the_path(server: LiveServer, bucket: str) -> None:
    inside = f"/t/{server.token}"
    told = server.request("GET", f"{inside}/storage/v1/b/{bucket}", token=None)
    assert told.status == 200
    assert told.json["selfLink"] == f"{server.url}{inside}/storage/v1/b/{bucket}"
    assert server.token not in server.request("GET", f"/storage/v1/b/{bucket}").body.decode()
    job = server.request("GET", f"{inside}/v1/projects/p1/locations/us-central1/customJobs", token=None)
    assert job.status in (400, 404)
    assert "customJobs" not in job.body.decode()
    assert server.token not in job.body.decode()
    for path in ("/t/wrong-token-of-some-length", "/t/", ""):
        answer = server.request("GET", f"{path}/storage/v1/b/{bucket}", token=None)
        assert answer.status in (403, 404), (path, answer.status)
        assert "selfLink" not in json.dumps(answer.json)


def test_a_foreign_page_cannot_use_an_address_with_a_token(server: LiveServer, bucket: str) -> None:
    path = f"/t/{server.token}/storage/v1/b/{bucket}"
    assert server.request("GET", path, token=None, headers={"Origin": "http://evil.example"}).status == 403
    assert server.request("GET", path, token=None, headers={"Host": "evil.example"}).status == 403


@pytest.mark.parametrize("name", ["%2E%2E", "a%0Ab", "%FF%FE", "x" * 1025, "%ED%A0%80"])
def test_names_that_cannot_be_are_refused_and_reach_nothing(
    server: LiveServer, bucket: str, name: str
) -> None:
    for verb in ("GET", "DELETE"):
        refused(server.request(verb, f"/storage/v1/b/{bucket}/o/{name}"), 400, "invalid")
    assert server.request("GET", "/storage/v1/b/..%2F..%2Fetc/o/passwd").status == 400


# ---- many in one, and the XML API


def test_a_batch_answers_each_request_as_if_it_had_come_alone(server: LiveServer, bucket: str) -> None:
    put(server, bucket, "x")
    inner = (
        f"DELETE /storage/v1/b/{bucket}/o/x",
        f"DELETE {server.url}/storage/v1/b/{bucket}/o/x",
        f"GET /storage/v1/b/{bucket}?fields=name",
        "GET /v1/projects/p1/locations/us-central1/customJobs",
    )
    parts = [
        f"--m\nContent-Type: application/http\nContent-ID: <id+{n}>\n\n{one} HTTP/1.1\n\n\n"
        for n, one in enumerate(inner)
    ]
    sent = {"Content-Type": 'multipart/mixed; boundary="m"'}
    answer = server.request("POST", "/batch/storage/v1", ("".join(parts) + "--m--").encode(), headers=sent)
    assert answer.status == 200
    codes = [line.split()[1] for line in answer.body.decode().splitlines() if line.startswith("HTTP/1.1")]
    assert codes == ["204", "404", "200", "404"]
    assert f'{{"name": "{bucket}"}}' in answer.body.decode()
    assert "<response-id+3>" in answer.body.decode()
    for wrong in (b"--m\n\nrubbish\n--m--", b"--m\nA: b\n\nGET / HTTP/1.1\nA: b\n\n{\n--m--"):
        refused(server.request("POST", "/batch/storage/v1", wrong, headers=sent), 400, "invalid")


@pytest.mark.parametrize(
    ("identity", "address", "status"),
    [
        ("é\n x", "/storage/v1/b", 200),
        ("a", "http://[/storage/v1/b", 400),
        ("a", "//[x]/b", 400),
        ("", "?", 200),
    ],
)
def test_a_batch_with_an_odd_part_is_answered(
    server: LiveServer, identity: str, address: str, status: int
) -> None:
    part = f"--m\nContent-ID: <{identity}>\n\nGET {address} HTTP/1.1\n\n\n--m--".encode()
    sent = {"Content-Type": "multipart/mixed; boundary=m"}
    assert server.request("POST", "/batch/storage/v1", part, headers=sent).status == status


@pytest.mark.parametrize("token", ["Cjk5OTk5OTk5OTk5OTk5OTk5OTk=", "eAo5OTk5OTk5OTk5OTk5OTk5OTk5"])
def test_a_page_token_that_was_made_by_hand_is_refused(server: LiveServer, bucket: str, token: str) -> None:
    path = f"/storage/v1/b/{bucket}/o?versions=true&pageToken={token}"
    refused(server.request("GET", path), 400, "invalid")


def xml(server: LiveServer, verb: str, path: str, body: bytes | None = None, **headers: str) -> Answer:
    return server.request(verb, f"/t/{server.token}/{path}", body, token=None, headers=headers)


def test_the_xml_api_answers_only_addresses_that_carry_a_token(server: LiveServer, bucket: str) -> None:
    assert xml(server, "PUT", f"{bucket}/a/b", b"0123456789").status == 200
    assert xml(server, "GET", f"{bucket}/a%2Fb", Range="bytes=2-3").body == b"23"
    assert server.request("GET", f"/{bucket}/a/b").status == 404
    assert "There is no method" in server.request("GET", f"/{bucket}").error["message"]
    missing = xml(server, "GET", f"{bucket}/none")
    assert (missing.status, b"<Code>NoSuchKey</Code>" in missing.body) == (404, True)


def test_etags_of_the_xml_api_are_compared(server: LiveServer, bucket: str) -> None:
    tag = xml(server, "PUT", f"{bucket}/x", b"0").headers["etag"]
    for verb in ("GET", "HEAD"):
        assert xml(server, verb, f"{bucket}/x", None, **{"If-None-Match": tag}).status == 304
        assert xml(server, verb, f"{bucket}/x", None, **{"If-Match": tag}).status == 200
        assert xml(server, verb, f"{bucket}/x", None, **{"If-Match": '"other"'}).status == 412
    assert xml(server, "PUT", f"{bucket}/x", b"1", **{"x-goog-if-generation-match": "0"}).status == 412


def test_parts_are_put_together_in_the_order_of_their_numbers(server: LiveServer, bucket: str) -> None:
    begun = xml(server, "POST", f"{bucket}/x?uploads", b"").body.decode()
    upload = begun.partition("<UploadId>")[2].partition("<")[0]
    tags = {
        n: xml(server, "PUT", f"{bucket}/x?partNumber={n}&uploadId={upload}", b"%d" % n * 3).headers["etag"]
        for n in (2, 1, 3)
    }
    parts = "".join(f"<Part><PartNumber>{n}</PartNumber><ETag>{tag}</ETag></Part>" for n, tag in tags.items())
    whole = f"<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>".encode()
    bomb = b"<!DOCTYPE a [<!ENTITY b 'c'>]>" + whole
    assert xml(server, "POST", f"{bucket}/x?uploadId={upload}", bomb).status == 400
    assert xml(server, "POST", f"{bucket}/x?uploadId={upload}", b"<a").status == 400
    assert xml(server, "POST", f"{bucket}/x?uploadId={upload}", whole).status == 200
    assert xml(server, "GET", f"{bucket}/x").body == b"111222333"

"""What browsers may do with this server: nothing that is stored is a page of it, no other page may ask it."""

import http.client
import json
from collections.abc import Callable
from urllib.parse import quote

import pytest

from tests.live import JOBS, PARENT, Answer, LiveServer, pool, python

Unique = Callable[[str], str]
PAGE = b"<!doctype html><script>fetch('/v1/projects/p1/locations/us-central1/customJobs')</script>"
SHELL = "/shell/p1/us-central1/1/workerpool0-0"
LINK = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}


@pytest.fixture
def bucket(server: LiveServer, unique: Unique) -> str:
    name = unique("pages")
    assert server.request("POST", "/storage/v1/b?project=p1", {"name": name}).status == 200
    return name


def is_sealed(answer: Answer) -> bool:
    headers = answer.headers
    assert headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in headers["content-security-policy"]
    return headers["content-disposition"].lower().startswith("attachment")


def is_inert(answer: Answer) -> bool:
    """JSON or text of the server's own: no browser runs it."""
    assert answer.headers["content-type"].startswith(("application/json", "text/plain"))
    assert "sandbox" in answer.headers["content-security-policy"]
    return answer.headers["x-content-type-options"] == "nosniff"


# ---- stored bytes


@pytest.mark.parametrize(
    "disposition", [None, "inline", "inline; filename=a.html", "Attachment; filename=b", "ü"]
)
@pytest.mark.parametrize("kind", ["text/html", "image/svg+xml", "application/json", "text/plain"])
def test_a_page_in_a_bucket_is_never_a_page_of_the_server(
    server: LiveServer, bucket: str, kind: str, disposition: str | None
) -> None:
    start = f"/upload/storage/v1/b/{bucket}/o?uploadType=media&name=x"
    assert server.request("POST", start, PAGE, headers={"Content-Type": kind}).status == 200
    path = f"/storage/v1/b/{bucket}/o/x"
    if disposition:
        assert server.request("PATCH", path, {"contentDisposition": disposition}).status == 200
        assert server.request("GET", path).json["contentDisposition"] == disposition
    for verb in ("GET", "HEAD"):
        for address in (f"{path}?alt=media", f"/download{path}", f"/t/{server.token}/{bucket}/x"):
            answer = server.request(verb, address)
            assert is_sealed(answer), (verb, address)
            assert answer.headers["content-type"].startswith(kind)
            assert answer.body == (PAGE if verb == "GET" else b"")
    part = server.request("GET", f"{path}?alt=media", headers={"Range": "bytes=0-20"})
    assert part.status == 206 and is_sealed(part)
    if disposition == "Attachment; filename=b":
        assert part.headers["content-disposition"] == disposition


def test_a_page_in_a_code_folder_or_in_a_log_is_saved(server: LiveServer, unique: Unique) -> None:
    job = server.submit(python(f"print({PAGE.decode()!r})"), name=unique("page"))
    server.wait(job)
    answer = server.request("GET", f"/v1/{job}:output")
    assert PAGE in answer.body and is_sealed(answer)
    assert is_sealed(server.request("GET", f"/v1/{job}:tail"))


@pytest.mark.parametrize(
    "path",
    [JOBS, "/healthz", "/metrics", "/nothing", "/storage/v1/b", "/v1/<script>", "/console/files/nothing"],
)
def test_answers_of_the_server_s_own_run_nothing(server: LiveServer, path: str) -> None:
    assert is_inert(server.request("GET", quote(path)))


@pytest.mark.parametrize("path", ["/console", "/console/jobs/p/l/1", "/console/files/x/main.js"])
def test_pages_and_files_of_the_console_have_a_strict_policy(server: LiveServer, path: str) -> None:
    answer = server.request("GET", path, token=None)
    assert answer.status == 200
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
    assert answer.headers["x-content-type-options"] == "nosniff"


# ---- pages of others


@pytest.mark.parametrize("site", ["cross-site", "same-site", "anything"])
@pytest.mark.parametrize("which", ["server", "open_server"])
def test_what_a_browser_marks_as_from_elsewhere_is_refused(
    request: pytest.FixtureRequest, unique: Unique, which: str, site: str
) -> None:
    live: LiveServer = request.getfixturevalue(which)
    marked = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}
    name = unique("foreign")
    body = {"displayName": name, "jobSpec": {"workerPoolSpecs": [pool(["true"])]}}
    for verb, path in (("GET", JOBS), ("POST", JOBS), ("GET", f"{PARENT}/runtimes"), ("GET", SHELL)):
        answer = live.request(verb, path, body if verb == "POST" else None, headers=marked)
        assert (answer.status, answer.error["status"]) == (403, "PERMISSION_DENIED"), (verb, path)
        assert "Sec-Fetch-Site" in answer.error["message"]
    assert live.get(JOBS, filter=f'display_name="{name}"') == {}


def test_a_link_on_another_site_leads_to_a_page_and_to_nothing_else(open_server: LiveServer) -> None:
    assert open_server.request("GET", SHELL, headers=LINK).status == 303
    assert open_server.request("GET", SHELL, headers=LINK | {"Sec-Fetch-Dest": "iframe"}).status == 403
    for path in (JOBS, "/healthz", "/storage/v1/b?project=p1", "/metrics"):
        assert open_server.request("GET", path, headers=LINK).status == 403, path


@pytest.mark.parametrize("site", ["same-origin", "none"])
def test_our_own_pages_and_people_who_type_an_address_are_let_in(open_server: LiveServer, site: str) -> None:
    assert open_server.request("GET", JOBS, headers={"Sec-Fetch-Site": site}).status == 200


# ---- bodies


def test_a_name_that_is_given_twice_is_refused_by_its_name(server: LiveServer, bucket: str) -> None:
    job = json.dumps({"displayName": "x", "jobSpec": {"workerPoolSpecs": [pool(["true"])]}})
    answer = server.request("POST", JOBS, job.replace("{", '{"displayName": "y", ', 1).encode())
    assert answer.status == 400
    assert "displayName" in answer.violations
    path = f"/upload/storage/v1/b/{bucket}/o?uploadType=resumable"
    answer = server.request("POST", path, b'{"name": "x", "name": "y"}')
    assert answer.status == 400 and "given twice" in answer.error["message"]


@pytest.mark.parametrize("in_chunks", [False, True])
def test_a_body_is_at_most_as_large_as_its_method_allows(server: LiveServer, in_chunks: bool) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    headers = {"Authorization": f"Bearer {server.token}"}
    pieces = [b'{"filter": "', *[b"x" * 65536] * 17, b'"}']
    try:
        body = iter(pieces) if in_chunks else b"".join(pieces)
        connection.request("POST", "/v2/entries:list", body, headers, encode_chunked=in_chunks)
        reply = connection.getresponse()
        assert reply.status == 400 and b"larger than 1048576 bytes" in reply.read()
    finally:
        connection.close()

"""Folders of jobs, through a real server: sent by content, laid out for replicas, fetched back whole."""

import os
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests import folders
from tests.faults import Sentence
from tests.folders import EXECUTABLE, LINK, PLAIN, frame, sha256
from tests.live import LOCATION, PARENT, PATIENCE, LiveServer, by_id, python, until

SHOW = b"""
import os
for root, folders, names in os.walk("."):
    for name in sorted(folders + names):
        path = os.path.join(root, name)
        print(path, "%06o" % os.lstat(path).st_mode, os.readlink(path) if os.path.islink(path) else "")
"""
FILES: folders.Files = {
    "show.py": SHOW,
    "lib/__init__.py": b"",
    "lib/grüße 大.txt": b"\x00\xff\n" * 7,
    "bin/run": (EXECUTABLE, b"#!/bin/sh\necho ran in $(pwd -P)\n"),
    "current": (LINK, b"lib"),
}


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with LiveServer("--cpus", "8", "--memory", "8GiB") as server:
        yield server


def printed(server: LiveServer, answer: folders.Answer) -> list[str]:
    """What a job that was just submitted printed, once it has succeeded."""
    assert answer.status == 200, answer.body
    name = answer.json["name"]
    done = server.wait(name)
    lines = [line["text"] for line in server.lines(name)]
    assert done["state"] == "JOB_STATE_SUCCEEDED", (done.get("error"), lines)
    return lines


def test_a_replica_finds_exactly_the_folder_where_it_starts(server: LiveServer):
    code = folders.keep(server, FILES)
    assert code == folders.code_id(FILES)
    assert sorted(printed(server, folders.submit(server, code, "python", "show.py"))) == sorted(
        [
            "./bin 040755 ",
            "./bin/run 100755 ",
            "./current 120777 lib",
            "./lib 040755 ",
            "./lib/__init__.py 100644 ",
            "./lib/grüße 大.txt 100644 ",
            "./show.py 100644 ",
        ]
    )
    [line] = printed(server, folders.submit(server, code, "bin/run"))
    assert line.startswith("ran in ")


def test_what_was_sent_comes_back_byte_for_byte_by_the_job_that_ran_it(server: LiveServer):
    files = {**FILES, "data.bin": os.urandom(3_000_000)}
    answer = folders.submit(server, folders.keep(server, files), "true")
    code = server.job(answer.json["name"])["jobSpec"]["code"]
    assert folders.fetch(server, code) == folders.parts(files)


def test_what_the_server_has_is_not_asked_for_again(server: LiveServer):
    folders.keep(server, FILES)
    assert folders.missing(server, FILES).json["missing"] == []
    changed = {**FILES, "new.py": b"new", "old.py": SHOW}
    assert folders.missing(server, changed).json["missing"] == [sha256(b"new")]


def test_v1beta1_and_another_project_know_the_same_folders(server: LiveServer):
    code = folders.keep(server, FILES)
    other = f"/v1beta1/projects/other/locations/{LOCATION}/code/{code}"
    assert len(server.get(other)["files"]) == len(FILES)


def test_replicas_have_copies_of_their_own(server: LiveServer):
    source = b"""
import os, time
assert open("shared.txt").read() == "as sent"
with open("shared.txt", "w") as file: file.write(os.environ["TRAINSHED_RUN"])
time.sleep(0.5)
print(open("shared.txt").read() == os.environ["TRAINSHED_RUN"])
"""
    code = folders.keep(server, {"main.py": source, "shared.txt": b"as sent"})
    assert printed(server, folders.submit(server, code, "python", "main.py", replicas=1)) == ["True"]
    pools = [
        {
            "machineSpec": {"machineType": "n1-standard-2"},
            "replicaCount": count,
            "containerSpec": {"imageUri": "trainshed/python:3", "command": ["python", "main.py"]},
        }
        for count in (1, 2)
    ]
    assert printed(server, folders.submit(server, code, "", workerPoolSpecs=pools)) == ["True"] * 3


def test_a_restarted_replica_keeps_what_it_wrote(server: LiveServer):
    source = b"""
import os, signal
with open("main.py", "a") as file: file.write("# changed\\n")
if not os.path.exists("model"):
    open("model", "w").write("half")
    os.kill(os.getpid(), signal.SIGKILL)
print(open("model").read(), open("main.py").read().count("# changed"))
"""
    code = folders.keep(server, {"main.py": source})
    assert printed(server, folders.submit(server, code, "python", "main.py")) == [
        "half 4"
    ]  # twice by itself, once by each run


def test_a_job_with_an_unknown_folder_is_refused_with_the_field_and_the_fix(server: LiveServer):
    answer = folders.submit(server, "0" * 64, "true")
    assert answer.status == 400
    assert "upload it first" in answer.violations["job_spec.code"]
    assert "Submit the folder again" in answer.error["message"]
    short = folders.submit(server, "abc", "true")
    assert "64 hexadecimal digits" in short.violations["job_spec.code"]


def test_a_job_without_a_folder_does_not_speak_of_one(server: LiveServer):
    assert "code" not in server.job(server.submit(["true"]))["jobSpec"]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        (f"code/{'0' * 64}", 404),
        ("code/..%2f..%2ftoken", 404),
        ("code/token", 404),
        (f"code/{'0' * 64}/blobs/{'0' * 64}", 404),
        ("code", 404),
    ],
)
def test_what_is_not_there_is_not_found(server: LiveServer, path: str, status: int):
    assert server.request("GET", f"{PARENT}/{path}").status == status


def test_a_stranger_may_not_come_near(server: LiveServer):
    for verb, path in (("POST", "code:missing"), ("POST", "code:upload"), ("GET", f"code/{'0' * 64}")):
        assert server.request(verb, f"{PARENT}/{path}", b"{}", token=None).status in (401, 403)


def test_every_violation_of_a_manifest_is_told_with_its_path(server: LiveServer):
    bad = folders.manifest({"../up": b"x", "a": b"y", "a/b": b"z"})
    bad["files"][1]["mode"] = "100600"
    told = server.request("POST", f"{PARENT}/code:missing", bad)
    assert told.status == 400
    assert told.violations.keys() == {"files[0].path", "files[1].mode"}
    under = folders.missing(server, {"a": (LINK, b"/etc"), "a/passwd": b"x"})
    assert "is a link and not a folder" in under.violations["files[1].path"]


def test_a_wrong_hash_is_refused_and_what_came_before_it_kept(server: LiveServer):
    good, bad = os.urandom(100), os.urandom(100)
    answer = folders.upload(server, frame(good) + frame(bad, name=sha256(b"else")) + frame(b"after"))
    assert answer.status == 400
    assert sha256(bad) in answer.violations["frames[1]"]
    left = folders.missing(server, {"good": good, "bad": bad}).json["missing"]
    assert left == [sha256(bad)]


@pytest.mark.parametrize(
    "data", [b"hello", b"x" * 200, b"\n", f"{'a' * 64} 99999999999999\n".encode(), f"{'a' * 64} 5".encode()]
)
def test_what_is_no_frame_is_refused(server: LiveServer, data: bytes):
    good = os.urandom(40)
    answer = folders.upload(server, frame(good) + data)
    assert answer.status == 400
    assert list(answer.violations) == ["frames[1]"]
    assert folders.missing(server, {"good": good}).json["missing"] == []


def test_an_empty_upload_receives_nothing(server: LiveServer):
    assert folders.upload(server, b"").json == {"received": 0}


def test_a_stream_that_ends_too_early_is_told_and_keeps_the_whole_frames(server: LiveServer):
    one, two = os.urandom(50), os.urandom(50)
    answer = folders.upload(server, frame(one) + frame(two)[:-1])
    assert answer.violations == {"frames[1]": "The stream ends inside of it, 1 bytes too early."}
    assert folders.missing(server, {"one": one, "two": two}).json["missing"] == [sha256(two)]


def test_many_may_send_the_same_at_once(server: LiveServer):
    files = {f"{n}": os.urandom(20_000) for n in range(20)}
    with ThreadPoolExecutor(6) as pool:
        codes = set(pool.map(lambda _: _keep_anyhow(server, files), range(6)))
    assert codes == {folders.code_id(files)}
    assert folders.fetch(server, codes.pop()) == folders.parts(files)


def _keep_anyhow(server: LiveServer, files: folders.Files) -> str:
    """All of it, whatever is there already."""
    assert folders.upload(server, folders.frames(files)).json == {"received": len(files)}
    return str(folders.missing(server, files).json["code"])


def test_a_large_folder_is_laid_out_while_others_go_on(server: LiveServer):
    files: dict[str, bytes] = {f"d{n % 50}/f{n}": f"{n % 300}".encode() for n in range(5000)}
    files["main.py"] = b"import os; print(sum(len(names) for _, _, names in os.walk('.')))"
    code = folders.keep(server, files)
    assert printed(server, folders.submit(server, code, "python", "main.py")) == ["5001"]
    told = server.request("GET", f"{PARENT}/code/{code}")
    assert told.headers["content-type"] == "application/json; charset=UTF-8"
    assert {file["path"] for file in told.json["files"]} == set(files)


def test_a_job_is_cancelled_while_its_large_folder_is_laid_out_and_nothing_is_left(server: LiveServer):
    code = folders.keep(server, {f"{n}.bin": os.urandom(20_000_000) for n in range(4)})
    name = folders.submit(server, code, "sleep", "600").json["name"]
    job = by_id(name)
    deadline = time.monotonic() + PATIENCE
    while not list(server.home.glob(f"run/jobs/{job}/*/*/work*")):
        assert time.monotonic() < deadline
        time.sleep(0.001)
    server.cancel(name)
    assert server.wait(name)["state"] == "JOB_STATE_CANCELLED"
    while list(server.home.glob(f"run/*/{job}*")):  # its own place, and what is on its way out
        assert time.monotonic() < deadline, "private files are left"
        time.sleep(0.02)


def half_sent(server: LiveServer, data: bytes, length: int) -> socket.socket:
    """An upload that has sent only this much of what it promised."""
    link = socket.create_connection(("127.0.0.1", server.port), PATIENCE)
    head = (
        f"POST {PARENT}/code:upload HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {server.token}\r\n"
        f"Content-Type: application/octet-stream\r\nContent-Length: {length}\r\n\r\n"
    )
    link.sendall(head.encode() + data)
    return link


def wait_until_kept(home: Path, content: bytes) -> None:
    until((home / "code" / "blobs" / sha256(content)[:2] / sha256(content)[2:]).exists)


def test_an_upload_whose_sender_goes_keeps_the_whole_frames(server: LiveServer):
    one, two = os.urandom(70_000), os.urandom(70_000)
    data = frame(one) + frame(two)
    half_sent(server, data[:-10], len(data)).close()
    wait_until_kept(server.home, one)
    assert folders.missing(server, {"one": one, "two": two}).json["missing"] == [sha256(two)]
    assert not list((server.home / "code" / "new").iterdir())


def test_kill_9_in_the_middle_of_an_upload_costs_only_what_was_not_kept(server: LiveServer):
    files = {f"{n}": os.urandom(400_000) for n in range(80)}  # more than a batch
    files["main.py"] = b"print(len(__import__('os').listdir('.')))"
    data = folders.frames(files)
    link = half_sent(server, data[: len(data) - 500_000], len(data))
    wait_until_kept(server.home, files["0"])
    server.kill()
    link.close()
    server.start()
    left = folders.missing(server, files).json["missing"]
    assert 0 < len(left) < len(files)
    assert not list((server.home / "code" / "new").iterdir())
    assert folders.submit(server, folders.code_id(files), "true").status == 400
    code = folders.keep(server, files)
    assert printed(server, folders.submit(server, code, "python", "main.py")) == [str(len(files))]
    assert folders.fetch(server, code) == folders.parts(files)


def test_a_folder_survives_kill_9_and_a_job_that_was_waiting_runs_in_it():
    with LiveServer("--cpus", "4", "--memory", "4GiB") as server:
        code = folders.keep(server, {**FILES, "say.py": b"print('here')"})
        blocker = server.submit(python("import time; time.sleep(600)"))
        answer = folders.submit(server, code, "python", "say.py")
        server.wait_for(blocker, ["JOB_STATE_RUNNING"])
        server.kill()
        server.start()
        assert folders.missing(server, {**FILES, "say.py": b"print('here')"}).json["missing"] == []
        server.cancel(blocker)
        assert printed(server, answer) == ["here"]


@pytest.mark.slow
def test_kill_9_while_a_folder_is_laid_out_leaves_none_or_all():
    with LiveServer("--cpus", "4", "--memory", "4GiB") as server:
        files: dict[str, bytes] = {f"d{n % 50}/f{n}": f"{n}".encode() for n in range(3000)}
        files["main.py"] = b"import os; print(sum(len(names) for _, _, names in os.walk('.')))"
        code = folders.keep(server, files)
        answer = folders.submit(server, code, "python", "main.py")
        deadline = time.monotonic() + PATIENCE
        while not list(server.home.glob("run/jobs/*/*/*/work*")):
            assert time.monotonic() < deadline
            time.sleep(0.001)
        server.kill()
        server.start()
        assert printed(server, answer) == ["3001"]
        until(lambda: not list(server.home.glob("run/jobs/*")))


@pytest.mark.fault(
    "Packages and code",
    "A file of a job's code is damaged on the server's disk",
    "The job waits until the same folder is submitted again, and never runs other bytes.",
    sentence="Submit the same folder again: …",
)
def test_a_damaged_file_holds_its_jobs_up_until_it_is_sent_again(server: LiveServer, sentence: Sentence):
    files: folders.Files = {"main.py": b"print('whole')"}
    code = folders.keep(server, files)
    blob = server.home / "code" / "blobs" / sha256(b"print('whole')")[:2] / sha256(b"print('whole')")[2:]
    blob.chmod(0o600)
    blob.write_bytes(b"print('broke')")
    answer = folders.submit(server, code, "python", "main.py")
    name = answer.json["name"]
    until(lambda: sentence.is_in(str(server.get(f"/v1/{name}:status").get("waiting"))))
    assert folders.missing(server, files).json["missing"] == [sha256(b"print('whole')")]
    assert folders.keep(server, files) == code
    assert printed(server, answer) == ["whole"]


def test_other_requests_are_answered_while_a_large_body_comes_in(server: LiveServer):
    big = os.urandom(50_000_000)
    done: list[folders.Answer] = []
    sending = threading.Thread(target=lambda: done.append(folders.upload(server, frame(big))))
    sending.start()
    while sending.is_alive():
        assert server.request("GET", "/healthz").status == 200
    assert done[0].json == {"received": 1}
    assert folders.missing(server, {"big": (PLAIN, big)}).json["missing"] == []

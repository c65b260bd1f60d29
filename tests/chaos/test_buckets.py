"""Buckets under kill -9, races and a full disk: every object is an old or a new one, and no write is lost."""

import base64
import hashlib
import http.client
import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import pytest

from tests.chaos.test_full_disk import fill, small_disk
from tests.faults import Sentence
from tests.live import Answer, LiveServer

BUCKET = "chaos"
NAMES = ("a", "a/b", "deep/down/file", "../odd", "big")
BROKEN = (OSError, http.client.HTTPException)


def put(server: LiveServer, name: str, content: bytes, query: str = "") -> Answer:
    path = f"/upload/storage/v1/b/{BUCKET}/o?uploadType=media&name={name.replace('/', '%2F')}{query}"
    return server.request("POST", path, content, headers={"Content-Type": "a/b"}, timeout=30)


def put_in_pieces(server: LiveServer, name: str, content: bytes) -> Answer:
    begun = server.request("POST", f"/upload/storage/v1/b/{BUCKET}/o?uploadType=resumable", {"name": name})
    if begun.status != 200:
        return begun
    place = urlsplit(begun.headers["location"])
    step = max(1, len(content) // 3)
    answer = begun
    for first in range(0, len(content), step):
        piece = content[first : first + step]
        said = {"Content-Range": f"bytes {first}-{first + len(piece) - 1}/{len(content)}"}
        answer = server.request("PUT", f"{place.path}?{place.query}", piece, headers=said, timeout=30)
    return answer


def media(server: LiveServer, name: str) -> Answer:
    path = f"/download/storage/v1/b/{BUCKET}/o/{name.replace('/', '%2F')}?alt=media"
    return server.request("GET", path)


def version(name: str, number: int) -> bytes:
    """What the n-th writing of a name holds: told by its first bytes, of a size that changes."""
    size = (3 << 20) + number if name == "big" else 1 + number * 997 % 50_000
    return f"{name} {number:06} ".encode() + random.Random(number).randbytes(size)


@dataclass
class Writer:
    """Writes one name over and over, and remembers what was acknowledged."""

    server: LiveServer
    name: str
    number: int = 0  # the last that was begun
    acknowledged: int = 0
    faults: list[str] = field(default_factory=list[str])

    def run(self, stop: threading.Event) -> None:
        while not stop.is_set():
            self.number += 1
            way: Callable[[LiveServer, str, bytes], Answer] = put_in_pieces if self.number % 3 == 0 else put
            try:
                answer = way(self.server, self.name, version(self.name, self.number))
            except BROKEN:
                time.sleep(0.01)
                continue
            if answer.status == 200:
                self.acknowledged = self.number
            elif answer.status != 503:
                self.faults.append(f"{self.name} {self.number}: {answer.status} {answer.body[:200]!r}")

    def check(self) -> None:
        assert not self.faults, self.faults
        answer = media(self.server, self.name)
        if answer.status == 404 and self.acknowledged == 0:
            return
        assert answer.status == 200, (self.name, self.acknowledged, answer.body[:300])
        found = int(answer.body[len(self.name) + 1 :][:6])
        assert answer.body == version(self.name, found), f"{self.name}: neither the old nor the new one"
        # An upload in pieces that lost its last answer may end after a later one was begun: never before.
        assert self.acknowledged <= found <= self.number, (self.name, self.acknowledged, found)
        md5 = base64.b64encode(hashlib.md5(answer.body).digest()).decode()
        assert f"md5={md5}" in answer.headers["x-goog-hash"]


@pytest.mark.fault(
    "Buckets",
    "The server is killed while objects are written",
    "Each object is the old one or the new one, never a part, and all that was acknowledged is there.",
)
def test_a_killed_server_leaves_every_object_old_or_new(rounds: int, seed: int) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    with LiveServer() as server:
        server.post("/storage/v1/b", {"name": BUCKET})
        writers = [Writer(server, name) for name in NAMES]
        for _ in range(max(3, rounds // 5)):
            stop = threading.Event()
            with ThreadPoolExecutor(len(writers)) as pool:
                running = [pool.submit(writer.run, stop) for writer in writers]
                time.sleep(chance.uniform(0.05, 0.6))
                server.kill()
                stop.set()
            for one in running:
                one.result()
            server.start()
            for writer in writers:
                writer.check()
        held = server.home / "buckets" / ".trainshed" / "held"
        listed = server.get(f"/storage/v1/b/{BUCKET}/o")["items"]
        assert {one["name"] for one in listed} <= set(NAMES)
        assert sum(writer.acknowledged for writer in writers) > 0
        unfinished = [
            path for path in held.iterdir() if len(path.name) == 24
        ]  # no upload, no place: at most `a/b`
        assert len(unfinished) <= 1


def test_a_killed_server_keeps_every_version_it_has_acknowledged(rounds: int, seed: int) -> None:
    print(f"seed {seed}")
    chance, names = random.Random(seed), ("a", "a/b", "deep/down/file")
    with LiveServer() as server:
        server.post("/storage/v1/b", {"name": BUCKET, "versioning": {"enabled": True}})
        kept: dict[tuple[str, str], bytes] = {}  # contents by name and generation

        def write(name: str, stop: threading.Event) -> None:
            for number in range(len(kept), 1_000_000):
                if stop.is_set():
                    return
                content = version(name, number)
                try:
                    answer = put(server, name, content)
                    if answer.status == 200:
                        kept[name, answer.json["generation"]] = content
                    if number % 4 == 3:
                        quoted = name.replace("/", "%2F")
                        server.request("DELETE", f"/storage/v1/b/{BUCKET}/o/{quoted}")
                except BROKEN:
                    time.sleep(0.01)

        for _ in range(max(3, rounds // 5)):
            stop = threading.Event()
            with ThreadPoolExecutor(len(names)) as pool:
                running = [pool.submit(write, name, stop) for name in names]
                time.sleep(chance.uniform(0.05, 0.6))
                server.kill()
                stop.set()
            for one in running:
                one.result()
            server.start()
            for (name, generation), content in kept.items():
                path = (
                    f"/storage/v1/b/{BUCKET}/o/{name.replace('/', '%2F')}?alt=media&generation={generation}"
                )
                assert server.request("GET", path).body == content, (name, generation)
        assert kept


def test_of_writers_that_want_a_name_to_be_free_exactly_one_has_it() -> None:
    with LiveServer() as server:
        server.post("/storage/v1/b", {"name": BUCKET})
        for turn in range(10):
            barrier = threading.Barrier(6)

            def race(number: int, turn: int = turn, barrier: threading.Barrier = barrier) -> int:
                barrier.wait()
                return put(server, f"lock-{turn}", b"%d" % number, "&ifGenerationMatch=0").status

            with ThreadPoolExecutor(6) as pool:
                codes = list(pool.map(race, range(6)))
            assert sorted(codes) == [200] + [412] * 5
            assert int(media(server, f"lock-{turn}").body) == codes.index(200)


@pytest.mark.fault(
    "Disks",
    "The disk under the buckets is full",
    "Uploads are refused with 507. Every object stays as it was.",
    sentence="the disk of the server is full. Make room there, then try again.",
)
def test_a_full_disk_refuses_with_a_sentence_and_loses_nothing(sentence: Sentence) -> None:
    server = LiveServer()
    server.home.mkdir(mode=0o700)
    try:
        with small_disk(server.home / "buckets") as disk:
            server.start()
            server.post("/storage/v1/b", {"name": BUCKET})
            assert put(server, "kept", b"old").status == 200
            filler = fill(disk)
            for size in (100_000, 300_000):
                refused = put(server, "kept", b"x" * size)
                assert refused.status == 507, refused.body
                assert sentence.is_in(refused.error["message"])
            assert media(server, "kept").body == b"old"
            server.kill()
            filler.unlink()
            server.start()
            assert media(server, "kept").body == b"old"
            assert put(server, "kept", b"new").status == 200
            assert media(server, "kept").body == b"new"
            server.stop()
    finally:
        server.close()


def test_an_upload_much_larger_than_the_disk_hears_why_it_is_refused() -> None:
    server = LiveServer()
    server.home.mkdir(mode=0o700)
    try:
        with small_disk(server.home / "buckets"):
            server.start()
            server.post("/storage/v1/b", {"name": BUCKET})
            refused = put(server, "big", b"x" * (16 << 20))
            assert (refused.status, "disk of the server is full" in refused.error["message"]) == (507, True)
            assert put(server, "small", b"fits").status == 200
            assert media(server, "big").status == 404
            server.stop()
    finally:
        server.close()


pytestmark = pytest.mark.slow

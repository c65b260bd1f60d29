"""A folder by its hashes: the id, the frames, and sending only what is missing over any connection."""

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from trainshed.client import ClientError, Interrupted, code
from trainshed.client.code import Parcel, Unpackable, identity, send


def parcel(root: Path, **files: bytes) -> Parcel:
    found = Parcel(str(root))
    for name, data in files.items():
        (root / name).write_bytes(data)
    for name in sorted(os.listdir(root), key=os.fsencode):
        found.add(name, os.lstat(root / name))
    return found


class Server:
    """Keeps whole frames; breaks off each upload after so many bytes."""

    def __init__(self, cut: int = 1 << 40) -> None:
        self.kept: dict[str, bytes] = {}
        self.uploads = 0
        self.cut = cut

    def missing(self, entries: list[Any]) -> dict[str, Any]:
        return {"missing": sorted({one["sha256"] for one in entries} - self.kept.keys())}

    def upload(self, length: int, frames: Iterable[bytes]) -> dict[str, Any]:
        self.uploads += 1
        data = b"".join(frames)
        assert len(data) == length
        rest = data[: self.cut]
        while b"\n" in rest:
            head, _, rest = rest.partition(b"\n")
            digest, size = head.decode().split(" ")
            if len(rest) < int(size):
                break
            content, rest = rest[: int(size)], rest[int(size) :]
            assert hashlib.sha256(content).hexdigest() == digest
            self.kept[digest] = content
        if len(data) > self.cut:
            raise Interrupted("cut")
        return {"received": 1}


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code, "PAUSE", 0)


def test_the_id_is_the_hash_over_modes_hashes_sizes_and_paths_in_order(tmp_path: Path) -> None:
    parcel(tmp_path, a=b"one", b=b"")
    (tmp_path / "run").write_text("x")
    (tmp_path / "run").chmod(0o755)
    (tmp_path / "to").symlink_to("a")
    found = parcel(tmp_path)
    one, nothing, x, link = (hashlib.sha256(data).hexdigest() for data in (b"one", b"", b"x", b"a"))
    lines = f"100644 {one} 3 a", f"100644 {nothing} 0 b", f"100755 {x} 1 run", f"120000 {link} 1 to"
    text = "".join(line + "\0" for line in lines)
    assert found.code == identity(found.entries) == hashlib.sha256(text.encode()).hexdigest()
    assert found.size == 5


def test_only_what_is_missing_is_sent_and_alike_files_once(tmp_path: Path) -> None:
    found = parcel(tmp_path, a=b"one", b=b"one", c=b"two")
    server = Server()
    server.kept[hashlib.sha256(b"two").hexdigest()] = b"two"
    assert send(server, found) == (1, 3)  # pyright: ignore[reportArgumentType]
    assert sorted(server.kept.values()) == [b"one", b"two"]
    assert send(server, found) == (0, 0)  # pyright: ignore[reportArgumentType]
    assert server.uploads == 1


def test_a_broken_upload_goes_on_with_what_did_not_arrive(tmp_path: Path) -> None:
    files = {f"f{number}": bytes([number]) * 1000 for number in range(20)}
    server = Server(cut=5000)
    told: list[tuple[int, int]] = []
    sent = send(server, parcel(tmp_path, **files), lambda done, total: told.append((done, total)))  # pyright: ignore
    assert sent == (20, 20_000)
    assert len(server.kept) == 20
    assert server.uploads == 5  # four at a time
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert told[-1] == (20_000, 20_000)


def test_small_files_go_first_so_that_most_arrive_before_it_breaks(tmp_path: Path) -> None:
    server = Server(cut=1000)
    with pytest.raises(Interrupted):
        send(server, parcel(tmp_path, big=bytes(5000), small=b"x", tiny=b""))  # pyright: ignore
    assert sorted(map(len, server.kept.values())) == [0, 1]


def test_a_connection_over_which_nothing_arrives_is_given_up(tmp_path: Path) -> None:
    server = Server(cut=10)
    with pytest.raises(Interrupted):
        send(server, parcel(tmp_path, a=bytes(1000)))  # pyright: ignore[reportArgumentType]
    assert server.uploads == code.TRIES + 1


def test_a_server_that_forgets_what_it_is_sent_is_not_sent_it_forever(tmp_path: Path) -> None:
    server = Server()
    server.upload = lambda length, frames: {"received": len(list(frames))}  # type: ignore[method-assign]
    with pytest.raises(ClientError, match="does not keep"):
        send(server, parcel(tmp_path, a=b"one"))  # pyright: ignore[reportArgumentType]


def test_a_large_file_that_shrinks_before_it_is_sent_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(code, "SMALL", 10)
    found = parcel(tmp_path, big=bytes(100))
    (tmp_path / "big").write_bytes(b"short")
    with pytest.raises(Unpackable, match="big: it became shorter"):
        send(Server(), found)  # pyright: ignore[reportArgumentType]


def test_small_contents_are_sent_as_they_were_hashed_even_if_the_file_changes(tmp_path: Path) -> None:
    found = parcel(tmp_path, a=b"then")
    (tmp_path / "a").write_bytes(b"now!")
    server = Server()
    send(server, found)  # pyright: ignore[reportArgumentType]
    assert list(server.kept.values()) == [b"then"]


def test_large_and_small_files_have_the_same_hashes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"a": bytes(5000), "b": b"x" * 20}
    small = parcel(tmp_path, **files).entries
    monkeypatch.setattr(code, "SMALL", 10)
    large = parcel(tmp_path)
    assert large.entries == small
    server = Server()
    send(server, large)  # pyright: ignore[reportArgumentType]
    assert len(server.kept) == 2


def test_an_unreadable_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    seen = os.lstat(tmp_path / "a")
    (tmp_path / "a").unlink()
    with pytest.raises(Unpackable, match="a: No such file"):
        Parcel(str(tmp_path)).add("a", seen)

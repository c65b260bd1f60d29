"""Buckets in a real S3 store, a SeaweedFS: the promises as far as they are declared, and its own troubles."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import obstore
import pytest

from tests.contracts.bucket import BucketContract, Steps, content, pieces, put
from tests.weed import Weed
from trainshed.buckets.remote import labels
from trainshed.buckets.remote.connect import connect
from trainshed.buckets.remote.objects import LOCKED
from trainshed.buckets.remote.rows import literal
from trainshed.buckets.remote.store import RemoteBuckets
from trainshed.core.bucket import (
    Attributes,
    DamagedObject,
    ObjectDraft,
    ObjectQuery,
    Precondition,
    PreconditionFailed,
)
from trainshed.core.bucket_port import Buckets
from trainshed.core.errors import Forbidden, NotFound, Unavailable

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def weed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Weed]:
    running = Weed(tmp_path_factory.mktemp("s3"), ("first",))
    yield running
    running.close()


class TestS3Buckets(BucketContract):
    survives = True

    @pytest.fixture(autouse=True)
    def store(self, weed: Weed, request: pytest.FixtureRequest) -> None:
        """Buckets of its own for each test: two of a name nobody had before."""
        self.weed, self.own = weed, f"t{abs(hash(request.node.nodeid)):x}"

    def make(self, home: Path, clock: Steps) -> Buckets:
        return RemoteBuckets(
            tuple(self.weed.remote(f"{self.own}-{name}", name) for name in ("shed", "other")), home, clock
        )


@pytest.fixture
def buckets(weed: Weed, tmp_path: Path) -> Iterator[RemoteBuckets]:
    yield RemoteBuckets((weed.remote("first", "far"),), tmp_path / "spool", Steps())


async def test_a_large_object_goes_in_parts_and_comes_back_with_its_sums(buckets: RemoteBuckets) -> None:
    await buckets.start()
    bucket, data = buckets.open("far"), os.urandom(1 << 20) * 33
    kept = await bucket.put(ObjectDraft(name="big/model.pt"), pieces(data[: 20 << 20], data[20 << 20 :]))
    assert kept.size == len(data) > LOCKED
    assert kept.md5
    assert kept.crc32c
    assert await content(bucket, "big/model.pt") == data
    with pytest.raises(PreconditionFailed):
        await bucket.put(
            ObjectDraft(name="big/model.pt", precondition=Precondition(generation=0)), pieces(data)
        )
    assert os.listdir(buckets.spool) == []
    await buckets.close()


async def test_what_another_client_put_there_is_read_and_told_with_what_is_known(
    weed: Weed, buckets: RemoteBuckets
) -> None:
    await buckets.start()
    obstore.put(connect(weed.remote("first")), "theirs/a.txt", b"123456789", attributes={"k": "v"})
    found = await buckets.open("far").get("theirs/a.txt")
    assert (found.size, found.crc32c, found.md5) == (9, "", "JfnnlDI7RTiF9RgfG2JNCw==")
    assert found.attributes.metadata == {"k": "v"}
    [listed] = (await buckets.open("far").find(ObjectQuery(prefix="theirs/"))).items
    assert replace(listed, attributes=found.attributes) == found
    assert await content(buckets.open("far"), "theirs/a.txt") == b"123456789"
    await buckets.close()


async def test_bytes_that_are_not_those_put_are_noticed(weed: Weed, buckets: RemoteBuckets) -> None:
    await buckets.start()
    told_of = labels.written(Attributes(), {"crc32c": "AAAAAA=="})
    obstore.put(connect(weed.remote("first")), "rotten", b"not nothing", attributes=told_of)
    with pytest.raises(DamagedObject, match="s3://far/rotten is damaged"):
        await content(buckets.open("far"), "rotten")
    await buckets.close()


async def test_wrong_keys_a_missing_bucket_and_a_store_that_is_down_are_told_without_secrets(
    weed: Weed, tmp_path: Path
) -> None:
    wrong = {"access_key": literal("AKWRONG"), "secret_key": literal("sk-very-secret")}
    buckets = RemoteBuckets(
        (
            weed.remote("first", "keyless", keys=wrong),
            weed.remote("no-such-bucket", "nobucket"),
            weed.remote("first", "down", endpoint="http://127.0.0.1:1"),
        ),
        tmp_path / "spool",
        Steps(),
    )
    await buckets.start()
    for name, kind in (("keyless", Forbidden), ("nobucket", NotFound), ("down", Unavailable)):
        for doing in (buckets.open(name).get("x"), buckets.open(name).read("x")):
            with pytest.raises(kind) as caught:
                await doing
            assert "sk-very-secret" not in repr(caught.value)
            assert caught.value.__cause__ is None  # nor in a traceback
            assert name in caught.value.message
    with pytest.raises(Forbidden):
        await put(buckets.open("keyless"), "x")
    with pytest.raises(Forbidden):
        await buckets.open("keyless").find(ObjectQuery())
    assert "sk-very-secret" not in repr(wrong)
    await buckets.close()


async def test_a_server_that_died_while_an_object_was_put_leaves_no_bytes_in_its_spool(
    weed: Weed, tmp_path: Path
) -> None:
    spool = tmp_path / "spool"
    spool.mkdir()
    (spool / ("0" * 32 + ".bytes")).write_bytes(b"half")
    (spool / ("1" * 32 + ".new")).write_bytes(b"{")
    buckets = RemoteBuckets((weed.remote("first", "far"),), spool, Steps())
    await buckets.start()
    assert list(spool.iterdir()) == []
    await buckets.close()

"""What all buckets keep to: the numbered promises of `core.bucket_port`, as tests.

Inherit, and give `make`. `survives` says whether other buckets over the same home find what these were given.
What a bucket cannot promise it declares (`Abilities`), and the suite asks for that, never for a class.
"""

import asyncio
import base64
import hashlib
import os
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from trainshed.core.bucket import (
    ALWAYS,
    Attributes,
    BucketInfo,
    NotModified,
    ObjectDraft,
    ObjectInfo,
    ObjectListing,
    ObjectQuery,
    OutOfRange,
    Precondition,
    PreconditionFailed,
    Span,
)
from trainshed.core.bucket_port import Bucket, Buckets, ObjectReading
from trainshed.core.errors import AlreadyExists, Conflict, Invalid, NotFound, Unavailable

CHECK = b"123456789"
CHECK_CRC32C = base64.b64encode(bytes.fromhex("e3069283")).decode()  # the catalogue's check value
ABSENT = Precondition(generation=0)

ODD = (
    "plain.txt",
    "a",
    "a/b",
    "a/b/c",
    "a//b",
    "a/",
    "/",
    "//",
    "/etc/passwd",
    "../../etc/passwd",
    "a/../b",
    "a/./b",
    "./x",
    "%",
    "%2E%2E/x",
    "100%.txt",
    "a:b?c#d&e=f",
    "nul\0nul",
    "tab\there\x7f",
    "größe 大 🚂",
    "e\u0301",  # not the same as the next, whatever a file system thinks
    "\u00e9",
    ".trainshed",
    "x" * 1024,
    "y" * 255,
    "z/" * 512,
    "\u5927" * 341,
)


class Steps:
    """A clock that moves when told."""

    def __init__(self) -> None:
        self.at = datetime(2026, 1, 1, 12, tzinfo=UTC)

    def now(self) -> datetime:
        return self.at

    def wait(self, **length: float) -> None:
        self.at += timedelta(**length)


def info(name: str = "shed", at: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> BucketInfo:
    return BucketInfo(name=name, project="p1", location="US", created_at=at, updated_at=at)


async def pieces(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        await asyncio.sleep(0)
        yield chunk


async def broken(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk
    raise EOFError


async def whole(reading: ObjectReading) -> bytes:
    return b"".join([chunk async for chunk in reading.chunks])


async def put(
    bucket: Bucket, name: str, content: bytes = b"x", precondition: Precondition = ALWAYS
) -> ObjectInfo:
    return await bucket.put(ObjectDraft(name=name, precondition=precondition), pieces(content))


async def content(bucket: Bucket, name: str) -> bytes:
    return await whole(await bucket.read(name))


def names(listing: ObjectListing) -> list[str]:
    return [item.name for item in listing.items]


def is_plain(name: str) -> bool:
    """Whether a bucket that does not keep any name keeps this one."""
    parts = name.split("/")
    is_path = all(part not in ("", ".", "..") and len(part.encode()) <= 255 for part in parts)
    return is_path and name.isprintable() and name not in ("a", "a/b")


async def made(buckets: Buckets, name: str) -> Bucket:
    """A bucket of that name, made where it is not there already."""
    bucket = buckets.open(name)
    if bucket.abilities.creates:
        await buckets.create(info(name))
    return bucket


def labelled(labels: dict[str, str]) -> Callable[[BucketInfo], BucketInfo]:
    return lambda old: replace(old, labels=labels)


async def versioned(buckets: Buckets, on: bool = True) -> Bucket:
    await buckets.change("shed", lambda old: replace(old, versioning=on))
    return buckets.open("shed")


async def told_versions(bucket: Bucket, **query: object) -> list[tuple[str, int, bool]]:
    """Name, generation and whether it is live, of all pages."""
    asked, told = ObjectQuery(versions=True, **query), list[ObjectInfo]()  # pyright: ignore[reportArgumentType]
    while True:
        page = await bucket.find(asked)
        told += page.items
        if not page.next_after:
            return [(one.name, one.generation, one.noncurrent_at is None) for one in told]
        asked = replace(asked, after=page.next_after, after_generation=page.next_generation)


class BucketContract:
    """Where buckets are not made here, `make` gives some named shed and other, with nothing in them."""

    survives = False

    def make(self, home: Path, clock: Steps) -> Buckets:
        raise NotImplementedError

    @pytest.fixture
    def clock(self) -> Steps:
        return Steps()

    @pytest.fixture
    async def buckets(self, tmp_path: Path, clock: Steps) -> AsyncIterator[Buckets]:
        buckets = self.make(tmp_path / "buckets", clock)
        await buckets.start()
        await made(buckets, "shed")
        yield buckets
        await buckets.close()

    @pytest.fixture
    def bucket(self, buckets: Buckets) -> Bucket:
        return buckets.open("shed")

    # ---- buckets

    async def test_buckets_are_created_told_in_order_and_removed_when_empty(self, buckets: Buckets) -> None:
        if not buckets.open("shed").abilities.creates:
            assert [one.name for one in await buckets.all()] == ["other", "shed"]
            for doing in (buckets.create(info("zoo")), buckets.remove("shed")):
                with pytest.raises(Conflict):
                    await doing
            return
        for name in ("zoo", "ark"):
            await buckets.create(info(name))
        assert [one.name for one in await buckets.all()] == ["ark", "shed", "zoo"]
        assert await buckets.get("zoo") == info("zoo")
        with pytest.raises(AlreadyExists):
            await buckets.create(info("zoo"))
        await put(buckets.open("zoo"), "lion")
        with pytest.raises(Conflict, match="not empty"):
            await buckets.remove("zoo")
        await buckets.open("zoo").delete("lion")
        await buckets.remove("zoo")
        with pytest.raises(NotFound):
            await buckets.get("zoo")

    async def test_labels_of_a_bucket_change_under_a_precondition(
        self, buckets: Buckets, clock: Steps
    ) -> None:
        if not buckets.open("shed").abilities.creates:
            with pytest.raises(Conflict):
                await buckets.change("shed", labelled({"team": "a"}))
            return
        new = await buckets.change("shed", labelled({"team": "a"}), metageneration=1)
        assert (new.metageneration, dict(new.labels), new.updated_at) == (2, {"team": "a"}, clock.now())
        assert await buckets.get("shed") == new
        with pytest.raises(PreconditionFailed):
            await buckets.change("shed", labelled({}), metageneration=1)
        with pytest.raises(PreconditionFailed):
            await buckets.remove("shed", metageneration=1)

    async def test_nothing_can_be_done_in_a_bucket_that_is_not_there(self, buckets: Buckets) -> None:
        none = buckets.open("none")
        for doing in (
            none.get("x"),
            none.find(ObjectQuery()),
            put(none, "x"),
            none.read("x"),
            none.delete("x"),
            none.begin(ObjectDraft(name="x")),
            none.upload("x"),
        ):
            with pytest.raises(NotFound):
                await doing

    # ---- objects

    async def test_an_object_is_told_with_its_sums_and_read_back(self, bucket: Bucket, clock: Steps) -> None:
        attributes = Attributes(content_type="text/plain", metadata={"k": "größe"})
        kept = await bucket.put(
            ObjectDraft(name="a/b", attributes=attributes), pieces(CHECK[:4], b"", CHECK[4:])
        )
        assert kept.size == 9
        assert kept.crc32c == CHECK_CRC32C
        assert kept.md5 == base64.b64encode(hashlib.md5(CHECK).digest()).decode()
        assert kept.metageneration == 1
        if bucket.abilities.own_time:
            assert (kept.created_at, kept.updated_at) == (clock.now(), clock.now())
        assert kept.attributes == attributes
        assert await bucket.get("a/b") == kept
        reading = await bucket.read("a/b")
        assert (reading.info, reading.first, reading.length) == (kept, 0, 9)
        assert await whole(reading) == CHECK

    async def test_an_empty_object_is_an_object(self, bucket: Bucket) -> None:
        kept = await bucket.put(ObjectDraft(name="empty"), pieces())
        assert (kept.size, kept.crc32c, kept.md5) == (0, "AAAAAA==", "1B2M2Y8AsgTpgAmY7PhCfg==")
        assert await content(bucket, "empty") == b""

    async def test_any_span_of_an_object_can_be_read(self, bucket: Bucket) -> None:
        await put(bucket, "x", CHECK)
        for span, expected in (
            (Span(first=2, last=4), b"345"),
            (Span(first=7), b"89"),
            (Span(first=7, last=100), b"89"),
            (Span(last=3), b"789"),
            (Span(last=100), CHECK),
            (Span(first=0, last=0), b"1"),
        ):
            assert await whole(await bucket.read("x", span)) == expected, span
        for span in (Span(first=9), Span(first=9, last=20), Span(last=0)):
            with pytest.raises(OutOfRange):
                await bucket.read("x", span)

    async def test_generations_rise_and_an_old_one_is_not_there_any_more(
        self, bucket: Bucket, clock: Steps
    ) -> None:
        first = await put(bucket, "x", b"1")
        second = await put(bucket, "x", b"2")
        clock.at -= timedelta(hours=1)  # a clock that was set back
        third = await put(bucket, "y", b"3")
        assert len({first.generation, second.generation, third.generation}) == 3
        if bucket.abilities.rising:
            assert first.generation < second.generation < third.generation
        assert await bucket.get("x", second.generation) == second
        for doing in (bucket.get, bucket.delete, lambda n, g: bucket.read(n, generation=g)):
            with pytest.raises(NotFound):
                await doing("x", first.generation)
        again = await put(bucket, "x", b"2")
        assert (again.generation == second.generation) <= (not bucket.abilities.rising)

    async def test_a_given_hash_is_checked_and_a_wrong_one_leaves_the_old_object(
        self, bucket: Bucket
    ) -> None:
        await bucket.put(ObjectDraft(name="x", crc32c=CHECK_CRC32C), pieces(CHECK))
        for wrong in (
            ObjectDraft(name="x", crc32c="AAAAAA=="),
            ObjectDraft(name="x", md5="1B2M2Y8AsgTpgAmY7PhCfg=="),
        ):
            with pytest.raises(Invalid, match="doesn't match calculated"):
                await bucket.put(wrong, pieces(b"other"))
        assert await content(bucket, "x") == CHECK

    async def test_an_upload_that_breaks_off_leaves_the_old_object(self, bucket: Bucket) -> None:
        await put(bucket, "x", b"old")
        with pytest.raises(EOFError):
            await bucket.put(ObjectDraft(name="x"), broken(b"new", os.urandom(3 << 20)))
        with pytest.raises(EOFError):
            await bucket.put(ObjectDraft(name="y"), broken(b"new"))
        assert await content(bucket, "x") == b"old"
        assert names(await bucket.find(ObjectQuery())) == ["x"]

    @pytest.mark.parametrize("size", [(1 << 20) - 1, 1 << 20, (1 << 20) + 1, 3 << 20])
    async def test_objects_of_many_blocks_are_whole_at_every_seam(self, bucket: Bucket, size: int) -> None:
        if not self.survives:
            size //= 1 << 10  # the double is slow, and has no seams
        data = os.urandom(size)
        step = max(1, size // 7)
        kept = await bucket.put(
            ObjectDraft(name="big"), pieces(*(data[at : at + step] for at in range(0, size, step)))
        )
        assert kept.md5 == base64.b64encode(hashlib.md5(data).digest()).decode()
        assert await content(bucket, "big") == data
        for first, last in ((0, 0), (size // 2, size - 1), (1, size - 2), (size - 1, size - 1)):
            assert (
                await whole(await bucket.read("big", Span(first=first, last=last))) == data[first : last + 1]
            )

    # ---- preconditions

    async def test_preconditions_hold_or_nothing_is_changed(self, bucket: Bucket) -> None:
        kept = await put(bucket, "x", b"old")
        wrong = Precondition(generation=kept.generation + 1)
        for condition in (ABSENT, wrong, Precondition(metageneration=2)):
            with pytest.raises(PreconditionFailed):
                await put(bucket, "x", b"new", precondition=condition)
            with pytest.raises(PreconditionFailed):
                await bucket.delete("x", precondition=condition)
            with pytest.raises(PreconditionFailed):
                await bucket.change("x", lambda a: a, precondition=condition)
        with pytest.raises(NotModified):
            await bucket.read("x", precondition=Precondition(not_generation=kept.generation))
        with pytest.raises(PreconditionFailed):
            await put(bucket, "y", precondition=wrong)
        assert await bucket.get("x") == kept
        right = Precondition(generation=kept.generation, metageneration=1)
        assert (await put(bucket, "x", b"new", precondition=right)).size == 3

    async def test_of_many_writers_that_want_the_name_to_be_free_one_has_it(self, bucket: Bucket) -> None:
        outcomes = await asyncio.gather(
            *(put(bucket, "lock", b"%d" % n, precondition=ABSENT) for n in range(20)), return_exceptions=True
        )
        won = [outcome for outcome in outcomes if isinstance(outcome, ObjectInfo)]
        assert len(won) == 1
        assert all(isinstance(outcome, ObjectInfo | PreconditionFailed) for outcome in outcomes)
        assert await bucket.get("lock") == won[0]

    async def test_attributes_change_and_raise_the_metageneration_only(
        self, bucket: Bucket, clock: Steps
    ) -> None:
        kept = await put(bucket, "x", CHECK)
        clock.wait(seconds=1)
        if not bucket.abilities.changes:
            with pytest.raises(Invalid, match="cannot be changed"):
                await bucket.change("x", lambda a: replace(a, metadata={"a": "b"}))
            assert await bucket.change("x", lambda a: a) == kept
            return
        new = await bucket.change("x", lambda a: replace(a, metadata={"a": "b"}))
        assert (new.generation, new.metageneration, new.crc32c) == (kept.generation, 2, kept.crc32c)
        assert (new.created_at, new.updated_at) == (kept.created_at, clock.now())
        assert await bucket.get("x") == new
        assert await content(bucket, "x") == CHECK

    async def test_what_is_deleted_is_gone_and_its_name_is_free(self, bucket: Bucket) -> None:
        await put(bucket, "x")
        await bucket.delete("x")
        for doing in (bucket.get, bucket.read, bucket.delete):
            with pytest.raises(NotFound):
                await doing("x")
        assert await put(bucket, "x", b"again", precondition=ABSENT)

    # ---- readers and writers at once

    async def test_a_reader_goes_on_with_the_object_it_began(self, bucket: Bucket) -> None:
        data = os.urandom((4 << 20) if self.survives else 1000)
        await put(bucket, "x", data)
        first, second = await bucket.read("x"), await bucket.read("x")
        begun = await anext(aiter(first.chunks))
        await put(bucket, "x", b"new")
        try:
            assert begun + await whole(first) == data
            await bucket.delete("x")
            assert await whole(second) == data
        except Unavailable:
            assert not bucket.abilities.reads_on

    async def test_readers_among_writers_see_one_object_whole(self, bucket: Bucket) -> None:
        contents = [bytes([n]) * 1000 * (n + 1) for n in range(8)]
        await put(bucket, "x", contents[0])

        async def write() -> None:
            for turn in range(40):
                await put(bucket, "x", contents[turn % 8])

        async def look() -> None:
            while not writing.done():
                reading = await bucket.read("x")
                got = await whole(reading)
                assert got in contents
                assert len(got) == reading.info.size
                await asyncio.sleep(0)

        writing = asyncio.create_task(write())
        await asyncio.gather(*(look() for _ in range(4)))
        await writing

    # ---- copies

    async def test_a_copy_has_the_bytes_and_stays_when_the_original_goes(self, buckets: Buckets) -> None:
        other = await made(buckets, "other")
        assert buckets.together("shed", "other")
        source = await put(buckets.open("shed"), "x", CHECK)
        copied = await other.copy(ObjectDraft(name="y", attributes=Attributes(content_type="a/b")), source)
        assert (copied.bucket, copied.name, copied.md5) == ("other", "y", source.md5)
        assert (copied.metageneration, copied.attributes.content_type) == (1, "a/b")
        assert copied.generation > source.generation or not other.abilities.rising
        await buckets.open("shed").delete("x")
        assert await content(other, "y") == CHECK
        with pytest.raises(NotFound):
            await other.copy(ObjectDraft(name="z"), source)

    async def test_an_object_copied_onto_itself_is_a_new_generation(self, bucket: Bucket) -> None:
        source = await put(bucket, "x", CHECK)
        copied = await bucket.copy(ObjectDraft(name="x"), source)
        assert copied.generation > source.generation or not bucket.abilities.rising
        assert await content(bucket, "x") == CHECK
        await put(bucket, "x", b"new")
        assert await content(bucket, "x") == b"new"
        with pytest.raises(PreconditionFailed):
            await bucket.copy(ObjectDraft(name="x", precondition=ABSENT), await bucket.get("x"))

    # ---- names

    async def test_any_name_is_kept_apart_from_every_other(self, bucket: Bucket) -> None:
        odd = tuple(name for name in ODD if bucket.abilities.any_name or is_plain(name))
        assert len(odd) >= 8
        for order in (odd, tuple(reversed(odd))):
            for name in order:
                await put(bucket, name, name.encode())
            for name in order:
                assert await content(bucket, name) == name.encode(), name
            listing = await bucket.find(ObjectQuery())
            assert sorted(names(listing), key=str.encode) == sorted(odd, key=str.encode)
            if bucket.abilities.sorted:
                assert names(listing) == sorted(odd, key=str.encode)
            for name in order:
                await bucket.delete(name)
            assert (await bucket.find(ObjectQuery())).items == ()

    async def test_a_name_that_cannot_be_kept_apart_is_refused(self, bucket: Bucket) -> None:
        if bucket.abilities.any_name:
            pytest.skip("any name is kept")
        for name in ("a//b", "a/", "/", "/a", "a/../b", "./x", "tab\t", "nul\0", "back\\slash"):
            for doing in (put(bucket, name), bucket.begin(ObjectDraft(name=name))):
                with pytest.raises(Invalid, match="kept elsewhere"):
                    await doing
            with pytest.raises(NotFound):
                await bucket.get(name)

    @pytest.mark.parametrize("name", ["", ".", "..", "x" * 1025, "a\nb", "a\rb", "\ud800", "\u00e9" * 513])
    async def test_names_google_would_not_take_are_refused(self, bucket: Bucket, name: str) -> None:
        for doing in (put(bucket, name), bucket.begin(ObjectDraft(name=name))):
            with pytest.raises(Invalid):
                await doing

    # ---- lists

    async def test_a_list_is_cut_by_prefix_delimiter_and_offsets(self, bucket: Bucket) -> None:
        marks = ("c/",) if bucket.abilities.any_name else ()
        for name in ("a", "b/1", "b/2/x", "b/2/y", "b/3", "b0", *marks, "c/1", "d"):
            await put(bucket, name)

        async def told(**query: str | bool) -> tuple[list[str], tuple[str, ...]]:
            listing = await bucket.find(ObjectQuery(**query))  # pyright: ignore[reportArgumentType]
            assert listing.next_after == ""
            return names(listing), listing.prefixes

        assert await told(delimiter="/") == (["a", "b0", "d"], ("b/", "c/"))
        assert await told(prefix="b/", delimiter="/") == (["b/1", "b/3"], ("b/2/",))
        assert await told(prefix="b/") == (["b/1", "b/2/x", "b/2/y", "b/3"], ())
        assert await told(prefix="b") == (["b/1", "b/2/x", "b/2/y", "b/3", "b0"], ())
        assert await told(prefix="b/2/x", delimiter="/") == (["b/2/x"], ())
        assert await told(prefix="c/", delimiter="/") == ([*marks, "c/1"], ())
        assert await told(delimiter="/", trailing=True) == (["a", "b0", *marks, "d"], ("b/", "c/"))
        assert await told(start="b/3", end="c/1") == (["b/3", "b0", *marks], ())
        assert await told(delimiter="2/") == (["a", "b/1", "b/3", "b0", *marks, "c/1", "d"], ("b/2/",))
        assert await told(prefix="nothing") == ([], ())

    @pytest.mark.parametrize("delimiter", ["", "/"])
    async def test_pages_of_any_size_make_the_whole_list(self, bucket: Bucket, delimiter: str) -> None:
        for number in range(40):
            await put(bucket, f"{number % 7}/{number}" if number % 3 else f"{number:03}")
        everything = await bucket.find(ObjectQuery(delimiter=delimiter))
        for size in (1, 2, 3, 7, 39, 40, 41):
            after, items, prefixes = "", list[str](), list[str]()
            while True:
                page = await bucket.find(ObjectQuery(delimiter=delimiter, size=size, after=after))
                assert len(page.items) + len(page.prefixes) <= size
                items += names(page)
                prefixes += page.prefixes
                after = page.next_after
                if not after:
                    break
                assert len(page.items) + len(page.prefixes) == size
            assert items == names(everything)
            assert prefixes == list(everything.prefixes)

    # ---- uploads in pieces

    async def test_an_upload_in_pieces_becomes_an_object_at_its_end(self, bucket: Bucket) -> None:
        upload = await bucket.begin(ObjectDraft(name="x", attributes=Attributes(metadata={"a": "b"})))
        assert upload.received == 0
        assert (await bucket.append(upload.id, 0, pieces(b"1234"))).received == 4
        assert (await bucket.append(upload.id, 2, pieces(b"34", b"56"))).received == 6  # two of them known
        with pytest.raises(Invalid, match="6 bytes so far"):
            await bucket.append(upload.id, 7, pieces(b"89"))
        with pytest.raises(NotFound):
            await bucket.get("x")
        assert (await bucket.upload(upload.id)).received == 6
        assert (await bucket.append(upload.id, 6, pieces(b"789"))).crc32c == CHECK_CRC32C
        made = await bucket.finish(upload.id, crc32c=CHECK_CRC32C)
        assert made.attributes.metadata == {"a": "b"}
        assert made.crc32c == CHECK_CRC32C
        assert await bucket.finish(upload.id) == made
        assert (await bucket.upload(upload.id)).done == made
        assert await content(bucket, "x") == CHECK

    async def test_a_piece_that_breaks_off_keeps_what_came(self, bucket: Bucket) -> None:
        upload = await bucket.begin(ObjectDraft(name="x"))
        with pytest.raises(EOFError):
            await bucket.append(upload.id, 0, broken(b"12345"))
        assert (await bucket.upload(upload.id)).received == 5
        assert b"".join([chunk async for chunk in bucket.received(upload.id)]) == b"12345"
        await bucket.append(upload.id, 5, pieces(b"6789"))
        assert (await bucket.finish(upload.id)).crc32c == CHECK_CRC32C

    async def test_an_upload_of_nothing_makes_an_empty_object(self, bucket: Bucket) -> None:
        upload = await bucket.begin(ObjectDraft(name="x"))
        assert (await bucket.finish(upload.id)).size == 0
        assert await content(bucket, "x") == b""

    async def test_an_upload_with_a_wrong_hash_or_precondition_makes_nothing(self, bucket: Bucket) -> None:
        upload = await bucket.begin(ObjectDraft(name="x", crc32c="AAAAAA=="))
        await bucket.append(upload.id, 0, pieces(CHECK))
        with pytest.raises(Invalid):
            await bucket.finish(upload.id)
        late = await bucket.begin(ObjectDraft(name="y", precondition=ABSENT))
        await put(bucket, "y", b"first")
        with pytest.raises(PreconditionFailed):
            await bucket.finish(late.id)
        with pytest.raises(PreconditionFailed):
            await bucket.begin(ObjectDraft(name="y", precondition=ABSENT))
        assert names(await bucket.find(ObjectQuery())) == ["y"]
        assert await content(bucket, "y") == b"first"

    async def test_an_abandoned_upload_is_gone(self, bucket: Bucket) -> None:
        upload = await bucket.begin(ObjectDraft(name="x"))
        await bucket.append(upload.id, 0, pieces(b"12"))
        await bucket.abandon(upload.id)
        for doing in (bucket.upload(upload.id), bucket.finish(upload.id), bucket.abandon(upload.id)):
            with pytest.raises(NotFound):
                await doing

    # ---- objects that go with the commit of another, and requests that are sent again

    async def test_objects_that_a_draft_removes_go_when_its_own_is_there(self, bucket: Bucket) -> None:
        first, second, third = [await put(bucket, name, name.encode()) for name in ("p1", "p2", "p3")]
        newer = await put(bucket, "p2", b"newer")
        wrong = ObjectDraft(name="all", removes=(first,), precondition=Precondition(generation=7))
        with pytest.raises(PreconditionFailed):
            await bucket.put(wrong, pieces(b"x"))
        assert names(await bucket.find(ObjectQuery())) == ["p1", "p2", "p3"]
        await bucket.put(ObjectDraft(name="all", removes=(first, second, third, first)), pieces(b"x"))
        assert sorted(names(await bucket.find(ObjectQuery()))) == ["all", "p2"]
        assert (await bucket.get("p2")).generation == newer.generation
        made = await bucket.put(ObjectDraft(name="p2", removes=(newer,)), pieces(b"itself"))
        assert await content(bucket, "p2") == b"itself"
        await bucket.copy(ObjectDraft(name="moved", removes=(made,)), made)
        assert sorted(names(await bucket.find(ObjectQuery()))) == ["all", "moved"]

    async def test_a_request_that_is_sent_again_gets_the_first_answer(
        self, bucket: Bucket, clock: Steps
    ) -> None:
        if not bucket.abilities.remembers:
            assert await bucket.answered("r1") is None
            return
        source = await put(bucket, "part")
        draft = ObjectDraft(name="x", precondition=ABSENT, removes=(source,), request="r1")
        made = await bucket.put(draft, pieces(b"new"))
        assert await bucket.put(draft, pieces(b"new")) == made
        assert await bucket.answered("r1") == made
        assert await bucket.answered("r2") is None
        with pytest.raises(PreconditionFailed):
            await bucket.put(replace(draft, request="r2"), pieces(b"new"))
        with pytest.raises(PreconditionFailed):  # other bytes under the same name are another request
            await bucket.put(draft, pieces(b"other"))
        once = Precondition(metageneration=1)
        changed = await bucket.change("x", lambda a: replace(a, metadata={"a": "b"}), None, once, "r3")
        assert (
            await bucket.change("x", lambda a: replace(a, metadata={"a": "b"}), None, once, "r3") == changed
        )
        await bucket.delete("x", request="r4")
        await bucket.delete("x", request="r4")
        with pytest.raises(NotFound):
            await bucket.delete("x", request="r5")
        assert await content(bucket, (await put(bucket, "x", b"later")).name) == b"later"
        await bucket.delete("x", request="r4")
        assert await content(bucket, "x") == b"later"

    # ---- old versions

    async def test_what_is_replaced_or_deleted_stays_as_a_version(
        self, buckets: Buckets, bucket: Bucket, clock: Steps
    ) -> None:
        if not bucket.abilities.versions:
            with pytest.raises(Invalid, match="kept elsewhere"):
                await bucket.find(ObjectQuery(versions=True))
            with pytest.raises(Conflict, match="kept elsewhere"):
                await versioned(buckets)
            return
        before = await put(bucket, "x", b"0")
        assert (await buckets.get("shed")).versioning is False
        await versioned(buckets)
        first = await put(bucket, "x", b"1")  # takes the place of the one before, which was there already
        clock.wait(days=1)
        second = await put(bucket, "x", b"22")
        await bucket.delete("x")
        assert names(await bucket.find(ObjectQuery())) == []
        kept = [(one.generation, False) for one in (before, first, second)]
        assert await told_versions(bucket) == [("x", *one) for one in kept]
        with pytest.raises(NotFound):
            await bucket.get("x")
        old = await bucket.get("x", first.generation)
        assert old == replace(first, noncurrent_at=clock.now())
        assert await whole(await bucket.read("x", generation=first.generation)) == b"1"
        assert await whole(await bucket.read("x", Span(first=1), second.generation)) == b"2"
        third = await put(bucket, "x", b"333", precondition=ABSENT)
        assert await told_versions(bucket) == [*[("x", *one) for one in kept], ("x", third.generation, True)]
        restored = await bucket.copy(ObjectDraft(name="x"), old)
        assert await content(bucket, "x") == b"1"
        assert (await bucket.get("x", third.generation)).noncurrent_at == clock.now()
        await bucket.change("x", lambda a: replace(a, metadata={"a": "b"}), first.generation)
        changed = await bucket.get("x", first.generation)
        assert (changed.metageneration, dict(changed.attributes.metadata)) == (2, {"a": "b"})
        assert (await bucket.get("x")).generation == restored.generation

    async def test_a_version_is_deleted_for_good_by_its_generation(
        self, buckets: Buckets, bucket: Bucket
    ) -> None:
        if not bucket.abilities.versions:
            return
        await versioned(buckets)
        made = [await put(bucket, "x", b"%d" % number) for number in range(4)]
        await bucket.delete("x", made[1].generation)
        await bucket.delete("x", made[3].generation)  # the live one
        for gone in (made[1], made[3]):
            for doing in (bucket.get, bucket.delete, lambda n, g: bucket.read(n, generation=g)):
                with pytest.raises(NotFound):
                    await doing("x", gone.generation)
        assert [one[1] for one in await told_versions(bucket)] == [made[0].generation, made[2].generation]
        with pytest.raises(Conflict, match="not empty"):
            await buckets.remove("shed")
        await versioned(buckets, on=False)
        await put(bucket, "x", b"new")
        await put(bucket, "x", b"newer")
        await bucket.delete("x")
        assert [one[1] for one in await told_versions(bucket)] == [made[0].generation, made[2].generation]
        for one in (made[0], made[2]):
            await bucket.delete("x", one.generation)
        await buckets.remove("shed")

    async def test_sources_that_a_draft_removes_stay_as_versions(
        self, buckets: Buckets, bucket: Bucket
    ) -> None:
        if not bucket.abilities.versions:
            return
        await versioned(buckets)
        source = await put(bucket, "part", b"p")
        made = await bucket.put(ObjectDraft(name="all", removes=(source,)), pieces(b"p"))
        expected = [("all", made.generation, True), ("part", source.generation, False)]
        assert await told_versions(bucket) == expected

    async def test_versions_are_told_page_by_page_and_below_prefixes(
        self, buckets: Buckets, bucket: Bucket
    ) -> None:
        if not bucket.abilities.versions:
            return
        await versioned(buckets)
        for name in ("a", "d/x", "d/y", "e", "d/x", "a", "a", "e"):
            await put(bucket, name)
        await bucket.delete("e")
        told = await told_versions(bucket)
        assert [one[0] for one in told] == ["a"] * 3 + ["d/x"] * 2 + ["d/y"] + ["e"] * 2
        assert told == sorted(told)
        for size in (1, 2, 3, 7, 8):
            assert await told_versions(bucket, size=size) == told
        assert [one[0] for one in await told_versions(bucket, prefix="d/", size=2)] == ["d/x", "d/x", "d/y"]
        level = await bucket.find(ObjectQuery(versions=True, delimiter="/"))
        assert (names(level), level.prefixes) == (["a"] * 3 + ["e"] * 2, ("d/",))
        for size in (1, 2, 3, 4):
            asked, got, prefixes = ObjectQuery(versions=True, delimiter="/", size=size), [], []
            while True:
                page = await bucket.find(asked)
                got += names(page)
                prefixes += page.prefixes
                if not page.next_after:
                    break
                asked = replace(asked, after=page.next_after, after_generation=page.next_generation)
            assert (got, prefixes) == (names(level), ["d/"]), size

    async def test_many_writers_of_one_name_leave_every_version(
        self, buckets: Buckets, bucket: Bucket
    ) -> None:
        if not bucket.abilities.versions:
            return
        await versioned(buckets)
        made = await asyncio.gather(*(put(bucket, "x", b"%d" % number) for number in range(30)))
        assert len(await told_versions(bucket)) == 30
        for number, one in enumerate(made):
            assert await whole(await bucket.read("x", generation=one.generation)) == b"%d" % number

    # ---- what only those that survive can show

    async def test_another_process_finds_objects_buckets_and_uploads(
        self, buckets: Buckets, bucket: Bucket, tmp_path: Path, clock: Steps
    ) -> None:
        if not self.survives:
            pytest.skip("kept in memory: nothing survives the process")
        odd = ODD if bucket.abilities.any_name else ("plain.txt", "d/\u00e9", "100%.txt")
        kept = [await put(bucket, name, name.encode()) for name in odd]
        upload = await bucket.begin(ObjectDraft(name="up", size=9))
        await bucket.append(upload.id, 0, pieces(b"12345"))
        done = await bucket.begin(ObjectDraft(name="done"))
        made = await bucket.finish(done.id)
        other = self.make(tmp_path / "buckets", clock)
        await other.start()
        again = other.open("shed")
        assert await again.upload(upload.id) == replace(upload, received=5)
        assert await again.finish(done.id) == made
        await again.append(upload.id, 5, pieces(b"6789"))
        assert (await again.finish(upload.id)).crc32c == CHECK_CRC32C
        for one in kept:
            assert await again.get(one.name) == one
            assert await content(again, one.name) == one.name.encode()
        later = await put(again, "later")
        assert later.generation > kept[-1].generation or not bucket.abilities.rising
        await other.close()

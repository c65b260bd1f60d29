"""The real google-cloud-storage, and gcsfs, unmodified, pointed at a live server by one variable."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.conformance.sdk_session import PYTHON, Sdk, SdkError
from tests.live import LiveServer

Unique = Callable[[str], str]

pytestmark = [
    pytest.mark.needs_sdk,
    pytest.mark.slow,
    pytest.mark.skipif(not PYTHON.exists(), reason="google-cloud-storage is not in .venv-sdk: make sdk"),
]

ODD = [
    "a:b",
    "../../etc/passwd",
    "a//b",
    "größe 大 🚂",
    "100% sure?#&+=",
    " space ",
    "a/b/",
    "%2F",
    "x" * 1000,
]


@pytest.mark.parametrize(
    ("size", "chunk"),
    [(0, None), (50, None), (9 << 20, None), (2_500_000, 1 << 20), (1 << 20, 1 << 18), (0, 1 << 18)],
)
def test_files_go_up_and_down_in_one_piece_or_many(
    sdk: Sdk, server: LiveServer, unique: Unique, size: int, chunk: int | None
) -> None:
    told = sdk("buckets.transfer", server, bucket=unique("transfer"), size=size, chunk=chunk)
    assert told == [True, True, "a/b", True, True]


def test_a_file_like_object_writes_without_knowing_its_end(
    sdk: Sdk, server: LiveServer, unique: Unique
) -> None:
    assert sdk("buckets.file_like", server, bucket=unique("lines")) == 100_000


def test_odd_names_come_back_as_they_were(sdk: Sdk, server: LiveServer, unique: Unique) -> None:
    assert sdk("buckets.names", server, bucket=unique("odd"), given=ODD) == sorted(ODD, key=str.encode)


def test_lists_are_cut_by_prefix_and_delimiter_and_paged(
    sdk: Sdk, server: LiveServer, unique: Unique
) -> None:
    bucket, given = unique("list"), ["a", "b/1", "b/2/x", "c/1", "d"]

    def listed(**query: Any) -> object:
        return sdk("buckets.listed", server, bucket=bucket, given=given, **query)

    assert listed() == [given, []]
    assert listed(delimiter="/") == [["a", "d"], ["b/", "c/"]]
    assert listed(prefix="b/", delimiter="/") == [["b/1"], ["b/2/"]]
    assert listed(page_size=2) == [given, []]
    assert listed(delimiter="/", page_size=1) == [["a", "d"], ["b/", "c/"]]
    assert listed(start_offset="b/2", end_offset="d") == [["b/2/x", "c/1"], []]
    assert listed(fields="items(name),nextPageToken", page_size=2) == [given, []]


def test_a_generation_of_zero_is_a_lock(sdk: Sdk, server: LiveServer, unique: Unique) -> None:
    bucket = unique("lock")
    generation = sdk("buckets.write_if", server, bucket=bucket, name="lock", generation=0)
    with pytest.raises(SdkError) as refused:
        sdk("buckets.write_if", server, bucket=bucket, name="lock", generation=0)
    assert refused.value.type == "PreconditionFailed"
    assert sdk("buckets.write_if", server, bucket=bucket, name="lock", generation=generation) > generation


def test_objects_are_composed_copied_renamed_and_described(
    sdk: Sdk, server: LiveServer, unique: Unique
) -> None:
    assert sdk("buckets.composed", server, bucket=unique("compose")) == ["012", 3]
    assert sdk("buckets.copied", server, bucket=unique("copy")) == [
        [5, 5, "NEARLINE", {"k": "v"}, "text/plain", "bytes"],
        ["bytes", False],
    ]
    assert sdk("buckets.described", server, bucket=unique("describe")) == [{"a": "1"}, "no-store", 3, True]


def test_a_batch_does_many_things_in_one_request(sdk: Sdk, server: LiveServer, unique: Unique) -> None:
    assert sdk("buckets.batched", server, bucket=unique("batch")) == ["b/3"]


def test_parts_of_a_file_go_at_the_same_time(sdk: Sdk, server: LiveServer, unique: Unique) -> None:
    assert sdk("buckets.in_parallel", server, bucket=unique("parallel"), size=17 << 20)


def test_obstore_reads_and_writes(sdk: Sdk, server: LiveServer, unique: Unique) -> None:
    told = sdk("buckets.through_obstore", server, bucket=unique("obstore"))
    if told == ["absent"]:
        pytest.skip("obstore is not in .venv-sdk: make sdk")
    assert told == [["a/b.txt", "big", "e f:ü"], True, True, True, [5, True], ["a"], []]


def test_a_bucket_goes_with_all_that_is_in_it(sdk: Sdk, server: LiveServer, unique: Unique) -> None:
    assert sdk("buckets.gone", server, bucket=unique("gone")) == []


def test_a_wrong_token_in_the_address_is_told_as_such(sdk: Sdk, server: LiveServer, unique: Unique) -> None:
    with pytest.raises(SdkError) as refused:
        sdk("buckets.gone", server, token="wrong-token-of-some-length", bucket=unique("wrong"))
    assert refused.value.type == "Forbidden"
    assert "The token in the address is not the one of this server" in refused.value.text


def test_gcsfs_reads_and_writes(sdk: Sdk, server: LiveServer, unique: Unique) -> None:
    told = sdk("buckets.through_gcsfs", server, bucket=unique("gcsfs"))
    if told == ["absent"]:
        pytest.skip("gcsfs is not in .venv-sdk: make sdk")
    assert told == [["/a/b.txt", "/big", "/e.txt"], True, True, False]


def test_old_versions_are_told_read_restored_and_deleted(
    sdk: Sdk, server: LiveServer, unique: Unique
) -> None:
    assert sdk("buckets.versions", server, bucket=unique("versions")) == [
        [True, True],
        "first",
        ["second", "first"],
        True,
        [{"age": 365, "numNewerVersions": 9, "isLive": False}],
    ]


def test_gcsfs_knows_old_versions(sdk: Sdk, server: LiveServer, unique: Unique) -> None:
    told = sdk("buckets.versions_through_gcsfs", server, bucket=unique("gcsfs-versions"))
    if told == ["absent"]:
        pytest.skip("gcsfs is not in .venv-sdk: make sdk")
    assert told == [["v1", "v2"], True, True]

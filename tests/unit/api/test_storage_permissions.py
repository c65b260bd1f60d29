"""No method of the storage API is reachable around the guard, whoever adds one."""

import re

import pytest

from tests.builders import T0
from trainshed.api.call import Call, Method, RawAnswer
from trainshed.api.route import Route
from trainshed.api.storage_table import StorageHandlers, storage_methods
from trainshed.core.accounts.permission import principal_of_job
from trainshed.core.bucket import BucketInfo
from trainshed.service.storage import StorageService
from trainshed.testing.bucket import MemoryBuckets


class StillClock:
    def now(self):
        return T0


BUCKETS = MemoryBuckets(StillClock())
METHODS = storage_methods(StorageHandlers.of(StorageService(BUCKETS, StillClock())))
HARMLESS = {("GET", "/storage/v1/b"), ("POST", "/batch/storage/v1")}  # cut to the project; only an envelope


def a_bucket(name: str, project: str) -> BucketInfo:
    return BucketInfo(name=name, project=project, location="US", created_at=T0, updated_at=T0)


async def look(bucket: str) -> BucketInfo:
    return a_bucket(bucket, {"theirs": "p2", "mine": "p1"}[bucket])


def a_call(method: Method, **given: str) -> Call:
    names = re.findall(r"{(\w+)(?:\.\.\.)?}", method.path)
    path = {name: given.get(name, "something") for name in names}
    return Call(
        path=path,
        query={},
        body={},
        headers={},
        base_url="",
        principal=principal_of_job("1", "p1"),
        look=look,
    )


@pytest.mark.parametrize("method", METHODS, ids=lambda one: f"{one.verb} {one.path}")
async def test_a_job_reaches_no_bucket_of_another_project(method: Method) -> None:
    if (method.verb, method.path) in HARMLESS:
        return
    answer = await Route(method).answer(a_call(method, bucket="theirs", target="mine"))
    assert isinstance(answer, RawAnswer)
    assert answer.status == 403, answer
    if "{target}" in method.path:
        answer = await Route(method).answer(a_call(method, bucket="mine", target="theirs"))
        assert isinstance(answer, RawAnswer)
        assert answer.status == 403, answer


async def test_a_list_of_buckets_is_cut_to_the_jobs_project() -> None:
    for name, project in (("mine", "p1"), ("theirs", "p2"), ("free", "")):
        await BUCKETS.create(a_bucket(name, project))
    method = next(one for one in METHODS if (one.verb, one.path) == ("GET", "/storage/v1/b"))
    answer = await Route(method).answer(a_call(method))
    assert isinstance(answer, RawAnswer)
    assert isinstance(answer.content, bytes)
    assert re.findall(rb'"name": "(\w+)"', answer.content) == [b"free", b"mine"]

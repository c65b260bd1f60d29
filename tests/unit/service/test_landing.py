"""Whether results have a place to land, over buckets in memory."""

from dataclasses import replace

import pytest

from tests.builders import T0, a_job
from tests.unit.control.stepped import SteppedClock
from trainshed.core.bucket import BucketInfo
from trainshed.core.errors import Unavailable
from trainshed.core.event import Event, Reason, Severity
from trainshed.core.jobs.origin import Origin
from trainshed.service.results_check import ResultsCheck
from trainshed.testing.bucket import MemoryBuckets


async def told(output: str, field: str = "", buckets: MemoryBuckets | None = None) -> tuple[Event, ...]:
    if buckets is None:
        buckets = MemoryBuckets(SteppedClock())
        for name, project, scheme in (
            *(("mine", "shed", "gs"), ("nobodys", "", "gs")),
            *(("theirs", "other", "gs"), ("far", "shed", "s3")),
        ):
            info = BucketInfo(name=name, project=project, location="US", created_at=T0, updated_at=T0)
            await buckets.create(replace(info, scheme=scheme))
    job = a_job(output=output)
    origin = Origin(kind="another", record={}, output_field=field)
    return await ResultsCheck(buckets).events(replace(job, origin=origin if field else None), T0)


@pytest.mark.parametrize(
    "output",
    ["gs://mine/x", "gs://nobodys", "/gcs/mine/x", "s3://mine/x", "gs://far/x", "file:///x", "/x", ""],
)
async def test_where_results_can_land_or_none_are_asked_for_nothing_is_told(output: str):
    assert await told(output) == ()


@pytest.mark.parametrize("output", ["gs://none-yet/x", "gs://none-yet", "/gcs/none-yet/x"])
async def test_a_missing_bucket_is_told_with_the_command_that_makes_it(output: str):
    (event,) = await told(output)
    assert (event.reason, event.severity) == (Reason.NO_BUCKET, Severity.WARNING)
    assert event.message.endswith("trainshed storage buckets create gs://none-yet --project shed")


@pytest.mark.parametrize("bucket", ["YOUR_BUCKET", "ab", "google-things", "192.168.0.1"])
async def test_nobody_is_told_to_make_a_bucket_that_cannot_be_made(bucket: str):
    (event,) = await told(f"gs://{bucket}/x")
    assert f"no bucket gs://{bucket}" in event.message
    assert "buckets create" not in event.message


@pytest.mark.parametrize(
    ("given", "field"),
    [("", "jobSpec.baseOutputDirectory"), ("trainingInput.jobDir", "trainingInput.jobDir")],
)
async def test_the_field_is_named_as_its_owner_wrote_it(given: str, field: str):
    for output in ("gs://none-yet/x", "gs://theirs/x", "s3://elsewhere/x"):
        (event,) = await told(output, given)
        assert event.message.startswith(f"{field}: ")


@pytest.mark.parametrize("output", ["s3://elsewhere/x", "s3://far/x"])
async def test_of_a_store_behind_s3_it_is_told_that_the_program_writes_itself(output: str):
    (event,) = await told(output)
    assert (event.reason, event.severity) == (Reason.OUTPUTS_ELSEWHERE, Severity.INFO)
    assert output in event.message


@pytest.mark.parametrize("output", ["gs://theirs/x", "s3://theirs/x"])
async def test_a_bucket_of_another_project_is_no_place(output: str):
    (event,) = await told(output)
    assert event.reason is Reason.NO_BUCKET
    assert "another project" in event.message


async def test_what_cannot_be_asked_now_keeps_nobody_from_submitting():
    class Silent(MemoryBuckets):
        async def get(self, bucket: str) -> BucketInfo:
            raise Unavailable

    assert await told("gs://mine/x", buckets=Silent(SteppedClock())) == ()

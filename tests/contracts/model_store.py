"""What every store promises of models (`core.model.ModelStore`) and of kinds of jobs: inherit it."""

from dataclasses import replace
from datetime import timedelta
from typing import Protocol

import pytest

from tests.contracts.store_values import RUNNING, SPEC, T0, a_deletion, a_job, ended
from trainshed.core.errors import AlreadyExists, NotFound
from trainshed.core.jobs.job import PIPELINE, Job, JobState
from trainshed.core.jobs.origin import Origin
from trainshed.core.model import Model, ModelQuery, ModelStore, model_of, order
from trainshed.core.ports import Operation, Store
from trainshed.core.query import Compare, JobQuery, Operator, QueryField


class BothStores(Store, ModelStore, Protocol):
    """Jobs and models in one."""


def a_pipeline(number: int = 1, identity: str = "", display_name: str = "digits") -> Job:
    asked = order(display_name, identity, {"team": "vision"}, {"description": "größe"})
    spec = replace(SPEC, output="gs://bucket/out/")
    origin = Origin(kind=PIPELINE, record={"said": {"a": [1.5, None]}, "model": asked})
    return a_job(number, spec=spec, origin=origin, extras={"encryptionSpec": {"kmsKeyName": "k"}})


def a_removal(model: Model, number: int = 1) -> Operation:
    return Operation(name=f"operations/{number}", kind="delete-model", target=model.name, created_at=T0)


async def trained(store: BothStores, job: Job) -> Job:
    return await store.write(await store.insert(job, ()), ended())


class ModelStoreContract:
    async def test_a_model_is_there_from_its_job_s_success_on(self, store: BothStores) -> None:
        job = await store.insert(a_pipeline(), ())
        wanted = model_of(job)
        assert wanted is not None
        assert wanted.artifact == "gs://bucket/out/model"
        for status in (None, RUNNING):
            job = job if status is None else await store.write(job, status)
            with pytest.raises(NotFound):
                await store.model("p", "us-central1", wanted.id)
            assert (await store.models(ModelQuery(project="p"))).models == ()
        job = await store.write(job, ended())
        found = await store.model("p", "us-central1", wanted.id)
        assert found == replace(wanted, created_at=job.status.ended_at)
        assert (await store.models(ModelQuery(project="p"))).models == (found,)

    @pytest.mark.parametrize("state", [JobState.FAILED, JobState.CANCELLED])
    async def test_any_other_end_makes_none_and_frees_its_name(
        self, store: BothStores, state: JobState
    ) -> None:
        job = await store.insert(a_pipeline(1, "mine"), ())
        await store.write(job, replace(ended(), state=state))
        with pytest.raises(NotFound):
            await store.model("p", "us-central1", "mine")
        await trained(store, a_pipeline(2, "mine"))
        assert (await store.model("p", "us-central1", "mine")).job == a_pipeline(2).id

    async def test_a_name_is_taken_with_the_insert_or_nothing_is_kept(self, store: BothStores) -> None:
        first = await store.insert(a_pipeline(1, "mine"), ())
        with pytest.raises(AlreadyExists, match="models/mine"):
            await store.insert(a_pipeline(2, "mine"), ())
        assert await store.load(a_pipeline(2).id) is None
        await store.write(first, ended())
        with pytest.raises(AlreadyExists, match="models/mine"):
            await store.insert(a_pipeline(2, "mine"), ())
        elsewhere = replace(a_pipeline(3, "mine"), location="europe-west4")
        await trained(store, elsewhere)
        assert (await store.model("p", "europe-west4", "mine")).job == elsewhere.id

    async def test_a_request_sent_again_takes_no_second_name(self, store: BothStores) -> None:
        first = await store.insert(a_pipeline(1, "mine"), (), "key")
        assert await store.insert(a_pipeline(1, "mine"), (), "key") == first

    async def test_a_model_outlives_its_job_and_goes_alone(self, store: BothStores) -> None:
        job = await trained(store, a_pipeline())
        await store.delete(job, a_deletion(job))
        model = await store.model("p", "us-central1", job.id)
        other = await trained(store, a_pipeline(2))
        await store.delete_model(model, a_removal(model))
        assert (await store.operation("operations/1")).target == model.name
        with pytest.raises(NotFound):
            await store.model("p", "us-central1", job.id)
        with pytest.raises(NotFound):
            await store.delete_model(model, a_removal(model, 2))
        assert await store.load(other.id) == other

    async def test_the_deletion_of_a_model_is_not_taken_for_that_of_its_job(self, store: BothStores) -> None:
        job = await trained(store, a_pipeline())
        model = await store.model("p", "us-central1", job.id)
        await store.delete_model(model, a_removal(model))
        assert await store.deleted(frozenset({job.id})) == frozenset()

    async def test_a_model_being_trained_cannot_be_deleted(self, store: BothStores) -> None:
        model = model_of(await store.insert(a_pipeline(), ()))
        assert model is not None
        with pytest.raises(NotFound):
            await store.delete_model(model, a_removal(model))

    async def test_models_come_in_pages_newest_first_and_by_condition(self, store: BothStores) -> None:
        for number in range(5):
            job = await store.insert(a_pipeline(number, display_name=f"m{number % 2}"), ())
            at = T0 + timedelta(minutes=number)
            await store.write(job, replace(ended(), ended_at=at))
        query = ModelQuery(project="p", location="us-central1", limit=2)
        seen: list[str] = []
        while True:
            page = await store.models(query)
            seen += [model.job for model in page.models]
            if page.next_cursor is None:
                break
            query = replace(query, cursor=page.next_cursor)
        assert seen == [a_pipeline(number).id for number in (4, 3, 2, 1, 0)]
        for condition, count in (
            (Compare(QueryField.DISPLAY_NAME, Operator.EQ, "m0"), 3),
            (Compare(QueryField.DISPLAY_NAME, Operator.LIKE, "m*"), 5),
            (Compare(QueryField.LABEL, Operator.EQ, "vision", "team"), 5),
            (Compare(QueryField.LABEL, Operator.LIKE, "*", "none"), 0),
            (Compare(QueryField.CREATED, Operator.GT, T0 + timedelta(minutes=3)), 1),
            (Compare(QueryField.ID, Operator.EQ, a_pipeline(1).id), 1),
        ):
            found = await store.models(ModelQuery(project="p", where=condition))
            assert len(found.models) == count, condition
        assert (await store.models(ModelQuery(project="q"))).models == ()

    async def test_jobs_are_found_by_kind(self, store: BothStores) -> None:
        await store.insert(a_job(1), ())
        pipeline = await store.insert(a_pipeline(2), ())
        legacy = await store.insert(a_job(3, origin=Origin(kind="legacy", record={})), ())
        assert (await store.find(JobQuery(project="p", kind="pipeline"))).jobs == (pipeline,)
        assert (await store.find(JobQuery(project="p", kind="legacy"))).jobs == (legacy,)
        assert len((await store.find(JobQuery(project="p"))).jobs) == 3
        assert await store.load(pipeline.id) == pipeline

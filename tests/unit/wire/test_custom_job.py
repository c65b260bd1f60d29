from datetime import timedelta
from typing import Any

import pytest

from tests.unit.wire.bodies import NOW, a_body, a_job, a_pool, faults, parsed
from trainshed.core.event import Reason
from trainshed.core.jobs.job import Failure, JobState, Pool, planned_replicas
from trainshed.core.jobs.nfs import NfsMount
from trainshed.core.queue.machine import GIB
from trainshed.wire.custom_job import parse_job_file, render_custom_job, render_spec

POOLS = "job_spec.worker_pool_specs"


def test_a_small_job_becomes_core_values() -> None:
    draft = parsed(a_body())
    assert draft.display_name == "mine"
    assert draft.spec.pools == (
        Pool(
            machine_type="n1-standard-4",
            cpus=4,
            memory=15 * GIB,
            replicas=1,
            image="trainshed/python:3",
            args=("-c", "pass"),
        ),
    )
    assert draft.spec.scheduling.timeout == timedelta(days=7)


def test_snake_case_and_numbers_as_doubles_are_understood() -> None:
    pool = {
        "machine_spec": {"machine_type": "n1-standard-4", "accelerator_type": 5.0, "accelerator_count": 1.0},
        "replica_count": 2.0,
        "containerSpec": {"imageUri": "i"},
        "python_package_spec": None,
    }
    body = {"display_name": "x", "job_spec": {"worker_pool_specs": [pool]}}
    found = parsed(body).spec.pools[0]
    assert (found.replicas, found.accelerator, found.accelerators) == (2, "NVIDIA_TESLA_T4", 1)


def test_what_a_body_lacks_is_told_at_once() -> None:
    assert set(faults({})) == {"display_name", POOLS}
    assert set(faults({"displayName": "x" * 129, "jobSpec": {"workerPoolSpecs": [{}]}})) == {
        "display_name",
        POOLS,
    }


def test_a_display_name_is_counted_in_characters() -> None:
    assert parsed(a_body() | {"displayName": "é" * 128}).display_name == "é" * 128


def test_an_empty_pool_holds_its_place() -> None:
    spec = parsed(a_body(a_pool(), {}, a_pool())).spec
    assert [pool.replicas for pool in spec.pools] == [1, 0, 1]
    assert render_custom_job(a_job(a_body(a_pool(), {}, a_pool())))["jobSpec"]["workerPoolSpecs"][1] == {}


def test_the_first_pool_may_be_empty_or_have_several_replicas() -> None:
    assert [p.replicas for p in parsed(a_body({}, a_pool(replicaCount=4))).spec.pools] == [0, 4]
    assert parsed(a_body(a_pool(replicaCount="1000"))).spec.pools[0].replicas == 1000


def test_eleven_pools_are_one_too_many() -> None:
    assert faults(a_body(*[a_pool()] * 11)) == {POOLS: "must have at most 10 pools, not 11."}


@pytest.mark.parametrize("count", [0, "0", -1, "-5", 1001, "9" * 18])
def test_a_count_out_of_range_is_refused(count: object) -> None:
    assert list(faults(a_body(a_pool(replicaCount=count)))) == [f"{POOLS}[0].replica_count"]


def test_an_absent_count_is_one() -> None:
    assert parsed(a_body(a_pool(replicaCount=None))).spec.pools[0].replicas == 1


def test_an_unknown_machine_is_named_and_close_ones_are_suggested() -> None:
    sentence = faults(a_body(a_pool(machineSpec={"machineType": "n1-standrad-4"})))[
        f"{POOLS}[0].machine_spec.machine_type"
    ]
    assert '"n1-standrad-4" is not a known machine type. Did you mean n1-standard-4' in sentence
    far = faults(a_body(a_pool(machineSpec={"machineType": "zzz"})))[f"{POOLS}[0].machine_spec.machine_type"]
    assert "n1-standard-N (1 to 96)" in far


@pytest.mark.parametrize(
    ("machine", "kind", "count", "field"),
    [
        ("", None, None, "machine_type"),
        ("n1-standard-4", "NVIDIA_T5", 1, "accelerator_type"),
        ("n1-standard-4", "NVIDIA_TESLA_T4", None, "accelerator_count"),
        ("n1-standard-4", None, 1, "accelerator_type"),
        ("n1-standard-4", None, -1, "accelerator_count"),
        ("n1-standard-4", 99, 1, "accelerator_type"),
        ("a2-highgpu-8g", "NVIDIA_TESLA_A100", 4, "accelerator_count"),
        ("a2-highgpu-8g", "NVIDIA_TESLA_T4", 8, "accelerator_type"),
    ],
)
def test_a_machine_that_cannot_be_is_refused_at_the_field(
    machine: str, kind: object, count: object, field: str
) -> None:
    spec = {"machineType": machine, "acceleratorType": kind, "acceleratorCount": count}
    assert list(faults(a_body(a_pool(machineSpec=spec)))) == [f"{POOLS}[0].machine_spec.{field}"]


def test_accelerators_that_are_part_of_a_machine_need_not_be_named() -> None:
    pool = parsed(a_body(a_pool(machineSpec={"machineType": "a2-highgpu-8g"}))).spec.pools[0]
    assert (pool.accelerator, pool.accelerators) == ("NVIDIA_TESLA_A100", 8)


def test_the_name_tpu_v4_is_answered_as_the_api_knows_it() -> None:
    machine = {"machineType": "cloud-tpu", "acceleratorType": "TPU_V4", "acceleratorCount": 8}
    spec = render_custom_job(a_job(a_body(a_pool(machineSpec=machine))), enum_ints=True)["jobSpec"]
    assert spec["workerPoolSpecs"][0]["machineSpec"]["acceleratorType"] == 10


def test_exactly_one_program_is_required() -> None:
    python = {"executorImageUri": "i", "pythonModule": "trainer.task"}
    assert list(faults(a_body(a_pool(containerSpec=None)))) == [f"{POOLS}[0].container_spec"]
    assert list(faults(a_body(a_pool(pythonPackageSpec=python)))) == [f"{POOLS}[0].python_package_spec"]
    pool = parsed(a_body(a_pool(containerSpec=None, pythonPackageSpec=python))).spec.pools[0]
    assert (pool.image, pool.module) == ("i", "trainer.task")


def test_an_image_that_cannot_run_is_refused_with_the_backends_sentence() -> None:
    found = faults(a_body(a_pool(containerSpec={"imageUri": "refused:1"}), a_pool(containerSpec={})))
    assert found == {
        f"{POOLS}[0].container_spec.image_uri": "The image refused:1 cannot run here.",
        f"{POOLS}[1].container_spec.image_uri": "is required.",
    }


@pytest.mark.parametrize("module", ["", "a-b", "a..b", "a b", ".a", "a/b"])
def test_a_python_module_has_a_dotted_name(module: str) -> None:
    python = {"executorImageUri": "i", "pythonModule": module}
    assert list(faults(a_body(a_pool(containerSpec=None, pythonPackageSpec=python)))) == [
        f"{POOLS}[0].python_package_spec.python_module"
    ]


def test_an_address_that_may_not_be_a_package_is_refused_at_its_place() -> None:
    python = {"executorImageUri": "i", "pythonModule": "m", "packageUris": ["/p.tar.gz"]}
    found = faults(a_body(a_pool(containerSpec=None, pythonPackageSpec=python)))
    assert "own machine" in found[f"{POOLS}[0].python_package_spec.package_uris[0]"]


def test_the_environment_is_checked_name_by_name() -> None:
    env: list[dict[str, str]] = [
        {"name": "A"},
        {"name": "A"},
        {"value": "x"},
        {"name": "B=C"},
        {"name": "D\0"},
    ]
    env += [{"name": f"V{number}"} for number in range(96)]
    found = faults(a_body(a_pool(containerSpec={"imageUri": "i", "env": env})))
    path = f"{POOLS}[0].container_spec.env"
    assert set(found) == {path, *(f"{path}[{number}].name" for number in (1, 2, 3, 4))}


@pytest.mark.parametrize("args", [["x" * 131_072], ["é" * 66_000], ["x" * 100_000] * 11])
def test_a_program_too_large_to_start_is_refused(args: list[str]) -> None:
    found = faults(a_body(a_pool(containerSpec={"imageUri": "i", "args": args})))
    assert list(found) == [f"{POOLS}[0].container_spec"]


@pytest.mark.parametrize(
    "place",
    [
        "gs://b/o",
        "s3://b",
        "file:///x",
        "/var/out",
        "gs://b/x-2026-11-15-00:39:35.996",
        "gs://b/",
        "gs://b/o/",
    ],
)
def test_results_may_go_to_a_bucket_or_a_folder(place: str) -> None:
    spec = parsed(a_body(baseOutputDirectory={"outputUriPrefix": place})).spec
    assert spec.output == place


UNPATHABLE = [
    *("gs://b/a//b", "gs://b/a/../c", "gs://b/./c", "gs://b/..", "gs://b//", "s3://b/a//c", "/gcs/b/a/../c"),
    *("gs://b/a\nb", "gs://b/a\x7f", "gs://b/" + "é" * 513, "gs:///a"),
]


@pytest.mark.parametrize("place", ["gs://", "out", "http://x", "../x", *UNPATHABLE])
def test_results_may_go_nowhere_else(place: str) -> None:
    found = faults(a_body(baseOutputDirectory={"outputUriPrefix": place}))
    assert list(found) == ["job_spec.base_output_directory.output_uri_prefix"]


@pytest.mark.parametrize(
    "labels", [{"team": "vision-2"}, {"é": "ü"}, {"k": ""}, {"a" * 63: "b" * 63}, {"日本": "語"}]
)
def test_labels_by_googles_rules_are_taken(labels: dict[str, str]) -> None:
    assert parsed(a_body() | {"labels": labels}).labels == labels


@pytest.mark.parametrize(
    "labels", [{"Team": "x"}, {"k": "X"}, {"": "x"}, {"1k": ""}, {"a" * 64: ""}, {"k": "b" * 64}, {"a.b": ""}]
)
def test_other_labels_are_refused(labels: dict[str, str]) -> None:
    assert list(faults(a_body() | {"labels": labels})) == [f"labels.{key}" for key in labels]


def test_there_are_at_most_64_labels() -> None:
    assert list(faults(a_body() | {"labels": {f"k{number}": "" for number in range(65)}})) == ["labels"]


def test_wrong_types_and_wrong_values_are_told_together() -> None:
    pools: list[Any] = ["x", a_pool(replicaCount="1.5", machineSpec={"machineType": 4}), a_pool(bogus=1)]
    pools += [a_pool(replicaCount=0)] * 8
    found = faults(
        {"displayName": 5, "jobSpec": {"workerPoolSpecs": pools, "scheduling": {"timeout": "-1s"}}}
    )
    assert set(found) == {
        "display_name",
        f"{POOLS}[0]",
        f"{POOLS}[1].replica_count",
        f"{POOLS}[1].machine_spec.machine_type",
        f"{POOLS}[2].bogus",
        *(f"{POOLS}[{number}].replica_count" for number in range(3, 11)),
        POOLS,
        "job_spec.scheduling.timeout",
    }


EXTRAS = {
    "experiment": "e",
    "tensorboard": "t",
    "models": ["m"],
    "network": "n",
    "serviceAccount": "s",
    "reservedIpRanges": ["10.0.0.0/8"],
    "enableDashboardAccess": True,
    "protectedArtifactLocationId": "l",
}


def test_a_persistent_resource_becomes_a_core_value_and_is_echoed() -> None:
    spec = parsed(a_body(a_pool(), persistentResourceId="my-cluster")).spec
    assert spec.persistent_resource == "my-cluster"
    assert render_spec(spec)["persistentResourceId"] == "my-cluster"


def test_mounts_disk_and_isolation_become_core_values() -> None:
    pool = a_pool(
        diskSpec={"bootDiskSizeGb": 100},
        nfsMounts=[{"server": "10.0.0.2", "path": "/export", "mountPoint": "data"}],
    )
    spec = parsed(a_body(pool, network="none")).spec
    assert spec.isolated
    assert spec.pools[0].disk == 100 * GIB
    assert spec.pools[0].nfs == (NfsMount(server="10.0.0.2", path="/export", mount_point="data"),)
    plain = parsed(a_body(a_pool(diskSpec={"bootDiskType": "pd-ssd"}), network="vpc")).spec
    assert (plain.isolated, plain.pools[0].disk, plain.pools[0].nfs) == (False, 0, ())


def test_every_wrong_mount_and_disk_is_told() -> None:
    mounts = [{"server": "a,b", "path": "x", "mountPoint": "../up"}] + [{}] * 32
    told = faults(a_body(a_pool(diskSpec={"bootDiskSizeGb": -5}, nfsMounts=mounts)))
    first = f"{POOLS}[0].nfs_mounts"
    assert {first, f"{first}[0].server", f"{first}[0].path", f"{first}[0].mount_point"} <= set(told)
    assert {f"{first}[32].server", f"{POOLS}[0].disk_spec.boot_disk_size_gb"} <= set(told)


def test_what_is_not_acted_on_is_echoed_unchanged() -> None:
    pool = a_pool(
        machineSpec={
            "machineType": "n1-standard-4",
            "tpuTopology": "2x2",
            "reservationAffinity": {"reservationAffinityType": "ANY_RESERVATION", "values": ["v"]},
        },
        diskSpec={"bootDiskType": "pd-ssd", "bootDiskSizeGb": 100},
        nfsMounts=[{"server": "s", "path": "/p", "mountPoint": "m"}],
    )
    body = a_body(pool, **EXTRAS, scheduling={"timeout": "60s"}) | {"encryptionSpec": {"kmsKeyName": "k"}}
    answer = render_custom_job(a_job(body))
    assert answer["jobSpec"] == body["jobSpec"]
    assert answer["encryptionSpec"] == {"kmsKeyName": "k"}


def test_what_is_not_acted_on_is_still_checked() -> None:
    wrong = dict.fromkeys(EXTRAS, 5)
    assert len(faults(a_body(**wrong))) == len(EXTRAS)


def test_an_answer_can_be_submitted_again() -> None:
    body = a_body(
        a_pool(), {}, **EXTRAS, enableWebAccess=True, scheduling={"priority": 2, "strategy": "SPOT"}
    )
    job = a_job(body | {"labels": {"a": "b"}}, state=JobState.FAILED, started_at=NOW, ended_at=NOW)
    for enum_ints in (True, False):
        again = parsed(render_custom_job(job, enum_ints=enum_ints, base_url="http://h"))
        assert (again.spec, again.labels) == (job.spec, job.labels)


def test_a_job_file_given_as_the_job_spec_is_taken_apart() -> None:
    inner = {"displayName": "inner", "jobSpec": {"workerPoolSpecs": [a_pool()], "network": "n"}}
    draft = parsed({"displayName": "outer", "jobSpec": inner | {"enableWebAccess": True, "network": "o"}})
    assert draft.display_name == "outer"
    assert draft.spec.web_access
    assert draft.spec.extras == {"network": "o"}
    assert parsed({"jobSpec": inner}).display_name == "inner"
    assert (
        parsed({"job_spec": {"display_name": "snake", "job_spec": inner["jobSpec"]}}).display_name == "snake"
    )


def test_a_job_spec_wrapped_three_times_is_refused() -> None:
    inner = {"jobSpec": {"jobSpec": {"workerPoolSpecs": [a_pool()]}}}
    assert "job_spec.jobSpec" in faults({"displayName": "x", "jobSpec": inner})


REDUCER: dict[str, object] = {
    "replicaCount": 2,
    "containerSpec": {"imageUri": "gcr.io/deeplearning-platform-release/reduction-server:latest"},
}


def test_reducers_inside_a_pool_become_pool_two() -> None:
    spec = parsed(a_body(a_pool(replicaCount=4, reductionServerSpec=REDUCER))).spec
    assert [pool.replicas for pool in spec.pools] == [4, 0, 2]
    assert spec.pools[2].is_reducer
    assert spec.pools[2].machine_type == "n1-highcpu-16"


def test_a_plain_pool_two_with_a_reducers_image_is_one_too() -> None:
    image = "us-docker.pkg.dev/vertex-ai-restricted/training/reductionserver:latest"
    spec = parsed(a_body(a_pool(), a_pool(), a_pool(containerSpec={"imageUri": image}), a_pool())).spec
    assert [pool.is_reducer for pool in spec.pools] == [False, False, True, False]


@pytest.mark.parametrize(
    "pools",
    [
        (a_pool(reductionServerSpec=REDUCER), {}, a_pool()),
        (a_pool(reductionServerSpec=REDUCER), a_pool(reductionServerSpec=REDUCER)),
        ({}, {}, a_pool(reductionServerSpec=REDUCER)),
    ],
)
def test_reducers_without_a_free_place_are_refused(pools: tuple[dict[str, Any], ...]) -> None:
    (field,) = faults(a_body(*pools))
    assert field.endswith(".reduction_server_spec")


def test_reducers_are_checked_at_their_own_path() -> None:
    found = faults(
        a_body(a_pool(reductionServerSpec={"replicaCount": 0, "machineSpec": {"machineType": "q"}}))
    )
    path = f"{POOLS}[0].reduction_server_spec"
    assert {f"{path}.replica_count", f"{path}.machine_spec.machine_type"} <= set(found)
    assert any(field.startswith(f"{path}.container_spec") for field in found)


@pytest.mark.parametrize(
    "document",
    [
        {"displayName": "d", "jobSpec": {"workerPoolSpecs": [a_pool()]}},
        {"displayName": "d", "workerPoolSpecs": [a_pool()]},
        {"display_name": "d", "worker_pool_specs": [a_pool()]},
    ],
)
def test_a_job_file_may_have_several_shapes(document: dict[str, object]) -> None:
    assert parsed(parse_job_file(document)) == parsed({**a_body(), "displayName": "d"})


def test_what_a_job_file_says_beyond_its_shape_is_refused_where_it_stands() -> None:
    assert "job_spec.bogus" in faults(parse_job_file({"displayName": "d", "workerPoolSpecs": [], "bogus": 1}))


def test_a_queued_job_is_told_without_what_has_not_happened() -> None:
    answer = render_custom_job(a_job())
    assert answer == {
        "name": "projects/p1/locations/us-central1/customJobs/123",
        "displayName": "mine",
        "jobSpec": {"workerPoolSpecs": [a_pool()], "scheduling": {"timeout": "604800s"}},
        "state": "JOB_STATE_QUEUED",
        "createTime": "2026-01-31T12:00:00.000005Z",
        "updateTime": "2026-01-31T12:00:00.000005Z",
    }


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        (Reason.PROGRAM_FAILED, 3),
        (Reason.PREPARATION_FAILED, 9),
        (Reason.TIMED_OUT, 4),
        (Reason.RETRIES_EXHAUSTED, 10),
        (Reason.SHRUNK, 2),
    ],
)
def test_a_failed_job_says_why_with_a_canonical_code(reason: Reason, code: int) -> None:
    failure = Failure(reason=reason, message="It broke.")
    answer = render_custom_job(a_job(state=JobState.FAILED, failure=failure, ended_at=NOW))
    assert answer["error"] == {"code": code, "message": "It broke."}
    assert answer["endTime"] == "2026-01-31T12:00:00.000005Z"


def test_a_cancelled_job_has_an_error_and_a_running_one_has_neither_error_nor_end() -> None:
    assert render_custom_job(a_job(state=JobState.CANCELLED))["error"]["code"] == 1
    failure = Failure(reason=Reason.PROGRAM_FAILED, message="x")
    answer = render_custom_job(a_job(state=JobState.RUNNING, failure=failure, ended_at=NOW))
    assert not {"error", "endTime"} & set(answer)


def test_shells_are_offered_only_where_asked_for_and_only_while_running() -> None:
    body = a_body(a_pool(replicaCount=2), enableWebAccess=True)
    replicas = planned_replicas(parsed(body).spec)
    running = render_custom_job(a_job(body, state=JobState.RUNNING, replicas=replicas), base_url="http://h:1")
    root = "http://h:1/shell/p1/us-central1/123"
    assert running["webAccessUris"] == {t: f"{root}/{t}" for t in ("workerpool0-0", "workerpool0-1")}
    assert "webAccessUris" not in render_custom_job(a_job(body, state=JobState.PENDING, replicas=replicas))
    assert "webAccessUris" not in render_custom_job(a_job(state=JobState.RUNNING, replicas=replicas))

"""The real SDK's training jobs over REST, unmodified, against a live server: pipelines, and their models."""

import io
import os
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.conftest import ROOMY
from tests.conformance.sdk_session import PYTHON, Sdk, SdkError
from tests.contracts.test_venv_runtimes import a_wheel
from tests.live import IMAGE, LiveServer

Unique = Callable[[str], str]

pytestmark = [
    pytest.mark.needs_sdk,
    pytest.mark.slow,
    pytest.mark.skipif(not PYTHON.exists(), reason="google-cloud-aiplatform is not in .venv-sdk: make sdk"),
]

SERVING: dict[str, Any] = {
    "model_serving_container_image_uri": "trainshed/sklearn:1",
    "model_serving_container_predict_route": "/predict",
    "model_serving_container_health_route": "/health",
    "model_serving_container_ports": [8080],
    "model_description": "tells digits",
}
HELLO = "print('hello')"
SLEEP = "import time; time.sleep(600)"


def lines(server: LiveServer, job: str) -> list[str]:
    return [line["text"] for line in server.lines(job)]


# ---- a container


def test_a_container_runs_as_a_pipeline_and_as_its_custom_job(
    sdk: Sdk, server: LiveServer, unique: Unique
) -> None:
    name = unique("container")
    done = sdk(
        "pipelines.run", server, name=name, image=IMAGE, source=HELLO, made={"labels": {"team": "vision"}}
    )
    assert done["state"] == "PIPELINE_STATE_SUCCEEDED"
    assert done["model"] is None
    assert done["error"] in (None, "")
    assert done["times"] == [True] * 4
    assert done["labels"] == {"team": "vision"}
    backing = sdk("jobs.get", server, name=done["backing"])
    assert backing["state"] == "JOB_STATE_SUCCEEDED"
    assert backing["display_name"] == name
    assert lines(server, done["backing"]) == ["hello"]


@pytest.mark.parametrize("sync", [True, False])
def test_a_pipeline_that_says_how_to_serve_gives_a_model(
    sdk: Sdk, server: LiveServer, unique: Unique, sync: bool
) -> None:
    name, output = unique("served"), "gs://staging/served:1"
    done = sdk(
        "pipelines.run",
        server,
        name=name,
        image=IMAGE,
        source="import os; print(os.environ['AIP_MODEL_DIR'])",
        made=SERVING | {"labels": {"a": "b"}},
        base_output_dir=output,
        model_display_name="digits",
        model_version_aliases=["best"],
        sync=sync,
    )
    model = done["model"]
    assert model["uri"] == f"{output}/model"
    assert model["display_name"] == "digits"
    assert model["description"] == "tells digits"
    assert model["version"] == "1"
    assert model["aliases"] == ["default", "best"]
    assert model["labels"] == {"a": "b"}
    assert (model["image"], model["route"], model["ports"]) == ("trainshed/sklearn:1", "/predict", [8080])
    assert model["times"] == [True, True]
    assert model["pipeline"] == done["resource_name"]
    assert sdk("pipelines.model", server, name=model["resource_name"]) == model
    assert sdk("pipelines.model", server, name=model["resource_name"], version="default") == model


def test_a_model_gets_the_id_it_was_given_and_nobody_else_gets_it(
    sdk: Sdk, server: LiveServer, unique: Unique
) -> None:
    identity = unique("mine")
    order: dict[str, Any] = {
        "name": identity,
        "image": IMAGE,
        "source": HELLO,
        "made": SERVING,
        "model_id": identity,
    }
    done = sdk("pipelines.run", server, **order)
    assert done["model"]["resource_name"].endswith(f"/models/{identity}")
    assert done["model"]["display_name"] == f"{identity}-model"
    with pytest.raises(SdkError) as caught:
        sdk("pipelines.run", server, **order)
    assert caught.value.type == "Conflict"
    assert identity in caught.value.text


def test_models_are_listed_by_name_and_outlive_their_pipeline_until_deleted(
    sdk: Sdk, server: LiveServer, unique: Unique
) -> None:
    name = unique("lasting")
    done = sdk("pipelines.run", server, name=name, image=IMAGE, source=HELLO, made=SERVING)
    sdk("pipelines.delete", server, name=done["name"])
    found = f'display_name="{name}-model"'
    assert sdk("pipelines.models", server, filter=found) == [f"{name}-model"]
    sdk("pipelines.delete_model", server, name=done["model"]["resource_name"])
    assert sdk("pipelines.models", server, filter=found) == []
    with pytest.raises(SdkError) as caught:
        sdk("pipelines.model", server, name=done["model"]["resource_name"])
    assert caught.value.type == "NotFound"


def test_a_failed_pipeline_raises_with_the_job_s_error_and_leaves_no_model(
    sdk: Sdk, server: LiveServer, unique: Unique
) -> None:
    name = unique("fails")
    order: dict[str, Any] = {
        "name": name,
        "image": IMAGE,
        "source": "import sys; sys.exit(7)",
        "made": SERVING,
    }
    with pytest.raises(SdkError) as caught:
        sdk("pipelines.run", server, **order, model_id=name)
    assert caught.value.type == "RuntimeError"
    assert "Training failed with" in caught.value.text
    assert "code 7" in caught.value.text
    assert sdk("pipelines.models", server, filter=f'display_name="{name}-model"') == []
    again = order | {"source": HELLO}
    assert sdk("pipelines.run", server, **again, model_id=name)["model"]  # its name was free again


def test_submit_then_get_by_id_and_by_full_name_and_in_every_class(
    sdk: Sdk, server: LiveServer, unique: Unique
) -> None:
    name = unique("submitted")
    job = sdk("pipelines.submit", server, name=name, image=IMAGE, source=HELLO, made=SERVING)
    for known_as in (job["name"], job["resource_name"]):
        assert sdk("pipelines.get", server, name=known_as)["resource_name"] == job["resource_name"]
    for kind in ("CustomTrainingJob", "CustomPythonPackageTrainingJob"):
        assert sdk("pipelines.get", server, name=job["name"], kind=kind)["display_name"] == name
    assert sdk("pipelines.wait", server, name=job["name"])["state"] == "PIPELINE_STATE_SUCCEEDED"
    assert sdk("pipelines.model_of", server, name=job["name"])["display_name"] == f"{name}-model"


def test_lists_are_filtered_and_hold_no_job_that_is_no_pipeline(
    sdk: Sdk, server: LiveServer, unique: Unique
) -> None:
    stem = unique("list")
    for at in range(3):
        sdk("pipelines.run", server, name=f"{stem}-{at}", image=IMAGE, source=HELLO)
    server.submit(["true"], name=f"{stem}-plain")
    every = f'display_name:"{stem}-*"'
    assert sdk("pipelines.find", server, filter=every) == [f"{stem}-{at}" for at in (2, 1, 0)]
    assert sdk("pipelines.find", server, filter=every, order_by="create_time") == [
        f"{stem}-{at}" for at in (0, 1, 2)
    ]
    wanted = f'{every} AND state="PIPELINE_STATE_SUCCEEDED" AND NOT display_name="{stem}-1"'
    assert sdk("pipelines.find", server, filter=wanted) == [f"{stem}-2", f"{stem}-0"]
    assert len(sdk("jobs.find", server, filter=every)) == 4


def test_cancel_ends_the_pipeline_and_waiting_for_it(sdk: Sdk, server: LiveServer, unique: Unique) -> None:
    job = sdk("pipelines.cancel_while_running", server, name=unique("cancel"), image=IMAGE, source=SLEEP)
    assert job["state"] == "PIPELINE_STATE_CANCELLED"
    assert "cancel" in job["raised"].lower()
    assert server.state(job["backing"]) == "JOB_STATE_CANCELLED"


def test_delete_is_an_operation_that_ends_and_takes_the_job_along(
    sdk: Sdk, server: LiveServer, unique: Unique
) -> None:
    done = sdk("pipelines.run", server, name=unique("deleted"), image=IMAGE, source=HELLO)
    sdk("pipelines.delete", server, name=done["name"])
    for call, name in (("pipelines.get", done["name"]), ("jobs.get", done["backing"])):
        with pytest.raises(SdkError) as caught:
            sdk(call, server, name=name)
        assert caught.value.type == "NotFound"


def test_shells_of_a_pipeline_are_those_of_its_job(sdk: Sdk, server: LiveServer, unique: Unique) -> None:
    found = sdk("pipelines.web_access", server, name=unique("shell"), image=IMAGE, source=SLEEP)
    assert set(found["uris"]) == {"workerpool0-0", "workerpool1-0"}
    assert found["inside"] == found["uris"]


def test_everything_run_can_be_given_comes_back(sdk: Sdk, server: LiveServer, unique: Unique) -> None:
    done = sdk(
        "pipelines.run",
        server,
        name=unique("all"),
        image=IMAGE,
        source=HELLO,
        args=["--a", 1],
        environment_variables={"A": "1"},
        replica_count=2,
        machine_type="n1-standard-8",
        timeout=3600,
        restart_job_on_worker_restart=True,
        max_wait_duration=1800,
        service_account="me@example.com",
        network="projects/1/global/networks/mine",
    )
    told = sdk("pipelines.resource", server, name=done["name"])
    assert told["training_task_inputs"]["scheduling"]["timeout"] == "3600s"
    assert told["training_task_inputs"]["scheduling"]["restart_job_on_worker_restart"] is True
    spec = server.job(done["backing"])["jobSpec"]
    assert [pool["replicaCount"] for pool in spec["workerPoolSpecs"]] == ["1", "1"]
    assert spec["workerPoolSpecs"][0]["containerSpec"]["args"] == ["--a", "1"]
    assert spec["workerPoolSpecs"][0]["machineSpec"]["machineType"] == "n1-standard-8"
    assert spec["scheduling"]["maxWaitDuration"] == "1800s"
    assert spec["serviceAccount"] == "me@example.com"


def test_what_cannot_run_is_refused_with_its_place(sdk: Sdk, server: LiveServer, unique: Unique) -> None:
    with pytest.raises(SdkError) as caught:
        sdk("pipelines.run", server, name=unique("odd"), image="no/such:1", source=HELLO, machine_type="z9")
    assert caught.value.type == "BadRequest"
    assert set(caught.value.violations) == {
        "training_task_inputs.worker_pool_specs[0].container_spec.image_uri",
        "training_task_inputs.worker_pool_specs[0].machine_spec.machine_type",
    }


def test_automl_is_refused_by_name(sdk: Sdk, server: LiveServer, unique: Unique) -> None:
    with pytest.raises(SdkError) as caught:
        sdk("pipelines.automl", server, name=unique("automl"))
    assert caught.value.type == "BadRequest"
    assert "automl_image_classification" in caught.value.text
    assert "custom_task_1.0.0.yaml" in caught.value.text


# ---- scripts and packages, staged in a bucket


TRAIN = """
import os, sys
import argparse

place = os.environ["AIP_MODEL_DIR"].replace("gs://", "/gcs/", 1)
print("args", sys.argv[1:], flush=True)
os.makedirs(place, exist_ok=True)
with open(os.path.join(place, "weights.txt"), "w") as file:
    file.write("trained")
print("env", os.environ.get("A"))
"""


def test_a_script_is_packed_staged_installed_and_run(sdk: Sdk, server: LiveServer, unique: Unique) -> None:
    name = unique("script")
    output = f"gs://staging/{name}"
    done = sdk(
        "pipelines.script",
        server,
        name=name,
        image=IMAGE,
        source=TRAIN,
        made=SERVING,
        args=["--epochs", 5, "--name", "a b"],
        environment_variables={"A": "1"},
        base_output_dir=output,
    )
    assert done["state"] == "PIPELINE_STATE_SUCCEEDED"
    said = lines(server, done["backing"])
    assert "args ['--epochs', '5', '--name', 'a b']" in said
    assert "env 1" in said
    assert done["model"]["uri"] == f"{output}/model"
    (pool,) = server.job(done["backing"])["jobSpec"]["workerPoolSpecs"]
    (staged,) = pool["pythonPackageSpec"]["packageUris"]
    assert staged.startswith("gs://staging/aiplatform-")
    assert sdk("pipelines.content", server, bucket="staging", name=f"{name}/model/weights.txt") == "trained"


def test_a_package_from_a_bucket_is_installed_and_its_module_run(
    sdk: Sdk, server: LiveServer, unique: Unique, tmp_path: Path
) -> None:
    done = sdk(
        "pipelines.package",
        server,
        name=unique("package"),
        image=IMAGE,
        sdist=str(an_sdist(tmp_path)),
        module="trainer.task",
        args=["--epochs", "2"],
        replica_count=2,
    )
    assert done["state"] == "PIPELINE_STATE_SUCCEEDED"
    assert lines(server, done["backing"]) == ["trainer ['--epochs', '2']"] * 2


def test_a_package_that_is_not_there_is_told_by_its_address(
    sdk: Sdk, server: LiveServer, unique: Unique
) -> None:
    with pytest.raises(SdkError) as caught:
        sdk("pipelines.missing_package", server, name=unique("missing"), image=IMAGE)
    assert caught.value.type == "RuntimeError"
    assert "gs://staging/nowhere/trainer-0.1.tar.gz" in caught.value.text


def test_a_local_script_runs_as_a_custom_job(sdk: Sdk, server: LiveServer, unique: Unique) -> None:
    done = sdk(
        "pipelines.local_script",
        server,
        name=unique("local"),
        image=IMAGE,
        source=TRAIN,
        args=["--epochs", "3", "'a b'"],  # the SDK puts them into a shell line as they are
        environment_variables={"A": "2"},
    )
    assert done["state"] == "JOB_STATE_SUCCEEDED"
    said = lines(server, done["resource_name"])
    assert "args ['--epochs', '3', 'a b']" in said
    assert "env 2" in said
    (pool,) = server.job(done["resource_name"])["jobSpec"]["workerPoolSpecs"]
    assert pool["containerSpec"]["command"][2].startswith(
        "pip install --upgrade pip && pip3 install -q --user"
    )


PREBUILT = "us-docker.pkg.dev/vertex-ai/training/small-cpu.1-0:latest"


@pytest.fixture(scope="module")
def offline(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server whose pip reaches no index but a folder of wheels; one of Google's images has a stand-in."""
    folder = tmp_path_factory.mktemp("offline")
    wheels, rows = folder / "wheels", folder / "rows.toml"
    wheels.mkdir()
    a_wheel(wheels, "smalla")
    rows.write_text(f'[[runtimes]]\nname = "small"\nimages = ["{PREBUILT}"]\n')
    env = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels), "PIP_CONFIG_FILE": os.devnull}
    with LiveServer(*ROOMY, "--runtimes", str(rows), env=env) as live:
        yield live
        assert "Traceback" not in live.said(), live.said()


def test_a_local_script_runs_in_a_prebuilt_image_with_its_requirements(
    sdk: Sdk, offline: LiveServer, unique: Unique
) -> None:
    source = "import smalla, sys; print(smalla.version, sys.argv[1:])"
    more: dict[str, Any] = {"args": ["x y"], "requirements": ["smalla"]}
    done = sdk("pipelines.local_script", offline, name=unique("pre"), image=PREBUILT, source=source, **more)
    assert lines(offline, done["resource_name"]) == ["1.0 ['x y']"]
    (pool,) = offline.job(done["resource_name"])["jobSpec"]["workerPoolSpecs"]
    assert pool["pythonPackageSpec"]["executorImageUri"] == PREBUILT


def test_a_script_s_requirements_that_cannot_be_met_are_the_error(
    sdk: Sdk, offline: LiveServer, unique: Unique
) -> None:
    with pytest.raises(SdkError) as caught:
        sdk(
            "pipelines.script",
            offline,
            name=unique("unmet"),
            image=IMAGE,
            source="print('never')",
            made={"requirements": ["nosuchthing==7"]},
        )
    assert caught.value.type == "RuntimeError"
    assert "nosuchthing==7" in caught.value.text


def an_sdist(folder: Path) -> Path:
    """A package as `python -m build --sdist` would leave it."""
    files = {
        "setup.py": "import setuptools as s\ns.setup(name='trainer', version='0.1', packages=['trainer'])\n",
        "PKG-INFO": "Metadata-Version: 2.1\nName: trainer\nVersion: 0.1\n",
        "trainer/__init__.py": "",
        "trainer/task.py": "import sys\nprint('trainer', sys.argv[1:])\n",
    }
    path = folder / "trainer-0.1.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name, text in files.items():
            data = text.encode()
            entry = tarfile.TarInfo(f"trainer-0.1/{name}")
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return path

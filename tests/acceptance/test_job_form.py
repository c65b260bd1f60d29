"""What a form for a new job asks the server: which machines there are, and what a pasted file says."""

from collections.abc import Iterator

import pytest

from tests.live import JOBS, PARENT, LiveServer


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with LiveServer("--cpus", "4", "--memory", "8GiB", "--engine", "none") as server:
        yield server


def test_the_machine_types_and_accelerators_on_offer_are_listed(server: LiveServer):
    answer = server.request("GET", "/v1/projects/-/locations/-/machineTypes").json
    machines = {machine["name"]: machine for machine in answer["machineTypes"]}
    assert machines["n1-standard-4"] == {"name": "n1-standard-4", "cpus": 4, "memoryBytes": str(15 << 30)}
    assert machines["a2-highgpu-2g"]["acceleratorType"] == "NVIDIA_TESLA_A100"
    assert machines["a2-highgpu-2g"]["acceleratorCount"] == 2
    assert "NVIDIA_TESLA_T4" in {kind["name"] for kind in answer["acceleratorTypes"]}
    assert server.request("GET", f"{PARENT}/machineTypes", token=None).status == 403


def test_a_job_file_is_read_into_a_job_that_a_create_takes(server: LiveServer):
    text = (
        b"display_name: pasted\nworker_pool_specs:\n- machine_spec: {machine_type: n1-standard-1}\n"
        b"  container_spec: {image_uri: 'trainshed/python:3', command: [python, -c, 'print(7)']}\n"
    )
    job = server.request("POST", f"{JOBS}:read", text).json["job"]
    done = server.wait(server.request("POST", JOBS, job).json["name"])
    assert done["state"] == "JOB_STATE_SUCCEEDED"
    refused = server.request("POST", f"{JOBS}:read", b"a: 1\na: 2\n")
    assert refused.status == 400
    assert "second time" in refused.violations["text"]

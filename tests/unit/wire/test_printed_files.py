"""Job files as documents print them, understood as they stand."""

from typing import Any

import pytest

from tests.unit.wire.bodies import parsed
from trainshed.wire.custom_job import parse_job_file

TRAINER = {"imageUri": "gcr.io/my-project/trainer:latest"}
T4 = {"machineType": "n1-highmem-8", "acceleratorType": "NVIDIA_TESLA_T4", "acceleratorCount": 4}

WHOLE_JOB: dict[str, Any] = {
    "displayName": "multi-node-pytorch",
    "jobSpec": {
        "workerPoolSpecs": [
            {"machineSpec": T4, "replicaCount": 1, "containerSpec": TRAINER},
            {"machineSpec": T4, "replicaCount": 3, "containerSpec": TRAINER},
        ]
    },
}
SCHEDULED: dict[str, Any] = {
    "jobSpec": {
        "scheduling": {"timeout": "86400s", "restartJobOnWorkerRestart": True},
        "workerPoolSpecs": [
            {"machineSpec": {"machineType": "n1-standard-16"}, "replicaCount": 4, "containerSpec": TRAINER}
        ],
    }
}
REDUCED: dict[str, Any] = {
    "workerPoolSpecs": [
        {
            "machineSpec": {
                "machineType": "a2-highgpu-8g",
                "acceleratorType": "NVIDIA_TESLA_A100",
                "acceleratorCount": 8,
            },
            "replicaCount": 4,
            "containerSpec": TRAINER,
            "reductionServerSpec": {
                "replicaCount": 2,
                "containerSpec": {"imageUri": "gcr.io/deeplearning-platform-release/reduction-server:latest"},
            },
        }
    ]
}
PRIVATE: dict[str, Any] = {
    "jobSpec": {
        "network": "projects/PROJECT_ID/global/networks/NETWORK_NAME",
        "reservedIpRanges": ["10.0.0.0/8"],
        "workerPoolSpecs": [
            {"machineSpec": {"machineType": "n1-standard-8"}, "replicaCount": 1, "containerSpec": TRAINER}
        ],
    }
}


@pytest.mark.parametrize(
    ("document", "replicas"),
    [(WHOLE_JOB, [1, 3]), (SCHEDULED, [4]), (REDUCED, [4, 0, 2]), (PRIVATE, [1])],
    ids=["whole job", "scheduled", "reduced", "private"],
)
def test_a_printed_file_is_understood_by_itself_and_through_gcloud(
    document: dict[str, Any], replicas: list[int]
) -> None:
    alone = parsed({"displayName": "x", **parse_job_file(document)})
    through_gcloud = parsed({"displayName": "x", "jobSpec": document})
    assert [pool.replicas for pool in alone.spec.pools] == replicas
    assert alone.spec == through_gcloud.spec

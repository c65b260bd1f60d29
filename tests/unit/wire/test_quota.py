"""Quotas in the words of compute and of Cloud Quotas."""

from trainshed.core.queue.quota import ShareQuota
from trainshed.wire.quota import quota_id, render_project, render_quota_info, render_region

CPUS = ShareQuota(item="cpus", limit=7.5, used=2)
MEMORY = ShareQuota(item="memory", limit=2**30, used=2**20)
GPUS = ShareQuota(item="gpus", limit=4, used=1)
T4 = ShareQuota(item="NVIDIA_TESLA_T4", limit=4, used=1)
SPOT = ShareQuota(item="NVIDIA_TESLA_T4", is_spot=True, limit=8, used=3)
ALL = (CPUS, MEMORY, GPUS, T4, SPOT)


def test_a_project_has_the_metrics_of_compute():
    answer = render_project("p1", ALL)
    assert (answer["kind"], answer["name"]) == ("compute#project", "p1")
    assert answer["quotas"] == [
        {"metric": "CPUS_ALL_REGIONS", "limit": 7.5, "usage": 2},
        {"metric": "CPUS", "limit": 7.5, "usage": 2},
        {"metric": "GPUS_ALL_REGIONS", "limit": 4, "usage": 1},
        {"metric": "NVIDIA_T4_GPUS", "limit": 4, "usage": 1},
        {"metric": "PREEMPTIBLE_NVIDIA_T4_GPUS", "limit": 8, "usage": 3},
    ]


def test_a_region_has_those_that_compute_has_by_region():
    names = [row["metric"] for row in render_region("us-central1", ALL)["quotas"]]
    assert names == ["CPUS", "NVIDIA_T4_GPUS", "PREEMPTIBLE_NVIDIA_T4_GPUS"]


def test_a_quota_of_vertex_has_the_metric_of_the_refusals():
    answer = render_quota_info("p1", SPOT)
    name = "CustomModelTrainingPreemptibleT4GPUsPerProjectPerRegion"
    assert answer["metric"] == "aiplatform.googleapis.com/custom_model_training_preemptible_nvidia_t4_gpus"
    service = "projects/p1/locations/global/services/aiplatform.googleapis.com"
    assert (answer["quotaId"], answer["name"]) == (name, f"{service}/quotaInfos/{name}")
    assert answer["dimensionsInfos"] == [{"details": {"value": "8", "usage": "3"}}]


def test_a_quota_is_a_whole_number_and_memory_counts_in_bytes():
    assert render_quota_info("p1", CPUS)["dimensionsInfos"][0]["details"]["value"] == "7"
    assert render_quota_info("p1", MEMORY)["metricUnit"] == "By"


def test_every_quota_has_an_id_of_its_own():
    assert quota_id(CPUS) == "CustomModelTrainingCPUsPerProjectPerRegion"
    wide = ShareQuota(item="NVIDIA_A100_80GB", limit=1)
    assert quota_id(wide) == "CustomModelTrainingA10080GBGPUsPerProjectPerRegion"
    assert len({quota_id(quota) for quota in ALL}) == len(ALL)

"""Quotas as JSON: as compute's projects and regions have them, as Cloud Quotas has them, and our own.

`api/quotas.py` calls it. Each answer has the names that Google gives the resources. Compute has no metric of
memory; Cloud Quotas has no field for what is used, so `usage` there is ours.
"""

from collections.abc import Iterable
from typing import Any

from trainshed.core.queue.quota import TRAINING_METRIC, ShareQuota
from trainshed.core.queue.share import CPUS, GPUS, MEMORY

SERVICE = TRAINING_METRIC.partition("/")[0]


def render_project(project: str, quotas: Iterable[ShareQuota]) -> dict[str, Any]:
    rows: list[dict[str, Any]] = []
    for quota in quotas:
        if quota.item in (CPUS, GPUS) and not quota.is_spot:
            rows.append(_compute_quota(f"{quota.metric}_all_regions", quota))
        if quota.item not in (MEMORY, GPUS):
            rows.append(_compute_quota(quota.metric, quota))
    return {"kind": "compute#project", "name": project, "quotas": rows}


def render_region(region: str, quotas: Iterable[ShareQuota]) -> dict[str, Any]:
    rows = [_compute_quota(quota.metric, quota) for quota in quotas if quota.item not in (MEMORY, GPUS)]
    return {"kind": "compute#region", "name": region, "status": "UP", "quotas": rows}


def quota_id(quota: ShareQuota) -> str:
    """As Cloud Quotas calls it, such as CustomModelTrainingT4GPUsPerProjectPerRegion."""
    words = quota.metric.replace("nvidia_", "").split("_")
    names = [_WORDS.get(word) or (word.upper() if word[-1].isdigit() else word.title()) for word in words]
    return f"CustomModelTraining{''.join(names)}PerProjectPerRegion"


_WORDS = {"cpus": "CPUs", "gpus": "GPUs", "80gb": "80GB", "rtx": "RTX", "tpu": "TPU"}


def render_quota_info(project: str, quota: ShareQuota) -> dict[str, Any]:
    """As google.api.cloudquotas.v1.QuotaInfo."""
    name = f"Custom model training {quota.metric.replace('_', ' ')}"
    return {
        "name": f"projects/{project}/locations/global/services/{SERVICE}/quotaInfos/{quota_id(quota)}",
        "quotaId": quota_id(quota),
        "metric": f"{TRAINING_METRIC}{quota.metric}",
        "service": SERVICE,
        "isPrecise": True,
        "isConcurrent": True,
        "containerType": "PROJECT",
        "metricDisplayName": name,
        "quotaDisplayName": f"{name} per project",
        "metricUnit": "By" if quota.item == MEMORY else "1",
        "dimensionsInfos": [{"details": {"value": _whole(quota.limit), "usage": _whole(quota.used)}}],
    }


def render_quota(quota: ShareQuota) -> dict[str, Any]:
    return {
        "metric": quota.metric,
        "limit": round(quota.limit, 3),
        "usage": round(quota.used, 3),
        "waiting": round(quota.waiting, 3),
    }


def _compute_quota(metric: str, quota: ShareQuota) -> dict[str, Any]:
    return {"metric": metric.upper(), "limit": round(quota.limit, 3), "usage": round(quota.used, 3)}


def _whole(amount: float) -> str:
    """A quota is an int64; CPUs may be parts of one."""
    return str(int(amount + 1e-9))

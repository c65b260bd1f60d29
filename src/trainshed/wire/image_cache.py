"""Image caches as JSON, and the request to create one. For `api/image_caches.py` and Kubernetes' files."""

from collections.abc import Mapping
from typing import Any

from trainshed.core.supplies.image import refusal
from trainshed.core.supplies.image_cache import LONGEST_RETENTION, MOST_IMAGES, ImageCache
from trainshed.wire import base
from trainshed.wire.base import Message, int32, output_only, text, texts
from trainshed.wire.faults import Faults
from trainshed.wire.scalars import time_text


class CacheBody(Message):
    name: object = output_only()
    images: tuple[str, ...] = texts()
    image_cache_size: int = int32()
    retention_days: int = int32()
    display_name: str = text()
    state: object = output_only()
    progress: object = output_only()
    reason: object = output_only()
    size_bytes: object = output_only()
    create_time: object = output_only()
    update_time: object = output_only()
    expire_time: object = output_only()


def parse_cache(body: Mapping[str, object]) -> CacheBody:
    """The requested cache; Invalid with every violation."""
    faults = Faults("image_cache")
    result = base.read(CacheBody, body, faults)
    if not faults.under("images"):
        for field, sentence in cache_faults(result.images, result.retention_days):
            faults.add(field.replace("retentionDays", "retention_days"), sentence)
    if result.image_cache_size < 0:
        faults.add("image_cache_size", f"must not be negative, as {result.image_cache_size} is.")
    faults.settle()
    return result


def render_cache(cache: ImageCache) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "name": cache.name,
        "images": list(cache.images),
        "state": cache.state.value,
        "progress": cache.percent,
        "createTime": time_text(cache.created_at),
    }
    if cache.room:
        answer["imageCacheSize"] = cache.room
    if cache.retention_days:
        answer["retentionDays"] = cache.retention_days
    if cache.expires_at is not None:
        answer["expireTime"] = time_text(cache.expires_at)
    if cache.reason:
        answer["reason"] = cache.reason
    if cache.size:
        answer["sizeBytes"] = str(cache.size)
    if cache.updated_at is not None:
        answer["updateTime"] = time_text(cache.updated_at)
    return answer


def cache_faults(images: tuple[str, ...], retention: int) -> list[tuple[str, str]]:
    """What is wrong with an image cache, by field."""
    result: list[tuple[str, str]] = []
    if not images:
        result.append(("images", "is required: the names of images."))
    if len(images) > MOST_IMAGES:
        result.append(("images", f"must have at most {MOST_IMAGES} names, not {len(images)}."))
    for at, image in enumerate(images):
        if sentence := refusal(image):
            result.append((f"images[{at}]", sentence))
    if not 0 <= retention <= LONGEST_RETENTION:
        result.append(("retentionDays", f"must be between 0 and {LONGEST_RETENTION}, not {retention}."))
    return result

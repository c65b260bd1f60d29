"""Bodies and offers the wire tests start from: small, valid, and changed by each test as it needs.

And any JSON there may be, which begins with the names a message knows so that it comes far.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st

from trainshed.core.errors import Invalid
from trainshed.core.jobs.job import Job, Status
from trainshed.data.catalogue import load_catalogue
from trainshed.wire.base import Message
from trainshed.wire.custom_job import JobDraft, Offer, parse_custom_job

NOW = datetime(2026, 1, 31, 12, 0, 0, 5, UTC)
OFFER = Offer(
    catalogue=load_catalogue(),
    refuse_image=lambda image: f"The image {image} cannot run here." if "refused" in image else None,
)


def a_pool(**changes: object) -> dict[str, Any]:
    pool: dict[str, Any] = {
        "machineSpec": {"machineType": "n1-standard-4"},
        "replicaCount": "1",
        "containerSpec": {"imageUri": "trainshed/python:3", "args": ["-c", "pass"]},
    }
    return {name: value for name, value in (pool | changes).items() if value is not None}


def a_body(*pools: Mapping[str, object], **spec: object) -> dict[str, Any]:
    return {"displayName": "mine", "jobSpec": {"workerPoolSpecs": list(pools) or [a_pool()], **spec}}


def parsed(body: Mapping[str, object]) -> JobDraft:
    return parse_custom_job(body, OFFER)


def faults(body: Mapping[str, object]) -> dict[str, str]:
    """The violations by field; nothing where the body is good."""
    try:
        parsed(body)
    except Invalid as error:
        assert len({one.field for one in error.violations}) == len(error.violations)
        return {one.field: one.description for one in error.violations}
    return {}


def a_job(body: Mapping[str, object] | None = None, **status: Any) -> Job:
    return job_of(parsed(body or a_body()), **status)


def job_of(draft: JobDraft, **status: Any) -> Job:
    """The job that the draft becomes."""
    return Job(
        id="123",
        project="p1",
        location="us-central1",
        display_name=draft.display_name,
        spec=draft.spec,
        labels=draft.labels,
        extras=draft.extras,
        origin=draft.origin,
        created_at=NOW,
        status=Status(**status),
    )


# ---- whatever may be sent


def names(*messages: type[Message]) -> st.SearchStrategy[str]:
    """Names the messages know, at any depth, and others."""
    known = {name for message in messages for name in _known(message)}
    return st.sampled_from(sorted(known)) | st.text(max_size=3)


def _known(message: type[Message]) -> set[str]:
    found = set(message.fields)
    for slot in message.fields.values():
        if slot.kind.inner:
            found |= _known(slot.kind.inner)
    return found


def any_json(names: st.SearchStrategy[str], *words: str, widest: int = 5) -> st.SearchStrategy[Any]:
    """Any JSON: the words are leaves it often has, `widest` is the most names of an object."""
    leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
    return st.recursive(
        leaves | st.sampled_from(words),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=widest),
        max_leaves=25,
    )

"""Any JSON at all as a manifest: read or refused, never anything else. And any loss of indentation."""

import random
from collections.abc import Mapping
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.dialects.kubernetes.test_job_set import SET
from tests.unit.dialects.kubernetes.test_manifest import JOB, OFFER, POD
from tests.unit.dialects.kubernetes.test_pytorch_job import JOB as PYTORCH_JOB
from tests.unit.dialects.kubernetes.test_train_job import JOB as TRAIN_JOB
from trainshed.cli.failure import CommandFailed
from trainshed.core.errors import Invalid
from trainshed.dialects.kubernetes.cli.file import documents
from trainshed.dialects.kubernetes.machine import GPU_TYPE, INSTANCE_TYPE, USE_SPECS
from trainshed.dialects.kubernetes.manifest import VERSIONS, parse_manifest
from trainshed.dialects.kubernetes.pod import IMAGE_CACHE, SPOT
from trainshed.dialects.kubernetes.shape import shapes

KEYS = ("cpu", "memory", "nvidia.com/gpu", GPU_TYPE, INSTANCE_TYPE, USE_SPECS, IMAGE_CACHE, SPOT)
_LEAVES = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8)
    | st.sampled_from(["1Gi", "500m", "Never", "OnFailure", "/x", "a:1", "$(A)", "P4", "2-4Gi,1.2.3-4Gi"])
    | st.sampled_from(["${trialParameters.a}", "0", "0.1", "1e308", "-1e308", "double"])
    | st.from_regex(r"\A[0-9.]{1,4}-[0-9.]{1,4}Gi\Z")
    | st.from_regex(r"\Aecs\.gn[0-9]i?(-c2g1)?\.[0-9]*xlarge\Z")
)  # fmt: skip
_ANYTHING = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)


def values(kind: str, depth: int) -> st.SearchStrategy[Any]:
    """Mostly what the field is to hold, so that it comes far."""
    if kind in ("map", "amounts"):
        return st.dictionaries(st.text(max_size=5) | st.sampled_from(KEYS), _LEAVES, max_size=3)
    if kind == "texts":
        return st.lists(_LEAVES, max_size=3)
    if kind == "manifest" and depth:
        return st.sampled_from(sorted(VERSIONS)).flatmap(lambda own: documents_of(own, depth - 1))
    if kind.startswith("[") and depth:
        return st.lists(things(kind[1:-1], depth - 1), max_size=2)
    if kind in shapes() and depth:
        return things(kind, depth - 1)
    return _LEAVES


def things(shape: str, depth: int) -> st.SearchStrategy[dict[str, Any]]:
    optional = {name: values(field.kind, depth) | _ANYTHING for name, field in shapes()[shape].items()}
    return st.fixed_dictionaries({}, optional=cast("Mapping[str, st.SearchStrategy[Any]]", optional))


def documents_of(kind: str, depth: int) -> st.SearchStrategy[dict[str, Any]]:
    return things(kind, depth).map(lambda document: document | {"kind": kind})


@given(st.data())
def test_any_document_is_read_or_refused_with_paths(data: st.DataObject):
    kind = data.draw(st.sampled_from(sorted(VERSIONS)))
    document = data.draw(documents_of(kind, 6))
    try:
        parse_manifest(document, OFFER)
    except Invalid as error:
        assert all(one.description for one in error.violations)


@given(_ANYTHING.filter(lambda value: isinstance(value, dict)))
def test_what_is_no_manifest_is_refused(document: dict[str, Any]):
    with pytest.raises(Invalid):
        parse_manifest(document, OFFER)


@given(st.randoms(use_true_random=False), st.sampled_from([POD, JOB, PYTORCH_JOB, SET, TRAIN_JOB]))
def test_however_indentation_got_lost_it_is_mended_or_told_and_only_space_is_changed(
    chance: random.Random, text: str
):
    lines = [" " * chance.choice([0, 2, 4, 7]) + line.lstrip() for line in text.strip().splitlines()]
    try:
        (found,) = documents("x.yaml", "\n".join(lines))
    except CommandFailed:
        return
    assert [line.strip() for line in found.text.splitlines()] == [line.strip() for line in lines]

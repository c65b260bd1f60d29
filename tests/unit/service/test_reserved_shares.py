"""The shares of the file with those of persistent resources."""

from dataclasses import replace

import pytest

from tests.builders import T0, a_pool
from tests.shares import a_job_of, a_share, a_tree
from trainshed.core.errors import Invalid
from trainshed.core.persistent_resource import PersistentResource
from trainshed.core.share import ShareTree
from trainshed.service.reserved_shares import ReservedShares

KEPT = PersistentResource(id="kept", project="vision", location="l", pools=(a_pool(),), created_at=T0)


def test_without_resources_the_shares_are_those_of_the_file():
    tree = a_tree(a_share("vision", 4))
    assert ReservedShares(lambda: tree)() is tree
    assert ReservedShares(lambda: None)() is None


def test_the_tree_is_the_same_until_a_resource_or_the_file_changes():
    trees: list[ShareTree | None] = [a_tree(a_share("vision", 4))]
    shares = ReservedShares(lambda: trees[-1])
    shares.put(KEPT)
    first = shares()
    assert first is not None
    assert first is shares()
    assert first.shares[KEPT.name].parent == "vision"
    trees.append(None)
    second = shares()
    assert second is not None
    assert (second is shares(), second is first, second.shares[KEPT.name].parent) == (True, False, "root")
    shares.drop(KEPT)
    assert shares() is None


def test_a_job_is_refused_with_every_violation():
    shares = ReservedShares(lambda: None)
    job = a_job_of("vision", "1", spot=True)
    job = replace(job, location="l", spec=replace(job.spec, persistent_resource="kept"))
    with pytest.raises(Invalid) as refused:
        shares.check(job)
    fields = ["job_spec.persistent_resource_id", "job_spec.scheduling.strategy"]
    assert [violation.field for violation in refused.value.violations] == fields
    shares.put(KEPT)
    with pytest.raises(Invalid) as refused:
        shares.check(job)
    assert [violation.field for violation in refused.value.violations] == fields[1:]
    shares.check(a_job_of("vision", "1", spot=True))

"""The shares of the file with those of persistent resources."""

from dataclasses import replace

import pytest

from tests.builders import T0, a_pool
from tests.shares import a_job_of, a_share, a_tree
from trainshed.core.errors import Invalid
from trainshed.core.queue.persistent_resource import PersistentResource
from trainshed.core.queue.share import ShareTree
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


LARGE, SMALL = a_tree(a_share("vision", 4)), a_tree(a_share("vision", 0.5, borrow=9))


def test_shares_smaller_than_what_is_reserved_in_them_are_refused_with_field_value_and_remedy():
    shares = ReservedShares(lambda: None)
    shares.check_shares(SMALL)
    shares.put(KEPT)
    shares.check_shares(LARGE)
    shares.check_shares(None)
    with pytest.raises(Invalid) as refused:
        shares.check_shares(SMALL)
    [violation] = refused.value.violations
    assert violation.sentence == (
        f"share.vision.nominal.cpus is 0.5 CPUs, less than was reserved in it by {KEPT.name}: 1 CPU. "
        "Make it at least 1 CPU, or delete persistent resources."
    )


def test_a_file_with_shares_that_are_too_small_is_warned_about_and_those_before_it_stay(
    caplog: pytest.LogCaptureFixture,
):
    trees = [LARGE]
    shares = ReservedShares(lambda: trees[-1])
    shares.put(KEPT)
    first = shares()
    trees.append(SMALL)
    kept = shares()
    assert first is not None and kept is not None
    assert kept.shares == first.shares
    [line] = caplog.messages
    assert "share.vision.nominal.cpus is 0.5 CPUs" in line and "The shares stay as they are." in line
    trees.append(replace(SMALL, past={"vision": {"cpus": 1.0}}))
    kept = shares()
    assert kept is not None and kept is shares()
    assert (kept.shares, kept.past) == (first.shares, trees[-1].past), "only what was used lately is new"
    assert len(caplog.messages) == 1, "it is said once"
    shares.drop(KEPT)
    assert shares() is trees[-1], "now it is large enough"


def test_at_the_start_a_file_counts_though_its_shares_are_too_small(caplog: pytest.LogCaptureFixture):
    shares = ReservedShares(lambda: SMALL)
    shares()
    shares.put(KEPT)
    tree = shares()
    assert tree is not None
    assert tree.nominal["vision"]["cpus"] == 0.5
    assert "share.vision.nominal.cpus" in caplog.text and "stay" not in caplog.text


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

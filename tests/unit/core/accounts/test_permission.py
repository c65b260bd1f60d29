"""Who may do what: the whole table of principals and permissions."""

import pytest

from trainshed.core.accounts.permission import (
    ANONYMOUS,
    OWNER,
    Permission,
    Principal,
    PrincipalKind,
    Resource,
    allowed,
    principal_of_job,
)

JOB = principal_of_job("1", "p1")
OF_A_JOB = {
    Permission.PUBLIC,
    Permission.BUCKETS_LIST,
    Permission.BUCKETS_READ,
    Permission.OBJECTS_READ,
    Permission.OBJECTS_WRITE,
    Permission.OBJECTS_BATCH,
    Permission.TOKENS_READ,
}


@pytest.mark.parametrize("permission", Permission)
def test_the_owner_may_do_everything_in_every_project(permission: Permission):
    assert allowed(OWNER, permission)
    assert allowed(OWNER, permission, Resource("p2", "theirs"))


@pytest.mark.parametrize("permission", Permission)
def test_a_job_may_use_objects_and_nothing_else(permission: Permission):
    decision = allowed(JOB, permission)
    assert bool(decision) is (permission in OF_A_JOB)
    assert decision or decision.reason.startswith("Job 1 may ")


@pytest.mark.parametrize("permission", Permission)
def test_who_has_no_token_may_use_only_what_is_public(permission: Permission):
    assert bool(allowed(ANONYMOUS, permission)) is (permission is Permission.PUBLIC)


def test_a_job_makes_no_bucket():
    assert allowed(JOB, Permission.BUCKETS_WRITE, Resource("p1", "own")).reason == (
        "Job 1 may read and write objects, not make, change or remove buckets."
    )


@pytest.mark.parametrize("project", ["p1", "", "<none>"])
def test_a_job_may_use_the_buckets_of_its_project_and_those_of_nobody(project: str):
    assert allowed(JOB, Permission.OBJECTS_WRITE, Resource(project, "bucket"))
    assert allowed(JOB, Permission.BUCKETS_LIST, Resource(project))


def test_a_job_may_use_no_bucket_of_another_project_and_see_no_list_of_it():
    assert allowed(JOB, Permission.OBJECTS_READ, Resource("p2", "other")).reason == (
        "Bucket 'other' belongs to another project: job 1 may use those of its own, 'p1'."
    )
    assert allowed(JOB, Permission.BUCKETS_LIST, Resource("p2")).reason == (
        "Job 1 may see the buckets of its own project, 'p1', and no others."
    )


def test_a_job_without_a_project_is_not_the_owner():
    nobodys = principal_of_job("1", "")
    assert not allowed(nobodys, Permission.OBJECTS_READ, Resource("p2", "other"))


def test_rights_belong_to_the_principal_and_not_to_its_kind():
    assert not allowed(Principal(PrincipalKind.OWNER), Permission.JOBS_GET)

"""A Launch carries everything a backend needs, and names the very run it is for."""

from dataclasses import replace

import pytest

from tests.builders import a_job, a_placement, a_pool, admitted, key, seconds
from trainshed.core.jobs.cluster_env import JobCluster
from trainshed.core.jobs.job import Scheduling
from trainshed.core.jobs.launch import Launch
from trainshed.core.jobs.launching import Launches
from trainshed.core.jobs.replica import Replica


def test_a_launch_is_the_pool_the_place_and_the_environment_of_one_run():
    pool = replace(a_pool(), args=("--epochs", "3"), module="trainer", packages=("p.tar.gz",))
    job = admitted(a_job(a_pool(), pool, scheduling=Scheduling(grace=seconds(7))), attempt=1)
    replica = Replica(pool=1, index=0, run=2)
    assert Launches(job).of(replica) == Launch(
        key=key(job, 1, 0, run=2),
        image="trainshed/python:3",
        command=("python", "-c", "pass"),
        args=("--epochs", "3"),
        module="trainer",
        packages=("p.tar.gz",),
        env=JobCluster(job).env(replica),
        placement=a_placement(1, 0, port=2223),
        peers=("10.0.0.1", "10.0.0.1"),
        grace=seconds(7),
        watched=True,
    )


def test_a_job_that_is_not_admitted_cannot_be_launched():
    with pytest.raises(LookupError, match="job 1 is not admitted"):
        Launches(a_job()).of(Replica(pool=0, index=0))

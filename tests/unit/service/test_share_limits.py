"""A job that its share could never have is refused at once, in Google's words."""

import asyncio
from dataclasses import replace

import pytest

from tests.builders import a_node, a_pool
from tests.shares import a_job_of, a_share, a_tree
from trainshed.core.errors import Exhausted
from trainshed.core.jobs.job import Job
from trainshed.core.queue.fleet import Fit
from trainshed.core.queue.share import Share, ShareTree, share_tree
from trainshed.service.share_limits import ShareLimits
from trainshed.testing.backend import FakeBackend, FakeMachine


def check(job: Job, tree: ShareTree | None) -> None:
    node = a_node(cpus=8, gpus=["0", "1", "2", "3"])
    limits = ShareLimits(lambda: tree, FakeBackend(FakeMachine(nodes=(node,))), Fit.SHRINK)
    asyncio.run(limits.check(job))


def test_a_job_beyond_the_limit_of_its_share_is_refused_with_the_metric_of_its_gpus():
    job = a_job_of("vision", "1")
    job = replace(job, spec=replace(job.spec, pools=(a_pool(gpus=3),)))
    share = Share(name="vision", projects=("vision",), nominal={"gpus": 1}, borrow={"gpus": 1})
    with pytest.raises(Exhausted) as refused:
        check(job, share_tree((share,)))
    assert refused.value.message == (
        "The following quota metrics exceed quota limits: "
        "aiplatform.googleapis.com/custom_model_training_nvidia_t4_gpus. "
        "Share 'vision' may have 2 GPUs, and the job asks for 3 GPUs: ask for less, or have the share raised."
    )


def test_a_job_beyond_what_one_user_may_have_is_refused():
    with pytest.raises(Exhausted, match="One user of share 'vision' may have 2 CPUs"):
        check(a_job_of("vision", "1", 3, user="ann"), a_tree(a_share("vision", 4, per_user=2)))


def test_a_job_that_borrows_runs_as_spot_or_has_no_share_is_not_refused():
    tree = a_tree(a_share("vision", 4, borrow=1))
    check(a_job_of("vision", "1", 5), tree)
    check(a_job_of("vision", "1", 8, spot=True), tree)
    check(a_job_of("nobody", "1", 8), tree)
    check(a_job_of("vision", "1", 8), None)

"""What the jobs of a share may have, have and wait for, by Google's names."""

from dataclasses import replace

import pytest

from tests.builders import T0, a_pool
from tests.shares import a_job_of, a_share, a_tree, started
from trainshed.core.jobs.job import Job
from trainshed.core.queue.persistent_resource import PersistentResource, with_resources
from trainshed.core.queue.place import needs
from trainshed.core.queue.quota import ShareQuota, metric, quotas
from trainshed.core.queue.share import Share, ShareTree, Stake, share_tree
from trainshed.core.queue.share_use import capacities

MACHINES = {"cpus": 16.0, "memory": 2.0**36, "gpus": 8.0, "NVIDIA_TESLA_T4": 8.0}


def of_share(
    tree: ShareTree, share: str, running: list[Stake] | None = None, waiting: list[Stake] | None = None
) -> dict[str, ShareQuota]:
    rows = quotas(tree, share, MACHINES, running or [], waiting or [])
    assert len({row.metric for row in rows}) == len(rows)
    return {row.metric: row for row in rows}


@pytest.mark.parametrize(
    ("item", "name"),
    [
        ("cpus", "cpus"),
        ("memory", "memory"),
        ("gpus", "gpus"),
        ("NVIDIA_TESLA_T4", "nvidia_t4_gpus"),
        ("NVIDIA_L4", "nvidia_l4_gpus"),
        ("NVIDIA_TESLA_A100", "nvidia_a100_gpus"),
        ("NVIDIA_A100_80GB", "nvidia_a100_80gb_gpus"),
        ("NVIDIA_H100_80GB", "nvidia_h100_gpus"),
        ("NVIDIA_H100_MEGA_80GB", "nvidia_h100_mega_gpus"),
        ("NVIDIA_H200_141GB", "nvidia_h200_gpus"),
        ("TPU_V3", "tpu_v3"),
    ],
)
def test_a_metric_has_googles_name(item: str, name: str):
    assert metric(item) == name
    assert metric(item, is_spot=True) == f"preemptible_{name}"


def test_without_shares_the_limits_are_those_of_the_machines():
    rows = of_share(share_tree(()), "root")
    assert {name: row.limit for name, row in rows.items() if not row.is_spot} == {
        "cpus": 16,
        "memory": 2**36,
        "gpus": 8,
        "nvidia_t4_gpus": 8,
    }
    assert rows["preemptible_nvidia_t4_gpus"].limit == 8


def test_machines_without_gpus_have_no_quota_of_them():
    rows = quotas(share_tree(()), "root", capacities(()), [], [])
    assert {row.item for row in rows} == {"cpus", "memory"}


def test_a_share_may_have_what_is_its_own_and_what_it_borrows():
    tree = a_tree(a_share("vision", 4, borrow=2), a_share("language", 4))
    assert of_share(tree, "vision")["cpus"].limit == 6
    assert of_share(tree, "language")["cpus"].limit == 16, "no more than the machines have"


def test_what_others_keep_for_themselves_is_no_part_of_a_limit():
    tree = a_tree(a_share("vision", 4), a_share("language", 10, lend=3))
    assert of_share(tree, "vision")["cpus"].limit == 9
    assert of_share(tree, "root")["cpus"].limit == 9


def stakes_of(tree: ShareTree, *jobs: Job) -> list[Stake]:
    running = [(job, started(job).status.admission) for job in jobs]
    return [tree.stake(job, admission.placements) for job, admission in running if admission is not None]


def test_what_shares_below_keep_and_use_is_neither_in_the_limit_nor_in_what_is_in_use():
    keeps = (a_share("vision", 4, parent="team", lend=0), a_share("language", 4, parent="team", lend=1))
    tree = a_tree(a_share("team", 8, borrow=0), *keeps, a_share("other", 4, lend=0))
    team = [of_share(tree, "team", stakes_of(tree, a_job_of("language", "1", cpus))) for cpus in (1, 3, 4)]
    assert [(rows["cpus"].limit, rows["cpus"].used) for rows in team] == [(1, 0), (1, 0), (1, 1)]
    jobs = stakes_of(tree, a_job_of("vision", "1", 4), a_job_of("language", "2", 3), a_job_of("none", "3", 2))
    root, vision = of_share(tree, "root", jobs)["cpus"], of_share(tree, "vision", jobs)["cpus"]
    assert (root.limit, root.used) == (5, 2)
    assert (vision.limit, vision.used) == (5, 4)


def test_what_a_persistent_resource_has_is_in_no_quota_of_the_jobs_outside():
    kept = PersistentResource(
        id="kept", project="p", location="l", pools=(a_pool(cpus=4, gpus=2),), created_at=T0
    )
    tree = with_resources(None, [kept])
    job = a_job_of("p", "1", 4)
    pools = (a_pool(cpus=4, gpus=2),)
    job = replace(job, location="l", spec=replace(job.spec, persistent_resource="kept", pools=pools))
    stakes = [tree.stake(job, needs(job.spec))]
    rows = of_share(tree, "root", stakes, stakes)
    for name, limit in (("cpus", 12), ("gpus", 6), ("nvidia_t4_gpus", 6)):
        assert (rows[name].limit, rows[name].used, rows[name].waiting) == (limit, 0, 0), name
    rows = of_share(tree, "root", stakes_of(tree, a_job_of("p", "2", 3)))
    assert (rows["cpus"].limit, rows["cpus"].used) == (12, 3)


def test_a_limit_above_bounds_the_shares_below():
    research = Share(name="research", nominal={"cpus": 8}, borrow={"cpus": 0})
    tree = a_tree(research, a_share("vision", 4, parent="research"))
    assert of_share(tree, "vision")["cpus"].limit == 8


def test_a_type_of_gpu_is_bounded_by_what_the_share_has_of_all_gpus():
    share = Share(name="vision", projects=("vision",), nominal={"gpus": 2}, borrow={"gpus": 1})
    assert of_share(share_tree((share,)), "vision")["nvidia_t4_gpus"].limit == 3


def test_running_and_waiting_jobs_of_a_share_and_those_below_it_count():
    tree = a_tree(a_share("research", 8), a_share("vision", 4, parent="research"), a_share("language", 4))
    stakes = stakes_of(tree, a_job_of("vision", "1", 3), a_job_of("language", "2", 2))
    later = a_job_of("vision", "3", 2)
    rows = of_share(tree, "research", stakes, [tree.stake(later, needs(later.spec))])
    assert (rows["cpus"].used, rows["cpus"].waiting) == (3, 2)
    assert of_share(tree, "root", stakes)["cpus"].used == 5


def test_spot_jobs_count_apart_and_for_everybody():
    tree = a_tree(a_share("vision", 4), a_share("language", 4))
    job = a_job_of("language", "1", 2, spot=True)
    rows = of_share(tree, "vision", [tree.stake(job, needs(job.spec))])
    assert (rows["cpus"].used, rows["preemptible_cpus"].used, rows["preemptible_cpus"].limit) == (0, 2, 16)


def test_a_type_that_no_machine_has_counts_where_a_job_names_it():
    job = a_job_of("vision", "1")
    pool = replace(a_pool(gpus=2), accelerator="NVIDIA_L4")
    job = replace(job, spec=replace(job.spec, pools=(pool,)))
    tree = share_tree(())
    row = of_share(tree, "root", [tree.stake(job, needs(job.spec))])["nvidia_l4_gpus"]
    assert (row.used, row.limit) == (2, 8), "any GPU will do where no machine has that type"

from dataclasses import replace

from tests.contracts.store_values import RUNNING, a_job
from trainshed.core.jobs.replica import Replica
from trainshed.store.cache import Decoded, weight


def test_a_job_is_given_back_only_in_the_version_asked_for() -> None:
    cache = Decoded()
    job = a_job(version=2)
    cache.put(job)
    assert cache.get(job.id, 2) is job
    assert cache.get(job.id, 1) is None
    assert cache.get(job.id, 3) is None


def test_the_least_recently_used_go_first() -> None:
    jobs = [a_job(number, version=1) for number in range(4)]
    cache = Decoded(budget=3 * weight(jobs[0]))
    for job in jobs[:3]:
        cache.put(job)
    cache.get(jobs[0].id, 1)
    cache.put(jobs[3])
    assert [cache.get(job.id, 1) is not None for job in jobs] == [True, False, True, True]


def test_memory_does_not_grow_with_the_number_of_jobs_or_replicas() -> None:
    budget = 100_000
    cache = Decoded(budget)
    many = tuple(Replica(pool=0, index=index) for index in range(50))
    for number in range(1000):
        status = replace(RUNNING, replicas=many) if number % 3 == 0 else RUNNING
        cache.put(a_job(number, status=status, version=1))
        cache.put(a_job(number, status=status, version=2))
    kept = [job for number in range(1000) if (job := cache.get(a_job(number).id, 2))]
    assert kept
    assert sum(map(weight, kept)) <= budget
    assert len(cache) == len(kept)


def test_what_was_said_beside_a_job_weighs_too() -> None:
    said = {"pipeline": {"said": {"trainingTaskInputs": {"args": ["x" * 1000] * 1000}}}}
    assert weight(a_job(extras=said)) > weight(a_job()) + 1_000_000


def test_a_dropped_job_is_gone() -> None:
    cache = Decoded()
    cache.put(a_job(version=1))
    cache.drop(a_job().id)
    cache.drop("never there")
    assert cache.get(a_job().id, 1) is None

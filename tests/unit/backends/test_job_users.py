"""Which job gets which user: one at a time, the same until nothing of the job is left, also after a kill."""

from pathlib import Path

import pytest

from trainshed.backends.process.job_user import JobUser, RunAs
from trainshed.backends.process.job_users import JobUsers
from trainshed.core.errors import Unavailable

THREE = RunAs(users=tuple(JobUser(uid=uid, gid=uid) for uid in (7, 8, 9)), shared=False)


def users(jobs: Path, run_as: RunAs | None = THREE) -> JobUsers:
    made = JobUsers(jobs, run_as)
    made.open(job.name for job in jobs.iterdir())
    return made


def uid(of: JobUsers, job: str) -> int | None:
    user = of.assign(job)
    return None if user is None else user.uid


def test_each_job_has_a_user_of_its_own_and_keeps_it(tmp_path: Path) -> None:
    of = users(tmp_path)
    assert [uid(of, job) for job in ("a", "b", "a", "c", "b")] == [7, 8, 7, 9, 8]
    with pytest.raises(Unavailable, match="All 3 users of --run-as have jobs"):
        of.assign("d")
    of.release("b")
    assert uid(of, "d") == 8


def test_a_user_is_left_alone_for_as_long_as_possible(tmp_path: Path) -> None:
    of = users(tmp_path)
    given: list[int | None] = []
    for job in ("a", "b", "c", "d"):
        given.append(uid(of, job))
        of.release(job)
    assert given == [7, 8, 9, 7]


def test_the_next_server_knows_the_users_of_jobs_whatever_its_setting(tmp_path: Path) -> None:
    assert uid(users(tmp_path), "a") == 7
    assert uid(users(tmp_path), "b") == 8
    shared = RunAs(users=(JobUser(uid=1, gid=2, groups=(3, 4), name="daemon"),), shared=True)
    of = users(tmp_path, shared)
    assert [uid(of, job) for job in ("a", "c", "d")] == [7, 1, 1]
    assert users(tmp_path, None).of("c") == shared.users[0]
    assert users(tmp_path, None).assign("new") is None


def test_a_job_whose_user_cannot_be_read_is_not_taken_for_the_servers(tmp_path: Path) -> None:
    users(tmp_path).assign("a")
    (tmp_path / "a" / "user").write_text("{")
    with pytest.raises(Unavailable, match="user of job a"):
        users(tmp_path)

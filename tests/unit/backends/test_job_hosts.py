"""The hosts file of a job whose replicas have names: the machine's, with theirs at its end."""

from dataclasses import replace
from pathlib import Path

from tests.builders import a_job, a_pool, admitted
from trainshed.backends.process.job_hosts import JobHosts, names_text
from trainshed.backends.process.keeper import ShellKeeper
from trainshed.core.jobs.launch import Launch, RemoteRole
from trainshed.core.jobs.launching import Launches
from trainshed.core.jobs.replica import Replica

NAMES = (("digits-master-0",), ("digits-worker-0", "digits-worker-0.default"), ())


def a_launch(names: tuple[tuple[str, ...], ...] = NAMES) -> Launch:
    launch = Launches(admitted(a_job(a_pool(3)))).of(Replica(pool=0, index=0))
    return replace(launch, names=names, peers=("127.0.0.1", "127.0.0.2", "127.0.0.3"))


def test_each_replica_with_names_has_a_line():
    assert names_text(b"127.0.0.1 localhost", a_launch()).decode() == (
        "127.0.0.1 localhost\n127.0.0.1 digits-master-0\n127.0.0.2 digits-worker-0 digits-worker-0.default\n"
    )


def test_where_programs_start_others_elsewhere_each_replica_has_an_address_of_its_own():
    role = RemoteRole(serves=True, servers="", rows="", list_place="/etc/list")
    launch = replace(a_launch(), remote=role, peers=("127.0.0.1",) * 3)
    assert names_text(b"127.0.0.1 localhost", launch).decode() == (
        "127.0.0.1 localhost\n127.1.0.1 digits-master-0\n127.1.0.2 digits-worker-0 digits-worker-0.default\n"
    )


async def test_a_job_without_names_finds_what_any_job_finds(tmp_path: Path):
    hosts = JobHosts(tmp_path)
    assert await hosts.show(a_launch(()), "/run/hosts", ShellKeeper()) == ("/run/hosts", "")
    assert list(tmp_path.iterdir()) == []


async def test_where_no_file_can_be_mounted_a_note_says_so(tmp_path: Path):
    base = tmp_path / "hosts"
    base.write_text("127.0.0.1 localhost\n")
    file, note = await JobHosts(tmp_path).show(a_launch(), str(base), ShellKeeper())
    assert file == str(base)
    assert note == (
        "Replicas are not found by their names (there is no C compiler to build what shows them); "
        "CLUSTER_SPEC has their addresses."
    )


async def test_the_file_is_written_in_place_and_readable_by_all(tmp_path: Path):
    hosts = JobHosts(tmp_path, fault="")
    base = tmp_path / "hosts"
    base.write_text("127.0.0.1 a much longer list of names of this machine\n" * 9)
    first, note = await hosts.show(a_launch(), str(base), ShellKeeper())
    seen = Path(first).stat()
    assert (note, seen.st_mode & 0o777) == ("", 0o644)
    base.write_text("127.0.0.1 localhost\n")
    again, _ = await hosts.show(a_launch(), str(base), ShellKeeper())
    assert (again, Path(again).stat().st_ino) == (first, seen.st_ino)
    assert Path(again).read_bytes() == names_text(base.read_bytes(), a_launch())

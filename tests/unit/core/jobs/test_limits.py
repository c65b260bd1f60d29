"""What replicas of a job that was cut share, in numbers and in words; GPUs that are not there."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.builders import a_job, a_node, a_placement, a_pool, admitted
from trainshed.core.jobs.launching import Launches
from trainshed.core.jobs.limits import memory_limit, process_limit, shared_room, without_gpus
from trainshed.core.jobs.replica import Replica
from trainshed.core.queue.fleet import Fit
from trainshed.core.queue.machine import GIB, in_cpus, in_gib
from trainshed.core.queue.place import Room, fitted


def cut(*pools: tuple[float, int, int], cpus: float = 2, memory: int = 4 * GIB):
    """A job and its admission on one small machine; pools are CPUs, GiB and replicas."""
    job = admitted(a_job(*(a_pool(count, cpus=c, memory=m * GIB) for c, m, count in pools)))
    nodes = [a_node(cpus=cpus, memory=memory)]
    wanted = fitted(job.spec, nodes, Fit.SHRINK)
    assert wanted is not None and job.status.admission is not None
    placements = Room(nodes).place(wanted[0])
    assert placements is not None
    admission = replace(job.status.admission, placements=placements)
    return replace(job, status=replace(job.status, admission=admission)), admission


def test_replicas_of_a_cut_job_share_all_that_was_admitted():
    job, admission = cut((8, 30, 1), (8, 30, 4))
    room = shared_room(job.spec, admission, admission.placements[0])
    assert room is not None and room.sharers == 5
    assert abs(room.cpus - 2) < 1e-6 and 4 * GIB - 5 <= room.memory <= 4 * GIB
    limit = memory_limit(admission.placements[0], room)
    assert limit.shared and limit.most == room.memory and limit.weight < limit.most
    assert limit.words == (
        "this job asked for 30.0 GiB on this replica and was cut to share 4.0 GiB with 4 more, "
        "because this machine has no more"
    )


def test_a_job_that_fits_has_limits_of_its_own():
    job, admission = cut((1, 1, 2))
    place = admission.placements[0]
    assert shared_room(job.spec, admission, place) is None
    limit = memory_limit(place, None)
    assert (limit.most, limit.shared, limit.words) == (GIB, False, "its limit is 1.0 GiB")


def test_only_what_was_cut_is_shared():
    job, admission = cut((8, 1, 2), memory=32 * GIB)
    room = shared_room(job.spec, admission, admission.placements[0])
    assert room is not None and room.cpus == 2 and room.memory == 0
    assert not memory_limit(admission.placements[0], room).shared


def test_a_launch_of_a_cut_job_says_what_it_shares():
    job, _ = cut((8, 30, 5))
    launch = Launches(job).of(Replica(pool=0, index=3))
    assert launch.room is not None and launch.room.sharers == 5


@given(
    st.lists(st.tuples(st.floats(0.1, 96), st.integers(1, 600), st.integers(1, 6)), min_size=1, max_size=4),
    st.floats(0.5, 16),
    st.integers(1, 64),
)
def test_what_is_shared_is_never_more_than_the_machine_and_never_less_than_a_part_of_it(
    pools: list[tuple[float, int, int]], cpus: float, memory: int
):
    job, admission = cut(*pools, cpus=cpus, memory=memory * GIB)
    for place in admission.placements:
        room = shared_room(job.spec, admission, place)
        if room is None:
            continue
        assert room.cpus <= cpus + 1e-6 and room.memory <= memory * GIB
        limit = memory_limit(place, room)
        assert limit.most >= place.memory
        if limit.shared:
            assert limit.most >= memory * GIB - len(admission.placements)


def test_gpus_that_are_asked_for_and_not_there_are_told_of():
    spec = a_job(a_pool(2, gpus=2)).spec
    bare = [a_placement(0, index) for index in range(2)]
    assert without_gpus(spec, bare).startswith("The job asked for 4 GPUs (NVIDIA_TESLA_T4) and gets none")
    some = [a_placement(0, 0, gpus=("0",)), a_placement(0, 1)]
    assert without_gpus(spec, some).startswith("1 of the 2 replicas that asked for GPUs")
    assert without_gpus(spec, [a_placement(0, 0, gpus=("0",))]) == ""
    assert without_gpus(a_job().spec, bare) == ""


def test_numbers_in_words_are_short():
    assert [in_cpus(n) for n in (0.0784314, 2, 1.5, 0.001, 0)] == ["0.08", "2", "1.5", "0.01", "0"]
    assert [in_gib(n) for n in (184 << 20, GIB, int(4.6 * GIB))] == ["184 MiB", "1.0 GiB", "4.6 GiB"]


def test_a_replica_has_room_for_the_threads_of_its_own_cpus_and_of_those_it_sees():
    small, large = a_placement(0, 0, cpus=1), a_placement(0, 0, cpus=96)
    assert process_limit(small, None, machine_cpus=2, machine_room=32768) == 4096
    assert process_limit(large, None, machine_cpus=96, machine_room=4 << 20) == 96 * 1024
    assert process_limit(small, None, machine_cpus=256, machine_room=4 << 20) == 256 * 64


def test_no_replica_may_have_more_than_half_of_the_processes_of_a_machine():
    assert process_limit(a_placement(0, 0, cpus=64), None, machine_cpus=64, machine_room=32768) == 16384
    assert process_limit(a_placement(0, 0, cpus=64), None, machine_cpus=64, machine_room=0) == 64 * 1024

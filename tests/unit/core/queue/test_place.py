"""Room on nodes: all or nothing, never the same GPU twice, and shares where a gang is cut to fit."""

import pytest

from tests.builders import a_job, a_node, a_placement, a_pool
from trainshed.core.queue.fleet import Fit
from trainshed.core.queue.machine import GIB
from trainshed.core.queue.place import Amount, ReplicaNeed, Room, fitted, needs


def a_need(index: int = 0, *, cpus: float = 1, gpus: int = 0) -> ReplicaNeed:
    return ReplicaNeed(pool=0, index=index, cpus=cpus, memory=GIB, gpus=gpus)


def test_a_gang_is_placed_whole():
    room = Room([a_node(cpus=4, gpus=["0", "1", "2"])])
    placed = room.place([a_need(0, cpus=2, gpus=2), a_need(1, cpus=2, gpus=1)])
    assert placed == (
        a_placement(0, 0, cpus=2, gpus=("0", "1")),
        a_placement(0, 1, cpus=2, gpus=("2",)),
    )
    assert room.free() == Amount(0, 30 * GIB, 0)


def test_a_gang_that_does_not_fit_whole_takes_nothing():
    room = Room([a_node(cpus=4, gpus=["0", "1"])])
    before = room.free()
    assert room.place([a_need(0, gpus=1), a_need(1, gpus=2)]) is None
    assert room.free() == before


def test_gpus_given_back_keep_their_order():
    room = Room([a_node(gpus=["0", "1", "2"])])
    assert room.place([a_need(0, gpus=2), a_need(1, gpus=2)]) is None
    placed = room.place([a_need(gpus=2)])
    assert placed is not None
    assert placed[0].gpus == ("0", "1")


def test_a_gang_spreads_over_nodes_in_their_order():
    room = Room([a_node("a", cpus=2), a_node("b", cpus=2)])
    placed = room.place([a_need(i) for i in range(3)])
    assert placed is not None
    assert [p.node for p in placed] == ["a", "a", "b"]


def nodes_of(gpus_of_each: list[int], replicas: int, gpus: int) -> list[str]:
    """On which nodes a gang is, where so many GPUs are free on the nodes a, b, c."""
    nodes = [
        a_node(name, cpus=64, gpus=[*map(str, range(number))])
        for name, number in zip("abc", gpus_of_each, strict=True)
    ]
    placed = Room(nodes).place([a_need(i, gpus=gpus) for i in range(replicas)])
    assert placed is not None
    return [place.node for place in placed]


def test_a_job_with_gpus_is_placed_on_the_fullest_node_so_that_whole_nodes_stay_free():
    assert nodes_of([8, 2, 4], 1, 1) == ["b"]
    assert nodes_of([8, 2, 4], 1, 3) == ["c"]
    assert nodes_of([4, 8, 4], 1, 4) == ["a"]


def test_a_gang_with_gpus_is_placed_on_as_few_nodes_as_can_be():
    assert nodes_of([1, 8, 2], 4, 1) == ["b"] * 4
    assert nodes_of([4, 1, 3], 6, 1) == ["a"] * 4 + ["c"] * 2


def test_one_replica_is_never_split_over_nodes():
    assert Room([a_node("a", cpus=2), a_node("b", cpus=2)]).place([a_need(cpus=3)]) is None


def test_shares_of_a_cpu_that_add_up_to_a_whole_one_fit():
    assert Room([a_node(cpus=1)]).place([a_need(i, cpus=0.1) for i in range(10)]) is not None


def test_what_is_held_on_a_node_that_is_gone_takes_nothing_elsewhere():
    room = Room([a_node("a")])
    room.take([a_placement(0, 0, node="gone", cpus=8)])
    assert room.free().cpus == 8


def test_a_node_made_smaller_than_what_it_holds_does_not_hide_room_on_another():
    room = Room([a_node("a", cpus=2), a_node("b", cpus=2)])
    room.take([a_placement(0, 0, node="a", cpus=8)])
    assert room.free().cpus == 2
    placed = room.place([a_need(cpus=2)])
    assert placed is not None
    assert placed[0].node == "b"


@pytest.mark.parametrize(
    ("amount", "words"),
    [
        (Amount(1, GIB, 0), "1 CPU, 1.0 GiB"),
        (Amount(2.5, 3 * GIB // 2, 1), "2.5 CPUs, 1.5 GiB, 1 GPU"),
        (Amount(8, 32 * GIB, 2), "8 CPUs, 32.0 GiB, 2 GPUs"),
    ],
)
def test_an_amount_is_said_in_words(amount: Amount, words: str):
    assert str(amount) == words


def test_a_gang_that_fits_is_not_cut():
    spec = a_job(a_pool(2)).spec
    assert fitted(spec, [a_node()], Fit.SHRINK) == (needs(spec), ())


def test_a_strict_gang_that_is_too_large_is_refused():
    assert fitted(a_job(a_pool(cpus=9)).spec, [a_node(cpus=8)], Fit.STRICT) is None


def test_without_nodes_nothing_shrinks():
    assert fitted(a_job().spec, [], Fit.SHRINK) is None


def test_a_gang_larger_than_the_machine_gets_all_there_is_in_fair_shares():
    spec = a_job(a_pool(cpus=12, memory=48 * GIB, gpus=4), a_pool(cpus=4, memory=16 * GIB, gpus=4)).spec
    shrunk = fitted(spec, [a_node(cpus=8, memory=32 * GIB, gpus=["0", "1", "2"])], Fit.SHRINK)
    assert shrunk is not None
    given, cuts = shrunk
    assert [(n.cpus, n.memory, n.gpus) for n in given] == [(6, 24 * GIB, 2), (2, 8 * GIB, 1)]
    assert cuts == (
        "CPUs: asked 16, given 8",
        "memory: asked 64.0 GiB, given 32.0 GiB",
        "accelerators (NVIDIA_TESLA_T4): asked 8, given 3",
    )


def test_only_what_is_too_much_is_cut():
    shrunk = fitted(a_job(a_pool(cpus=2, gpus=1)).spec, [a_node(cpus=8)], Fit.SHRINK)
    assert shrunk is not None
    given, cuts = shrunk
    assert (given[0].cpus, given[0].memory, given[0].gpus) == (2, GIB, 0)
    assert cuts == ("accelerators (NVIDIA_TESLA_T4): asked 1, given 0",)


def test_a_gang_cut_to_fit_unequal_nodes_does_fit_them():
    nodes = [a_node("a", cpus=8), a_node("b", cpus=2)]
    shrunk = fitted(a_job(a_pool(4, cpus=8)).spec, nodes, Fit.SHRINK)
    assert shrunk is not None
    assert Room(nodes).place(shrunk[0]) is not None

"""Which environments go when the disk is needed: the least recently used, never one that is wanted."""

from hypothesis import given
from hypothesis import strategies as st

from tests.builders import at
from trainshed.core.supplies.runtime import GIB, Runtime, RuntimePhase, room_to_keep, victims, with_below


def kept(id: str, used: float, size: int = 10, below: str = "") -> Runtime:
    return Runtime(
        id=id, name=id, phase=RuntimePhase.READY, size=size, used_at=at(used), built_at=at(0), below=below
    )


def test_the_least_recently_used_goes_first_and_no_more_than_needed():
    kept_ones = [kept("a", 3), kept("b", 1), kept("c", 2)]
    assert [one.id for one in victims(kept_ones, (), 15)] == ["b", "c"]


def test_nothing_goes_while_there_is_room():
    assert victims([kept("a", 3)], (), 0) == ()
    assert victims([kept("a", 3)], (), -5) == ()


def test_what_is_wanted_stays_however_full_the_disk_is():
    assert [one.id for one in victims([kept("a", 1), kept("b", 2)], ("a",), 10**9)] == ["b"]


def test_what_a_wanted_one_is_laid_on_stays_too():
    kept_ones = [kept("base", 1), kept("top", 2, below="base")]
    assert victims(kept_ones, ("top",), 100) == ()


def test_one_that_others_are_laid_on_goes_after_them():
    kept_ones = [kept("base", 1), kept("top", 9, below="base"), kept("other", 20)]
    assert [one.id for one in victims(kept_ones, (), 15)] == ["top", "base"]


def test_the_room_kept_is_ten_gib_or_a_tenth_or_what_was_set():
    assert room_to_keep(1000 * GIB, None) == 10 * GIB
    assert room_to_keep(50 * GIB, None) == 5 * GIB
    assert room_to_keep(50 * GIB, GIB) == GIB


ids = st.sampled_from("abcdef")


@given(
    st.dictionaries(ids, st.tuples(st.integers(0, 9), st.integers(0, 50), ids)),
    st.sets(ids),
    st.integers(-10, 200),
)
def test_whatever_is_kept_nothing_wanted_goes_and_nothing_is_left_without_what_it_is_laid_on(
    kept_ones: dict[str, tuple[int, int, str]], wanted: set[str], short: int
):
    # Only what is laid on nothing is laid on: one storey, as they are built.
    lows = {id for id, (_, _, below) in kept_ones.items() if below == id or below not in kept_ones}
    there = [
        kept(id, used, size, below if id not in lows and below in lows else "")
        for id, (used, size, below) in kept_ones.items()
    ]
    going = {one.id for one in victims(there, wanted, short)}
    stay = [one for one in there if one.id not in going]
    assert not going & with_below(wanted, there)
    assert not {one.below for one in stay} & going
    if short > 0 and sum(one.size for one in there if one.id in going) < short:
        carrying = {one.below for one in stay}
        assert all(one.id in with_below(wanted, there) or one.id in carrying for one in stay)

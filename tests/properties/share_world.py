"""Random trees of shares, and random jobs of their projects."""

from hypothesis import strategies as st

from tests.builders import at
from tests.shares import a_job_of, a_share, a_tree
from trainshed.core.job import Job
from trainshed.core.share import Share, ShareTree

CPUS = 8  # of the one machine
NAMES = ("a", "b", "c", "d")
amounts = st.one_of(st.none(), st.none(), st.integers(0, 4).map(float))


@st.composite
def trees(draw: st.DrawFn) -> ShareTree:
    """One to four shares whose nominal amounts the machine has; some below a common one."""
    left, shares = CPUS, list[Share]()
    nested = draw(st.booleans())
    for name in NAMES[: draw(st.integers(1, len(NAMES)))]:
        nominal = draw(st.integers(0, left))
        left -= nominal
        shares.append(
            a_share(
                name,
                nominal,
                parent="above" if nested and name in "ab" else "root",
                borrow=draw(amounts),
                lend=draw(amounts),
                per_user=draw(st.sampled_from([None, None, None, 2.0, 4.0])),
                weight=draw(st.sampled_from([1, 1, 2, 5])),
            )
        )
    if nested:
        below = sum(share.nominal["cpus"] for share in shares if share.parent == "above")
        more = draw(st.integers(0, left))
        above = a_share("above", below + more, borrow=draw(amounts), lend=draw(amounts))
        shares.append(above)
    return a_tree(*shares)


@st.composite
def jobs(draw: st.DrawFn, most: int = 10) -> list[Job]:
    return [
        a_job_of(
            draw(st.sampled_from([*NAMES, "above", "nobody"])),
            f"{number:03d}",
            draw(st.sampled_from([1, 1, 2, 3, 4, 6, 8])),
            created_at=at(-draw(st.integers(0, 3))),
            priority=draw(st.sampled_from([0, 0, 0, 1, 2])),
            timeout=draw(st.sampled_from([10, 60, 600])),
            spot=draw(st.sampled_from([False, False, False, True])),
            user=draw(st.sampled_from(["ann", "bob"])),
        )
        for number in range(draw(st.integers(0, most)))
    ]

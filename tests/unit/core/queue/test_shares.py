"""A cycle where shares are set: who may start, whose turn it is, who waits, and with which words."""

from collections.abc import Sequence
from dataclasses import replace

from tests.builders import T0, a_node, at
from tests.shares import a_job_of, a_share, a_tree, started
from trainshed.core.event import Reason, Waiting
from trainshed.core.jobs.job import Job
from trainshed.core.queue.admit import AdmissionResult, admit
from trainshed.core.queue.fleet import Fit
from trainshed.core.queue.share import ShareTree
from trainshed.core.queue.snapshot import snapshot_of


def answers(
    tree: ShareTree, waiting: Sequence[Job], running: Sequence[Job] = (), *, cpus: float = 8
) -> dict[str, AdmissionResult]:
    """In the order in which they were tried."""
    snapshot = snapshot_of(map(started, running), (a_node(cpus=cpus),), Fit.SHRINK, T0, None, tree)
    return {v.job.id: v for v in admit(snapshot, waiting, T0)}


def let_in(results: dict[str, AdmissionResult]) -> list[str]:
    return [id for id, result in results.items() if result.admission is not None]


def why(result: AdmissionResult) -> Waiting:
    assert result.waiting is not None
    return result.waiting


VISION, LANGUAGE = a_share("vision", 4), a_share("language", 4)


def test_a_share_borrows_what_others_do_not_use():
    assert let_in(answers(a_tree(VISION, LANGUAGE), [a_job_of("vision", "1", 7)])) == ["1"]


def test_a_share_borrows_no_more_than_it_may():
    tree = a_tree(a_share("vision", 4, borrow=2), LANGUAGE)
    results = answers(tree, [a_job_of("vision", "1", 2)], [a_job_of("vision", "0", 5)])
    assert why(results["1"]) == Waiting(
        reason=Reason.WAITS_FOR_SHARE,
        message="Needs 2 CPUs; share 'vision' uses 5 CPUs of its guaranteed 4 CPUs and may borrow 2 CPUs.",
        remedy="It starts when enough jobs of these shares end, by 2026-05-01 13:00:00 UTC at the latest; "
        "ask for less, or raise the share.",
    )


def test_a_smaller_job_of_the_share_passes_only_where_the_first_starts_no_later():
    tree = a_tree(a_share("vision", 4, borrow=2), LANGUAGE)
    waiting = [
        a_job_of("vision", "head", 6, created_at=at(-9)),
        a_job_of("vision", "long", 1, timeout=3601),
        a_job_of("vision", "short", 1, timeout=3600),
    ]
    results = answers(tree, waiting, [a_job_of("vision", "0", 5)])
    assert let_in(results) == ["short"]
    assert why(results["long"]).message.startswith(
        "First to wait for that share is job head 'job-head'. Needs 6 CPUs; share 'vision' uses 5 CPUs"
    )


def test_a_job_that_waits_for_its_share_holds_up_no_other_share():
    tree = a_tree(a_share("vision", 4, borrow=0), LANGUAGE)
    waiting = [a_job_of("vision", "1", 4, created_at=at(-9)), a_job_of("language", "2", 4)]
    assert let_in(answers(tree, waiting, [a_job_of("vision", "0", 1)])) == ["2"]


def test_what_a_share_does_not_lend_stays_free():
    tree = a_tree(VISION, a_share("language", 4, lend=1))
    results = answers(tree, [a_job_of("vision", "1", 6), a_job_of("vision", "2", 5)])
    assert let_in(results) == ["2"]
    message = "Needs 6 CPUs; all shares together use 0 CPUs of 8 CPUs, and 3 CPUs are kept by their shares."
    assert why(results["1"]).message == message


def test_what_a_share_does_not_lend_is_there_for_itself():
    tree = a_tree(VISION, a_share("language", 4, lend=0))
    assert let_in(answers(tree, [a_job_of("language", "1", 4)], [a_job_of("vision", "0", 4)])) == ["1"]


def test_a_share_below_keeps_what_it_does_not_lend_from_its_sisters_and_from_all_others():
    tree = a_tree(
        a_share("research", 6),
        a_share("vision", 3, parent="research"),
        a_share("language", 3, parent="research", lend=0),
        a_share("sales", 2),
    )
    for project in ("vision", "sales"):
        assert let_in(answers(tree, [a_job_of(project, "1", 6)])) == []
        assert let_in(answers(tree, [a_job_of(project, "1", 5)])) == ["1"]


def test_a_user_has_no_more_than_the_share_allows_one_user():
    tree = a_tree(a_share("vision", 4, per_user=2), LANGUAGE)
    waiting = [a_job_of("vision", "1", 2, user="ann"), a_job_of("vision", "2", 2, user="bob")]
    results = answers(tree, waiting, [a_job_of("vision", "0", 1, user="ann")])
    assert let_in(results) == ["2"]
    assert why(results["1"]).message == "Needs 2 CPUs; ann uses 1 CPU of 2 CPUs in share 'vision'."


def test_a_new_account_is_not_held_back_by_jobs_of_who_had_its_name_before():
    tree = replace(a_tree(a_share("vision", 4, per_user=2), LANGUAGE), accounts={"ann": at(10)})
    former = a_job_of("vision", "0", 2, user="ann", created_at=at(9))
    waiting = [
        a_job_of("vision", "1", 1, user="ann", created_at=at(9)),
        a_job_of("vision", "2", 2, user="ann", created_at=at(10)),
    ]
    results = answers(tree, waiting, [former])
    assert let_in(results) == ["2"]
    assert "ann (before 2026-05-01 12:00:10) uses 2 CPUs of 2 CPUs" in why(results["1"]).message


def test_who_has_a_right_goes_before_who_borrows_whatever_the_priority():
    waiting = [a_job_of("vision", "1", 4, priority=9), a_job_of("language", "2", 4)]
    results = answers(a_tree(VISION, LANGUAGE), waiting, [a_job_of("vision", "0", 4, priority=9)])
    assert list(results) == ["2", "1"]
    assert let_in(results) == ["2"]


def test_of_two_that_borrow_the_share_that_uses_less_by_its_weight_goes_first():
    tree = a_tree(a_share("a", 1), a_share("b", 1, weight=3), a_share("c", 6))
    waiting = [a_job_of("a", "1", 2, created_at=at(-9)), a_job_of("b", "2", 2)]
    running = [a_job_of("a", "3", 2), a_job_of("b", "4", 4)]
    assert let_in(answers(tree, waiting, running)) == ["2"]


def test_shares_take_turns_in_a_cycle():
    tree = a_tree(a_share("a", 0), a_share("b", 0))
    waiting = [a_job_of("a", f"a{n}", 1, created_at=at(-9)) for n in range(4)]
    waiting += [a_job_of("b", f"b{n}", 1) for n in range(4)]
    assert let_in(answers(tree, waiting, cpus=4)) == ["a0", "b0", "a1", "b1"]


def test_who_has_waited_for_a_day_goes_by_age_whatever_the_share_uses():
    tree = a_tree(a_share("a", 0), a_share("b", 0))
    waiting = [a_job_of("a", "1", 2, created_at=at(-86400)), a_job_of("b", "2", 2)]
    assert let_in(answers(tree, waiting, [a_job_of("a", "0", 6)])) == ["1"]


def test_a_job_with_a_right_is_not_held_up_by_a_head_without_one():
    """The first of vision borrows and does not fit; what the other shares have a right to is theirs."""
    waiting = [
        a_job_of("vision", "big", 8, created_at=at(-9), priority=1),
        a_job_of("vision", "own", 1, created_at=at(-8), priority=1),
        a_job_of("language", "2", 4, timeout=10**6),
    ]
    results = answers(a_tree(VISION, LANGUAGE), waiting, [a_job_of("vision", "0", 3)])
    assert "2" in let_in(results)


def test_spot_jobs_come_last_and_count_for_no_share():
    tree = a_tree(a_share("vision", 4, borrow=0), LANGUAGE)
    waiting = [
        a_job_of("vision", "spot", 4, spot=True, created_at=at(-9), priority=9),
        a_job_of("vision", "1", 4),
    ]
    results = answers(tree, waiting)
    assert list(results) == ["1", "spot"]
    assert let_in(results) == ["1", "spot"]
    assert let_in(answers(tree, [a_job_of("vision", "2", 4)], [waiting[0]])) == ["2"]


def test_a_project_of_no_share_has_what_others_leave():
    waiting = [a_job_of("nobody", "1", 4, created_at=at(-9)), a_job_of("vision", "2", 4)]
    results = answers(a_tree(VISION, LANGUAGE), waiting)
    assert list(results) == ["2", "1"]
    assert let_in(results) == ["2", "1"]


def test_a_job_that_is_more_than_its_share_may_ever_have_is_told_so_and_holds_up_nobody():
    tree = a_tree(a_share("vision", 2, borrow=1), LANGUAGE)
    waiting = [a_job_of("vision", "1", 4, created_at=at(-9)), a_job_of("vision", "2", 3)]
    results = answers(tree, waiting)
    assert let_in(results) == ["2"]
    assert why(results["1"]).remedy.startswith("It is more than its share may ever have")

from tests.builders import T0, a_node
from tests.shares import a_job_of, a_share, a_tree, started
from trainshed.core.queue.admit import Cycle
from trainshed.core.queue.fleet import Fit
from trainshed.core.queue.guarantee import Standing
from trainshed.core.queue.share_report import share_rows
from trainshed.core.queue.snapshot import snapshot_of
from trainshed.core.queue.waiting_jobs import WaitingJobs


def test_each_share_is_shown_after_the_one_above_it_with_what_it_has_and_uses():
    tree = a_tree(a_share("team", 6), a_share("a", 4, parent="team"), a_share("b", 2))
    running = [started(a_job_of(*job)) for job in (("a", "1", 2), ("a", "2", 3), ("b", "3", 1))]
    spot = started(a_job_of("b", "4", 1, spot=True))
    snapshot = snapshot_of([*running, spot], (a_node(cpus=8),), Fit.SHRINK, T0, None, tree)
    waiting = WaitingJobs([a_job_of("b", "5"), a_job_of("nobody", "6")], {}, tree)
    rows = share_rows(Cycle(snapshot, T0, waiting), waiting.counts())
    assert [(row.share.name, row.depth) for row in rows] == [("root", 0), ("b", 1), ("team", 1), ("a", 2)]
    root, b, team, a = rows
    assert (root.used["cpus"], team.used["cpus"], a.used["cpus"], b.used["cpus"]) == (6, 5, 5, 1)
    assert a.standings == {Standing.GUARANTEED: 1, Standing.BORROWED: 1}
    assert b.standings == {Standing.GUARANTEED: 1, Standing.SPOT: 1}
    assert (root.waiting, b.waiting, a.waiting) == (1, 1, 0)
    assert root.nominal["cpus"] == 8 and team.nominal["cpus"] == 6


def test_without_shares_there_is_nothing_to_show():
    snapshot = snapshot_of([], (a_node(cpus=8),), Fit.SHRINK, T0)
    assert share_rows(Cycle(snapshot, T0), {}) == ()

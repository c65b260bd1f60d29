"""Measure, and print the table: python -m tests.benchmarks [start many … command submit]."""

import signal
import sys
import traceback
from collections.abc import Callable

from tests.benchmarks import (
    boxing,
    clustering,
    commanding,
    cycling,
    disturbing,
    following,
    graphing,
    listing,
    looking,
    packaging,
    printing,
    queueing,
    reducing,
    replay,
    resting,
    searching,
    starting,
    stopping_early,
    storing,
)
from tests.benchmarks.row import Row, table
from tests.browser.page import chromium
from tests.containers.engine import why_not
from tests.kubernetes.cluster import why_not as why_no_cluster

BENCHES: dict[str, Callable[[], list[Row]]] = {
    "up": lambda: [starting.server()],
    "start": starting.one_job,
    "many": lambda: [starting.many_jobs()],
    "package": packaging.second_start,
    "reduce": lambda: [reducing.all_reduce()],
    "warm": lambda: [reducing.all_reduce(warm=True)],
    "flood": lambda: [printing.flood(buffered=False), printing.flood(buffered=True)],
    "follow": lambda: [printing.follower()],
    "screen": lambda: [following.on_the_screen()],
    "read": printing.reading,
    "lines": looking.by_line,
    "log-page": looking.in_page,
    "graphs": graphing.graphs,
    "idle": resting.idle,
    "look": lambda: [resting.looking_on()],
    "list": resting.long_list,
    "console": listing.console_list,
    "pages": listing.open_pages,
    "queue": queueing.long_queue,
    "queue-shares": lambda: queueing.long_queue(shared=True),
    "queue-100000": lambda: queueing.longest_queue(shared=False),
    "queue-shares-100000": lambda: queueing.longest_queue(shared=True),
    "cycle": cycling.long_cycles,
    "replay": replay.replayed,
    "disturb": disturbing.others_wait,
    "studies": searching.one_after_another,
    "early-stops": stopping_early.early_stops,
    "store": lambda: [*storing.large_object(), *storing.small_objects()],
    "command": commanding.command_line,
    "submit": commanding.submitting,
    "box": lambda: [boxing.one_box()],
    "boxes": lambda: [boxing.many_boxes()],
    "box-flood": lambda: [boxing.flood(buffered=False), boxing.flood(buffered=True)],
    "pod": lambda: [clustering.one_pod()],
    "pod-follow": lambda: [clustering.follower()],
    "pod-killed": lambda: [clustering.killed_replica()],
    "pod-lost": lambda: [clustering.lost_node()],
    "pod-gang": clustering.large_gang,
    "pods-idle": lambda: [clustering.idle_pods()],
}

IN_BROWSER = {"console", "graphs", "log-page", "pages", "screen"}
WITH_TORCH = {"early-stops", "reduce", "warm"}


def main(names: list[str]) -> int:
    if unknown := set(names) - set(BENCHES):
        print(f"no such benchmark: {', '.join(sorted(unknown))}; there are {', '.join(BENCHES)}")
        return 2
    # So that whoever ends it leaves no server behind, which would disturb the next one.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    rows: list[Row] = []
    failed: list[str] = []
    for name in names or BENCHES:
        print(f"measuring {name} …", file=sys.stderr, flush=True)
        if reason := why_left_out(name):
            print(f"  left out: {reason}", file=sys.stderr)
            continue
        try:
            measured = BENCHES[name]()
        except Exception:  # what others measured in half an hour is not lost with it
            traceback.print_exc()
            failed.append(name)
        else:
            print(table(measured, indent="  "), file=sys.stderr)
            rows += measured
    print(table(rows))
    if failed:
        print(f"failed: {', '.join(failed)}")
    return 0 if not failed and all(row.is_reached for row in rows) else 1


def why_left_out(name: str) -> str | None:
    """What this machine lacks for it."""
    if name in IN_BROWSER and chromium() is None:
        return "needs chromium (Debian, as root: scripts/containers-env)"
    if name in WITH_TORCH and not reducing.TRAIN.exists():
        return "needs PyTorch in .venv-train (make demo-env)"
    if name.startswith("box"):
        return why_not()
    return why_no_cluster() if name.startswith("pod") else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

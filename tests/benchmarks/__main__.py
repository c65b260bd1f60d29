"""Measure, and print the table: python -m tests.benchmarks [start many … command submit]."""

import signal
import sys
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


def main(names: list[str]) -> int:
    if unknown := set(names) - set(BENCHES):
        print(f"no such benchmark: {', '.join(sorted(unknown))}; there are {', '.join(BENCHES)}")
        return 2
    # So that whoever ends it leaves no server behind, which would disturb the next one.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    rows: list[Row] = []
    for name in names or BENCHES:
        print(f"measuring {name} …", file=sys.stderr, flush=True)
        if name in ("reduce", "warm", "early-stops") and not reducing.TRAIN.exists():
            print("  left out: needs PyTorch in .venv-train (make demo-env)", file=sys.stderr)
            continue
        if name.startswith("box") and (reason := why_not()):
            print(f"  left out: {reason}", file=sys.stderr)
            continue
        if name.startswith("pod") and (reason := why_no_cluster()):
            print(f"  left out: {reason}", file=sys.stderr)
            continue
        rows += BENCHES[name]()
    print(table(rows))
    return 0 if all(row.is_reached for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

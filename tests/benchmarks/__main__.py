"""Measure, and print the table: python -m tests.benchmarks [start many … command submit]."""

import sys
from collections.abc import Callable

from tests.benchmarks import commanding, printing, reducing, resting, starting
from tests.benchmarks.row import Row, table

BENCHES: dict[str, Callable[[], list[Row]]] = {
    "start": starting.one_job,
    "many": lambda: [starting.many_jobs()],
    "reduce": lambda: [reducing.all_reduce()],
    "warm": lambda: [reducing.all_reduce(warm=True)],
    "flood": lambda: [printing.flood(buffered=False), printing.flood(buffered=True)],
    "follow": lambda: [printing.follower()],
    "idle": resting.idle,
    "look": lambda: [resting.looking_on()],
    "list": resting.long_list,
    "command": commanding.command_line,
    "submit": commanding.submitting,
}


def main(names: list[str]) -> int:
    if unknown := set(names) - set(BENCHES):
        print(f"no such benchmark: {', '.join(sorted(unknown))}; there are {', '.join(BENCHES)}")
        return 2
    rows: list[Row] = []
    for name in names or BENCHES:
        print(f"measuring {name} …", file=sys.stderr, flush=True)
        if name in ("reduce", "warm") and not reducing.TRAIN.exists():
            print("  left out: needs PyTorch in .venv-train (make demo-env)", file=sys.stderr)
            continue
        rows += BENCHES[name]()
    print(table(rows))
    return 0 if all(row.is_reached for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

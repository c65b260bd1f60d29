"""The runs before the current ones, out of the intervals of the ledger: `trainshed show` lists them."""

from itertools import groupby

from trainshed.cli import words
from trainshed.cli.table import table
from trainshed.client import Client, Json

HEADERS = ["REPLICA", "ATTEMPT", "RUN", "RAN", "NODE", "ENDED", "EXIT"]
AT_WORK = ("WAITED_FOR_GANG", "COMPUTED", "LOST")


def earlier_runs(client: Client, name: str, status: Json) -> list[Json]:
    """Each run that another one has followed and that had begun: when, where, and how it ended."""
    attempt = int(status.get("attempt") or 0)
    current = {
        (part["task"], attempt, int(part.get("restarts") or 0)) for part in words.parts(status, "replicas")
    }
    if not attempt and not any(run for _, _, run in current):
        return []
    runs: list[Json] = []
    for key, group in groupby(client.intervals(name), key=_run):
        intervals = list(group)
        worked = [interval for interval in intervals if interval["class"] in AT_WORK]
        ended = next((interval for interval in intervals if interval.get("exit")), None)
        if key in current or ended is None or not worked:
            continue
        runs.append(
            {
                "task": key[0],
                "attempt": key[1],
                "run": key[2],
                "node": ended.get("node", ""),
                "startTime": worked[0]["startTime"],
                "endTime": ended["endTime"],
                "exit": ended["exit"],
            }
        )
    return sorted(runs, key=lambda run: str(run["endTime"]))


def drawn(runs: list[Json]) -> str:
    return table(HEADERS, [_row(run) for run in runs], indent="  ")


def _run(interval: Json) -> tuple[str, int, int]:
    return interval["task"], interval["attempt"], interval["run"]


def _row(run: Json) -> list[str]:
    started, ended = words.moment(run["startTime"]), words.moment(run["endTime"])
    return [
        str(run["task"]),
        str(run["attempt"]),
        str(run["run"]),
        words.span(ended - started) if started and ended else "",
        str(run["node"]),
        words.clock(run["endTime"]),
        words.exit_of(run),
    ]

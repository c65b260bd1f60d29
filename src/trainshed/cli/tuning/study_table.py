"""The list of studies as a table, and the bars of importance."""

from collections.abc import Sequence
from datetime import UTC, datetime

from trainshed.cli import words
from trainshed.cli.paint import Paint
from trainshed.cli.tuning import trial_words
from trainshed.client import Json

BAR = 30
EIGHTHS = " ▏▎▍▌▋▊▉"


def drawn_studies(rows: Sequence[Json], *, all_locations: bool) -> str:
    from trainshed.cli.table import table

    now = datetime.now(UTC)
    headers = ["ID", "NAME", "STATE", "AGE", "TRIALS", "FAILED", "GOAL", "BEST", "LOCATION", "POINT OR WHY"]
    return table(headers, [_row(row, now, all_locations=all_locations) for row in rows])


def _row(row: Json, now: datetime, *, all_locations: bool) -> list[str]:
    state = words.state(row.get("state"))
    trials = words.part(row, "trials")
    ended = trial_words.ended_count(row)
    best = words.part(row, "best")
    goals = trial_words.objectives(row)
    failed = int(words.part(trials, "byState").get("INFEASIBLE") or 0)
    point = trial_words.point_text(words.part(best, "parameters"))
    return [
        words.identity(row),
        str(row.get("displayName", "")),
        Paint.for_stdout().state(state),
        words.age(row.get("createTime"), now),
        f"{ended}/{trials.get('max')}" if trials.get("max") else str(ended),
        str(failed or ""),
        ", ".join(f"{'max' if is_more_better else 'min'} {metric}" for metric, is_more_better in goals),
        trial_words.number(best["value"]) if best.get("value") is not None else "",
        words.location(row) if all_locations else "",
        str(row.get("message") or "") if state == "FAILED" or "waiting" in row or not point else point,
    ]


def drawn_importance(importance: Sequence[Json], indent: str = "  ") -> str:
    """A bar for each parameter, the most important first."""
    rows = sorted(
        ((str(item.get("parameterId")), float(item.get("importance") or 0)) for item in importance),
        key=lambda item: -item[1],
    )
    longest = max(len(name) for name, _ in rows)
    paint = Paint.for_stdout()
    return "\n".join(
        f"{indent}{name:<{longest}}  {paint(bar(value), 'cyan')} {value * 100:3.0f}%" for name, value in rows
    )


def bar(share: float, room: int = BAR) -> str:
    """A bar in eighths of a letter, padded to its room."""
    eighths = round(max(0.0, min(1.0, share)) * room * 8)
    text = "█" * (eighths // 8) + (EIGHTHS[eighths % 8] if eighths % 8 else "")
    return f"{text:<{room}}"

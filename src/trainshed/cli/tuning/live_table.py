"""The picture that `tune` draws on a terminal, again and again in the same place."""

import math
import re
import shutil
import sys

from trainshed.cli import words
from trainshed.cli.paint import Paint, clean, draw
from trainshed.cli.table import width
from trainshed.cli.tuning import trial_words
from trainshed.cli.tuning.trial_choice import chosen_trials
from trainshed.cli.tuning.trial_table import drawn_trials, identity
from trainshed.client import Client, Json

BAR = 24  # letters of the bar of progress
_PIECES = re.compile(r"(\x1b\[[0-9;]*m)")


class LiveTable:
    """Draws lines over those of the last time. It never scrolls more than its own height away."""

    def __init__(self) -> None:
        self._height = 0

    def draw(self, lines: list[str]) -> None:
        size = shutil.get_terminal_size()
        lines = [cropped(clean(line), size.columns - 1) for line in lines[: size.lines - 1]]
        up = f"\x1b[{self._height}A\r" if self._height else ""
        draw(sys.stdout, up + "".join(f"{line}\x1b[K\n" for line in lines) + "\x1b[J")
        self._height = len(lines)


def cropped(line: str, columns: int) -> str:
    """As much of a painted line as fits: one that wraps would take two lines."""
    shown, taken = "", 0
    for at, piece in enumerate(_PIECES.split(line)):
        if at % 2:
            shown += piece  # a colour, and later its end
            continue
        for letter in piece:
            wide = width(letter)
            if taken + wide > columns:
                taken = columns
                break
            shown, taken = shown + letter, taken + wide
    return shown


class LatestAnalysis:
    """The analysis of a study, asked for only when its counts have changed: it reads every trial."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._counts: Json | None = None
        self._known: Json = {}

    def __call__(self, study: Json) -> Json:
        counts = words.part(trial_words.own(study), "trials")
        if counts != self._counts:
            self._known, self._counts = self._client.studies().analysis(str(study["name"])), counts
        return self._known


def picture(client: Client, study: Json, analysis: Json, rows: int) -> list[str]:
    """The head, and as many trials as there are rows: those that run, the newest, and always the best."""
    best = trial_words.best_ids(analysis)
    trials = chosen_trials(client, study, best, rows)
    curves = curves_of(client, str(study["name"]), [identity(trial) for trial in trials]) if trials else {}
    metrics = [metric for metric, _ in trial_words.objectives(study)]
    table = drawn_trials(trials, metrics, best, curves) if trials else ""
    return [*head_lines(study, analysis), *table.splitlines()]


def curves_of(client: Client, name: str, trials: list[str]) -> dict[str, list[object]]:
    answer = client.studies().curves(name, trials=trials)
    return {str(item.get("trial")): words.parts(item, "values") for item in words.parts(answer, "curves")}


def head_lines(study: Json, analysis: Json) -> list[str]:
    """State, counts, a bar, and when it may end; then the best value."""
    paint = Paint.for_stdout()
    row = trial_words.own(study)
    trials = words.part(row, "trials")
    ended = trial_words.ended_count(row)
    most = int(trials.get("max") or trials.get("total") or 0)
    filled = math.floor(BAR * min(1.0, ended / most)) if most else 0
    bar = paint("━" * filled, "green") + paint("─" * (BAR - filled), "dim")
    left = trial_words.time_left(study, analysis)
    left = f", about {left} left" if left else ""
    state = paint.state(words.state(row.get("state")))
    title = f"{paint(str(row.get('displayName', '')), 'bold')} ({words.identity(row)}) {state}"
    lines = [title, f"{bar} {trial_words.counts(row)}{left}"]
    if message := str(row.get("message") or ""):
        lines.append(message.partition("\n")[0])
    return lines

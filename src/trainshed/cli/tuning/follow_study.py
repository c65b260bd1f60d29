"""Following a study to its end: a live table on a terminal, a line for each ended trial elsewhere.

`tune` and `study show --follow` call it. It only looks; Ctrl-C leaves the study alone.
"""

import json
import shutil
import sys
from collections.abc import Callable

import click

from trainshed.cli import words
from trainshed.cli.follow import DETACHED
from trainshed.cli.looks import looks
from trainshed.cli.paint import Paint
from trainshed.cli.trouble import say
from trainshed.cli.tuning import trial_words
from trainshed.cli.tuning.ending import say_end
from trainshed.cli.tuning.live_table import LatestAnalysis, LiveTable, picture
from trainshed.cli.tuning.trial_table import identity
from trainshed.client import Client, Json
from trainshed.client.errors import Interrupted, Unreachable
from trainshed.client.resume import RetryBudget

EVERY = 2.0  # seconds between looks where nothing is heard
PAGE = 50  # trials asked for at a time; few of them have ended since the last look
LEAST_ROWS, MOST_ROWS = 5, 100


def follow_study(client: Client, study: Json, *, as_json: bool = False) -> int:
    """The code to exit with: 0 if the study succeeded."""
    is_live = sys.stdout.isatty() and not as_json
    show = _live(client) if is_live else _printing(client, as_json=as_json)
    try:
        study = _watched(client, str(study["name"]), show)
    except KeyboardInterrupt:
        return detached(study)
    say_end(client, study, as_json=as_json, is_told=is_live)
    return 0 if words.state(trial_words.own(study).get("state")) == "SUCCEEDED" else 1


def detached(study: Json) -> int:
    called = words.identity(study)
    say(
        f"\ndetached: the study goes on. Come back with: trainshed study show -f {called}\n"
        f"or end it with what it has: trainshed study stop {called}"
    )
    return DETACHED


def _watched(client: Client, name: str, show: Callable[[Json], None]) -> Json:
    """Shows the study at each look until it has ended. Outlasts a restart of the server."""
    budget = RetryBudget()
    for _ in looks(client, EVERY):
        try:
            study = client.studies().view(name)
            show(study)
        except (Unreachable, Interrupted) as error:
            budget.spend(error)
            continue
        budget.restore()
        if trial_words.is_ended(study):
            return study
    raise AssertionError("looks never ends")


def _live(client: Client) -> Callable[[Json], None]:
    table, analysis = LiveTable(), LatestAnalysis(client)

    def show(study: Json) -> None:
        room = shutil.get_terminal_size().lines - 5
        table.draw(picture(client, study, analysis(study), max(LEAST_ROWS, min(MOST_ROWS, room))))

    return show


class EndedTrials:
    """Gives each trial once, when it has ended. It asks for those only that may have ended since."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._given: set[int] = set()
        self._lowest = 1  # every trial below it was given
        self._count = 0  # ended trials at the last look

    def __call__(self, study: Json) -> list[Json]:
        count = trial_words.ended_count(trial_words.own(study))
        if count == self._count:
            return []
        self._count = count
        ended: list[Json] = []
        for trial in self._client.studies().trials(str(study["name"]), order_by="id desc", page=PAGE):
            number = int(identity(trial))
            if number < self._lowest:
                break
            if words.state(trial.get("state")) in trial_words.ENDED and number not in self._given:
                ended.append(trial)
        self._given.update(int(identity(trial)) for trial in ended)
        while self._lowest in self._given:
            self._given.remove(self._lowest)
            self._lowest += 1
        return sorted(ended, key=lambda trial: (str(trial.get("endTime")), int(identity(trial))))


def _printing(client: Client, *, as_json: bool) -> Callable[[Json], None]:
    ended = EndedTrials(client)
    best: dict[str, float] = {}

    def show(study: Json) -> None:
        goals = trial_words.objectives(study)
        for trial in ended(study):
            click.echo(json.dumps(trial) if as_json else line_of(trial, goals, best))

    return show


def line_of(trial: Json, goals: list[tuple[str, bool]], best: dict[str, float]) -> str:
    """One ended trial on one line. `best` remembers the best value of a study with one objective."""
    values = trial_words.measured(trial, [metric for metric, _ in goals])
    text = " ".join(f"{metric}={trial_words.number(value)}" for metric, value in values.items())
    mark = ""
    state = words.state(trial.get("state"))
    if len(goals) == 1 and values and state == "SUCCEEDED":
        [(metric, is_more_better)] = goals
        value, before = values[metric], best.get(metric)
        if before is None or (value > before if is_more_better else value < before):
            best[metric] = value
            mark = f"{trial_words.BEST} best so far"
    point = trial_words.point_text(trial_words.parameters(trial))
    note = " ".join(trial_words.note(trial).split())
    head = f"trial {identity(trial)} {Paint.for_stdout().state(state)}"
    took = trial_words.took(trial)
    return "  ".join(filter(None, (head, text, point, took, note, mark)))

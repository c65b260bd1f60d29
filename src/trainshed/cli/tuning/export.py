"""Writes a study to files: its trials as CSV, its graphs as a page. `study show` calls it."""

import csv
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

import click

from trainshed.cli import words
from trainshed.cli.failure import CommandFailed
from trainshed.cli.spreadsheet import cell
from trainshed.cli.tuning import trial_words
from trainshed.cli.tuning.ending import best_of
from trainshed.cli.tuning.page import StudyPicture, page
from trainshed.cli.tuning.parameter import every_spec
from trainshed.cli.tuning.trial_choice import best_first
from trainshed.cli.tuning.trial_table import identity
from trainshed.client import Client, Json

DRAWN = 1000  # trials with a line of their own in parallel coordinates
CURVES = 50


def write_csv(client: Client, study: Json, file: str) -> None:
    trials = client.studies().trials(str(study["name"]))
    if file == "-":
        _table(sys.stdout, study, trials)
        return
    try:
        with Path(file).open("w", encoding="utf-8", newline="") as stream:
            count = _table(stream, study, trials)
    except OSError as error:
        raise CommandFailed(f"cannot write {file}: {error.strerror}") from error
    click.echo(f"wrote {count} trial{'' if count == 1 else 's'} to {file}", err=True)


def _table(stream: TextIO, study: Json, trials: Iterator[Json]) -> int:
    """One row for each trial, in order; columns of parameters and metrics say so in their names."""
    specs = words.parts(words.part(study, "studySpec"), "parameters")
    names = list(dict.fromkeys(str(spec.get("parameterId")) for spec in every_spec(specs)))
    metrics = [metric for metric, _ in trial_words.objectives(study)]
    writer = csv.writer(stream, lineterminator="\n")
    measured = [cell(f"metrics.{metric}") for metric in metrics]
    writer.writerow(
        [
            "trial",
            "state",
            *(cell(f"params.{name}") for name in names),
            *measured,
            "start",
            "end",
            "seconds",
            "job",
            "note",
        ]
    )
    count = 0
    for trial in trials:
        count += 1
        point, values = trial_words.parameters(trial), trial_words.measured(trial, metrics)
        length = trial_words.ran(trial, datetime.now(UTC))
        writer.writerow(
            [
                identity(trial),
                words.state(trial.get("state")),
                *(cell(trial_words.exact(point[name])) if name in point else "" for name in names),
                *(values.get(metric, "") for metric in metrics),
                trial.get("startTime", ""),
                trial.get("endTime", ""),
                f"{length.total_seconds():.3f}" if length is not None else "",
                str(trial.get("customJob") or "").rpartition("/")[2],
                cell(trial_words.note(trial)),
            ]
        )
    return count


def write_page(client: Client, study: Json, file: str) -> None:
    studies, name = client.studies(), str(study["name"])
    picture = StudyPicture(
        study=study,
        analysis=studies.analysis(name),
        best=best_of(client, study),
        trials=list(studies.trials(name, order_by=best_first(study), filter="state=SUCCEEDED", limit=DRAWN)),
        curves=studies.curves(name, most=CURVES),
    )
    try:
        Path(file).write_text(page(picture), encoding="utf-8")
    except OSError as error:
        raise CommandFailed(f"cannot write {file}: {error.strerror}") from error
    click.echo(f"wrote {file}", err=True)

"""`trainshed tune`: searches good parameters of a program, in a study whose trials run as jobs."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import click

from trainshed.cli import submit_options
from trainshed.cli.submit import Submit, flags_of
from trainshed.cli.submit_options import SubmitWords
from trainshed.cli.tuning.find_study import complete
from trainshed.cli.tuning.request import ALGORITHMS, STOPPING, TuneWords

HELP = {  # what is other than with submit
    "name": "The display name of the study. [default: the program's]",
    "labels": "A label of the study. Repeatable.",
    "timeout": "End a trial after this time: 90s, 10m, 2h, 1d. [default: 7d]",
    "output": "Where results go: each trial has a folder of its number there.",
    "job_dir": "Given to each trial as --job-dir, the same to all; without --output results go there too.",
    "detach": "Do not follow: print the study's id and return at once.",
    "dry_run": "Submit nothing: print what would be sent, as YAML or JSON.",
}
ROWS: tuple[submit_options.Row, ...] = tuple(
    (field, names, kind, metavar, HELP.get(field, help))
    for field, names, kind, metavar, help in submit_options.OPTIONS
    if field != "follow"
)
OPTIONS: tuple[Callable[[Callable[..., int]], Callable[..., int]], ...] = (
    click.option(
        "--param", "params", metavar="NAME=SPEC", multiple=True, help="What to search; see above. Repeatable."
    ),
    click.option(
        "--maximize", metavar="METRIC", multiple=True, help="What the program reports and should be high."
    ),
    click.option(
        "--minimize", metavar="METRIC", multiple=True, help="... and should be low. Repeatable too."
    ),
    click.option(
        "--trials",
        metavar="N",
        type=click.IntRange(1),
        default=20,
        show_default=True,
        help="How many trials.",
    ),
    click.option(
        "--parallel",
        metavar="N",
        type=click.IntRange(1),
        default=1,
        show_default=True,
        help="How many at a time.",
    ),
    click.option(
        "--failed", metavar="N", type=click.IntRange(1), help="End the study when so many trials failed."
    ),
    click.option(
        "--algorithm",
        type=click.Choice(list(ALGORITHMS)),
        default="default",
        help="How points are chosen. [default: a model of what was measured]",
    ),
    click.option(
        "--stop-early", type=click.Choice(list(STOPPING)), help="End trials that will not become the best."
    ),
    click.option(
        "--steps",
        metavar="[MIN..]MAX",
        help="For convex, asha and hyperband: the last step of a trial, and before which none ends.",
    ),
    click.option("--timeout-study", metavar="TIME", help="End the study after this time: 10m, 2h, 1d."),
    click.option(
        "--no-progress",
        metavar="N",
        type=click.IntRange(1),
        help="End it after N trials without a better one.",
    ),
    click.option("--seed", metavar="N", type=click.IntRange(0), help="Chooses the same points again."),
    click.option(
        "--pattern", metavar="REGEX", help="Of lines that report a metric, with groups name, value, step."
    ),
    click.option(
        "--try", "tries", metavar="NAME=VALUE,...", multiple=True, help="A point to begin with. Repeatable."
    ),
    click.option(
        "--warm-start",
        metavar="STUDY",
        multiple=True,
        shell_complete=complete.studies,
        help="Begin with what another study has learned. Repeatable.",
    ),
)


def tune_flags(function: Callable[..., int]) -> Callable[..., int]:
    function = flags_of(ROWS, function)
    for option in reversed(OPTIONS):
        function = option(function)
    return function


@click.command("tune", cls=Submit, short_help="Search good parameters of a program: a study of many trials.")
@click.argument("target", metavar="SCRIPT|FOLDER", required=False, type=click.Path(), shell_complete=None)
@tune_flags
@click.pass_context
def command(ctx: click.Context, **given: Any) -> int:
    """Search good parameters of a program: a study of many trials.

    Each trial runs as a job, with the options of `trainshed submit`. It gets its parameters as --NAME=VALUE
    behind the program's own arguments. What it reports is judged: `trainshed.report`, cloudml-hypertune,
    TensorBoard files, or lines such as accuracy=0.93. On a terminal a table shows the trials; elsewhere
    each trial that ends is a line. Ctrl-C leaves the study running.

    \b
    SPEC of a parameter:
      1..10                 whole numbers; int:1e3..1e6 too
      0.0..1.0              all numbers between
      log:1e-4..1e-1        searched by its logarithm; rlog: finer near the upper end
      32,64,128             one of these numbers
      relu,tanh             one of these words
      NAME@PARENT=A,B=SPEC  only where the parameter PARENT is A or B

    Exit code: 0 if the study succeeded, 1 if not or for an error, 2 for a wrong command line, 130 after
    Ctrl-C. With --detach the study's id is printed on stdout.

    \b
    Example:
      trainshed tune train.py --param lr=log:1e-4..1e-1 --param batch=32,64,128 \\
          --maximize accuracy --trials 20 --parallel 4
      trainshed tune train.py --param net=small,big --param "dropout@net=big=0.1..0.5" --minimize loss \\
          --stop-early asha --steps 50 --try net=small -- --epochs 50
    """
    own = {field.name for field in fields(TuneWords)}
    options = SubmitWords(
        {
            **{name: value for name, value in given.items() if name not in own},
            "arguments": ctx.meta["arguments"],
        }
    )
    words = TuneWords(**{name: value for name, value in given.items() if name in own and value is not None})
    from trainshed.cli.tuning.start import start

    return start(options, words)

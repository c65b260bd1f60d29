"""`trainshed study`: look at studies, steer them, and take their best trial."""

import json
from collections.abc import Callable
from typing import TypedDict, Unpack

import click

from trainshed.cli import words
from trainshed.cli.failure import CommandFailed, Misuse
from trainshed.cli.options import as_json, connected
from trainshed.cli.tuning import trial_words
from trainshed.cli.tuning.find_study import find_study, studies_argument, study_argument
from trainshed.client import Client, Json

ORDERS = ("id", "value", "start_time", "duration")
STATES = ("requested", "active", "stopping", "succeeded", "infeasible")


class ShowChoice(TypedDict):
    """What `show` does beside showing."""

    follow: bool
    plot: str | None
    csv: str | None
    as_json: bool


class Limits(TypedDict):
    """What `resume` raises."""

    trials: int | None
    parallel: int | None
    failed: int | None


@click.group("study", short_help="Look at studies, stop and resume them, add trials, run the best one.")
def command() -> None:
    """Look at studies, stop and resume them, add trials, run the best one.

    A STUDY is an id, the beginning of one, a display name or a full resource name.

    \b
    Example:
      trainshed study ls
      trainshed study show train --plot train.html
      trainshed study resume train --trials 40 --parallel 8
    """


@command.command("ls", short_help="List studies, newest first.")
@click.option("--filter", "where", metavar="EXPR", default="", help="""Such as 'labels.team="vision"'.""")
@click.option(
    "--limit", metavar="N", type=click.IntRange(1), default=20, show_default=True, help="At most N."
)
@as_json
@connected
def ls(client: Client, where: str, limit: int, as_json: bool) -> None:
    """List studies, newest first.

    \b
    Example:
      trainshed study ls --location=-
    """
    from trainshed.cli.tuning.study_table import drawn_studies

    rows = list(client.studies().rows(filter=where, limit=limit + 1))
    shown = rows[:limit]
    if as_json:
        click.echo(json.dumps(shown, indent=2))
    elif shown:
        click.echo(drawn_studies(shown, all_locations=client.location == "-"))
        if len(rows) > limit:
            click.echo(f"only the latest {limit} are shown; see more with --limit", err=True)
    else:
        hint = "start one with: trainshed tune train.py --param lr=log:1e-4..1e-1 --maximize accuracy"
        click.echo(
            f"no {'such ' if where else ''}studies in {client.project}, {client.location}; {hint}", err=True
        )


@command.command("show", short_help="Show a study: its best trial, what matters, how far it is.")
@study_argument
@click.option("-f", "--follow", is_flag=True, help="Show its trials until it ends, as tune does.")
@click.option("--plot", metavar="FILE.html", help="Write a page with its graphs, which needs no network.")
@click.option("--csv", metavar="FILE", help="Write its trials as CSV; - for stdout.")
@as_json
@connected
def show(client: Client, study: str, **chosen: Unpack[ShowChoice]) -> int:
    """Show a study: its best trial, what matters, how far it is.

    The page that --plot writes has the history, parallel coordinates, the importance of each parameter and
    the curves of the best trials.

    \b
    Example:
      trainshed study show train
      trainshed study show train --plot train.html --csv train.csv
    """
    from trainshed.cli.tuning import export, study_show

    resource = find_study(client, study)
    if chosen["plot"] or chosen["csv"]:
        if chosen["follow"] or chosen["as_json"]:
            raise Misuse("--plot and --csv write files: leave out --follow and --json")
        if chosen["csv"]:
            export.write_csv(client, resource, chosen["csv"])
        if chosen["plot"]:
            export.write_page(client, resource, chosen["plot"])
        return 0
    if chosen["follow"]:
        from trainshed.cli.tuning.follow_study import follow_study

        return follow_study(client, resource, as_json=chosen["as_json"])
    whole = study_show.gathered(client, resource)
    click.echo(json.dumps(whole, indent=2) if chosen["as_json"] else study_show.drawn(whole))
    return 0


@command.command("trials", short_help="List the trials of a study.")
@study_argument
@click.option(
    "--order",
    type=click.Choice(ORDERS),
    default="id",
    show_default=True,
    help="By what; the best value first.",
)
@click.option("--state", type=click.Choice(STATES, case_sensitive=False), help="Only those in this state.")
@click.option("--limit", metavar="N", type=click.IntRange(1), help="At most N. [default: all]")
@as_json
@connected
def trials(
    client: Client, study: str, order: str, state: str | None, limit: int | None, as_json: bool
) -> None:
    """List the trials of a study.

    \b
    Example:
      trainshed study trials train --order value --limit 10
    """
    from trainshed.cli.tuning.trial_table import drawn_trials

    resource = find_study(client, study)
    goals = trial_words.objectives(resource)
    if (order == "value" and goals and goals[0][1]) or order in ("start_time", "duration"):
        order += " desc"
    where = f"state={state.upper()}" if state else ""
    listed = list(client.studies().trials(str(resource["name"]), order_by=order, filter=where, limit=limit))
    if as_json:
        click.echo(json.dumps(listed, indent=2))
        return
    best = trial_words.best_ids(client.studies().analysis(str(resource["name"])))
    if listed:
        click.echo(drawn_trials(listed, [metric for metric, _ in goals], best))
    else:
        click.echo(f"no {'such ' if state else ''}trials yet", err=True)


@command.command("stop", short_help="End studies with what they have: running trials count as they are.")
@studies_argument
@click.option("--trial", metavar="N", type=click.IntRange(1), help="End only this trial of the study.")
@as_json
@connected
def stop(client: Client, studies: tuple[str, ...], trial: int | None, as_json: bool) -> int:
    """End studies with what they have: running trials count as they are.

    \b
    Example:
      trainshed study stop train
      trainshed study stop train --trial 7
    """
    if trial is None:
        return _each(client, studies, client.studies().stop, "stopping", as_json=as_json)

    def stop_trial(name: str) -> None:
        client.studies().stop_trial(name, str(trial))

    return _each(client, studies, stop_trial, f"stopping trial {trial} of", as_json=as_json)


@command.command("resume", short_help="Go on with a study that has ended, or raise the limits of one.")
@study_argument
@click.option("--trials", metavar="N", type=click.IntRange(1), help="How many in all, with those it had.")
@click.option("--parallel", metavar="N", type=click.IntRange(1), help="How many at a time.")
@click.option("--failed", metavar="N", type=click.IntRange(1), help="End it when so many trials failed.")
@click.option("-f", "--follow", is_flag=True, help="Show its trials until it ends.")
@as_json
@connected
def resume(client: Client, study: str, follow: bool, as_json: bool, **limits: Unpack[Limits]) -> int:
    """Go on with a study that has ended, or raise the limits of one.

    \b
    Example:
      trainshed study resume train --trials 40 --parallel 8
    """
    names = {"trials": "maxTrialCount", "parallel": "parallelTrialCount", "failed": "maxFailedTrialCount"}
    body: Json = {names[name]: value for name, value in limits.items() if value is not None}
    resource = find_study(client, study, exactly=True)
    answer = client.studies().resume(str(resource["name"]), body)
    if follow:
        from trainshed.cli.tuning.follow_study import follow_study

        return follow_study(client, resource, as_json=as_json)
    _say_done("resumed", resource, answer, as_json=as_json)
    return 0


@command.command("add", short_help="Add trials of your own, before all that would be suggested.")
@study_argument
@click.argument("points", metavar="NAME=VALUE,...", nargs=-1, required=True)
@as_json
@connected
def add(client: Client, study: str, points: tuple[str, ...], as_json: bool) -> None:
    """Add trials of your own, before all that would be suggested.

    \b
    Example:
      trainshed study add train lr=0.1,batch=64 lr=0.2,batch=64
    """
    from trainshed.cli.tuning.point import read_points

    resource = find_study(client, study, exactly=True, alive=True)
    specs = words.parts(words.part(resource, "studySpec"), "parameters")
    read = read_points(points, specs, "")
    if trial_words.is_ended(resource):
        called, most = words.identity(resource), len(read) + _total(resource)
        raise CommandFailed(
            f"{called} has ended, so nothing would run them",
            [f"go on with it first: trainshed study resume {called} --trials {most}"],
        )
    answer = client.studies().add_trials(str(resource["name"]), read)
    _say_done(f"added {len(read)} trial{'' if len(read) == 1 else 's'} to", resource, answer, as_json=as_json)


@command.command("cancel", short_help="Cancel studies: their running trials are ended.")
@studies_argument
@as_json
@connected
def cancel(client: Client, studies: tuple[str, ...], as_json: bool) -> int:
    """Cancel studies: their running trials are ended.

    \b
    Example:
      trainshed study cancel train
    """
    return _each(client, studies, client.studies().cancel, "cancelling", as_json=as_json)


@command.command("delete", short_help="Delete ended studies with their trials. The trials' jobs stay.")
@studies_argument
@as_json
@connected
def delete(client: Client, studies: tuple[str, ...], as_json: bool) -> int:
    """Delete ended studies with their trials. The trials' jobs stay.

    \b
    Example:
      trainshed study delete train
    """
    return _each(client, studies, client.studies().delete, "deleted", alive=False, as_json=as_json)


@command.command("best", short_help="Print the best trial and the command line that runs it, or run it.")
@study_argument
@click.option("--submit", is_flag=True, help="Submit it as a job, with the files of the study.")
@click.option("-f", "--follow", is_flag=True, help="With --submit: print the logs until the job ends.")
@as_json
@connected
def best(client: Client, study: str, submit: bool, follow: bool, as_json: bool) -> int:
    """Print the best trial and the command line that runs it, or run it.

    \b
    Example:
      trainshed study best train
      trainshed study best train --submit --follow
    """
    from trainshed.cli.tuning.ending import best_of, best_text

    if follow and not submit:
        raise Misuse("--follow goes with --submit; to follow the study: trainshed study show -f STUDY")
    resource = find_study(client, study)
    answer = best_of(client, resource)
    if not answer:
        called = words.identity(resource)
        raise CommandFailed(
            f"no trial of {called} has a value yet", [f"see them: trainshed study trials {called}"]
        )
    if not submit:
        click.echo(json.dumps(answer, indent=2) if as_json else best_text(resource, answer))
        return 0
    if job := answer.get("job"):
        again = [f"run that job again: trainshed retry {job}"]
        raise CommandFailed("no job file says all of what the trial ran", again)
    if not answer.get("customJob"):
        raise CommandFailed(f"clients run the trials of {words.identity(resource)}: it has no job to submit")
    from trainshed.cli.follow import finish

    parent = "/".join(str(resource["name"]).split("/")[:4])
    secrets_of = str(answer.get("secretsOf") or "")
    job = client.create(words.part(answer, "customJob"), parent=parent, secrets_of=secrets_of)
    return finish(client, job, follow=follow, as_json=as_json)


def _total(resource: Json) -> int:
    return int(words.part(trial_words.own(resource), "trials").get("total") or 0)


def _say_done(done: str, resource: Json, answer: object, *, as_json: bool) -> None:
    name = f"{words.identity(resource)} ({resource.get('displayName', '')})"
    click.echo(json.dumps(answer, indent=2) if as_json else f"{done} {name}")


def _each(
    client: Client,
    studies: tuple[str, ...],
    act: Callable[[str], object],
    done: str,
    *,
    alive: bool = True,
    as_json: bool,
) -> int:
    from trainshed.cli.each import Lookup, each

    lookup = Lookup("study", find_study)
    return each(client, studies, act, done, alive=alive, as_json=as_json, lookup=lookup)

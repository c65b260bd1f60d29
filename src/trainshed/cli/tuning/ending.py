"""What is said when a study has ended: its best trial, the parameters, and the command line that runs it."""

import json

import click

from trainshed.cli import words
from trainshed.cli.paint import Paint
from trainshed.cli.trouble import say
from trainshed.cli.tuning import trial_words
from trainshed.client import ApiError, Client, Json


def best_of(client: Client, study: Json) -> Json:
    """The best trial with the job that runs it again; nothing where no trial has a value."""
    try:
        return client.studies().best(str(study["name"]))
    except ApiError as error:
        if error.status in ("NOT_FOUND", "FAILED_PRECONDITION"):
            return {}
        raise


def say_end(client: Client, study: Json, *, as_json: bool, is_told: bool) -> None:
    """Its outcome on stderr, unless it was told already; the best trial on stdout."""
    row = trial_words.own(study)
    called = words.identity(row)
    if not is_told:
        state = Paint.for_stderr().state(words.state(row.get("state")))
        message = str(row.get("message") or "")
        say(f"{called} {state}" + (f": {message}" if message else ""))
        say(f"  {trial_words.counts(row)}")
    best = best_of(client, study)
    if as_json:
        click.echo(json.dumps({"study": study, "best": best}))
    elif not best:
        say(f"no trial has a value; see why: trainshed study trials {called}")
    elif len(trial_words.objectives(study)) > 1:
        front = trial_words.best_ids(client.studies().analysis(str(study["name"])))
        trials = f"trial{'' if len(front) == 1 else 's'} {', '.join(front)}"
        click.echo(f"Pareto front: {trials}; see it with: trainshed study show {called}")
    else:
        click.echo(best_text(study, best))


def best_text(study: Json, best: Json) -> str:
    """The best trial in lines of `Word  value`."""
    paint = Paint.for_stdout()
    lines = [("Best", best_line(best)), ("Point", point_of(best)), *run_lines(study, best)]
    return "\n".join(f"{paint(f'{word:<9}', 'dim')} {value}" for word, value in lines if value)


def best_line(best: Json) -> str:
    """★ trial 7: accuracy 0.93"""
    metric, value = best.get("metric"), best.get("value")
    text = f": {metric} {trial_words.number(value)}" if value is not None else ""
    return f"{trial_words.BEST} trial {best.get('trial')}{text}"


def point_of(best: Json) -> str:
    return trial_words.point_text(trial_words.parameters(best), whole=True)


def run_lines(study: Json, best: Json) -> list[tuple[str, str]]:
    """How to run it again: here, with the files of today; or as a job, with the files of the study."""
    job = words.part(best, "customJob")
    if not job:  # the job of the trial is more than a job file can say, or clients run the trials
        return [("Run it", f"trainshed retry {best['job']}")] if best.get("job") else []
    line = trial_words.submit_line(job) or trial_words.program_line(job)
    return [
        ("Run it", line),
        ("Or", f"trainshed study best {words.identity(trial_words.own(study))} --submit"),
    ]

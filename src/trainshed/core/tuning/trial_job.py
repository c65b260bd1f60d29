"""The job of a trial: the study's template with the trial's parameters in it. Pure.

A parameter is given to the program as `--NAME=VALUE`, as Vertex AI does it. Where the template has
`${trialParameters.NAME}` in a command, an argument or a variable, the value stands there instead.
"""

import re
from collections.abc import Mapping
from dataclasses import replace

from trainshed.core.jobs.job import Job, JobSpec, Pool
from trainshed.core.jobs.origin import Origin
from trainshed.core.tuning.search_space import TrialPoint
from trainshed.core.tuning.study import Study, Trial

TRIAL = "trial"  # the kind of origin of a trial's job
_PLACE = re.compile(r"\$\{trialParameters\.([^}]+)\}")


def trial_spec(study: Study, trial: Trial) -> JobSpec:
    template = study.template
    assert template is not None, "clients run the trials of this study"
    output = f"{template.output.rstrip('/')}/{trial.number}" if template.output else ""
    own = {"CLOUD_ML_TRIAL_ID": str(trial.number)}
    return replace(_filled_template(template, trial.point, own), output=output)


def point_spec(template: JobSpec, point: TrialPoint) -> JobSpec:
    """A job of its own that runs the point once more. Its results go where those of other jobs go."""
    return replace(_filled_template(template, point, {}), output="")


def flags(template: JobSpec, point: TrialPoint) -> tuple[str, ...]:
    """The arguments for the parameters that the template has no place for."""
    named = places(template)
    return tuple(f"--{name}={parameter_text(v)}" for name, v in point.items() if name not in named)


def _filled_template(template: JobSpec, point: TrialPoint, own: Mapping[str, str]) -> JobSpec:
    words = {name: parameter_text(value) for name, value in point.items()}
    more = flags(template, point)
    return replace(template, pools=tuple(_pool(pool, words, more, own) for pool in template.pools))


def _pool(pool: Pool, words: Mapping[str, str], more: tuple[str, ...], own: Mapping[str, str]) -> Pool:
    if pool.is_empty or pool.is_reducer:
        return pool
    env = tuple((name, _filled(text, words)) for name, text in pool.env if name not in own)
    return replace(
        pool,
        command=tuple(_filled(word, words) for word in pool.command),
        args=(*(_filled(word, words) for word in pool.args), *more),
        env=(*env, *own.items()),
    )


def places(template: JobSpec) -> set[str]:
    """The parameters that the template has a place for."""
    texts = [
        text
        for pool in template.pools
        for text in (*pool.command, *pool.args, *(value for _, value in pool.env))
    ]
    return {name for text in texts for name in _PLACE.findall(text)}


def _filled(text: str, words: Mapping[str, str]) -> str:
    """A parameter that does not apply in this trial leaves nothing."""
    return _PLACE.sub(lambda place: words.get(place[1], ""), text)


def parameter_text(value: float | int | str) -> str:
    """A whole number without a fraction: programs read batch sizes as integers."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)


def trial_origin(study: str, number: int) -> Origin:
    return Origin(kind=TRIAL, record={"study": study, "trial": number}, trial=str(number))


def with_trial_words(job: Job) -> Job:
    """A job that the store has read, with the words of a trial in its origin."""
    if job.origin is None:
        return job
    record = job.origin.record
    return replace(job, origin=trial_origin(str(record.get("study", "")), int(record.get("trial", 0))))


def trial_title(study: Study, trial: Trial) -> str:
    return f"{study.display_name[:110]} trial {trial.number}"

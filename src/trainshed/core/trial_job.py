"""The job of a trial: the study's template with the trial's parameters in it. Pure.

A parameter is given to the program as `--NAME=VALUE`, as Vertex AI does it. Where the template has
`${trialParameters.NAME}` in a command, an argument or a variable, the value stands there instead.
"""

import re
from collections.abc import Mapping
from dataclasses import replace

from trainshed.core.job import Job, JobSpec, Pool
from trainshed.core.origin import Origin
from trainshed.core.search_space import TrialPoint
from trainshed.core.study import Study, Trial

TRIAL = "trial"  # the kind of origin of a trial's job
_PLACE = re.compile(r"\$\{trialParameters\.([^}]+)\}")


def trial_spec(study: Study, trial: Trial) -> JobSpec:
    template = study.template
    assert template is not None, "clients run the trials of this study"
    words = {name: parameter_text(value) for name, value in trial.point.items()}
    named = _named(template)
    flags = tuple(f"--{name}={word}" for name, word in words.items() if name not in named)
    output = f"{template.output.rstrip('/')}/{trial.number}" if template.output else ""
    pools = tuple(_pool(pool, words, flags, trial) for pool in template.pools)
    return replace(template, pools=pools, output=output)


def _pool(pool: Pool, words: Mapping[str, str], flags: tuple[str, ...], trial: Trial) -> Pool:
    if pool.is_empty or pool.is_reducer:
        return pool
    own = {"CLOUD_ML_TRIAL_ID": str(trial.number)}
    env = tuple((name, _filled(text, words)) for name, text in pool.env if name not in own)
    return replace(
        pool,
        command=tuple(_filled(word, words) for word in pool.command),
        args=(*(_filled(word, words) for word in pool.args), *flags),
        env=(*env, *own.items()),
    )


def _named(template: JobSpec) -> set[str]:
    """The parameters that the template has a place for."""
    texts = [
        text
        for pool in template.pools
        for text in (*pool.command, *pool.args, *(value for _, value in pool.env))
    ]
    return {name for text in texts for name in _PLACE.findall(text)}


def _filled(text: str, words: Mapping[str, str]) -> str:
    """A parameter that does not apply in this trial leaves nothing."""
    return _PLACE.sub(lambda found: words.get(found[1], ""), text)


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


def point_words(point: TrialPoint) -> str:
    """For sentences and tables: lr=0.01 batch=32."""
    return " ".join(f"{name}={parameter_text(value)}" for name, value in point.items())

"""The settings of a job as names and texts, and those in which jobs differ. Pure. Secrets are masked.

`core/comparison.py` calls it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from trainshed.core.jobs.job import Job, Pool
from trainshed.core.jobs.secret import MASK, is_secret_name, shown_env

LONGEST = 200  # characters of a value that are shown


@dataclass(frozen=True, slots=True)
class Difference:
    """One setting; the value of each job, None where it has none."""

    name: str
    values: tuple[str | None, ...]


def differences(jobs: Sequence[Job]) -> tuple[Difference, ...]:
    """The settings in which not all jobs are the same."""
    settings = [settings_of(job) for job in jobs]
    names = dict.fromkeys(name for some in settings for name in some)
    columns = ((name, tuple(some.get(name) for some in settings)) for name in names)
    return tuple(
        Difference(name, tuple(value if value is None else _cut(value) for value in values))
        for name, values in columns
        if len(set(values)) > 1
    )


def settings_of(job: Job) -> Mapping[str, str]:
    """Of the first pool under plain names, of others behind `poolN.`; what is not set is left out."""
    spec = job.spec
    settings = {
        "code": spec.code,
        "workingDirectory": spec.working_directory,
        "requirements": " ".join(spec.requirements),
        **{f"labels.{key}": value for key, value in sorted(job.labels.items())},
    }
    for number, pool in enumerate(spec.pools):
        prefix = f"pool{number}." if number else ""
        settings |= {prefix + name: value for name, value in _of_pool(pool)}
    return {name: value for name, value in settings.items() if value}


def _of_pool(pool: Pool) -> Iterator[tuple[str, str]]:
    if pool.is_empty:
        return
    yield "machineType", pool.machine_type
    yield "replicas", str(pool.replicas)
    yield "accelerators", f"{pool.accelerators} {pool.accelerator}" if pool.accelerators else ""
    yield "image", pool.image
    yield "module", pool.module
    yield "packages", " ".join(pool.packages)
    for name, value in arguments((*pool.command, *pool.args)).items():
        yield name, value
    for name, value in sorted(shown_env(pool)):
        yield f"env.{name}", value


def arguments(words: Sequence[str]) -> Mapping[str, str]:
    """The options among the words by their names; all other words together as `command`."""
    options: dict[str, str] = {}
    plain: list[str] = []
    at = 0
    while at < len(words):
        word, follower = words[at], words[at + 1] if at + 1 < len(words) else "--"
        at += 1
        name, sign, value = word.partition("=")
        if not name.startswith("--") or not name.strip("-") or not _is_name(name):
            plain.append(word)
            continue
        if not sign:
            value = "true" if follower.startswith("--") else follower
            at += not follower.startswith("--")
        key = name.lstrip("-")
        options[f"args.{key}"] = MASK if is_secret_name(key.replace("-", "_")) else value
    return {"command": " ".join(plain), **options}


def _is_name(text: str) -> bool:
    return not any(letter.isspace() for letter in text)


def _cut(value: str) -> str:
    return value if len(value) <= LONGEST else f"{value[: LONGEST - 1]}…"

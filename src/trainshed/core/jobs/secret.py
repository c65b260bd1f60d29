"""Secrets among the variables of jobs: which variables are secrets, and what is shown instead. Pure.

The parsers take the values of secrets out of a job before anything else sees it; the job has MASK in their
place. The values go to a `SecretStore` (`core/jobs/secret_port.py`) and from there only into launches. Jobs
of older releases have the values in their specs: for these, renderers ask `shown_env`.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias, cast

from trainshed.core.errors import Unavailable
from trainshed.core.jobs.job import JobSpec, Pool
from trainshed.core.jobs.launch import Launch
from trainshed.core.jobs.named_secret import file_reference_of, reference_of

MASK = "(secret, not shown)"
FOLDER = "TRAINSHED_SECRETS"  # the variable with the folder of the secrets that are files
JobSecrets: TypeAlias = Mapping[int, Mapping[str, str]]  # values by pool and name

_LAST_WORDS = frozenset(
    {"TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "CREDENTIALS", "APIKEY"}
)
_KEYS = frozenset({"API", "ACCESS", "PRIVATE", "SECRET"})  # before KEY
_NOT_SECRET = frozenset({"GOOGLE_APPLICATION_CREDENTIALS"})  # the path of a file
# Tokens of a vocabulary, as programs that train language models name them.
_VOCABULARY = frozenset({"PAD", "EOS", "BOS", "UNK", "SEP", "CLS", "MASK", "STOP", "END", "START", "SPECIAL"})


def is_secret_name(name: str) -> bool:
    """Whether a variable of that name is a secret: by its last words, a number behind them left out.

    HF_TOKEN and AWS_SECRET_ACCESS_KEY are; TOKENIZERS_PARALLELISM, HF_TOKEN_PATH and AWS_ACCESS_KEY_ID, which
    only names a key, are not.
    """
    words = [word for word in name.upper().split("_") if word]
    if name.upper() in _NOT_SECRET:
        return False
    if len(words) > 1 and words[-1].isdecimal():
        words.pop()
    last, before = words[-1] if words else "", words[-2] if len(words) > 1 else ""
    if last == "KEY":
        return before in _KEYS
    if last == "TOKEN" and before in _VOCABULARY:
        return False
    return last in _LAST_WORDS or last.endswith("PASSWORD")


def secret_names(pool: Pool) -> frozenset[str]:
    return frozenset(
        name for name, value in pool.env if value == MASK or is_secret_name(name) or reference_of(value)
    )


def shown_env(pool: Pool) -> tuple[tuple[str, str], ...]:
    """The variables of a pool for people to read."""
    names = secret_names(pool)
    return tuple(
        (name, MASK if name in names and not reference_of(value) else value) for name, value in pool.env
    )


def has_masks(spec: JobSpec) -> bool:
    """Whether values of the job are in the secret store."""
    return any(value == MASK for pool in spec.pools for _, value in pool.env)


def all_secrets(spec: JobSpec, kept: JobSecrets) -> JobSecrets:
    """The values of all secrets of a job: those `kept` apart, and those in the spec of an older release."""
    return {
        number: {
            **{
                name: value
                for name, value in pool.env
                if value != MASK and is_secret_name(name) and not reference_of(value)
            },
            **kept.get(number, {}),
        }
        for number, pool in enumerate(spec.pools)
    }


def with_secrets(launch: Launch, pool: Pool, kept: Mapping[str, str]) -> Launch:
    """The launch with the values of its pool's secrets. Unavailable where one of them is not kept.

    `kept` also has the values of variables that refer to named secrets.
    """
    hidden = [name for name, value in pool.env if value == MASK or reference_of(value)]
    if lost := [name for name in hidden if name not in kept]:
        raise Unavailable(f"The value of its secret {lost[0]} is lost: submit the job again with it.")
    files = {name: secret for name, value in pool.env if (secret := file_reference_of(value))}
    env = {**launch.env, **{name: kept[name] for name in hidden if name not in files}}
    return replace(
        launch,
        env=env,
        secrets=launch.secrets | (secret_names(pool) - files.keys()),
        secret_files={secret: kept[name] for name, secret in files.items()},
    )


def env_with_files(launch: Launch, folder: str) -> Mapping[str, str]:
    """The variables of a launch whose secret files are in that folder, with their paths."""
    if not launch.secret_files:
        return launch.env
    paths = {
        name: f"{folder}/{secret}"
        for name, value in launch.env.items()
        if (secret := file_reference_of(value))
    }
    return {FOLDER: folder, **launch.env, **paths}


def masked(value: object, is_secret: Callable[[str], bool] = is_secret_name) -> Any:
    """A JSON value with the values of secrets masked, in each list of variables under the key `env`."""
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, object]", value)
        return {
            key: [_masked_variable(entry, is_secret) for entry in cast("list[object]", item)]
            if key == "env" and isinstance(item, list)
            else masked(item, is_secret)
            for key, item in fields.items()
        }
    if isinstance(value, list):
        return [masked(item, is_secret) for item in cast("list[object]", value)]
    return value


def _masked_variable(entry: object, is_secret: Callable[[str], bool]) -> object:
    if not isinstance(entry, Mapping):
        return entry
    fields = cast("Mapping[str, object]", entry)
    marked = fields.get("secret") is True or is_secret(str(fields.get("name", "")))
    rest = {key: item for key, item in fields.items() if key != "secret"}  # Google's clients do not know it
    hides = marked and "value" in fields and not reference_of(str(fields["value"]))
    return {**rest, "value": MASK} if hides else rest

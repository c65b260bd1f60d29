"""The file of buckets kept elsewhere: where each is, whose it is, where its keys are, what jobs are told.

Keys themselves are never in the file: `env:NAME` and `file:PATH` say where they are, and they are read when
they are needed, so a changed one counts at once. Each mistake is a sentence that names the table and word.
"""

import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, cast

from trainshed.core.bucket import check_bucket_name
from trainshed.core.errors import Invalid, Unavailable, Violation
from trainshed.core.jobs.access import HIDDEN

_URL = re.compile(r"(s3|gs|az)://([^/\s]+)/?")
_SECRET_NAME = re.compile(r"key|secret|token|passw|credential", re.IGNORECASE)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLAIN = ("url", "endpoint", "region", "project", "account")
_SECRET = ("access_key", "secret_key", "session_token", "account_key", "service_account")


class StoreKind(StrEnum):
    """Values are the schemes of addresses."""

    S3 = "s3"
    GOOGLE = "gs"
    AZURE = "az"


@dataclass(frozen=True, slots=True)
class Secret:
    """Where a secret is. Its text is never kept, and no representation of this holds it."""

    source: str
    look: Callable[[], str] = field(repr=False)
    is_plain: bool = False  # it stands in the file itself: no secret, unless its name says so

    def reveal(self) -> str:
        try:
            return self.look()
        except (OSError, KeyError, ValueError) as error:
            raise Unavailable(f"The secret {self.source} cannot be read: {_why(error)}.") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Remote:
    """One bucket. Without keys those of the server's own environment are used, as the store's tools would."""

    name: str
    kind: StoreKind
    bucket: str  # as the store calls it
    endpoint: str = ""
    region: str = ""
    project: str = ""  # whose it is; everybody's where empty
    account: str = ""  # Azure's
    keys: Mapping[str, Secret] = field(default_factory=dict[str, Secret])


@dataclass(frozen=True, slots=True)
class Grant:
    """Variables that jobs of some projects, or of all, find in their environment."""

    env: Mapping[str, Secret]
    projects: tuple[str, ...] = ()

    def of(self, project: str) -> dict[str, str]:
        if self.projects and project not in self.projects:
            return {}
        return {name: value.reveal() for name, value in self.env.items()}

    def shown(self, project: str) -> dict[str, str]:
        """The same for people to read. No secret is looked at, so one that is missing does no harm."""
        if self.projects and project not in self.projects:
            return {}
        return {
            name: value.reveal() if value.is_plain and not _SECRET_NAME.search(name) else HIDDEN
            for name, value in self.env.items()
        }


@dataclass(frozen=True, slots=True)
class BucketRows:
    remotes: tuple[Remote, ...] = ()
    grants: tuple[Grant, ...] = ()

    def granted(self, project: str) -> dict[str, str]:
        return {name: value for grant in self.grants for name, value in grant.of(project).items()}

    def addresses(self) -> frozenset[str]:
        """Everything that any job is told and is no secret."""
        plain = (value for grant in self.grants for value in grant.env.values() if value.is_plain)
        return frozenset(value.reveal() for value in plain)

    def shown(self, project: str) -> dict[str, str]:
        return {name: value for grant in self.grants for name, value in grant.shown(project).items()}


def load_rows(path: Path | None) -> BucketRows:
    """What the operator's file says; nothing where there is none. Every secret is looked for once."""
    if path is None:
        return BucketRows()
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        rows = read_rows(data)
        for secret in _secrets(rows):
            secret.reveal()
    except (OSError, ValueError, RecursionError, Invalid, Unavailable) as error:
        raise Invalid(
            (Violation("buckets", f"The file {path} of buckets is wrong: {_why(error)}"),)
        ) from error
    return rows


def read_rows(data: Mapping[str, Any]) -> BucketRows:
    if unknown := data.keys() - {"buckets", "jobs"}:
        raise ValueError(f"'{min(unknown)}' is not known; there are tables [buckets.NAME] and [[jobs]].")
    buckets, jobs = data.get("buckets", {}), data.get("jobs", [])
    if not isinstance(buckets, dict) or not isinstance(jobs, list):
        raise ValueError("buckets are written as [buckets.NAME], jobs as [[jobs]].")
    return BucketRows(
        tuple(_remote(name, row) for name, row in cast("dict[str, object]", buckets).items()),
        tuple(_grant(f"jobs table {n}", row) for n, row in enumerate(cast("list[object]", jobs), 1)),
    )


def _remote(name: str, row: object) -> Remote:
    where = f"bucket {name}"
    check_bucket_name(name)
    given = _table(where, row)
    if unknown := given.keys() - {*_PLAIN, *_SECRET}:
        words = ", ".join((*_PLAIN, *_SECRET))
        raise ValueError(f"{where} has an unknown word '{min(unknown)}'; there are {words}.")
    texts = {word: _text(where, word, value) for word, value in given.items()}
    match = _URL.fullmatch(texts.get("url", ""))
    if match is None:
        raise ValueError(f"{where} needs a url: s3://BUCKET, gs://BUCKET or az://CONTAINER.")
    endpoint = texts.get("endpoint", "").rstrip("/")
    if endpoint and not re.fullmatch(r"https?://[^/@\s?#]+(?:/[^@\s?#]*)?", endpoint):
        raise ValueError(f"{where} has an endpoint that is no http:// or https:// address without a user.")
    return Remote(
        name=name,
        kind=StoreKind(match[1]),
        bucket=match[2],
        endpoint=endpoint,
        region=texts.get("region", ""),
        project=texts.get("project", ""),
        account=texts.get("account", ""),
        keys={word: _secret(f"{where}, {word}", texts[word]) for word in _SECRET if word in texts},
    )


def _grant(where: str, row: object) -> Grant:
    given = _table(where, row)
    projects, env = given.get("projects", []), given.get("env", {})
    if given.keys() - {"projects", "env"} or not isinstance(projects, list) or not isinstance(env, dict):
        raise ValueError(f'{where} has `projects = ["NAME"]` and `env = {{NAME = "VALUE"}}`, nothing else.')
    variables: dict[str, Secret] = {}
    for name, value in cast("dict[str, object]", env).items():
        text = _text(f"{where}, env", name, value)
        if not _VARIABLE.fullmatch(name):
            raise ValueError(f"{where}: {name!r} cannot be a variable's name.")
        is_elsewhere = text.startswith(("env:", "file:"))
        variables[name] = _secret(f"{where}, {name}", text) if is_elsewhere else literal(text)
    return Grant(variables, tuple(str(item) for item in cast("list[object]", projects)))


def literal(text: str) -> Secret:
    """A value that is given directly and is no secret."""
    return Secret("(given)", lambda: text, is_plain=True)


def kept(text: str) -> Secret:
    """A secret at hand, whose owner keeps it."""
    return Secret("(kept)", lambda: text)


def _secret(where: str, text: str) -> Secret:
    kind, _, rest = text.partition(":")
    if kind == "env" and _VARIABLE.fullmatch(rest):
        return Secret(text, lambda: os.environ[rest])
    if kind == "file" and rest:
        return Secret(text, lambda: Path(rest).expanduser().read_text(encoding="utf-8").strip())
    # Not quoted: it may be the key itself.
    raise ValueError(f"{where} must say where the key is: env:VARIABLE or file:PATH, not the key itself.")


def _secrets(rows: BucketRows) -> tuple[Secret, ...]:
    keys = [key for remote in rows.remotes for key in remote.keys.values()]
    return (*keys, *(value for grant in rows.grants for value in grant.env.values()))


def _table(where: str, row: object) -> dict[str, object]:
    if not isinstance(row, dict):
        raise ValueError(f"{where} is not a table.")
    return cast("dict[str, object]", row)


def _text(where: str, word: str, value: object) -> str:
    if not isinstance(value, str) or not value or "\0" in value:
        raise ValueError(f"{where}: {word} must be a text.")
    return value


def _why(error: Exception) -> str:
    match error:
        case OSError():
            return error.strerror or type(error).__name__
        case KeyError():
            return "there is no such variable"
        case _:
            return str(error)

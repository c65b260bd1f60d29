"""NamedSecretFiles: secrets of projects, a file for each, with the value sealed by a SecretCipher.

The assembly makes it. A file is there whole or not at all. What is told of a secret is in clear beside its
sealed value, so that a list opens nothing. It keeps the last value only.
"""

import asyncio
import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

from trainshed.core.errors import AlreadyExists, NotFound, Unavailable
from trainshed.core.jobs.named_secret import NamedSecret, is_name
from trainshed.store.codec import dumps, loads
from trainshed.store.secret_cipher import SEALED, SecretCipher, write_whole

ROUGHLY = timedelta(minutes=1)  # between two notes of a use
_ENDING = ".json"
_LONGEST = 200  # characters of a folder's name


class NamedSecretFiles:
    """Implements `core.jobs.named_secret.NamedSecretStore`. `reseal_others` seals the rest anew."""

    def __init__(self, folder: Path, cipher: SecretCipher, reseal_others: Callable[[], int]) -> None:
        self._folder, self._cipher, self._reseal_others = folder, cipher, reseal_others

    async def create(self, secret: NamedSecret) -> None:
        await asyncio.to_thread(self._create, secret)

    async def set(self, project: str, secret: str, value: str, now: datetime, by: str) -> NamedSecret:
        return await asyncio.to_thread(self._set, project, secret, value, now, by)

    async def get(self, project: str, secret: str) -> NamedSecret:
        return (await asyncio.to_thread(self._read, project, secret))[0]

    async def all(self, project: str) -> tuple[NamedSecret, ...]:
        return await asyncio.to_thread(self._all, project)

    async def remove(self, project: str, secret: str) -> None:
        await asyncio.to_thread(self._remove, project, secret)

    async def value(self, project: str, secret: str, now: datetime) -> str:
        return await asyncio.to_thread(self._value, project, secret, now)

    async def rotate(self) -> int:
        return await asyncio.to_thread(self._rotate)

    def _create(self, secret: NamedSecret) -> None:
        with self._cipher.lock:
            if self._path(secret.project, secret.id).exists():
                raise AlreadyExists(f"There is a secret {secret.name} already.")
            self._write(secret, None)

    def _set(self, project: str, secret: str, value: str, now: datetime, by: str) -> NamedSecret:
        with self._cipher.lock:
            before, _ = self._read(project, secret)
            after = replace(before, version=before.version + 1, updated_at=now, updated_by=by)
            self._write(after, self._cipher.seal(value.encode(), after.name))
        return after

    def _all(self, project: str) -> tuple[NamedSecret, ...]:
        names = sorted(path.stem for path in self._place(project).glob(f"*{_ENDING}"))
        return tuple(self._read(project, name)[0] for name in names)

    def _remove(self, project: str, secret: str) -> None:
        with self._cipher.lock:
            try:
                self._path(project, secret).unlink()
            except FileNotFoundError:
                raise _missing(project, secret) from None

    def _value(self, project: str, secret: str, now: datetime) -> str:
        known, sealed = self._read(project, secret)
        if sealed is None:
            raise NotFound(f"The secret '{secret}' of project '{project}' has no value yet.")
        value = self._opened(known, sealed)
        if known.used_at is None or now - known.used_at >= ROUGHLY:
            self._note_use(known, now)
        return value

    def _note_use(self, known: NamedSecret, now: datetime) -> None:
        with self._cipher.lock:
            try:
                latest, sealed = self._read(known.project, known.id)
                self._write(replace(latest, used_at=now), sealed)
            except (NotFound, Unavailable):
                return  # it was removed meanwhile, or the disk is full: the launch goes on

    def _rotate(self) -> int:
        with self._cipher.lock:
            self._cipher.add_key()
            # A kill from here on leaves values of both keys, and both keys in their file.
            count = self._reseal_others()
            for file in self._files():
                known, sealed = self._stored(file)
                if sealed is not None:
                    value = self._opened(known, sealed)
                    self._write(known, self._cipher.seal(value.encode(), known.name))
                    count += 1
            self._cipher.drop_old_keys()
        return count

    def _files(self) -> Iterator[Path]:
        yield from sorted(self._folder.glob(f"*/*{_ENDING}"))

    def _place(self, project: str) -> Path:
        """Projects have any name that stands in a path of the API; names of folders are shorter."""
        name = quote(project, safe="")
        if len(name) > _LONGEST:
            return self._folder / f"h-{hashlib.sha256(name.encode()).hexdigest()}"
        return self._folder / f"p-{name}"

    def _path(self, project: str, secret: str) -> Path:
        if not is_name(secret):
            raise _missing(project, secret)
        return self._place(project) / f"{secret}{_ENDING}"

    def _read(self, project: str, secret: str) -> tuple[NamedSecret, dict[str, Any] | None]:
        try:
            return self._stored(self._path(project, secret))
        except FileNotFoundError:
            raise _missing(project, secret) from None

    def _stored(self, file: Path) -> tuple[NamedSecret, dict[str, Any] | None]:
        try:
            stored = json.loads(file.read_bytes())
            return loads(NamedSecret, json.dumps(stored["secret"])), stored.get(SEALED)
        except FileNotFoundError:
            raise
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise Unavailable(f"The secret in {file} cannot be read: {error}. Set it again.") from error

    def _opened(self, known: NamedSecret, sealed: dict[str, Any]) -> str:
        try:
            return self._cipher.open(sealed, known.name).decode()
        except ValueError as error:
            raise Unavailable(f"The value of {known.name} cannot be read: {error}. Set it again.") from error

    def _write(self, secret: NamedSecret, sealed: dict[str, Any] | None) -> None:
        text = json.dumps({"secret": json.loads(dumps(secret)), **({SEALED: sealed} if sealed else {})})
        write_whole(self._path(secret.project, secret.id), text)


def _missing(project: str, secret: str) -> NotFound:
    return NotFound(f"There is no secret '{secret[:200]}' in project '{project[:200]}'.")

"""SecretFiles: the values of jobs' secrets, a file for each job that has any, which only its owner may read.

The assembly makes it. A file is there whole or not at all, and sealed by a SecretCipher. Files of releases
before that are in clear; they are read as they are, and sealed when the key is changed. Databases and their
dumps never have the values.
"""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trainshed.core.errors import Unavailable
from trainshed.core.jobs.secret import JobSecrets
from trainshed.store.secret_cipher import SEALED, SecretCipher, write_whole

_ENDING = ".json"


class SecretFiles:
    """Implements `core.jobs.secret_port.SecretStore`."""

    def __init__(self, folder: Path, cipher: SecretCipher) -> None:
        self._folder, self._cipher = folder, cipher

    async def keep(self, job: str, secrets: JobSecrets) -> None:
        await asyncio.to_thread(self._write, job, secrets)

    async def read(self, job: str) -> JobSecrets:
        return await asyncio.to_thread(self._read, job)

    def has(self, job: str) -> bool:
        return self._path(job).exists()

    async def remove(self, job: str) -> None:
        await asyncio.to_thread(self._remove, job)

    async def jobs(self) -> frozenset[str]:
        return await asyncio.to_thread(self._jobs)

    def reseal(self) -> int:
        """Seal all of them with the first key; how many there are. Blocks."""
        jobs = self._jobs()
        for job in jobs:
            with self._cipher.lock:
                if not self._cipher.is_current(self._stored(job).get(SEALED) or {}) and self.has(job):
                    self._write(job, self._read(job))
        return len(jobs)

    def _jobs(self) -> frozenset[str]:
        return frozenset(path.stem for path in self._folder.glob(f"*{_ENDING}"))

    def _path(self, job: str) -> Path:
        return self._folder / f"{job}{_ENDING}"

    def _stored(self, job: str) -> Mapping[str, Any]:
        try:
            stored: Any = json.loads(self._path(job).read_bytes())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise self._unreadable(job, error) from error
        if not isinstance(stored, dict):
            raise self._unreadable(job, "it is no object")
        return stored  # pyright: ignore[reportUnknownVariableType] - whatever is in the file

    def _read(self, job: str) -> JobSecrets:
        stored = self._stored(job)
        try:
            if SEALED in stored:
                stored = json.loads(self._cipher.open(stored[SEALED], _about(job)))
            return {int(number): dict(values) for number, values in stored.items()}
        except (ValueError, TypeError, AttributeError) as error:
            raise self._unreadable(job, error) from error

    def _unreadable(self, job: str, why: object) -> Unavailable:
        return Unavailable(f"The secrets of job {job} cannot be read from {self._path(job)}: {why}.")

    def _write(self, job: str, secrets: JobSecrets) -> None:
        text = json.dumps({str(number): dict(values) for number, values in secrets.items()})
        with self._cipher.lock:
            sealed = self._cipher.seal(text.encode(), _about(job))
            write_whole(self._path(job), json.dumps({SEALED: sealed}))

    def _remove(self, job: str) -> None:
        with self._cipher.lock:
            self._path(job).unlink(missing_ok=True)


def _about(job: str) -> str:
    return f"job/{job}"

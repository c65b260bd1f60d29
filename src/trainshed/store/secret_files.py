"""SecretFiles: the values of jobs' secrets, a file for each job that has any, which only its owner may read.

The assembly makes it. A file is there whole or not at all. It is in clear: no library here has a cipher, and
whoever may read the file may read a key beside it too. Databases and their dumps never have the values.
"""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

from trainshed.core.errors import Unavailable
from trainshed.core.secret import JobSecrets
from trainshed.folder_sync import sync_folder

_ENDING = ".json"


class SecretFiles:
    """Implements `core.secret_port.SecretStore`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def keep(self, job: str, secrets: JobSecrets) -> None:
        await asyncio.to_thread(self._write, job, secrets)

    async def read(self, job: str) -> JobSecrets:
        try:
            stored: Any = json.loads(await asyncio.to_thread(self._path(job).read_bytes))
            return {int(number): dict(values) for number, values in stored.items()}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, TypeError, AttributeError) as error:
            raise Unavailable(
                f"The secrets of job {job} cannot be read from {self._path(job)}: {error}."
            ) from error

    def has(self, job: str) -> bool:
        return self._path(job).exists()

    async def remove(self, job: str) -> None:
        await asyncio.to_thread(self._path(job).unlink, missing_ok=True)

    async def jobs(self) -> frozenset[str]:
        paths = await asyncio.to_thread(lambda: list(self._folder.glob(f"*{_ENDING}")))
        return frozenset(path.stem for path in paths)

    def _path(self, job: str) -> Path:
        return self._folder / f"{job}{_ENDING}"

    def _write(self, job: str, secrets: JobSecrets) -> None:
        draft = self._folder / f"{job}.new"
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            with os.fdopen(handle, "w") as file:
                json.dump({str(number): dict(values) for number, values in secrets.items()}, file)
                file.flush()
                os.fsync(file.fileno())
            draft.rename(self._path(job))
            sync_folder(str(self._folder))
        except OSError as error:
            draft.unlink(missing_ok=True)
            raise Unavailable(f"The job's secrets cannot be stored: {error.strerror}.") from error

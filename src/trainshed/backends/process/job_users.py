"""Which job runs as which user, where the server was given users for jobs (--run-as).

The backend owns it. A job has its user from its first launch until its folder is removed, which is after its
last process. The file `user` in the folder of the job says who it is. It is there before anything belongs to
that user. So no two jobs that may have processes ever share a user of their own, whenever a server is killed.
A job keeps its user when the setting changes.
"""

import json
from collections.abc import Iterable
from pathlib import Path

from trainshed.backends.process.hand_over import open_folder
from trainshed.backends.process.job_user import JobUser, RunAs, read_user
from trainshed.core.errors import Unavailable
from trainshed.disk.regular_file import read_regular, write_regular

_NO_HOME = "no-home"  # is never made
_FILE, _DRAFT = "user", ".user"
_MOST = 64 * 1024  # bytes of the file


class JobUsers:
    def __init__(self, jobs: Path, run_as: RunAs | None) -> None:
        """`jobs` is the folder of all jobs' folders. Without `run_as` new jobs run as the server's user."""
        self.run_as, self._jobs = run_as, jobs
        self._users: dict[str, JobUser] = {}
        self._next = 0  # whose turn it is: one that was used is left alone for as long as possible

    def open(self, jobs: Iterable[str]) -> None:
        """Find the users of jobs that earlier servers started. Unavailable where one cannot be read."""
        for job in jobs:
            file = self._jobs / job / _FILE
            try:
                user = read_user(read_regular(file, _MOST))
            except FileNotFoundError:
                continue
            except OSError as error:
                raise Unavailable(f"The user of job {job} cannot be read: {error}.") from error
            if user is None:
                raise Unavailable(f"The user of job {job} cannot be read: {file} is damaged.")
            self._users[job] = user

    def of(self, job: str) -> JobUser | None:
        return self._users.get(job)

    def assign(self, job: str) -> JobUser | None:
        """The user of the job that is about to start; None: the server's. Unavailable where none is free."""
        user = self._users.get(job)
        if user is None and self.run_as is not None:
            user = self.run_as.users[0] if self.run_as.shared else self._choose(self.run_as.users)
            try:
                self._write(self._jobs / job, user)
            except OSError as error:
                raise Unavailable(f"The user of job {job} cannot be written down: {error}.") from error
            self._users[job] = user
        return user

    def release(self, job: str) -> None:
        """Nothing of the job is left."""
        self._users.pop(job, None)

    def warm_env(self) -> dict[str, str]:
        """What a warm interpreter gets that is forked for jobs with users: a HOME with nothing in it."""
        return {} if self.run_as is None else self.run_as.users[0].env(str(self._jobs.with_name(_NO_HOME)))

    def _choose(self, users: tuple[JobUser, ...]) -> JobUser:
        used = {user.uid for user in self._users.values()}
        for number in range(len(users)):
            user = users[(self._next + number) % len(users)]
            if user.uid not in used:
                self._next = (self._next + number + 1) % len(users)
                return user
        raise Unavailable(
            f"All {len(users)} users of --run-as have jobs: one has to end first, or the range to grow."
        )

    def _write(self, folder: Path, user: JobUser) -> None:
        open_folder(folder)
        write_regular(folder / _DRAFT, json.dumps(user.plain).encode())
        (folder / _DRAFT).rename(folder / _FILE)

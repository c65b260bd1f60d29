"""Tokens of jobs: a job's id, signed with a secret of the home.

Nothing is kept for each of them, so nothing can leak from a database or a backup of it, and a server killed
and started again knows them all. Whether the job may still do anything is not asked here.
"""

import base64
import hmac
from pathlib import Path

from trainshed.core.jobs.access import MARK
from trainshed.identity.token import TokenFile


class SignedJobTokens:
    """Implements `core.jobs.access.JobTokens`. The first start makes the secret, in a file of its own."""

    def __init__(self, path: Path) -> None:
        self.secret = TokenFile(path).token.encode()

    def issue(self, job: str) -> str:
        return f"{MARK}{job}.{self._signature(job)}"

    def read(self, token: str) -> str | None:
        job, _, given = token.removeprefix(MARK).rpartition(".")
        if not job or not token.startswith(MARK):
            return None
        # Compared in constant time, so that nobody can find the signature letter by letter.
        same = hmac.compare_digest(given.encode("utf-8", "surrogatepass"), self._signature(job).encode())
        return job if same else None

    def _signature(self, job: str) -> str:
        signed = f"buckets of job {job}".encode("utf-8", "surrogatepass")
        digest = hmac.digest(self.secret, signed, "sha256")
        return base64.urlsafe_b64encode(digest).decode().rstrip("=")

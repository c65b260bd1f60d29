"""A job's right to the buckets of its project: how long it lasts, and the variables its programs get. Pure.

`service/access.py` uses it. The right is a token in the address of the storage API, because clients that are
pointed at another address send nothing else. The token is never stored: it is computed from the job's id.
"""

import json
import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Protocol

from trainshed.core.jobs.job import Job

GRACE = timedelta(minutes=1)  # after the job's end, so that uploads under way can finish
MARK = "job."  # every token of a job begins so; a server's token never does: it has no full stop
HIDDEN = "(hidden: for the job alone)"

_TOKEN = re.compile(r"(job\.\w{1,64}\.)[\w-]{43}")


class JobTokens(Protocol):
    """Tokens of jobs.

    1. a job has the same token on every server of the home.
    2. without the home's secret nobody can make a token, nor guess one piece by piece.
    """

    def issue(self, job: str) -> str: ...

    def read(self, token: str) -> str | None:
        """The id of the job it was issued to; None where it was not issued here."""
        ...


def lasts_until(job: Job) -> datetime | None:
    """When the job's right ends; None while the job is not over."""
    if not job.is_final:
        return None
    return (job.status.ended_at or job.status.updated_at or job.created_at) + GRACE


def bucket_env(address: str, token: str, project: str) -> dict[str, str]:
    """The variables by which clients of `gs://` find the buckets and get access."""
    keyed = f"{address}/t/{token}"
    nobody = {"client_email": "", "private_key": "", "private_key_id": ""}
    key = {"gcs_base_url": keyed, "disable_oauth": True, **nobody}
    return {
        # Google's client libraries, and gcsfs.
        "STORAGE_EMULATOR_HOST": keyed,
        # gcsfs: look for no credentials, and do not ask Google's servers what kind of bucket it is.
        "FSSPEC_GCS_TOKEN": "anon",
        "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false",
        # obstore and whatever uses the same library: it reads the address from a key only.
        "GOOGLE_SERVICE_ACCOUNT_KEY": json.dumps(key),
        "GOOGLE_ALLOW_HTTP": "true",
        # gcloud drops the path of the address in uploads, but sends a token.
        "CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE": f"{address}/",
        "CLOUDSDK_AUTH_ACCESS_TOKEN": token,
        "CLOUDSDK_CORE_PROJECT": project,
    }


def told_env(project: str) -> Mapping[str, str]:
    """The same for people to read: values with the token or a server's address are hidden."""
    mark = "HIDDEN"
    env = bucket_env(mark, mark, project)
    return {name: HIDDEN if mark in value else value for name, value in env.items()}


def masked(text: str) -> str:
    """The text without tokens of jobs, which clients put into error messages with the address."""
    return _TOKEN.sub(r"\1…", text) if MARK in text else text

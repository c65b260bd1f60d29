"""A job's right to the buckets of its project: how long it lasts, and what its programs are told of it. Pure.

Programs hold it as a token in the address of the storage API, because the clients that are pointed at another
address send nothing else. It is never part of a job: it is made anew from the job's id whenever it is needed.
"""

import json
import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Protocol

from trainshed.core.job import Job

GRACE = timedelta(minutes=1)  # after its end: what a program has begun to send may yet arrive
MARK = "job."  # how every token of a job begins; that of a server never does, it has no full stop
HIDDEN = "(hidden: for the job alone)"

_TOKEN = re.compile(r"(job\.\w{1,64}\.)[\w-]{43}")


class JobTokens(Protocol):
    """Tokens of jobs.

    1. the same job has the same token, whichever server of the home is asked.
    2. without the home's secret nobody can make one, nor find one piece by piece.
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
    """The variables by which clients of `gs://` find the buckets, and may use them."""
    keyed = f"{address}/t/{token}"
    nobody = {"client_email": "", "private_key": "", "private_key_id": ""}
    key = {"gcs_base_url": keyed, "disable_oauth": True, **nobody}
    return {
        # Google's client libraries, and gcsfs.
        "STORAGE_EMULATOR_HOST": keyed,
        # gcsfs: look for no credentials, and do not ask Google's servers what kind of bucket it is.
        "FSSPEC_GCS_TOKEN": "anon",
        "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false",
        # obstore, and what is built on the same library, which takes its address from nothing but a key.
        "GOOGLE_SERVICE_ACCOUNT_KEY": json.dumps(key),
        "GOOGLE_ALLOW_HTTP": "true",
        # gcloud: it drops an address's path where it uploads, but sends a token.
        "CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE": f"{address}/",
        "CLOUDSDK_AUTH_ACCESS_TOKEN": token,
        "CLOUDSDK_CORE_PROJECT": project,
    }


def told_env(project: str) -> Mapping[str, str]:
    """The same for people to read: what carries the token, or the address of one server, is not told."""
    mark = "HIDDEN"
    found = bucket_env(mark, mark, project)
    return {name: HIDDEN if mark in value else value for name, value in found.items()}


def masked(text: str) -> str:
    """The text without the token that a client may have put into its error message, with the address."""
    return _TOKEN.sub(r"\1…", text) if MARK in text else text

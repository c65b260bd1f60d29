"""What of a home is in a backup: everything in it but what the server makes anew and what runs now.

Working directories and records of runs are left out on purpose. A record without the files that the run wrote
would let a job count as succeeded whose results are nowhere. Without it the job runs again, as after the loss
of a machine. The jobs' database and the buckets are copied by those who know them.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from trainshed.settings.table import RESTORING

DATABASE = "trainshed.db"
BUCKETS = "buckets"
SECRET_KEY = "secret-key.json"  # comes last: it opens whatever of `secrets` was taken before
STAGING = ".backup-"  # begins the names of folders in which a backup is prepared
_LEFT_OUT = frozenset(
    {
        *(
            DATABASE,
            f"{DATABASE}-wal",
            f"{DATABASE}-shm",
            f"{DATABASE}.lock",
            BUCKETS,
            SECRET_KEY,
        ),  # by others
        *("server.json", "server.new", "hatch", "gcloud", RESTORING),  # of the server that runs
        *("run", "containers", "runtimes", "s3"),  # some of it is taken after all
    }
)
_TAKEN_AFTER_ALL = ("run/unstored", "runtimes/packages/pins", "runtimes/packages/files")
S3 = "s3"  # another program's files: only while that does not run


def top_paths(home: Path, *, with_s3: bool) -> Iterator[str]:
    """The files and folders of a backup, as paths below the home."""
    for name in sorted(os.listdir(home)):
        if name not in _LEFT_OUT and not name.startswith(STAGING) and not name.endswith(".tmp"):
            yield name
    for path in (*_TAKEN_AFTER_ALL, *((S3,) if with_s3 else ())):
        if (home / path).exists():
            yield path

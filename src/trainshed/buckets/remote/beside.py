"""Adds the buckets of the S3 store that runs beside the server to the configured rows."""

from functools import partial

from trainshed.buckets.remote.probe import probe
from trainshed.buckets.remote.rows import BucketRows, Grant, Remote, StoreKind, kept, literal
from trainshed.buckets.seaweed import Seaweed
from trainshed.buckets.seaweed_keys import REGION
from trainshed.core.errors import Invalid, Violation


def with_store(seaweed: Seaweed, rows: BucketRows) -> BucketRows:
    """The rows and those of the store, which is made ready to be started. Where both name a variable, the
    operator's file wins; where both name a bucket, that is a mistake.
    """
    seaweed.prepare()
    taken = {remote.name for remote in rows.remotes}
    if twice := [name for name in seaweed.buckets if name in taken]:
        sentence = f"The bucket {twice[0]} is in the file of buckets and in --s3-bucket: rename one."
        raise Invalid((Violation("buckets", sentence),))
    keys = seaweed.keys.own
    remotes = tuple(
        Remote(
            name=name,
            kind=StoreKind.S3,
            bucket=name,
            endpoint=seaweed.ports.endpoint,
            region=REGION,
            keys={"access_key": kept(keys.access), "secret_key": kept(keys.secret)},
        )
        for name in seaweed.buckets
    )
    seaweed.check = partial(probe, remotes)
    pair = (seaweed.keys.jobs.access, seaweed.keys.jobs.secret)
    env = {name: (kept if text in pair else literal)(text) for name, text in seaweed.job_env().items()}
    return BucketRows((*rows.remotes, *remotes), (Grant(env), *rows.grants))

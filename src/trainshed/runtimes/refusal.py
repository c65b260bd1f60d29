"""Why a package cannot be used, as the verdict of the job that needs it: the cause and the remedy."""

from trainshed.core.bucket import DiskFull
from trainshed.core.errors import Exhausted, Forbidden, NotFound, TrainshedError, Unavailable
from trainshed.core.jobs.verdict import Cause, Verdict
from trainshed.core.supplies.layer_port import NotInstallable
from trainshed.core.supplies.package import LARGEST, Package, split


class PackageRefused(NotInstallable):
    """A package cannot be had, or must not be unpacked."""


def _refused(cause: Cause, summary: str, advice: str, *, retry: bool = False) -> PackageRefused:
    return PackageRefused(
        Verdict(cause=cause, summary=summary, lines=(summary,), advice=advice, retry_may_help=retry)
    )


def unfetched(uri: str, error: TrainshedError) -> PackageRefused:
    bucket = "://".join(split(uri)[:2])
    if isinstance(error, NotFound):
        return _refused(
            Cause.NO_SUCH_PACKAGE,
            f"Package {uri} does not exist: {error.message}",
            f"Upload it, or correct its address; `trainshed storage ls {bucket}` shows what is there.",
        )
    if isinstance(error, Forbidden):
        return _refused(
            Cause.PERMISSION,
            f"Package {uri} may not be read by this job: {error.message}",
            "Copy it into a bucket of the job's own project, and give that address.",
        )
    if isinstance(error, DiskFull):
        return _refused(
            Cause.DISK_FULL,
            f"Package {uri} could not be fetched: {error.message}",
            "The server's disk is full: `trainshed runtimes rm --unused` frees what no job wants.",
            retry=True,
        )
    if isinstance(error, Exhausted):
        return too_large(uri, error.message)
    if isinstance(error, Unavailable):
        return _refused(
            Cause.NETWORK_ERROR,
            f"Package {uri} could not be fetched: {error.message}",
            "Submit the job again once its bucket answers.",
            retry=True,
        )
    return _refused(
        Cause.BUILD_FAILED,
        f"Package {uri} could not be fetched: {error.message}",
        "Upload it again into a bucket of this server, and submit the job with that address.",
    )


def too_large(uri: str, why: str) -> PackageRefused:
    return _refused(
        Cause.BUILD_FAILED,
        f"Package {uri} is too large: {why}",
        f"A package has at most {LARGEST} bytes: leave data out of it, and read that from a bucket.",
    )


def replaced(package: Package) -> PackageRefused:
    return _refused(
        Cause.NO_SUCH_PACKAGE,
        f"Package {package.uri} was replaced: what this job began with (sha256 {package.sha256}) is gone.",
        "Submit the job again: it then runs with what is there now.",
        retry=True,
    )


def hostile(package: Package, why: str) -> PackageRefused:
    return _refused(
        Cause.BUILD_FAILED,
        f"Package {package.uri} {why}.",
        "Nothing of it was unpacked. Make it anew (`python setup.py sdist`, `pip wheel`), and upload that.",
    )

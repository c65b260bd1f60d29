"""--config FILE: what it holds, and the server's complaints with the lines of it that they are about."""

from collections.abc import Generator
from contextlib import contextmanager

from trainshed.cli.failure import CommandFailed
from trainshed.cli.job_file import JobFile, read_bytes
from trainshed.client import ApiError, ApiViolation


def content(config: str) -> tuple[str, bytes]:
    """What to call it in messages, and what it holds."""
    try:
        return read_bytes(config)
    except OSError as error:
        raise CommandFailed(f"Unable to read file [{config}]: {error.strerror}") from error


@contextmanager
def placed(file: JobFile | None, *, but: str = "") -> Generator[None]:
    """The violations told in here with their lines; fields named like `but` came from elsewhere."""
    try:
        yield
    except ApiError as error:
        if file is None or not error.violations:
            raise
        violations = tuple(_placed(file, violation, but) for violation in error.violations)
        raise ApiError(error.code, error.status, error.message, violations) from error


def _placed(file: JobFile, violation: ApiViolation, but: str) -> ApiViolation:
    if but and but in violation.field:
        return violation
    place = file.place(violation.field)
    return ApiViolation(violation.field, f"{violation.description} ({place})")

"""Submitting a program: pack its folder, send what the server lacks, create the job, follow it.

The job is asked for first, by the id of its folder: only if the server does not know it are files sent. Until
the job is there next to nothing may be imported (docs/adr/0014); what is for people's eyes comes after.
"""

import sys

from trainshed.cli.order import SubmittedProgram, is_count
from trainshed.cli.pack import FolderListing, look
from trainshed.cli.paint import draw
from trainshed.cli.submit_options import MACHINE, SubmitWords, read
from trainshed.cli.trouble import EarlyError, say
from trainshed.client.errors import ApiError, ClientError

TYPE_CHECKING = False  # the module typing takes longer to import than a job takes to submit
if TYPE_CHECKING:
    import os
    from collections.abc import Callable
    from typing import TextIO

    from trainshed.client import Client, Json, Target
    from trainshed.client.code import Parcel

LARGE = 100_000_000  # bytes of a file that is asked about
MUCH = 1_000_000_000  # bytes in all
MANY = 20_000  # files
NAMED = 10
ANY_GPU = "NVIDIA_TESLA_T4"
NAMES = {
    "machine_type": "--machine",
    "accelerator_type": "--gpu",
    "accelerator_count": "--gpu",
    "image_uri": "--runtime",
    "replica_count": "--replicas",
    "requirements": "--requirements",
    "env": "--env",
    "timeout": "--timeout",
    "priority": "--priority",
    "labels": "--label",
    "display_name": "--name",
    "hold_on_failure": "--on-failure",
    "output_uri_prefix": "--output",
}


class Unsure(KeyboardInterrupt):
    """Ctrl-C while the server was asked for the job: it may have made it, and its answer was not read."""


def swift(args: list[str]) -> int | None:
    """The exit code; None where the words are not plain, and click has to read them."""
    options = read(args)
    if (
        options is None
        or options.is_file
        or not (options.target or options.module)
        or (options.follow and options.detach)
    ):
        return None
    return submit(options)


def submit(options: SubmitWords) -> int:
    """All of it, with what goes wrong told on stderr."""
    target: Target | None = None
    job: Json | None = None
    try:
        program = SubmittedProgram(options)
        program.check(options)
        listing = FolderListing(program.root)  # git lists while the rest is imported
        from trainshed.client.api import Client
        from trainshed.client.discovery import discover

        target = discover(
            url=options.url or None, project=options.project or None, location=options.location or None
        )
        with Client.of(target) as client:
            client.open()  # the server gets ready for us while files are read
            if options.has_places:
                from trainshed.cli.seek import seek

                seek(client, options)
            if is_count(options.gpu):
                options.gpu = any_gpu(client, options)
            parcel = packed(program.root, listing, options, program.script)
            if unused := program.unused_requirements(options):
                say(f"note: {unused} is not installed; have it so with: --requirements {unused}")
            if options.dry_run:
                return _explained(client, program.body(options, ""), options)
            job = _accepted(client, program.body(options, parcel.code), parcel, options)
            from trainshed.cli.follow import finish

            return finish(client, job, follow=not options.detach, as_json=options.as_json)
    except Unsure:
        say("\ninterrupted while the job was submitted; whether it was, says: trainshed ls")
        return 130
    except KeyboardInterrupt:
        return _interrupted(job)
    except (EarlyError, ClientError) as error:
        from trainshed.cli.options import failed

        failure = failed(error, target)
    failure.show()
    return failure.exit_code


def any_gpu(client: "Client", options: SubmitWords) -> str:
    """As many as were asked for, of the kind that is there."""
    from urllib.parse import quote

    machine = quote(options.machine or MACHINE, safe="")
    answer = client.ask("GET", f"{client.place()}/customJobs:accelerator?machineType={machine}")
    kind = answer["acceleratorType"]
    if not kind:
        say(f"note: the server has no GPU; --gpu {options.gpu} is written down as {ANY_GPU}")
    return f"{kind or ANY_GPU}:{options.gpu}"


def _interrupted(job: "Json | None") -> int:
    if job is None:
        say("\ninterrupted before the job was submitted")
        return 130
    from trainshed.cli.follow import detached

    return detached(job)


def packed(root: str, listing: FolderListing, options: SubmitWords, *named: str) -> "Parcel":
    """The files with their hashes, counted on stderr; a person is asked before much is sent."""
    from trainshed.client.code import Parcel, Unpackable

    files = look(root, listing.paths(options.include, options.exclude, *filter(None, named)))
    if not files:
        raise EarlyError(
            f"there are no files to pack in {root}", ["is everything ignored? --include brings files back"]
        )
    if not options.dry_run:
        _ask(files, options)
    parcel = Parcel(root)
    unreadable: list[str] = []
    for path, seen in files:
        try:
            parcel.add(path, seen)
        except Unpackable as error:
            unreadable.append(str(error))
    if unreadable:
        more = [f"and {len(unreadable) - NAMED} more"] if len(unreadable) > NAMED else []
        fix = "make them readable, or leave them out with --exclude"
        raise EarlyError("some files cannot be read", [*unreadable[:NAMED], *more, fix])
    say(f"packed {counted(len(files))}, {sized(parcel.size)}, of {root}")
    return parcel


def _ask(files: "list[tuple[str, os.stat_result]]", options: SubmitWords) -> None:
    total = sum(seen.st_size for _, seen in files)
    large = [f"{path} has {sized(seen.st_size)}" for path, seen in files if seen.st_size > LARGE]
    doubts = large[:NAMED] + ([f"and {len(large) - NAMED} more"] if len(large) > NAMED else [])
    if total > MUCH or len(files) > MANY:
        doubts.append(f"all together are {counted(len(files))}, {sized(total)}")
    if not doubts or options.yes:
        return
    fix = "leave files out with --exclude or .trainshedignore, or send them with --yes"
    if not (_is_terminal(sys.stdin) and _is_terminal(sys.stderr)):
        raise EarlyError("that is much to send, and there is nobody to ask", [*doubts, fix])
    say("".join(f"{doubt}\n" for doubt in doubts) + "Send this to the server? [y/N] ", end="")
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise EarlyError("nothing was submitted", [fix])


def _accepted(client: "Client", body: "Json", parcel: "Parcel", options: SubmitWords) -> "Json":
    """The new job; what the server does not accept is told by the option that said it."""
    try:
        return created(client, body, parcel)
    except ApiError as error:
        raise _by_option(error, options) from error


def _by_option(error: ApiError, options: SubmitWords) -> "ApiError | EarlyError":
    if not error.violations:
        return error
    from trainshed.cli.options import violation_text

    details: list[str] = []
    for violation in error.violations:
        option = option_of(violation.field, options)
        line = f"{option}: {violation.description}" if option else violation_text(violation)
        if line not in details:
            details.append(line)
    return EarlyError("the server does not accept this job", details)


def option_of(field: str, options: SubmitWords) -> str:
    """The option that said what is in a field of the job; "" where none did."""
    option = NAMES.get(field.rpartition(".")[2].partition("[")[0], "")
    return "--job-dir" if option == "--output" and not options.output and options.job_dir else option


def _is_terminal(stream: "TextIO | None") -> bool:
    return stream is not None and stream.isatty()


def created(client: "Client", body: "Json", parcel: "Parcel", secrets_of: str = "") -> "Json":
    """The new job. What the server lacks of its folder is sent, and the job asked for again.

    `secrets_of` is the job that the body was copied from, if any.
    """
    return with_folder(client, parcel, lambda key: client.create(body, key=key, secrets_of=secrets_of))


def with_folder(client: "Client", parcel: "Parcel", create: "Callable[[str], Json]") -> "Json":
    """What `create` makes with an idempotency key: asked again once the folder has been sent."""
    import os

    key = os.urandom(16).hex()
    try:
        return _created(create, key)
    except ApiError as error:
        if not any(violation.field.rpartition(".")[2] == "code" for violation in error.violations):
            raise
        if len(error.violations) > 1:  # it would be refused all the same
            raise _without_code(error) from error
    deliver(client, parcel)
    return _created(create, key)


def _created(create: "Callable[[str], Json]", key: str) -> "Json":
    try:
        return create(key)
    except KeyboardInterrupt:
        raise Unsure from None


def deliver(client: "Client", parcel: "Parcel") -> None:
    from trainshed.client.code import Unpackable, send

    progress = _Progress()
    try:
        count, size = send(client, parcel, progress)
    except Unpackable as error:
        raise EarlyError(f"a file changed while it was sent: {error}", ["submit once more"]) from error
    except ApiError as error:
        violations = " ".join(
            violation.description for violation in error.violations if violation.field.startswith("frames")
        )
        changed = next((entry["path"] for entry in parcel.entries if entry["sha256"] in violations), None)
        if changed is None:
            raise
        raise EarlyError(f"a file changed while it was sent: {changed}", ["submit once more"]) from error
    finally:
        progress.end()
    if count:
        had = "; the server had the rest" if count < len(parcel.contents) else ""
        say(f"sent {counted(count)}, {sized(size)}{had}")


def _without_code(error: ApiError) -> ApiError:
    """That the folder has not been sent is no fault of the person's."""
    rest = tuple(violation for violation in error.violations if violation.field.rpartition(".")[2] != "code")
    return ApiError(error.code, error.status, error.message, rest)


class _Progress:
    """A line on the terminal that counts what was sent, from the second second on."""

    def __init__(self) -> None:
        import time

        self._now = time.monotonic
        self._next = self._now() + 1
        self._is_shown = False
        self._is_wanted = _is_terminal(sys.stderr)

    def __call__(self, done: int, total: int) -> None:
        if self._is_wanted and self._now() >= self._next:
            self._next = self._now() + 0.2
            self._is_shown = True
            draw(sys.stderr, f"\r\x1b[Ksending {sized(done)} of {sized(total)}")

    def end(self) -> None:
        if self._is_shown:
            draw(sys.stderr, "\r\x1b[K")


def _explained(client: "Client", body: "Json", options: SubmitWords) -> int:
    from trainshed.cli.submit import explained

    try:
        answer = client.explain(body)
    except ApiError as error:
        raise _by_option(error, options) from error
    return explained(answer, as_json=options.as_json)


def counted(count: int) -> str:
    return f"{count:,} file{'' if count == 1 else 's'}"


def sized(size: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"

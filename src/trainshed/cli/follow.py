"""Following a job: its lines as they come, why it waits while there are none, its outcome as an exit code.

A job just submitted may print within milliseconds, so nothing dear is imported here (docs/adr/0014).
"""

import sys
from _thread import allocate_lock, start_new_thread

from trainshed.cli import words
from trainshed.cli.paint import Paint, harmless
from trainshed.cli.trouble import say
from trainshed.client.errors import ClientError
from trainshed.client.notation import dumps

TYPE_CHECKING = False  # the module typing takes longer to import than a job takes to submit
if TYPE_CHECKING:
    from _thread import LockType
    from collections.abc import Iterable

    from trainshed.client import Client, Json

COLOURS = ("cyan", "green", "yellow", "magenta", "blue", "red")
DETACHED = 130


class Printer:
    """Writes what replicas wrote to stdout, at once: as it was into a pipe, made harmless to a terminal.

    A newline is added only where the line of one stream breaks off and something else follows.
    """

    def __init__(self, *, prefix: bool, as_json: bool, width: int = 0) -> None:
        self._prefix = prefix
        self.as_json = as_json
        self._width = width
        self._terminal = sys.stdout.isatty()
        self._paint = Paint.for_stdout()
        self._prefixes: dict[str, bytes] = {}
        self._attempt = 0
        self._unended: tuple[object, ...] | None = None  # the stream that is in the middle of a line
        self.printed = False

    def print_lines(self, lines: "Iterable[Json]") -> None:
        """Each as JSON."""
        for line in lines:
            self._print(encoded(dumps(line)) + b"\n")

    def print_output(self, frames: "Iterable[tuple[Json, bytes]]") -> None:
        for head, data in frames:
            attempt: int = head["attempt"]
            if attempt > self._attempt:
                self._attempt = attempt
                say(f"-- attempt {attempt} --")
            self._print(self._shown(head, data))

    def _print(self, data: bytes) -> None:
        self.printed = True
        out = sys.stdout.buffer
        out.write(data)
        out.flush()

    def _shown(self, head: "Json", data: bytes) -> bytes:
        who = (head["attempt"], head["task"], head["stream"], head.get("marker"))
        goes_on = self._unended == who
        start = b"\n" if self._unended and not goes_on else b""
        is_ended = data.endswith(b"\n") or self._terminal
        self._unended = None if is_ended else who
        if not self._prefix and not self._terminal:
            return start + data
        body = data.removesuffix(b"\n")
        if self._terminal:
            text = body.decode("utf-8", "surrogateescape")
            body = encoded("\n".join(map(harmless, text.split("\n"))))
        if self._prefix:
            prefix = self._prefix_of(head["task"])
            body = (b"" if goes_on else prefix) + body.replace(b"\n", b"\n" + prefix)
        return start + body + (b"\n" if is_ended else b"")

    def _prefix_of(self, task: str) -> bytes:
        if task not in self._prefixes:
            colour = COLOURS[len(self._prefixes) % len(COLOURS)]
            self._prefixes[task] = f"{self._paint(f'{task:<{self._width}} |', colour)} ".encode()
        return self._prefixes[task]


def printer(job: "Json", *, as_json: bool, single: bool = False) -> Printer:
    counts = [(at, words.pool_count(pool)) for at, pool in enumerate(words.pools(job))]
    longest = max((len(f"workerpool{at}-{count - 1}") for at, count in counts if count), default=0)
    many = sum(count for _, count in counts) > 1 and not single
    return Printer(prefix=many, as_json=as_json, width=longest)


def finish(client: "Client", job: "Json", *, follow: bool, as_json: bool) -> int:
    """What is said of a new job, and how it ends if it is followed: the code to exit with."""
    identity, name = words.identity(job), job.get("displayName", "")
    say_warnings(job)
    if as_json and not follow:
        import json

        print(json.dumps(job, indent=2))
    elif as_json:
        print(dumps(job), flush=True)
    elif not follow:
        print(identity)
    if not follow:
        say(f"submitted {name}; follow it with: trainshed logs -f {identity}")
        return 0
    say(f"submitted {name} as {identity}")
    return follow_to_end(client, job, as_json=as_json)


def say_warnings(job: "Json") -> None:
    """What the server told of a new job that its owner should know at once."""
    for warning in words.parts(job, "warnings"):
        say(Paint.for_stderr()(f"warning: {warning}", "yellow"))


def follow_to_end(client: "Client", job: "Json", *, as_json: bool) -> int:
    """Prints until the job has ended; returns the code to exit with. Ctrl-C leaves the job alone."""
    show = printer(job, as_json=as_json)
    done = allocate_lock()
    done.acquire()  # let go at the end
    start_new_thread(_say_why_it_waits, (client, job, show, done))
    try:
        if show.as_json:
            show.print_lines(client.tail(job["name"], follow=True))
        else:
            show.print_output(client.output(job["name"], follow=True))
        client.wait(job["name"])
    except KeyboardInterrupt:
        return detached(job)
    finally:
        done.release()
    status = client.status(job["name"])
    say(verdict(status))
    say_results(client, job)
    return exit_code(status)


def say_results(client: "Client", job: "Json") -> None:
    """Where the results of an ended job went, if it was told where to."""
    if words.part(words.part(job, "jobSpec"), "baseOutputDirectory"):
        from trainshed.cli.results import results

        say(f"  results: {results(client, job)}")


def detached(job: "Json") -> int:
    identity = words.identity(job)
    say(
        f"\ndetached: the job goes on. Come back with: trainshed logs -f {identity}\n"
        f"or end it with: trainshed cancel {identity}"
    )
    return DETACHED


def _say_why_it_waits(client: "Client", job: "Json", show: Printer, done: "LockType") -> None:
    """While nothing is printed, say what the job waits for, once for each reason."""
    last = ""
    pause = 1.0
    while not done.acquire(timeout=pause) and not show.printed:
        pause = 5.0
        try:
            with client.another() as own:
                status = own.status(job["name"])
        except ClientError:
            continue  # the main thread meets the same trouble and reports it
        waiting = words.part(status, "waiting")
        message = " ".join(filter(None, (waiting.get("message"), waiting.get("remedy"))))
        if message and message != last and not show.printed:
            last = message
            say(f"waiting: {message}")


def verdict(status: "Json") -> str:
    """The outcome in one sentence, coloured by what it is; why and what helps below it."""
    word = words.state(status.get("state"))
    name = str(status.get("name", "")).rsplit("/", 1)[-1]
    failure = words.part(status, "failure")
    reason = f": {failure['message']}" if failure.get("message") else ""
    judged = words.part(failure, "verdict")
    why = f"\n  {judged['cause']}: {judged['summary']}\n  {judged['advice']}" if judged else ""
    return f"{name} {Paint.for_stderr().state(word)}{reason}{why}"


def exit_code(status: "Json") -> int:
    """0 for success, the code of the replica that failed first where it is known, else 1."""
    if words.state(status.get("state")) == "SUCCEEDED":
        return 0
    failure = words.part(status, "failure")
    replicas: list[Json] = words.parts(status, "replicas")
    blamed = [replica for replica in replicas if replica.get("task") == failure.get("task")]
    ended = words.part(blamed[0], "exit") if blamed else {}
    if ended.get("signal"):
        return 128 + int(ended["signal"])
    return int(ended.get("code") or 1)


def encoded(text: str) -> bytes:
    """UTF-8; bytes that were none come out as they went in."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")

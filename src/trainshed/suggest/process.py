"""The adapter of `core.tuning.suggestion_port.Suggester`: it computes in a process of its own.

The process is started at the first ask and kept. It is ended when nobody has asked for a while, and at the
close. It also ends by itself when this process is gone. One that hangs or dies is killed and replaced, and
the request is sent once more. If that fails too, the answer is random search, and the log says why: a study
goes on. Requests take turns, large ones in parts. Nothing here imports numpy.
"""

import asyncio
import contextlib
import logging
import os
import sys
from collections.abc import Sequence
from dataclasses import replace

from trainshed.core.errors import Invalid, Unavailable
from trainshed.core.tuning.search_space import TrialPoint
from trainshed.core.tuning.suggestion_port import SuggestionRequest
from trainshed.suggest.message import read_answer, request_line
from trainshed.suggest.random_search import random_points

_log = logging.getLogger(__name__)
_MOST_AT_ONCE = 10  # points of one answer: who asks for many neither loses patience nor keeps others waiting
_LONGEST_LINE = 64 * 2**20
COMMAND = (sys.executable, "-m", "trainshed.suggest.worker")


class SuggestionProcess:
    """`patience` bounds one answer in seconds, `idle` how long the process is kept without a request."""

    def __init__(
        self, *, patience: float = 60.0, idle: float = 600.0, command: Sequence[str] = COMMAND
    ) -> None:
        self._patience, self._idle, self._command = patience, idle, tuple(command)
        self._process: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()
        self._expiry: asyncio.TimerHandle | None = None
        self._expiring: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int | None:
        """That of the process, while there is one."""
        return self._process.pid if self._process is not None else None

    async def suggest(self, request: SuggestionRequest) -> Sequence[TrialPoint]:
        if violations := request.violations():
            raise Invalid(violations)
        points: list[TrialPoint] = []
        while len(points) < request.count:
            rest = request.after(points)
            wanted = min(rest.count, _MOST_AT_ONCE)
            try:
                new = await self.compute(replace(rest, count=wanted))
            except Unavailable as error:
                _log.warning("points are drawn at random, because %s", error.message)
                return [*points, *await asyncio.to_thread(random_points, rest)]
            if not all(request.space.contains(point) for point in new):
                raise Unavailable("the suggester answered with a point outside of the space")
            points += new
            if len(new) < wanted:
                break  # no more are left
        return points

    async def compute(self, request: SuggestionRequest) -> Sequence[TrialPoint]:
        """The answer of the process. Unavailable where it gives none, also at a second try."""
        line = await asyncio.to_thread(request_line, request)
        async with self._turn:
            self._stop_expiry()
            try:
                answer = await self._ask(line)
            except (OSError, ValueError, EOFError, TimeoutError) as error:
                _log.warning("the process of the suggester is started again: %s", _words(error))
                answer = await self._ask_again(line)
            finally:
                self._start_expiry()
        if isinstance(answer, str):
            raise Unavailable(f"the suggester cannot compute: {answer}")
        return answer

    async def close(self) -> None:
        async with self._turn:
            self._stop_expiry()
            await self._end()

    async def _ask_again(self, line: bytes) -> Sequence[TrialPoint] | str:
        try:
            return await self._ask(line)
        except (OSError, ValueError, EOFError, TimeoutError) as error:
            raise Unavailable(f"the process of the suggester failed twice: {_words(error)}") from error

    async def _ask(self, line: bytes) -> Sequence[TrialPoint] | str:
        """One request, one answer. If it fails, the process is gone afterwards: it may be half-way."""
        try:
            async with asyncio.timeout(self._patience):
                process = await self._started()
                assert process.stdin is not None and process.stdout is not None
                process.stdin.write(line)
                await process.stdin.drain()
                answer = await process.stdout.readline()
                if not answer.endswith(b"\n"):
                    raise EOFError("it ended before it answered")
                return await asyncio.to_thread(read_answer, answer)
        except BaseException:
            await self._end()
            raise

    async def _started(self) -> asyncio.subprocess.Process:
        if self._process is not None and self._process.returncode is None:
            return self._process
        await self._end()
        self._process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=_LONGEST_LINE,
            start_new_session=True,  # a Ctrl-C is for the server, which then ends this process
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        return self._process

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        if process.stdin is not None:
            process.stdin.close()
        await process.wait()

    def _start_expiry(self) -> None:
        if self._process is not None:
            self._expiry = asyncio.get_running_loop().call_later(self._idle, self._expire)

    def _stop_expiry(self) -> None:
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None

    def _expire(self) -> None:
        self._expiring = asyncio.get_running_loop().create_task(self._end_idle())

    async def _end_idle(self) -> None:
        if not self._turn.locked():  # else somebody asks right now, and the time starts anew afterwards
            async with self._turn:
                await self._end()


def _words(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "it did not answer in time"
    return str(error) or type(error).__name__

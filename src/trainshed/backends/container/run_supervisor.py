"""Tends the runs of containers from their start to the end of their last process.

The init of a container tells all there is to know in its record, and holds a lock on it while it lives: so
who it is, that it lives and how it ended needs no engine. The engine is asked only about an init that died
without a word. It may assume a running event loop. It changes what is remembered of a run and nothing else;
it never forgets one and never starts one. An end is shown only when all of the run is gone.
"""

import asyncio
import os
import signal
from collections.abc import Callable
from datetime import UTC, datetime

from trainshed.backends.container.containers import ContainerInfo, EngineContainers
from trainshed.backends.container.run import ContainerRecord, ContainerRun
from trainshed.backends.machine import processes
from trainshed.backends.machine.processes import Identity
from trainshed.backends.machine.watch import ProcessEndWatch
from trainshed.background_tasks import BackgroundTasks
from trainshed.core.errors import TrainshedError, Unavailable
from trainshed.core.replica import Exit, Sight

_PATIENCE = 5.0  # seconds for an init to write its first line
_KILLING = 10.0  # seconds of killing before the caller hears that it is not over yet
_SILENCE = 60.0  # seconds an engine may be silent about a container that has ended
_LATE = 5.0  # seconds it may show one as running that is dead
_BLIND = 0.25  # seconds between looks at a record whose init is not to be seen from here


class ContainerRunSupervisor:
    def __init__(self, containers: EngineContainers, hint: Callable[[ContainerRun], None]) -> None:
        self._containers = containers
        self._hint = hint
        self._watch = ProcessEndWatch()
        self._background = BackgroundTasks()

    async def close(self) -> None:
        self._watch.close()
        await self._background.close()

    def begun(self, run: ContainerRun) -> None:
        """Its container has just been started."""
        self._show(run, datetime.now(UTC), None)
        if not self._adopt(run):
            self._background.run(self._find_init(run))

    def find_again(self, run: ContainerRun) -> None:
        record = run.read()
        if record is None:
            return  # not even prepared: it is launched anew
        if record.begun:
            self._show(run, record.started_at, record)
            if not self._adopt(run) and not self._told_end(run):
                self._background.run(self._judge(run))
        else:
            # Prepared, and the server was killed. A start that was under way may still come.
            self._background.run(self._await_init(run))

    def _show(self, run: ContainerRun, started_at: datetime | None, record: ContainerRecord | None) -> None:
        """A run that is alive, in whatever way."""
        if record is not None and record.held is not None:
            memory = run.killed_for_memory if record.oom else ""
            run.show(Sight.HELD, started_at, exit=record.held, ended_at=record.ended_at, out_of_memory=memory)
            return
        run.show(Sight.RUNNING, started_at)
        if run.holds:
            self._background.run(run.await_hold(lambda: _memory(run), lambda: self._hint(run)))

    async def ask(self, run: ContainerRun) -> None:
        """SIGTERM, once, to all of the run but its init, which sees to it that it is once."""
        if run.sight is None or run.asked:
            return
        run.asked = True
        await self._init(run)  # before that it would not hear
        if not run.gone.is_set():
            if not self._send(run, signal.SIGTERM):
                await self._containers.signal(run.container, "SIGTERM")
            run.mark("asked")

    async def kill(self, run: ContainerRun) -> None:
        """SIGKILL to its init, with which everything goes, until it is gone or the time is up."""
        if run.sight is None:
            await self._give_up_start(run)
        elif not run.killed and not run.gone.is_set():
            run.killed = True
            run.mark("killed")
        loop = asyncio.get_running_loop()
        began, pause, sent = loop.time(), 0.005, False
        while not run.gone.is_set() and loop.time() - began < _KILLING:
            if self._send(run, signal.SIGKILL):
                sent = True
            else:
                try:
                    await self._kill_unseen(run)
                except Unavailable:
                    if not sent:  # else it is dead, and that is about to be seen without the engine
                        raise
            await run.pause(pause)
            pause = min(pause * 2, 0.5)

    async def _kill_unseen(self, run: ContainerRun) -> None:
        """Its init has not begun, is not to be seen from here, or is dead."""
        info = await self._containers.look(run.container)
        if info is None or not info.running:
            self._conclude(run, info)
        elif not run.seen or run.init_pid() is not None:
            await self._containers.signal(run.container, "SIGKILL")

    def _adopt(self, run: ContainerRun) -> bool:
        """Watch the init; False where there is none to be seen."""
        known = identify(run)
        if known is None:
            return False
        if not run.seen:
            run.seen = True
            run.mark("seen")
        if not self._watch.adopt(known, lambda: self._init_gone(run)):
            self._init_gone(run)
        return True

    def _init_gone(self, run: ContainerRun) -> None:
        if not self._told_end(run):
            self._background.run(self._judge(run, dead=True))

    def _told_end(self, run: ContainerRun) -> bool:
        record = run.read()
        if record is None or record.exit is None:
            return False
        self._end(run, record, record.exit, record.oom > 0)
        return True

    def _end(self, run: ContainerRun, record: ContainerRecord, exit: Exit, oom: bool) -> None:
        if run.gone.is_set():
            return
        run.unstarted = run.unstarted or record.unstarted
        run.show(
            Sight.ENDED,
            run.started_at or record.started_at or run.prepared_at(),
            exit=exit,
            ended_at=record.ended_at or datetime.now(UTC),
            out_of_memory=run.killed_for_memory if oom and not exit.ok else "",
        )
        self._hint(run)

    def _lose(self, run: ContainerRun, record: ContainerRecord | None) -> None:
        if run.gone.is_set():
            return
        started_at = run.started_at or (record.started_at if record else None) or run.prepared_at()
        run.show(Sight.LOST, started_at, exit=Exit(), ended_at=datetime.now(UTC))
        self._hint(run)

    async def _judge(self, run: ContainerRun, *, dead: bool = False) -> None:
        """Its init is not to be seen: it died without a word, or lives where this server cannot see it."""
        loop = asyncio.get_running_loop()
        began, pause = loop.time(), 0.01
        while not run.gone.is_set() and not self._told_end(run):
            if run.killed and dead:  # to be told by nobody else, and with it everything in the container
                self._conclude(run, None)
                return
            try:
                info = await self._containers.look(run.container)
            except TrainshedError:
                if loop.time() - began > _SILENCE:
                    self._conclude(run, None)
            else:
                # Of one that was seen the engine may be late to know that it is dead, and never be told.
                late = (dead or run.seen) and run.init_pid() is None and loop.time() - began > _LATE
                if info is None or not info.running or late:
                    self._conclude(run, info)
                    return
            await asyncio.sleep(pause)
            pause = min(pause * 2, _BLIND)

    def _conclude(self, run: ContainerRun, info: ContainerInfo | None) -> None:
        """Its init is dead. Where that wrote no end, one is known only where we, or the kernel, killed it."""
        if run.gone.is_set() or self._told_end(run):
            return
        record, oom = run.read() or ContainerRecord(), info is not None and info.out_of_memory
        here = record.boot in ("", processes.boot_id())
        if record.held is not None:
            self._end(run, record, record.held, record.oom > 0)
            return
        if here and (run.killed or oom) and (record.begun or (info is not None and info.begun)):
            self._end(run, record, Exit(signal=signal.SIGKILL), oom)
        else:
            self._lose(run, record)

    async def _find_init(self, run: ContainerRun) -> None:
        if not await self._init(run) or not self._adopt(run):
            await self._judge(run)

    async def _await_init(self, run: ContainerRun) -> None:
        if await self._init(run) and run.sight is None:
            self.find_again(run)
            self._hint(run)

    async def _init(self, run: ContainerRun) -> bool:
        """Whether its init has begun, waited for where a launch did not."""
        pause, record = 0.001, run.read()
        while not (record and record.begun) and pause < _PATIENCE and not run.gone.is_set():
            await run.pause(pause)
            record, pause = run.read(), pause * 1.5
        return record is not None and record.begun

    async def _give_up_start(self, run: ContainerRun) -> None:
        """No init has begun it: take its container away. Where one was faster, it is like any other."""
        if run.container:
            await self._containers.remove(run.container)
        record = run.read()
        if record is not None and record.begun:
            self.find_again(run)
        else:
            self._lose(run, record)

    def _send(self, run: ContainerRun, number: signal.Signals) -> bool:
        """Signal its init; False where only the engine can."""
        known = identify(run)
        if known is None or not _may_signal(known.pid):
            return False
        processes.send(known, number)
        return True


def _memory(run: ContainerRun) -> str:
    record = run.read()
    return run.killed_for_memory if record is not None and record.oom else ""


def identify(run: ContainerRun) -> Identity | None:
    """The init of a run that is alive; None where none is to be seen from here."""
    pid = run.init_pid()
    seen = processes.look(pid) if pid else None
    # Held before and after the look: so it is its start time, and not of one that was given its pid.
    return Identity(seen.pid, seen.start) if seen is not None and run.init_pid() == seen.pid else None


def _may_signal(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True

"""Supervises the runs of containers from their start to the end of their last process.

The backend calls it from its event loop. The init of a container writes all facts into its record, and
holds a lock on it while it lives: so its pid, that it lives and how it ended are known without the engine.
The engine is asked only about an init that died before it wrote an end. The supervisor changes what is
remembered of a run and nothing else; it never forgets a run and never starts one. It shows an end only when
all of the run is gone.
"""

import asyncio
import os
import signal
from collections.abc import Callable
from datetime import UTC, datetime

from trainshed.backends.container.containers import ContainerInfo, EngineContainers
from trainshed.backends.container.run import ContainerRun
from trainshed.backends.machine import processes
from trainshed.backends.machine.init_record import InitRecord
from trainshed.backends.machine.processes import Identity
from trainshed.backends.machine.watch import ProcessEndWatch
from trainshed.background_tasks import BackgroundTasks
from trainshed.core.errors import TrainshedError, Unavailable
from trainshed.core.jobs.replica import Exit, Sight

_PATIENCE = 5.0  # seconds for an init to write its first line
_KILLING = 10.0  # seconds of killing after which the caller gets control back
_SILENCE = 60.0  # seconds an engine may be silent about a container that has ended
_LATE = 5.0  # seconds for which it may show a dead container as running
_BLIND = 0.25  # seconds between reads of a record whose init is not visible from here


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
        if run.sight is not None:
            return  # `_await_init` has found its init before the engine said so; it may even have ended
        self._show(run, datetime.now(UTC), None)
        if not self._adopt(run):
            self._background.run(self._find_init(run))

    def find_again(self, run: ContainerRun) -> None:
        record = run.read()
        if record is None:
            return  # not prepared: it is launched again
        if record.begun:
            self._show(run, record.started_at, record)
            if not self._adopt(run) and not self._told_end(run):
                self._background.run(self._judge(run))
        else:
            # Prepared, and the server was killed: a start that was under way may still happen.
            self._background.run(self._await_init(run))

    def _show(self, run: ContainerRun, started_at: datetime | None, record: InitRecord | None) -> None:
        """Show a run that is alive, running or held."""
        if record is not None and record.held is not None:
            memory = run.killed_for_memory if record.oom else ""
            run.show(Sight.HELD, started_at, exit=record.held, ended_at=record.ended_at, out_of_memory=memory)
            return
        run.show(Sight.RUNNING, started_at)
        if run.holds:
            self._background.run(run.await_hold(lambda: _memory(run), lambda: self._hint(run)))

    async def ask(self, run: ContainerRun) -> None:
        """Send SIGTERM to the init, which passes the first one to all others."""
        if run.sight is None or run.asked:
            return
        run.asked = True
        await self._init(run)  # before it begins it would miss the signal
        if not run.gone.is_set():
            if not self._send(run, signal.SIGTERM):
                await self._containers.signal(run.container, "SIGTERM")
            run.mark("asked")

    async def kill(self, run: ContainerRun) -> None:
        """Send SIGKILL to its init, which ends the whole container, until it is gone or the time is up."""
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
                    if not sent:  # else it is dead, which shows without the engine
                        raise
            await run.pause(pause)
            pause = min(pause * 2, 0.5)

    async def _kill_unseen(self, run: ContainerRun) -> None:
        """For an init that has not begun, is not visible from here, or is dead."""
        info = await self._containers.look(run.container)
        if info is None or not info.running:
            self._conclude(run, info)
        elif not run.seen or run.init_pid() is not None:
            await self._containers.signal(run.container, "SIGKILL")

    def _adopt(self, run: ContainerRun) -> bool:
        """Watch the init; False where none is visible."""
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

    def _end(self, run: ContainerRun, record: InitRecord, exit: Exit, oom: bool) -> None:
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

    def _lose(self, run: ContainerRun, record: InitRecord | None) -> None:
        if run.gone.is_set():
            return
        started_at = run.started_at or (record.started_at if record else None) or run.prepared_at()
        run.show(Sight.LOST, started_at, exit=Exit(), ended_at=datetime.now(UTC))
        self._hint(run)

    async def _judge(self, run: ContainerRun, *, dead: bool = False) -> None:
        """Find the end of a run whose init is not visible: it is dead, or hidden from this server."""
        loop = asyncio.get_running_loop()
        began, pause = loop.time(), 0.01
        while not run.gone.is_set() and not self._told_end(run):
            if run.killed and dead:  # nobody else will report it, and the container is gone with it
                self._conclude(run, None)
                return
            try:
                info = await self._containers.look(run.container)
            except TrainshedError:
                if loop.time() - began > _SILENCE:
                    self._conclude(run, None)
            else:
                # The engine may learn late, or never, that an init is dead which this server has seen.
                late = (dead or run.seen) and run.init_pid() is None and loop.time() - began > _LATE
                if info is None or not info.running or late:
                    self._conclude(run, info)
                    return
            await asyncio.sleep(pause)
            pause = min(pause * 2, _BLIND)

    def _conclude(self, run: ContainerRun, info: ContainerInfo | None) -> None:
        """Its init is dead. Without an end in the record, one is known only if we or the kernel killed it."""
        if run.gone.is_set() or self._told_end(run):
            return
        record, oom = run.read() or InitRecord(), info is not None and info.out_of_memory
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
        """Wait for its init to begin; whether it did."""
        pause, record = 0.001, run.read()
        while not (record and record.begun) and pause < _PATIENCE and not run.gone.is_set():
            await run.pause(pause)
            record, pause = run.read(), pause * 1.5
        return record is not None and record.begun

    async def _give_up_start(self, run: ContainerRun) -> None:
        """No init has begun it: remove its container. If one began meanwhile, treat it like any other."""
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
    """The init of a run that is alive; None where none is visible from here."""
    pid = run.init_pid()
    seen = processes.look(pid) if pid else None
    # It has the lock before and after the look, so the start time is its own, and not of a reused pid.
    return Identity(seen.pid, seen.start) if seen is not None and run.init_pid() == seen.pid else None


def _may_signal(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True

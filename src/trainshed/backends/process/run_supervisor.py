"""Supervises runs from their start to the end of their last process: sees them end, asks them to, kills them.

The backend calls it in a running event loop. It changes what is remembered of a run and nothing else. It
shows an end only when every process of the run is gone. It never starts a run and never forgets one.
"""

import asyncio
import signal
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from trainshed.backends.machine import processes
from trainshed.backends.machine.memory_group import oom_kills, reached_limit
from trainshed.backends.machine.processes import Identity
from trainshed.backends.machine.watch import ProcessEndWatch
from trainshed.backends.process import net, oom
from trainshed.backends.process.net import NO_GROUPS, RunCgroups
from trainshed.backends.process.record import ProcessRecord
from trainshed.backends.process.run import ProcessRun
from trainshed.background_tasks import BackgroundTasks
from trainshed.core.jobs.replica import Exit, Sight

_PATIENCE = 2.0  # seconds for a keeper of an earlier server to write its first line
_KILLING = 10.0  # seconds of killing before the caller hears that it is not over yet
_STUCK = 5.0  # seconds after which a keeper that holds nothing any more is killed itself


class ProcessRunSupervisor:
    def __init__(
        self, watch: ProcessEndWatch, groups: RunCgroups, hint: Callable[[ProcessRun], None]
    ) -> None:
        self._watch = watch
        self._groups = groups
        self._hint = hint
        self._background = BackgroundTasks()
        self.kills = oom.Kills()

    async def close(self) -> None:
        self._watch.close()
        await self._background.close()

    def begun(self, run: ProcessRun, keeper: int | Identity | None) -> None:
        """A run was launched, with this keeper; None where its record is to be read instead.

        Of a keeper that is a child of the server the pid is enough; one that was forked warm is not a child.
        """
        if keeper is None:
            self.find_again(run)
            return
        self._show(run, datetime.now(UTC), None)
        pid = keeper if isinstance(keeper, int) else keeper.pid
        if isinstance(keeper, int):
            self._watch.child(pid, lambda: self._keeper_gone(run, pid))
        elif not self._watch.adopt(keeper, lambda: self._keeper_gone(run, pid)):
            self._keeper_gone(run, pid)

    def find_again(self, run: ProcessRun) -> None:
        record = run.read()
        if record is None:
            # Prepared, and the server was killed. A keeper that was under way may still come.
            self._background.run(self._await_claim(run))
        elif record.exit is not None:
            self._end(run, record, record.exit)
        elif record.keeper is None:
            run.show(Sight.RUNNING, run.changed_at("launch.json"))
            self._background.run(self._await_keeper(run))
        elif record.boot != processes.boot_id():
            self._lose(run, record)
        elif self._watch.adopt(record.keeper, lambda: self._keeper_gone(run, None)):
            self._show(run, record.started_at or run.changed_at("launch.json"), record)
        else:
            self._keeper_gone(run, None)

    def _show(self, run: ProcessRun, started_at: datetime | None, record: ProcessRecord | None) -> None:
        """Show a run that is alive, or that is held for a look."""
        run.oom_kills = self.kills.now()
        if record is not None and record.held is not None:
            run.show(Sight.HELD, started_at, exit=record.held, ended_at=record.ended_at)
            return
        run.show(Sight.RUNNING, started_at)
        if run.holds:
            self._background.run(run.await_hold(lambda: self._memory(run), lambda: self._hint(run)))

    async def ask(self, run: ProcessRun) -> None:
        """SIGTERM, once, to all of the run but its keeper. A server killed meanwhile rather asks twice."""
        if run.sight is None or run.asked:
            return
        run.asked = True
        record = await self._program(run)
        if not run.gone.is_set():
            await asyncio.to_thread(net.ask, run.trace(record))
            run.note_asked()

    async def kill(self, run: ProcessRun) -> None:
        """SIGKILL to all of the run, and again until nothing is left of it or the time is up."""
        if run.sight is None:
            self._give_up_start(run)
        await self._program(run)  # before that the keeper cannot be told from the rest
        loop = asyncio.get_running_loop()
        began = busy_at = loop.time()
        pause, again = 0.002, False
        while not run.gone.is_set() and loop.time() - began < _KILLING:
            record = run.read()
            if await asyncio.to_thread(net.kill, run.trace(record), freeze=again):
                busy_at = loop.time()
            if record is not None and record.keeper is not None:
                # Somebody may have stopped the keeper, and it has to see the end.
                stuck = loop.time() - busy_at > _STUCK
                processes.send(record.keeper, signal.SIGKILL if stuck else signal.SIGCONT)
            await run.pause(pause)
            pause, again = min(pause * 2, 0.25), True

    def _keeper_gone(self, run: ProcessRun, pid: int | None) -> None:
        """A keeper has ended: it wrote how the program did, or was killed, or another had claimed the run."""
        record = run.read()
        if record is not None and record.exit is not None:
            self._end(run, record, record.exit)
        elif record is not None and pid is not None and (record.keeper is None or record.keeper.pid != pid):
            self.find_again(run)
        else:
            # Without a keeper nobody enforces the program's limits: it is killed.
            if run.observation is None:
                run.show(Sight.RUNNING, run.changed_at("launch.json"))
            run.claim()
            self._background.run(self._kill_rest(run))

    def _end(self, run: ProcessRun, record: ProcessRecord, exit: Exit) -> None:
        started_at = run.started_at or record.started_at or run.changed_at("launch.json")
        ended_at = record.ended_at or run.changed_at("record")
        shown = run.observation if run.sight is Sight.HELD else None
        run.unstarted = record.unstarted
        memory = shown.out_of_memory if shown else "" if exit.ok else self._memory(run)
        run.show(Sight.ENDED, started_at, exit=exit, ended_at=ended_at, out_of_memory=memory)
        if memory and run.has_limits and run.observation is not None and run.observation.over_limit:
            run.note_over_memory(memory)  # its cgroup, which knows, is about to go
        self._discard(run)
        self._hint(run)

    def _memory(self, run: ProcessRun) -> str:
        """A sentence where it was killed for want of memory; with its limit where it had reached that."""
        text = oom.killed_for_memory(self.kills.before(run.oom_kills), run.groups.memory)
        group = run.groups.memory
        if group is None or run.memory is None or not oom_kills(group):
            return text
        holder = str(Path(group).parent) if run.memory.shared else group
        run.has_limits = reached_limit(holder)
        return run.killed_for_memory if run.has_limits else text

    def _discard(self, run: ProcessRun) -> None:
        self._groups.discard(run.groups)
        run.groups = NO_GROUPS

    def _lose(self, run: ProcessRun, record: ProcessRecord | None) -> None:
        known = record.started_at if record else None
        run.show(
            Sight.LOST,
            run.started_at or known or run.changed_at("launch.json"),
            exit=Exit(),
            ended_at=datetime.now(UTC),
        )
        self._discard(run)
        self._hint(run)

    def _give_up_start(self, run: ProcessRun) -> None:
        """Claim a run that no keeper has claimed. Where a keeper was faster, treat it like any other run."""
        if run.claim() or run.read() is None:
            self._lose(run, None)
        else:
            self.find_again(run)

    async def _await_claim(self, run: ProcessRun) -> None:
        pause = 0.005
        while pause < _PATIENCE and run.sight is None and not run.gone.is_set():
            await asyncio.sleep(pause)
            pause *= 2
            if run.sight is None and not run.gone.is_set() and run.read() is not None:
                self.find_again(run)
                self._hint(run)

    async def _await_keeper(self, run: ProcessRun) -> None:
        pause = 0.005
        while pause < _PATIENCE:
            await asyncio.sleep(pause)
            pause *= 2
            if (record := run.read()) is not None and record.keeper is not None:
                self.find_again(run)
                return
        await self._kill_rest(run)

    async def _kill_rest(self, run: ProcessRun) -> None:
        record, pause = run.read(), 0.002
        while await asyncio.to_thread(net.kill, run.trace(record), freeze=True):
            await asyncio.sleep(pause)
            pause = min(pause * 2, 0.25)
        if record is not None and record.held is not None:
            self._end(run, record, record.held)
        else:
            self._lose(run, record)

    async def _program(self, run: ProcessRun) -> ProcessRecord | None:
        """The record once the program has been started, which a launch does not wait for."""
        record, pause = run.read(), 0.001
        while (record is None or record.program is None) and pause < _PATIENCE and not run.gone.is_set():
            await run.pause(pause)
            record, pause = run.read(), pause * 2
        return record

"""ProcessBackend implements core.ports.Backend with processes of this machine.

The server's assembly makes one for a home; no other server may work on that home. The backend keeps the state
of each run in memory. Only a launch, the end of a keeper and the scan at start change it, so observing reads
no file of a run. The directories of the runs hold the truth: after a kill -9 at any line the next server
reads it there.
"""

import asyncio
import contextlib
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from weakref import WeakValueDictionary

from trainshed.backends.machine.code_folders import CodeFolders
from trainshed.backends.machine.google_redirect import GoogleRedirect
from trainshed.backends.machine.node import LocalNode
from trainshed.backends.machine.node_stats import LocalNodeStats
from trainshed.backends.machine.run_folders import find_runs
from trainshed.backends.machine.run_storage import RunStorage
from trainshed.backends.machine.watch import ProcessEndWatch
from trainshed.backends.process.callers import ProcessCallers
from trainshed.backends.process.google_hosts import HostsFile
from trainshed.backends.process.hand_over import open_folder
from trainshed.backends.process.interpreters import Interpreters
from trainshed.backends.process.job_user import RunAs
from trainshed.backends.process.job_users import JobUsers
from trainshed.backends.process.keeper import Keeper, make_keeper
from trainshed.backends.process.net import RunCgroups
from trainshed.backends.process.plain import NO_FOLDERS, NO_WALLS
from trainshed.backends.process.port import GangPorts
from trainshed.backends.process.render import ProcessFrame, render
from trainshed.backends.process.run import ProcessRun, reload
from trainshed.backends.process.run_supervisor import ProcessRunSupervisor
from trainshed.backends.process.shell import ProcessShells
from trainshed.backends.process.spare_folders import SpareFolders, strip
from trainshed.backends.process.stacks import ProcessStacks
from trainshed.backends.process.start import RunPlaces, RunStarter
from trainshed.backends.process.stats import ProcessStats
from trainshed.backends.process.views import ProcessViews
from trainshed.core.errors import Conflict, Invalid, Unavailable, Violation
from trainshed.core.jobs.job import JobSpec
from trainshed.core.jobs.launch import Launch
from trainshed.core.jobs.readiness import PreparationProgress, Readiness, together
from trainshed.core.jobs.replica import Handle, Observation
from trainshed.core.names import RunKey
from trainshed.core.ports import Capabilities
from trainshed.core.queue.fleet import Admission, Node
from trainshed.core.supplies.runtime import RuntimeNeed, WarmInterpreter

_MANY_PORTS = 64  # more are looked for in a thread


class ProcessBackend:
    def __init__(
        self,
        home: Path,
        *,
        storage: RunStorage,
        node: LocalNode | None = None,
        interpreters: Interpreters | None = None,
        redirect: GoogleRedirect | None = None,
        keeper: Keeper | None = None,
        run_as: RunAs | None = None,
    ) -> None:
        """Without a keeper `start` makes one. Without a redirect Google's names lead to Google.

        Without `run_as` programs run as the server's user.
        """
        home, interpreters = home.absolute(), interpreters or Interpreters()
        self._jobs_folder, self._trash, self._tools = home / "jobs", home / "trash", home / "bin"
        frame = ProcessFrame(
            jobs=self._jobs_folder,
            tools=self._tools,
            python=interpreters.python,
            version=interpreters.version,
            environ=dict(os.environ),
        )
        self._runtimes = interpreters.runtimes
        self._warming: asyncio.Task[None] | None = None
        self._node = node or LocalNode()
        self._keeper: Keeper | None = keeper
        self._making: asyncio.Task[Keeper] | None = None
        self._spares = SpareFolders(home / "spare")
        self._groups = RunCgroups(home, self._node.ceiling)
        self._ports = GangPorts()
        self._folders, self._files = CodeFolders(storage.code, self._hint_job), storage.files
        self._users = JobUsers(self._jobs_folder, run_as)
        self.views = ProcessViews(
            self._jobs_folder, self._trash, self._hint_job, storage.buckets, self._users.of
        )
        self.hosts = HostsFile(home / "hosts", redirect)
        places = RunPlaces(
            groups=self._groups, spares=self._spares, code=self._folders, views=self.views, users=self._users
        )
        self._starter = RunStarter(frame, interpreters, places, self.hosts)
        self._supervisor = ProcessRunSupervisor(ProcessEndWatch(), self._groups, self._hint)
        self._hints: list[Callable[[str], None]] = []
        self._runs: dict[str, dict[RunKey, ProcessRun]] = {}
        self.stats = ProcessStats(self._runs, self._supervisor.kill)
        self.stacks = ProcessStacks(self._runs)
        self.shells = ProcessShells(self._runs, self._groups)
        self.callers = ProcessCallers(self._runs)
        self.node_stats = LocalNodeStats(self._node, home)
        self.images, self.image_inventories = None, ()
        self.capabilities = Capabilities(
            name="process", survives_server=True, kills_escapees=True, measures=self.stats.measures
        )
        # A job has one launch or removal at a time: a second launch of a key returns the first handle.
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def start(self) -> None:
        known = await asyncio.to_thread(self._open)
        self.views.listen()
        if self._keeper is None:
            # Compiling takes a while, once. Only the first launch waits for it, not the start of the server.
            make = lambda: self.views.tried(make_keeper(self._tools))  # noqa: E731
            self._making = asyncio.create_task(asyncio.to_thread(make))
        for job, runs in known:
            self._runs[job] = {run.key: run for run in runs}
            self.views.open(job)
            for run in runs:
                self._supervisor.find_again(run)
        if self._starter.warm_pool is not None:
            self._warming = asyncio.create_task(self._warm_up())

    def warmth(self) -> tuple[WarmInterpreter, ...]:
        return () if self._starter.warm_pool is None else self._starter.warm_pool.show()

    async def close(self) -> None:
        if self._making is not None:
            await asyncio.wait((self._making,))
        self.stacks.close()
        await self.shells.close()
        if self._warming is not None and self._starter.warm_pool is not None:
            await asyncio.wait((self._warming,))
            await self._starter.warm_pool.close()
        await self._folders.drop()
        await self.views.close()
        await self.stats.close()
        await self._supervisor.close()
        await asyncio.to_thread(self._groups.close)

    async def nodes(self) -> tuple[Node, ...]:
        return await self._node.nodes()

    def refuse_image(self, image: str) -> str | None:
        return self._runtimes.refuse(image)

    def prepare(self, spec: JobSpec, job: str = "") -> Readiness:
        pools, readiness = spec.pools, self._runtimes.readiness
        if spec.isolated:
            return NO_WALLS
        if any(pool.scratch for pool in pools):
            return NO_FOLDERS
        if len(pools) == 1:
            return readiness(RuntimeNeed(pools[0].image, spec.requirements, pools[0].packages), job)
        needs = [
            RuntimeNeed(pool.image, spec.requirements, pool.packages) for pool in pools if not pool.is_empty
        ]
        return together([readiness(need, job) for need in dict.fromkeys(needs)])

    def preparing(self) -> tuple[PreparationProgress, ...]:
        return self._runtimes.preparing()

    def render(self, launch: Launch) -> Mapping[str, object]:
        return render(launch, self._starter.frame_for(launch)).plain()

    async def launch(self, launch: Launch) -> Handle:
        key = launch.key
        job = key.name.job
        if not job or job.startswith(".") or "/" in job or "\0" in job:
            raise Invalid((Violation("job", f"'{job}' cannot be the name of a folder."),))
        keeper = await self._ready_keeper()
        async with self._lock(job):
            runs = self._runs.setdefault(job, {})
            known = runs.get(key)
            if known is not None and known.observation is not None:
                return known.handle
            await self._end_earlier_runs(key, runs)
            output, report = self._files.output(key.name), self._files.report(key.name)
            run, process = await self._starter.start(launch, runs, keeper, output, report)
            runs[key] = run
            self._supervisor.begun(run, process)
            return run.handle

    async def observe(self, job: str) -> tuple[Observation, ...]:
        runs = self._runs.get(job)
        if not runs:
            return ()
        self._supervisor.kills.look()
        return tuple(run.observation for run in runs.values() if run.observation is not None)

    async def stop(self, key: RunKey, *, force: bool) -> None:
        run = self._runs.get(key.name.job, {}).get(key)
        if run is None or run.gone.is_set():
            return
        if force:
            await self._supervisor.kill(run)
        else:
            await self._supervisor.ask(run)

    async def remove(self, job: str) -> None:
        if job not in self._runs:
            return
        async with self._lock(job):
            await self._folders.drop(job)
            await self.views.forget(job)
            runs = list(self._runs.get(job, {}).values())
            alive = [run for run in runs if not run.gone.is_set()]
            await asyncio.gather(*(self._supervisor.kill(run) for run in alive))
            await self.shells.close(job)
            if left := [str(run.key) for run in runs if not run.gone.is_set()]:
                raise Unavailable(f"Processes of {', '.join(left)} do not end although they were killed.")
            try:
                if not self._put_away(job, runs) and not await self._strip(job, runs):
                    await asyncio.to_thread(self._erase, job)
            except OSError as error:
                raise Unavailable(f"The files of job {job} cannot be removed: {error}.") from error
            self._runs.pop(job, None)
            self._users.release(job)

    async def jobs(self) -> frozenset[str]:
        return frozenset(self._runs)

    async def address(self, admission: Admission, spec: JobSpec, avoid: frozenset[int]) -> Admission:
        return admission.numbered(await self.free_ports(len(admission.placements) + 1, avoid))

    async def free_ports(self, count: int, avoid: frozenset[int]) -> tuple[int, ...]:
        if count > _MANY_PORTS:
            return await asyncio.to_thread(self._ports.draw, count, avoid)
        return self._ports.draw(count, avoid)

    def on_change(self, hint: Callable[[str], None]) -> None:
        self._hints.append(hint)
        self._runtimes.on_change(hint)

    async def _warm_up(self) -> None:
        keeper = await self._ready_keeper()
        if self._starter.warm_pool is not None:
            frame = self._starter.frame
            env = {**self.hosts.env(frame.environ), **self._users.warm_env()}
            self._starter.warm_pool.open(frame, keeper, env)

    async def _ready_keeper(self) -> Keeper:
        keeper = self._keeper
        if keeper is None:
            if self._making is None:
                raise Unavailable("The process backend has not been started.")
            self._keeper = keeper = await asyncio.shield(self._making)
        await self.hosts.open(keeper)
        return keeper

    def _hint(self, run: ProcessRun) -> None:
        self._hint_job(run.key.name.job)

    def _hint_job(self, job: str) -> None:
        for hint in self._hints:
            hint(job)

    def _lock(self, job: str) -> asyncio.Lock:
        return self._locks.setdefault(job, asyncio.Lock())

    async def _end_earlier_runs(self, key: RunKey, runs: dict[RunKey, ProcessRun]) -> None:
        others = [run for run in runs.values() if run.key.name == key.name and run.key != key]
        if any(run.key.run > key.run for run in others):
            raise Conflict(f"A later run than {key} has been started.")
        for run in others:
            if not run.gone.is_set():
                await self._supervisor.kill(run)
            if not run.gone.is_set():
                raise Unavailable(f"Run {run.key} is still alive although it was killed: {key} has to wait.")

    def _open(self) -> list[tuple[str, list[ProcessRun]]]:
        for folder in (self._jobs_folder, self._trash, self._tools):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        shutil.rmtree(self._trash, ignore_errors=True)
        self._trash.mkdir(mode=0o700, exist_ok=True)
        self._spares.open()
        self.views.unstored.open()
        self._groups.open()
        self._offer_python()
        self._starter.frame = replace(self._starter.frame, asks=self.stacks.asks)
        result = list(find_runs(self._jobs_folder, reload))
        self._users.open(job for job, _ in result)
        if self._users.run_as is not None:
            for folder in (self._jobs_folder, self._tools):
                open_folder(folder)
        self._groups.tidy(group for _, runs in result for run in runs for group in run.groups.all)
        return result

    def _offer_python(self) -> None:
        """Let `python` and `python3` run the interpreter where its own folder has it under another name."""
        python = self._starter.frame.python
        for name in ("python", "python3"):
            tool = self._tools / name
            if Path(python).with_name(name).exists():
                continue
            tool.write_text(f'#!/bin/sh\nexec "{python}" "$@"\n')
            tool.chmod(0o755)  # the folder is closed, unless jobs run as other users

    def _put_away(self, job: str, runs: list[ProcessRun]) -> bool:
        """Take the job's folder out of sight; False where it has to be erased yet."""
        for run in runs:
            self._groups.discard(run.groups)
        # Moved away first: at once and whole, so that neither a crash nor a late keeper finds half a job.
        home, grave = f"{self._jobs_folder}/{job}", f"{self._trash}/{job}"
        try:
            os.rename(home, grave)
        except FileNotFoundError:
            return True
        except OSError:
            return False
        return len(runs) == 1 and self._spares.keep(grave)

    async def _strip(self, job: str, runs: list[ProcessRun]) -> bool:
        grave = f"{self._trash}/{job}"
        return len(runs) == 1 and await asyncio.to_thread(strip, grave) and self._spares.keep(grave)

    def _erase(self, job: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            (self._jobs_folder / job).rename(self._trash / f"{job}-{os.urandom(4).hex()}")
        for grave in self._trash.glob(f"{job}*"):
            shutil.rmtree(grave, ignore_errors=True)

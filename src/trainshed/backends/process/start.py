"""Starts one run: prepares folders, code, view and files, then starts a keeper or forks a warm interpreter.

The backend calls it for one launch of a job at a time, once earlier runs of the replica are gone. A start
that fails leaves nothing that prevents another try. A killed server leaves at most a `ready` file, and the
next launch goes on from there. It never watches what it has started.
"""

import asyncio
import contextlib
import errno
import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

from trainshed.backends.machine.code_folders import CodeFolders
from trainshed.backends.machine.mounts import local_env
from trainshed.backends.machine.processes import Identity
from trainshed.backends.machine.remote import remote_program
from trainshed.backends.machine.run_folders import run_folder
from trainshed.backends.machine.secret_files import write_secret_files
from trainshed.backends.process.ask import FILE as STACKS
from trainshed.backends.process.ask import offering
from trainshed.backends.process.google_hosts import HostsFile
from trainshed.backends.process.hand_over import (
    give_file,
    give_folders,
    is_given,
    open_folder,
    open_way,
)
from trainshed.backends.process.interpreters import Interpreters
from trainshed.backends.process.job_hosts import JobHosts
from trainshed.backends.process.job_user import JobUser
from trainshed.backends.process.job_users import JobUsers
from trainshed.backends.process.keeper import Keeper, StartRequest
from trainshed.backends.process.net import NO_GROUPS, RunCgroups
from trainshed.backends.process.plain import NO_HOLD, unmounted
from trainshed.backends.process.render import (
    OFFERS,
    ProcessFrame,
    Rendered,
    render,
    runtime_frame,
    with_google,
)
from trainshed.backends.process.run import ProcessRun
from trainshed.backends.process.spare_folders import SpareFolders
from trainshed.backends.process.views import ProcessViews, RunView
from trainshed.core.errors import Unavailable
from trainshed.core.jobs.launch import Launch
from trainshed.core.jobs.limits import memory_limit
from trainshed.core.jobs.remote_start import with_remote_program
from trainshed.core.metrics import hypertune_file
from trainshed.core.names import RunKey
from trainshed.core.ports import Sink
from trainshed.core.supplies.runtime import RuntimeNeed
from trainshed.disk.regular_file import write_regular


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlaces:
    """Where runs are, and whose they are."""

    groups: RunCgroups
    spares: SpareFolders
    code: CodeFolders
    views: ProcessViews
    users: JobUsers


class RunStarter:
    def __init__(
        self, frame: ProcessFrame, interpreters: Interpreters, places: RunPlaces, hosts: HostsFile
    ) -> None:
        self.frame = frame
        self.warm_pool = interpreters.warm_pool(frame.jobs.with_name("warm"))
        self._runtimes, self._groups, self._spares = interpreters.runtimes, places.groups, places.spares
        self._code, self._views, self._users = places.code, places.views, places.users
        self._hosts, self._job_hosts = hosts, JobHosts(frame.jobs)

    def frame_for(self, launch: Launch) -> ProcessFrame:
        """The frame with the interpreter of the launch's runtime."""
        need = RuntimeNeed(launch.image, launch.requirements, launch.packages)
        python = self._runtimes.python(need, launch.key.name.job)
        frame = replace(self.frame, user=self._users.of(launch.key.name.job))
        return frame if python == frame.python else runtime_frame(frame, python)

    async def start(
        self,
        launch: Launch,
        runs: Mapping[RunKey, ProcessRun],
        keeper: Keeper,
        output: Sink,
        report: str,
    ) -> tuple[ProcessRun, int | Identity | None]:
        """The run and its keeper, given the runs of its job and the files that it writes.

        No keeper where one had claimed the run before, or where the run has ended because it can never be
        started.
        """
        hosts = ""
        if launch.google is not None and (hosts := self._hosts.path()):
            launch = with_google(launch, launch.google, self._hosts.roots, self.frame)
        hosts, no_names = await self._job_hosts.show(launch, hosts, keeper)
        if launch.remote is not None:
            launch, no_names = await self._with_remote(launch, no_names)
        user = self._users.assign(launch.key.name.job)
        frame = self.frame_for(launch)
        rendered = render(launch, frame, report)
        run = runs.get(launch.key) or ProcessRun(launch.key, rendered.run)
        if user is not None:
            _open_way(run)
        elif not runs:
            self._spares.take(rendered.run)
        if launch.code:
            await self._code.lay_out(launch.key.name, launch.code, rendered.work)
        shown = RunView()
        if launch.view is not None:
            name = launch.key.name
            shared = any(other.alive and other.key.name.attempt == name.attempt for other in runs.values())
            shown = await self._views.show(name.job, launch.view, keeper, shared=shared)
            launch = replace(launch, env={**launch.env, **local_env(launch.view, shown.root)})
            rendered = render(launch, frame, report)
        no_hold = NO_HOLD if launch.held and not keeper.holds else ""
        run.note, run.no_gcs = _join(unmounted(launch.nfs), no_hold, no_names, shown.note), shown.fault
        if not self._prepare(run, launch, rendered, output, keeper):
            return run, None
        if user is not None:
            _give_files(run, rendered, report)
        request = StartRequest(
            run=rendered.run,
            work=rendered.start,
            groups=run.groups,
            argv=rendered.argv,
            env=rendered.env,
            stdout=output.stdout,
            stderr=output.stderr,
            hosts=hosts,
            view=shown.mount,
            lazy=shown.lazy,
            user=user,
            new_home=launch.key.run == 0 and rendered.env["HOME"] == rendered.home if user else False,
            hold=run.holds,
        )
        warm = await self._fork_warm(run, request, frame.python)
        return run, warm or self._spawn(run, offering(request), keeper)

    async def _with_remote(self, launch: Launch, note: str) -> tuple[Launch, str]:
        """The launch with what starts programs in other replicas; and the note, perhaps with one on that."""
        program, fault = await asyncio.to_thread(remote_program, self.frame.tools)
        folder = run_folder(self.frame.jobs, launch.key).parent / "tmp"
        return with_remote_program(launch, program, str(folder)), _join(note, fault)

    def _prepare(
        self, run: ProcessRun, launch: Launch, rendered: Rendered, output: Sink, keeper: Keeper
    ) -> bool:
        """Make the run's folders, cgroups and files; False where a keeper has claimed the run already."""
        try:
            fresh = _make_folders(rendered)
            if not fresh and run.read() is not None:
                return False
            if launch.secret_files:
                _write_secrets(run, launch, rendered.user)
            if fresh or not run.prepared():
                run.memory = memory_limit(launch.placement, launch.room)
                run.most_processes = self._groups.ceiling.of(launch.placement, launch.room)
                if keeper.joins_groups:
                    run.groups = self._groups.make(run.key, run.memory, run.most_processes)
                run.holds = launch.held and keeper.holds
                run.prepare({**rendered.plain(), "stdout": output.stdout, "stderr": output.stderr})
            elif run.groups.all:
                self._groups.make(run.key, run.memory, run.most_processes)
        except OSError as error:
            self._undo(run)
            raise Unavailable(f"No place could be made for {run.key}: {error}.") from error
        return True

    async def _fork_warm(self, run: ProcessRun, request: StartRequest, python: str) -> Identity | None:
        """The keeper of a forked warm interpreter; None, and a note that says why, for a fresh start."""
        if self.warm_pool is None:
            return None
        if request.view and os.geteuid() != 0:
            answer = "it sees /gcs"  # others mount in a user namespace, which a fork cannot enter
        elif request.hold:
            answer = "its place is to be held"
        else:
            answer = await self.warm_pool.spawn(request, python)
        if isinstance(answer, Identity):
            run.note = _join("Forked from a warm interpreter.", run.note)
            return answer
        run.note = _join(f"Not started warm: {answer}." if answer else "", run.note)
        return None

    def _spawn(self, run: ProcessRun, request: StartRequest, keeper: Keeper) -> int | None:
        """The keeper's pid; None where the run is one that can never be started."""
        try:
            return keeper.spawn(request)
        except (OSError, ValueError) as error:
            # Arguments too long, or with a NUL: the program can never be started, and trying again is no use.
            if isinstance(error, ValueError) or error.errno == errno.E2BIG:
                _end_unstarted(run, request, error)
                return None
            self._undo(run)
            raise Unavailable(f"{run.key} could not be started: {error}.") from error

    def _undo(self, run: ProcessRun) -> None:
        self._groups.discard(run.groups)
        run.groups = NO_GROUPS
        # Not if a keeper has it, which happens where an earlier server's keeper was late.
        if run.read() is None:
            shutil.rmtree(run.path, ignore_errors=True)


def _join(*sentences: str) -> str:
    return " ".join(filter(None, sentences))


def _make_folders(rendered: Rendered) -> bool:
    """Whether the run is new: then nobody can have prepared or claimed it."""
    fresh = _make(rendered.run)
    if rendered.user is not None and is_given(rendered.work, rendered.user):
        return fresh  # what is in its folders now is the user's own: links may lead out of them
    # The code store keeps no empty folders, so the working directory may be missing in the code.
    for folder in (rendered.work, rendered.tmp, rendered.start):
        with contextlib.suppress(NotADirectoryError):  # a file of its code: its keeper will say so
            _make(folder)
    if rendered.user is not None:
        _make(rendered.home)
        # The working folder last: by it the others are known to be given.
        give_folders((rendered.home, rendered.tmp, rendered.work), rendered.user)
    return fresh


def _open_way(run: ProcessRun) -> None:
    try:
        open_way(run.path)
    except OSError as error:
        raise Unavailable(f"No place could be made for {run.key}: {error}.") from error


def _write_secrets(run: ProcessRun, launch: Launch, user: JobUser | None) -> None:
    if user is not None:
        open_folder(run.path)
    owner = None if user is None else (user.uid, user.gid)
    write_secret_files(run.folder, launch.secret_files, owner=owner)


def _give_files(run: ProcessRun, rendered: Rendered, report: str) -> None:
    """Give the user the files that the program finds by their paths in folders that are not its own."""
    if rendered.user is None:
        return
    try:
        if report:
            give_file(report, rendered.user)
            give_file(hypertune_file(report), rendered.user)
        if OFFERS in rendered.env:
            open_folder(run.path)
            give_file(f"{rendered.run}/{STACKS}", rendered.user)
    except OSError as error:
        raise Unavailable(f"{run.key} could not be started: {error}.") from error


def _make(folder: str) -> bool:
    """Make the folder and what is missing above it; False where it is there."""
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        return False
    except FileNotFoundError:
        _make(os.path.dirname(folder))
        return _make(folder)
    return True


def _end_unstarted(run: ProcessRun, request: StartRequest, error: OSError | ValueError) -> None:
    if not run.claim():
        return
    with contextlib.suppress(OSError):
        text = f"trainshed: the program cannot be started: {error}\n"
        write_regular(request.stderr, text.encode(), os.O_APPEND)
    run.write_end(126, time.time_ns())

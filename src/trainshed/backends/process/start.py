"""Starts one run: its directories, its files, its keeper. A fraction of a millisecond, without awaiting.

It may assume that no other launch of the same job goes on and that earlier runs are gone. When it fails it
leaves nothing that would stand in the way of trying again; a killed server leaves at most a `ready` file,
and the next launch goes on from there.
"""

import contextlib
import errno
import os
import shutil
import time
from pathlib import Path

from trainshed.backends.process.keeper import Keeper, KeeperOrder
from trainshed.backends.process.net import RunCgroups
from trainshed.backends.process.render import Rendered
from trainshed.backends.process.run import ProcessRun
from trainshed.core.errors import Unavailable
from trainshed.core.launch import Launch
from trainshed.core.limits import memory_limit


def place(
    run: ProcessRun, launch: Launch, rendered: Rendered, keeper: Keeper, groups: RunCgroups
) -> KeeperOrder | None:
    """What to start, its place made; None where the run is already claimed."""
    try:
        fresh = _make_folders(rendered)
        if not fresh and run.read() is not None:
            return None
        if fresh or not run.prepared():
            run.memory = memory_limit(launch.placement, launch.room)
            if keeper.joins_groups:
                run.group, run.memory_group = groups.make(run.key, run.memory)
            run.holds = launch.held and keeper.holds
            run.prepare(rendered.plain(launch))
        elif run.group is not None or run.memory_group is not None:
            groups.make(run.key, run.memory)
    except OSError as error:
        _undo(run, groups)
        raise Unavailable(f"No place could be made for {run.key}: {error}.") from error
    return KeeperOrder(
        run=rendered.run,
        work=rendered.start,
        group=run.group,
        memory=run.memory_group if run.memory_group != run.group else None,
        argv=rendered.argv,
        env=rendered.env,
        stdout=launch.stdout,
        stderr=launch.stderr,
        hold=run.holds,
    )


def begin(run: ProcessRun, order: KeeperOrder, keeper: Keeper, groups: RunCgroups) -> int | None:
    """The keeper's pid; None where the run is one that can never be started."""
    try:
        return keeper.spawn(order)
    except (OSError, ValueError) as error:
        # Arguments too long, or with a NUL: the program can never be started, and trying again is no use.
        if isinstance(error, ValueError) or error.errno == errno.E2BIG:
            _refuse(run, order, error)
            return None
        _undo(run, groups)
        raise Unavailable(f"{run.key} could not be started: {error}.") from error


def _make_folders(rendered: Rendered) -> bool:
    """Whether the run is new: then nobody can have prepared or claimed it."""
    fresh = _make(rendered.run)
    # Where it starts may be missing in its code, which knows no empty folders.
    for folder in (rendered.work, rendered.tmp, rendered.start):
        with contextlib.suppress(NotADirectoryError):  # a file of its code: its keeper will say so
            _make(folder)
    return fresh


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


def _refuse(run: ProcessRun, order: KeeperOrder, error: OSError | ValueError) -> None:
    if not run.claim():
        return
    with contextlib.suppress(OSError), Path(order.stderr).open("a") as file:
        file.write(f"trainshed: the program cannot be started: {error}\n")
    run.write_end(126, time.time_ns())


def _undo(run: ProcessRun, groups: RunCgroups) -> None:
    groups.discard(run.groups)
    run.group = run.memory_group = None
    # Not if a keeper has it, which happens where an earlier server's keeper was late.
    if run.read() is None:
        shutil.rmtree(run.path, ignore_errors=True)

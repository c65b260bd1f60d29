"""Renders stack dumps: the processes and threads of each replica, grouped by place. For `api/stacks.py`."""

from collections.abc import Mapping, Sequence
from typing import Any

from trainshed.core.jobs.stacks import ProcessStack, StackDump, StackGroup, ThreadStack, told


def render_stacks(dumps: Mapping[str, StackDump], groups: Sequence[StackGroup], alive: int) -> dict[str, Any]:
    """`dumps` by task may be a sample of the replicas; `alive` is how many there are."""
    return {
        "summary": told(groups),
        "alive": alive,
        "groups": [
            {"tasks": list(group.tasks), "place": group.place, "waiting": group.waits} for group in groups
        ],
        "replicas": [_replica(task, dumps[task]) for group in groups for task in group.tasks],
    }


def _replica(task: str, dump: StackDump) -> dict[str, Any]:
    answer: dict[str, Any] = {"task": task, "processes": [_process(process) for process in dump.processes]}
    if dump.fault:
        answer["fault"] = dump.fault
    return answer


def _process(process: ProcessStack) -> dict[str, Any]:
    answer: dict[str, Any] = {"pid": process.pid, "command": process.command, "state": process.state}
    if process.threads:
        answer["threads"] = [_thread(thread) for thread in process.threads]
    return answer


def _thread(thread: ThreadStack) -> dict[str, Any]:
    return {
        "name": thread.name,
        "main": thread.is_main,
        "waiting": thread.waits,
        "frames": [
            {"function": frame.name, "file": frame.file, "line": frame.line} for frame in thread.frames
        ],
    }

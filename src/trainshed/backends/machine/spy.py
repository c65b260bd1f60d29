"""Reads the Python stacks of a running process with py-spy, which reads its memory and does not stop it.

stacks.py calls it. `may_look` tells whether this system allows it: a kernel with Yama allows only ancestors
and the privileged, a container's filter may forbid the call. Parsing py-spy's output is pure. What it does
not understand becomes a sentence, never an error.
"""

import ctypes
import json
import os
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Any, cast

from trainshed.backends.machine.proc import slurp
from trainshed.core.jobs.stacks import MOST_FRAMES, MOST_THREADS, StackFrame, ThreadStack

DUMP = ("dump", "--nonblocking", "--json", "--pid")  # and the pid: what py-spy is asked for
_MAY_TRACE = 1 << 19  # CAP_SYS_PTRACE
_MOST = 16 << 20  # bytes of an answer


def find_spy() -> str | None:
    """py-spy beside our own interpreter, else anywhere on the path."""
    own = Path(sysconfig.get_path("scripts")) / "py-spy"
    return str(own) if os.access(own, os.X_OK) else shutil.which("py-spy")


def may_look(proc: str = "/proc") -> bool:
    """Whether one process here may read the memory of another of the same user."""
    scope = slurp(f"{proc}/sys/kernel/yama/ptrace_scope").strip()
    free = scope in (b"", b"0") or (scope in (b"1", b"2") and _is_privileged(slurp(f"{proc}/self/status")))
    return free and _call_is_there()


def _is_privileged(status: bytes) -> bool:
    caps = next((line[7:] for line in status.splitlines() if line.startswith(b"CapEff:")), b"0")
    return bool(int(caps, 16) & _MAY_TRACE)


def _call_is_there() -> bool:
    """Reading our own memory is always allowed, unless the call itself is not."""
    try:
        call = ctypes.CDLL(None, use_errno=True).process_vm_readv
    except (OSError, AttributeError):
        return False
    call.argtypes = [ctypes.c_int, *[ctypes.c_void_p, ctypes.c_ulong] * 2, ctypes.c_ulong]
    return call(os.getpid(), None, 0, None, 0, 0) == 0


def spy_on(spy: str, pid: int, patience: float) -> tuple[tuple[ThreadStack, ...], str]:
    """The threads of a Python process, or none and why."""
    command = [spy, *DUMP, str(pid)]
    try:
        # py-spy reads memory that moves meanwhile: it may fail once and not twice.
        for last in (False, True):
            done = subprocess.run(
                command,
                check=False,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=patience / 2,
                env={"PATH": os.defpath},
            )
            if done.returncode == 0 or last:
                break
    except subprocess.TimeoutExpired:
        return (), f"py-spy did not tell the stacks of process {pid} within {patience / 2:g} s."
    except OSError as error:
        return (), f"py-spy does not run: {error.strerror}."
    return read_dump(done.returncode, done.stdout[:_MOST], done.stderr, pid, _inside(pid))


def read_dump(
    code: int, text: bytes, complaint: bytes, pid: int, own: int
) -> tuple[tuple[ThreadStack, ...], str]:
    """What py-spy printed of a process, which calls itself `own`: its threads, or none and why. Pure."""
    if code:
        lines = complaint.decode(errors="replace").strip().splitlines()
        reason = lines[0][:200] if lines else "no reason"
        return (), f"py-spy does not tell the stacks of process {pid}: {reason}"
    threads = read_threads(text, own)
    return threads, "" if threads else f"py-spy saw no thread of process {pid}."


def _inside(pid: int) -> int:
    """What a process in a container calls itself, which is how its main thread is known; else its pid."""
    for line in slurp(f"/proc/{pid}/status").splitlines():
        if line.startswith(b"NSpid:"):
            return int(line.split()[-1])
    return pid


def read_threads(text: bytes, own: int = 0) -> tuple[ThreadStack, ...]:
    """What `py-spy dump --json` prints, the main thread first: `own` is its number, where not the pid."""
    try:
        rows: Any = json.loads(text)
    except ValueError:
        return ()
    threads = [_thread(cast(dict[str, Any], row), own) for row in rows if isinstance(row, dict)]
    threads.sort(key=lambda thread: not thread.is_main)
    return tuple(threads[:MOST_THREADS])


def _thread(row: dict[str, Any], own: int) -> ThreadStack:
    frames = tuple(
        StackFrame(str(item.get("name", "?")), str(item.get("filename", "?")), int(item.get("line") or 0))
        for item in (row.get("frames") or ())[:MOST_FRAMES]
    )
    is_main = row.get("os_thread_id") in (row.get("pid"), own) or row.get("thread_name") == "MainThread"
    return ThreadStack(
        name=str(row.get("thread_name") or ("MainThread" if is_main else "")),
        frames=frames,
        waits=not row.get("active", True),
        is_main=is_main,
    )

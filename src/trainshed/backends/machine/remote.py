"""The program that starts programs in other replicas of a job (remote.h), for replicas that are processes.

The process backend calls it. The inits of containers and pods have it in them. It is compiled when a job
first needs it, and cached as all programs of ours are.
"""

from pathlib import Path

from trainshed.backends.machine.compiled import compiled

_SOURCE = Path(__file__).with_name("remote.c")
NO_REMOTE = (
    "Nothing here can start programs in other replicas: the C compiler 'cc' is needed once to make it."
)


def remote_program(tools: Path, compiler: str = "cc") -> tuple[str, str]:
    """Its path, and a note where there is nothing at that path because it cannot be made."""
    if program := compiled(_SOURCE, tools, compiler):
        return str(program), ""
    return str(tools / "remote"), NO_REMOTE

"""Makes the init of containers: compiled once, static, because it runs on whatever image there is."""

import shutil
from pathlib import Path

from trainshed.backends.machine.compiled import compiled
from trainshed.core.errors import Unavailable

_SOURCE = Path(__file__).with_name("init.c")


def make_init(tools: Path, compiler: str = "cc") -> str:
    """Its path. Unavailable, with what is missing, where it cannot be made."""
    try:
        tools.mkdir(mode=0o700, parents=True, exist_ok=True)
        if found := compiled(_SOURCE, tools, compiler):
            return str(found)
    except OSError as error:
        raise Unavailable(f"The init of containers cannot be made: {error}.") from error
    if shutil.which(compiler) is None:
        raise Unavailable(f"Containers need a C compiler once, to make their init: there is no '{compiler}'.")
    raise Unavailable(f"The init of containers cannot be compiled by '{compiler}', or does not run here.")

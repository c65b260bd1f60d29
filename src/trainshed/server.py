"""The server's program, `python -m trainshed.server`: has all imported, and hands over to `serving`."""

import gc
import sys
from collections.abc import Callable, Sequence
from types import ModuleType

from trainshed.dataclass_methods import compiled_when_called


def main(args: Sequence[str]) -> int:
    return load()(args)


def load() -> Callable[[Sequence[str]], int]:
    """Import all that serving takes."""
    # All that is imported stays: looking for garbage among it meanwhile would only take time.
    gc.disable()
    # Nor is anything of uvicorn's own command line wanted, which it brings along wherever it is imported.
    sys.modules["uvicorn.main"] = _unused("uvicorn.main", "Server", "main", "run")
    with compiled_when_called():
        from trainshed.serving.serve import run

    return run


def _unused(name: str, *names: str) -> ModuleType:
    """A module that has these names, and nothing behind them."""
    module = ModuleType(name)
    module.__dict__.update(dict.fromkeys(names))
    return module


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

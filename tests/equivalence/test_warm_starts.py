"""A program cannot tell whether it was started warm: what it sees, and what is seen of it, is the same."""

import asyncio
import difflib
import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.equivalence.programs import HIDING, ODD, PROGRAMS, Program
from tests.equivalence.ways import Both, OneRuntime, run_both
from trainshed.backends.process.keeper import make_keeper

# Other interpreters to try, separated by colons; what is found with each has to be the same.
PYTHONS = os.environ.get("WARM_PYTHONS", sys.executable).split(":")
IMPORTS = ("random", "logging", "tempfile", "multiprocessing", "asyncio")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler (cc)"),
]


@pytest.fixture(scope="module", params=range(len(PYTHONS)))
def both(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, tools: Path
) -> dict[str, Both]:
    folder = tmp_path_factory.mktemp("e")
    runtime = OneRuntime(PYTHONS[request.param], IMPORTS)
    return asyncio.run(run_both((*PROGRAMS, *HIDING, *ODD), folder, runtime, make_keeper(tools)))


def told(ways: Both) -> str:
    fresh, warm = (f"{way.exit}\n{way.out}\n{way.err}".splitlines() for way in (ways.fresh, ways.warm))
    return "\n".join(difflib.unified_diff(fresh, warm, "fresh", "warm", n=0, lineterm=""))


@pytest.mark.parametrize("program", (*PROGRAMS, *HIDING), ids=lambda program: program.what)
def test_a_warm_start_is_a_fresh_start_to_the_program(program: Program, both: dict[str, Both]):
    ways = both[program.what]
    assert ways.was_forked
    assert ways.warm == ways.fresh, told(ways)


@pytest.mark.parametrize("program", ODD, ids=lambda program: program.what)
def test_what_a_fork_could_not_do_is_started_afresh(program: Program, both: dict[str, Both]):
    ways = both[program.what]
    assert not ways.was_forked
    assert ways.warm == ways.fresh, told(ways)

"""Programs with PyTorch, started warm: they compute the same, and share nothing they must not share."""

import asyncio
import shutil
from pathlib import Path

import pytest

from tests.equivalence.programs import Program, code, script
from tests.equivalence.ways import Both, OneRuntime, Outcome, run_both
from trainshed.backends.process.keeper import make_keeper
from trainshed.core.jobs.replica import Exit

PYTHON = Path(__file__).parents[2] / ".venv-train/bin/python"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.needs_torch,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not PYTHON.exists(), reason="needs PyTorch in .venv-train (make demo-env)"),
    pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler (cc)"),
]

TRAIN = """
import torch
torch.manual_seed(3)
model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(5):
    x = torch.randn(512, 64)
    loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad(); loss.backward(); optimizer.step()
print(f"{loss.item():.4f}", torch.get_num_threads(), torch.get_num_interop_threads())
print(torch.cuda.is_available(), torch.cuda.is_initialized(), torch.__config__.parallel_info().count("\\n"))
"""

WORKERS = """
import torch
from torch.utils.data import DataLoader
import torch.multiprocessing as mp
def double(rank, tensor): tensor[rank] = rank * 2
if __name__ == "__main__":
    print([batch.tolist() for batch in DataLoader(torch.arange(8), batch_size=4, num_workers=2)])
    shared = torch.zeros(2, dtype=torch.long).share_memory_()
    mp.spawn(double, (shared,), nprocs=2)
    print(shared.tolist())
"""

NUMPY = """
import numpy as np, os
a = np.arange(250_000, dtype=float).reshape(500, 500)
print(f"{np.linalg.norm(a @ a.T):.6e}", len(os.listdir("/proc/self/task")) > 0)
"""

# One program, because each imports PyTorch once more.
SURROUNDINGS = """
import torch, os, signal, sys, warnings
there = [f"/proc/self/fd/{n}" for n in os.listdir("/proc/self/fd") if int(n) > 2]
print("files", sorted(os.readlink(path) for path in there if os.path.exists(path)))
print("path", sys.path, sys.argv)
print("signals", [str(signal.getsignal(n)).split(" at")[0] for n in range(1, 32)])
print("warnings", len(warnings.filters))
warnings.warn("x")
"""

SAME: tuple[Program, ...] = (
    script("training", TRAIN),
    script("workers", WORKERS),
    code("numpy", NUMPY),
    code("files, path, signals and warnings", SURROUNDINGS),
    code("an error of torch's", "import torch; torch.zeros(2) @ torch.zeros(3)"),
)
DRAWS = tuple(
    code(
        f"draw {n}",
        "import torch, sys; print(*sorted(sys.modules))\n"
        "import numpy, random; print(torch.rand(1).item(), numpy.random.rand(), random.random())",
    )
    for n in (1, 2)
)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory, tools: Path) -> dict[str, Both]:
    folder = tmp_path_factory.mktemp("t")
    runtime = OneRuntime(str(PYTHON), ("torch",))
    return asyncio.run(run_both((*SAME, *DRAWS), folder, runtime, make_keeper(tools)))


@pytest.mark.parametrize("program", SAME, ids=lambda program: program.what)
def test_a_program_with_torch_is_the_same_both_ways(program: Program, both: dict[str, Both]):
    ways = both[program.what]
    assert ways.was_forked
    assert ways.warm == ways.fresh


def drawn(outcome: Outcome) -> list[str]:
    return outcome.out.splitlines()[1].split()


def test_programs_forked_from_one_warm_interpreter_do_not_draw_the_same_numbers(both: dict[str, Both]):
    first, second = (both[draw.what].warm for draw in DRAWS)
    assert first.exit == second.exit == Exit(code=0)
    assert not set(drawn(first)) & set(drawn(second))


def test_the_modules_are_those_of_torch_and_few_of_the_standard_library(both: dict[str, Both]):
    ways = both[DRAWS[0].what]
    fresh, warm = (set(way.out.splitlines()[0].split()) for way in (ways.fresh, ways.warm))
    assert "torch" in fresh
    assert fresh <= warm
    assert warm - fresh <= {"fcntl", "_posixsubprocess", "mmap", "_json", "json", "gc", "runpy", "array"}

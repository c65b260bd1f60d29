"""A warm interpreter that must not be forked says why, and programs start afresh."""

import asyncio
import os
import shutil
import socket
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.contracts.backend_bench import until
from tests.equivalence.programs import Program, code
from tests.equivalence.ways import OneRuntime, launch_and_wait
from trainshed.backends.machine.processes import Identity
from trainshed.backends.machine.run_storage import RunStorage
from trainshed.backends.process import ProcessBackend
from trainshed.backends.process.interpreters import Interpreters
from trainshed.backends.process.keeper import CompiledKeeper, Keeper, ShellKeeper, StartRequest, make_keeper
from trainshed.backends.process.render import ProcessFrame
from trainshed.backends.process.warm import pool
from trainshed.backends.process.warm.pool import WarmPool
from trainshed.backends.process.warm.process import WarmProcess
from trainshed.core.jobs.replica import Exit
from trainshed.core.supplies.runtime import WarmInterpreter, WarmState
from trainshed.testing.run_files import FolderRunFiles

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler (cc)")

UNSAFE = {
    "a_thread": (
        "import threading, time; threading.Thread(target=time.sleep, args=(99,), daemon=True).start()",
        "1 threads",
    ),
    "a_child": ("import subprocess; child = subprocess.Popen(['sleep', '99'])", "a process running"),
    "a_socket": ("import socket; s = socket.socket()", "socket:"),
    "a_pipe": ("import os; ends = os.pipe()", "pipe:"),
    "an_error": ("raise ImportError('no such wheel')", "no such wheel"),
    "a_library": ("raise OSError('libcuda.so.1: cannot open')", "libcuda.so.1"),
    "cuda": (
        "import sys, types; m = types.ModuleType('torch.cuda'); m._initialized = True\n"
        "sys.modules['torch.cuda'] = m",
        "CUDA",
    ),
}


@pytest.fixture
async def warm(tmp_path: Path, tools: Path):
    """Makes a backend whose warm interpreter imports a module of this text."""
    made: list[ProcessBackend] = []
    keeper = make_keeper(tools)

    async def make(text: str, keeper: Keeper = keeper) -> ProcessBackend:
        (tmp_path / "lib").mkdir()
        (tmp_path / "lib" / "heavy.py").write_text(text)
        runtime = OneRuntime(_python(tmp_path), ("heavy",))
        interpreters = Interpreters(python=runtime.path, runtimes=runtime, warm=["trainshed/python:3"])
        backend = ProcessBackend(
            tmp_path / "h",
            storage=RunStorage(files=FolderRunFiles(tmp_path / "h")),
            keeper=keeper,
            interpreters=interpreters,
        )
        await backend.start()
        made.append(backend)
        return backend

    yield make
    for backend in made:
        for job in await backend.jobs():
            await backend.remove(job)
        await backend.close()


def _python(folder: Path) -> str:
    """An environment of its own, which finds the module."""
    import venv

    venv.create(folder / "venv", symlinks=True)
    [packages] = (folder / "venv" / "lib").glob("python*/site-packages")
    (packages / "heavy.pth").write_text(str(folder / "lib"))
    return str(folder / "venv" / "bin" / "python")


Make = Callable[..., Awaitable[ProcessBackend]]


async def settled(backend: ProcessBackend) -> WarmInterpreter:
    await until(lambda: [k.state for k in backend.warmth()] not in ([], [WarmState.HEATING]))
    [interpreter] = backend.warmth()
    return interpreter


@pytest.mark.parametrize("what", UNSAFE)
async def test_a_warm_interpreter_that_must_not_be_forked_says_why_and_is_not_used(
    what: str, warm: Make, tmp_path: Path
):
    text, named = UNSAFE[what]
    backend = await warm(text)
    interpreter = await settled(backend)
    assert interpreter.state is WarmState.UNSAFE
    assert named in interpreter.reason
    done = await launch_and_wait(backend, code("a program", "print('ran')"), tmp_path / "h")
    assert (done.exit, done.out) == (Exit(code=0), "ran\n")
    assert [k.uses for k in backend.warmth()] == [0]


async def test_a_warm_interpreter_whose_imports_failed_is_started_anew_once_its_environment_has_changed(
    warm: Make, tmp_path: Path
):
    backend = await warm("import not_yet_installed")
    assert (await settled(backend)).state is WarmState.UNSAFE
    (tmp_path / "lib" / "not_yet_installed.py").touch()
    done = await launch_and_wait(backend, code("a program", "print('ran')"), tmp_path / "h")
    assert done.out == "ran\n"
    await until(lambda: [interpreter.state for interpreter in backend.warmth()] == [WarmState.WARM])


async def test_an_environment_changed_while_a_warm_interpreter_imports_has_changed(
    warm: Make, tmp_path: Path
):
    backend = await warm("import pathlib; pathlib.Path(__file__).with_name('installed.py').touch()")
    first = await settled(backend)
    assert first.state is WarmState.WARM
    await launch_and_wait(backend, code("a program", "print('ran')"), tmp_path / "h")
    await until(lambda: [(k.state, k.pid != first.pid) for k in backend.warmth()] == [(WarmState.WARM, True)])
    await launch_and_wait(backend, code("another", "print('ran')"), tmp_path / "h")
    assert [interpreter.uses for interpreter in backend.warmth()] == [1]


async def test_a_warm_interpreter_that_is_gone_is_not_signalled_again(
    warm: Make, monkeypatch: pytest.MonkeyPatch
):
    """Its number may be another's by then."""
    backend = await warm("raise ImportError('no such wheel')")
    gone = (await settled(backend)).pid
    await until(lambda: not Path(f"/proc/{gone}").exists())
    await asyncio.sleep(0)
    signalled: list[int] = []
    with monkeypatch.context() as patch:
        patch.setattr("os.kill", lambda pid, _: signalled.append(pid))
        await backend.close()
    assert gone not in signalled


@pytest.mark.parametrize("name", ["trainshed/removed", "/removed/python=json"])
async def test_an_interpreter_that_was_removed_is_looked_for_at_one_pace(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    tried: list[str] = []

    def light(python: str, *_: object) -> WarmProcess:
        tried.append(python)
        raise FileNotFoundError(python)

    monkeypatch.setattr(pool, "WarmProcess", light)
    monkeypatch.setattr(pool, "_LONGEST_LOOK", 0.02)
    frame = ProcessFrame(jobs=tmp_path, tools=tmp_path, python="python", version="3", environ={})
    one = WarmPool(tmp_path, [name], OneRuntime("/removed/python", ("json",)))
    loop = asyncio.get_running_loop()
    begun = loop.time()
    one.open(frame, CompiledKeeper("keeper"))
    await asyncio.sleep(0.2)
    await one.close()
    assert 2 <= len(tried) <= (loop.time() - begun) / 0.02 + 2


async def test_a_warm_interpreter_that_answers_one_order_after_the_other_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    ends: list[socket.socket] = []
    sleeper = subprocess.Popen(["sleep", "99"])

    def spawn(words: object, env: object, control: int, log: Path) -> int:
        ends.append(socket.socket(fileno=os.dup(control)))
        return sleeper.pid

    async def answer_slowly() -> None:
        for _ in range(6):
            _, handles, *_ = await asyncio.to_thread(socket.recv_fds, ends[0], 1 << 17, 1)
            await asyncio.sleep(0.5)
            with socket.socket(fileno=handles[0]) as answer:
                answer.send(b"7 8")

    monkeypatch.setattr("trainshed.backends.process.warm.process._spawn", spawn)
    process = WarmProcess("python", (), {}, "keeper", tmp_path / "log", lambda _: None)
    order = StartRequest(run="", work="", argv=("python",), env={}, stdout="", stderr="")
    answers, _ = await asyncio.gather(
        asyncio.gather(*(process.fork(order) for _ in range(6))), answer_slowly()
    )
    process.stop()
    await process.gone.wait()
    sleeper.returncode = 0
    ends[0].close()
    assert answers == [Identity(7, 8)] * 6


async def test_an_interpreter_of_one_s_own_that_is_not_there_is_told_of(tmp_path: Path):
    frame = ProcessFrame(jobs=tmp_path, tools=tmp_path, python="python", version="3", environ={})
    one = WarmPool(tmp_path, ["/not/there/python=json"], OneRuntime("python", ()))
    one.open(frame, CompiledKeeper("keeper"))
    [interpreter] = one.show()
    await one.close()
    assert interpreter.state is WarmState.COLD and "there is no /not/there/python" in interpreter.reason


async def test_a_warm_interpreter_that_dies_while_it_imports_is_told_with_its_last_words(warm: Make):
    backend = await warm("import sys; sys.stderr.write('out of luck\\n'); import os; os._exit(3)")
    interpreter = await settled(backend)
    assert interpreter.state is WarmState.COLD
    assert "out of luck" in interpreter.reason


async def test_a_variable_the_imports_asked_for_makes_a_fresh_start(warm: Make, tmp_path: Path):
    backend = await warm("import os; mode = os.environ.get('MODE', 'none'); has = 'SIZE' in os.environ")
    assert (await settled(backend)).state is WarmState.WARM
    text = "import heavy; print(heavy.mode, heavy.has)"
    uses: list[int] = []
    for program, expected in (
        (code("as it was", text), "none False\n"),
        (code("mode", text, MODE="fast"), "fast False\n"),
        (code("size", text, SIZE="1"), "none True\n"),
        (code("unasked", text, OTHER="1"), "none False\n"),
    ):
        assert (await launch_and_wait(backend, program, tmp_path / "h")).out == expected
        uses.append(backend.warmth()[0].uses)
    assert uses == [1, 1, 1, 2]


async def test_what_the_imports_do_to_the_environment_is_done_to_the_program_s(warm: Make, tmp_path: Path):
    backend = await warm(
        "import os; os.environ.setdefault('SET', '1'); os.environ.pop('GONE', 0); os.environ['PATH'] += ':/x'"
    )
    await settled(backend)
    text = "import os; print(os.environ.get('SET'), os.environ['PATH'].endswith(':/x'), os.environ.get('A'))"
    done = await launch_and_wait(backend, code("environment", text, A="1"), tmp_path / "h")
    assert done.out == "1 True 1\n"
    assert [interpreter.uses for interpreter in backend.warmth()] == [1]


async def test_modules_imported_before_are_the_only_ones_a_program_finds(warm: Make, tmp_path: Path):
    backend = await warm("import decimal")
    await settled(backend)
    program = code("modules", "import sys; print(*sorted(sys.modules))")
    found = set((await launch_and_wait(backend, program, tmp_path / "h")).out.split())
    assert {"heavy", "decimal", "__main__"} <= found
    assert not [name for name in found if "warm" in name or "trainshed" in name]


async def test_forks_of_one_warm_interpreter_draw_other_numbers_but_share_the_seed_of_hashes(
    warm: Make, tmp_path: Path
):
    backend = await warm("import random, multiprocessing, uuid")
    await settled(backend)
    text = (
        "import random, multiprocessing, uuid, tempfile\n"
        "print(random.random(), multiprocessing.current_process().authkey.hex(), uuid.uuid4(), hash('a'))"
    )
    lines = [
        (await launch_and_wait(backend, code(f"draw {n}", text), tmp_path / "h")).out.split() for n in (1, 2)
    ]
    assert all(one != other for one, other in zip(*(line[:3] for line in lines), strict=True))
    assert lines[0][3] == lines[1][3]


async def test_a_program_asked_to_offer_its_stacks_offers_them(warm: Make, tmp_path: Path):
    backend = await warm("")
    await settled(backend)
    text = (
        "import os\n"
        "high = [n for n in os.listdir('/proc/self/fd') if int(n) > 99]\n"
        "print([os.path.basename(os.readlink(f'/proc/self/fd/{n}')) for n in high])"
    )
    done = await launch_and_wait(backend, code("stacks", text, TRAINSHED_STACKS="1"), tmp_path / "h")
    assert done.out == "['stacks']\n"
    assert [interpreter.uses for interpreter in backend.warmth()] == [1]


async def test_without_a_compiled_keeper_nothing_is_kept_warm(warm: Make, tmp_path: Path):
    backend = await warm("", ShellKeeper())
    await asyncio.sleep(0.2)
    assert backend.warmth() == ()
    done = await launch_and_wait(backend, code("a program", "print('ran')"), tmp_path / "h")
    assert done.out == "ran\n"


async def test_a_program_that_the_fork_cannot_be_is_started_afresh_by_exec(warm: Make, tmp_path: Path):
    """The last way out, inside the fork: here for a file nobody can read."""
    backend = await warm("")
    await settled(backend)
    done = await launch_and_wait(backend, Program("none", ("none.py",)), tmp_path / "h")
    assert done.exit == Exit(code=2) and "can't open file" in done.err
    assert [interpreter.uses for interpreter in backend.warmth()] == [1]

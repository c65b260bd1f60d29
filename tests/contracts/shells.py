"""The promises of core.shell_port as tests, for every backend that has the ability.

Inherit beside the backend's contract: the same World and Bench serve. Programs are `sh` and `python3`, which
every image of these tests has.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.contracts.backend_bench import Bench, Words, until
from trainshed.core.errors import NotFound
from trainshed.core.jobs.replica import Exit
from trainshed.core.shell_port import Screen, Shells, Terminal

STAYS = ("sh", "-c", "echo here >note.txt; echo ready; exec sleep 1000")
SIZE = "import os; print('size', *os.get_terminal_size()[::-1])"
INTERRUPTED = """
import time
try:
    print('began', flush=True)
    time.sleep(1000)
except KeyboardInterrupt:
    print('interrupted')
"""
MARKED = "shell-of-a-test"  # among the words of what must not stay
AWAY = f"""
import os, time
heard, told = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    print("away", flush=True)
    os.write(told, b"!")
    time.sleep(1000)
os.wait()
os.read(heard, 1)
{MARKED!r}
"""
SCREEN = Screen()
FLOOD = 8 << 20  # bytes: far more than a terminal holds, far less than a program prints while nobody reads


async def all_of(terminal: Terminal) -> str:
    """All it prints until it ends, in plain line ends."""
    parts: list[bytes] = []
    while piece := await terminal.read():
        parts.append(piece)
    return b"".join(parts).decode(errors="replace").replace("\r\n", "\n")


async def sees(terminal: Terminal, text: str) -> str:
    """What it prints until the text is in it."""
    found = ""
    while text not in found:
        piece = await terminal.read()
        assert piece, f"it ended without {text!r}: {found!r}"
        found += piece.decode(errors="replace")
    return found


def shells_of(bench: Bench) -> Shells:
    assert bench.backend.shells is not None
    return bench.backend.shells


class ShellsContract:
    @pytest.fixture
    def shells(self, bench: Bench) -> Shells:
        return shells_of(bench)

    @pytest.fixture
    async def opened(self, bench: Bench, shells: Shells):
        """Opens a shell in a run that stays, and hangs up at the end of the test."""
        await bench.begin(STAYS)
        made: list[Terminal] = []

        async def opens(command: Sequence[str] = (), screen: Screen | None = SCREEN) -> Terminal:
            made.append(await shells.open_shell(bench.key(), command, screen))
            return made[-1]

        yield opens
        for terminal in made:
            await terminal.close()

    # What it sees

    async def test_a_shell_has_the_environment_and_the_folder_of_the_run(self, bench: Bench, shells: Shells):
        launch = replace(bench.launch(STAYS), env={"MODEL_OF_THE_TEST": "a b"})
        await bench.backend.launch(launch)
        await until(lambda: "ready" in bench.out())
        show = ("sh", "-c", 'cat note.txt; echo "$MODEL_OF_THE_TEST"')
        terminal = await shells.open_shell(bench.key(), show, Screen())
        assert await all_of(terminal) == "here\na b\n"
        assert await terminal.wait() == 0
        await terminal.close()

    async def test_a_shell_opens_where_a_program_failed_and_was_held(self, bench: Bench, shells: Shells):
        fails = ("sh", "-c", "echo before > left; exit 3")
        launch = replace(bench.launch(fails), env={"MODEL_OF_THE_TEST": "a b"}, held=True)
        await bench.backend.launch(launch)

        async def is_held() -> bool:
            seen = await bench.see(bench.key())
            return seen is not None and seen.exit is not None

        await until(is_held)
        if not (await bench.backend.observe(bench.job))[0].alive:
            return  # its note says why, as the backend's contract asks
        show = ("sh", "-c", 'cat left; echo "$MODEL_OF_THE_TEST"; echo after >> left')
        for expected in ("before\na b\n", "before\nafter\na b\n"):
            terminal = await shells.open_shell(bench.key(), show, Screen())
            assert await all_of(terminal) == expected
            assert await terminal.wait() == 0
            await terminal.close()
        terminal = await shells.open_shell(bench.key(), ("sh", "-c", "echo in; sleep 1000"), Screen())
        await sees(terminal, "in")
        await bench.backend.stop(bench.key(), force=False)
        assert (await bench.ended(bench.key())).exit == Exit(code=3)
        await terminal.wait()
        await terminal.close()

    async def test_without_a_command_it_is_the_best_shell_there_is(self, opened):  # pyright: ignore
        terminal = await opened()
        await terminal.write(b"echo is $0; exit 7\n")
        assert "sh" in (await all_of(terminal)).split("is ")[-1]
        assert await terminal.wait() == 7

    # 1. what it printed, in order

    async def test_all_it_prints_is_read_to_the_end(self, opened):  # pyright: ignore
        terminal = await opened(("sh", "-c", "i=0; while [ $i -lt 20000 ]; do echo $i; i=$((i+1)); done"))
        assert (await all_of(terminal)).split() == [str(number) for number in range(20000)]
        assert await terminal.read() == b""

    # 2. as typed

    async def test_ctrl_c_interrupts_what_runs_in_the_foreground(self, opened):  # pyright: ignore
        terminal = await opened(("sh", "-c", f'python3 -c "{INTERRUPTED}"; echo and on'))
        await sees(terminal, "began")
        await terminal.write(b"\x03")
        assert "interrupted" in await all_of(terminal)

    async def test_a_program_learns_the_size_of_its_screen_and_its_changes(self, opened):  # pyright: ignore
        terminal = await opened(("sh",), Screen(33, 99))
        await terminal.write(f'python3 -c "{SIZE}"\n'.encode())
        await sees(terminal, "size 33 99")
        await terminal.resize(Screen(50, 132))
        await terminal.write(f'python3 -c "{SIZE}"\n'.encode())
        await sees(terminal, "size 50 132")

    # 3. its exit code

    @pytest.mark.parametrize(("script", "code"), [("exit 0", 0), ("exit 201", 201), ("kill -15 $$", 143)])
    async def test_its_exit_code_is_told(self, opened, script: str, code: int):  # pyright: ignore
        terminal = await opened(("sh", "-c", script))
        await all_of(terminal)
        assert await terminal.wait() == code

    async def test_a_program_that_is_not_there_is_told_in_words(self, opened):  # pyright: ignore
        terminal = await opened(("no-such-program", "x"))
        assert "no-such-program" in await all_of(terminal)
        assert await terminal.wait() == 127

    # 4. nothing stays

    async def test_hanging_up_ends_all_that_was_started_in_it(self, opened, bench: Bench):  # pyright: ignore
        terminal = await opened(
            ("sh", "-c", f"trap '' HUP; : {MARKED}; echo began; while :; do sleep 1; done")
        )
        await sees(terminal, "began")
        assert _of_shells(bench)
        await terminal.close()
        await until(lambda: not _of_shells(bench))
        assert await terminal.wait() > 128
        seen = await bench.see(bench.key())
        assert seen is not None and seen.alive

    async def test_what_went_away_from_a_shell_goes_with_it(self, opened, bench: Bench):  # pyright: ignore
        terminal = await opened(("python3", "-c", AWAY))
        await sees(terminal, "away")
        await terminal.close()
        await until(lambda: not _of_shells(bench))

    # 5. it ends with its replica

    async def test_a_shell_ends_with_its_replica(self, opened, bench: Bench):  # pyright: ignore
        terminal = await opened(
            ("sh", "-c", f"trap '' HUP TERM; : {MARKED}; echo began; sleep 1000; sleep 1000")
        )
        await sees(terminal, "began")
        await bench.backend.stop(bench.key(), force=True)
        await bench.ended(bench.key())
        await all_of(terminal)
        assert await terminal.wait() > 128
        await until(lambda: not _of_shells(bench))

    async def test_no_shell_is_opened_where_nothing_runs(self, bench: Bench, shells: Shells):
        with pytest.raises(NotFound):
            await shells.open_shell(bench.key(), (), Screen())
        await bench.run(bench.programs.exits(0))
        with pytest.raises(NotFound):
            await shells.open_shell(bench.key(), (), Screen())

    async def test_a_new_server_opens_shells_in_what_an_earlier_one_started(self, bench: Bench):
        await bench.begin(STAYS)
        await bench.renew()
        terminal = await shells_of(bench).open_shell(bench.key(), ("cat", "note.txt"), Screen())
        assert await all_of(terminal) == "here\n"
        await terminal.close()

    # 6. the end of its input

    async def test_the_end_of_input_ends_a_shell_as_ctrl_d_does(self, opened):  # pyright: ignore
        terminal = await opened(("sh", "-c", "cat; exit 5"))
        await terminal.write(b"line\n")
        await terminal.finish()
        assert "line" in await all_of(terminal)
        assert await terminal.wait() == 5

    async def test_without_a_screen_bytes_pass_as_they_are(self, opened):  # pyright: ignore
        terminal = await opened(("cat",), None)
        sent = bytes(range(256)) * 2000
        writing = asyncio.create_task(_say(terminal, sent))
        got = b""
        while piece := await terminal.read():
            got += piece
        await writing
        assert got == sent
        assert await terminal.wait() == 0

    # 7. who does not read costs no memory

    async def test_a_program_that_floods_waits_for_its_reader(self, opened):  # pyright: ignore
        words: Words = ("python3", "-c", "import os\nwhile True: os.write(1, b'flood' * 1000)")
        terminal = await opened(words)
        await sees(terminal, "flood")
        await asyncio.sleep(1)  # in which it would print hundreds of megabytes
        await terminal.write(b"\x03")
        assert len(await all_of(terminal)) < FLOOD
        assert await terminal.wait() != 0


async def _say(terminal: Terminal, data: bytes) -> None:
    for begin in range(0, len(data), 10_000):
        await terminal.write(data[begin : begin + 10_000])
    await terminal.finish()


def _of_shells(bench: Bench) -> list[str]:
    return [words for words in bench.world.leftovers(bench.job) if MARKED in words]

"""A program that prints a log of any length in seconds, for tests and benchmarks of long logs.

Each line has 100 bytes and begins with its own number, from 00000001 on; the last one has the needle.
"""

BLOCK = (
    10_000  # lines that are made at once: only the first four digits of their numbers differ between blocks
)
NEEDLE = "the needle"
LINE_BYTES = 100

_PROGRAM = """
import sys
write = sys.stdout.buffer.write
block = b"".join(b"@@@@%04d loss=%03d %s\\n" % (n, n % 997, b"x" * 81) for n in range({block}))
for at in range({lines} // {block}):
    write(block.replace(b"@@@@", b"%04d" % at)[0 if at else {line_bytes}:])
write(b"%08d {needle}\\n" % {lines})
"""


def prints(lines: int) -> str:
    """The source of a program that prints so many lines, a whole number of blocks."""
    assert lines % BLOCK == 0, lines
    return _PROGRAM.format(lines=lines, block=BLOCK, needle=NEEDLE, line_bytes=LINE_BYTES)

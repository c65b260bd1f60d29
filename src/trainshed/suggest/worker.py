"""The process that computes suggestions: `python -m trainshed.suggest.worker`, started by `process.py`.

A request is a line of standard input, its answer a line of standard output. It ends when its input ends, so
it never outlives the server. It computes on one core, and nothing else writes to its output.
"""

import os
import sys

from trainshed.core.errors import TrainshedError
from trainshed.suggest.message import error_line, points_line, read_request

# Jobs need the other cores, and these matrices are small. numpy reads them when it is imported.
ONE_CORE = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def main() -> int:
    os.environ.update(ONE_CORE)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no answer
    for line in sys.stdin.buffer:
        answer = _answer(line)
        try:
            answers.write(answer)
            answers.flush()
        except BrokenPipeError:  # the server died while this computed; a plain exit would flush again
            os._exit(0)
    return 0


def _answer(line: bytes) -> bytes:
    try:
        from trainshed.suggest.choose import choose  # imports numpy: the first answer takes longer
    except ImportError as error:
        return error_line(f"numpy and scipy are needed ({error})")
    try:
        return points_line(choose(read_request(line)))
    except (TrainshedError, ValueError, ArithmeticError, LookupError) as error:
        return error_line(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    sys.exit(main())

"""Runs one command for a build and dies with whoever holds its standard input, taking the command along.

Started as a script of its own, in a session of its own, so that it depends on nothing but Python. A server
that ends, however it ends, closes the other end of the pipe; then all of the group is killed.
"""

import os
import signal
import subprocess
import sys
import threading


def _watch() -> None:
    while os.read(0, 4096):
        pass
    os.killpg(0, signal.SIGKILL)


def main(argv: list[str]) -> int:
    threading.Thread(target=_watch, daemon=True).start()
    try:
        code = subprocess.run(argv, stdin=subprocess.DEVNULL, check=False).returncode
    except OSError as error:
        print(f"ERROR: {argv[0]} cannot be started: {error}", flush=True)
        return 127
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))

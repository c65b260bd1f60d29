"""The program every job of the chaos test runs: it writes down that it lives, so that a second copy shows.

    python -I -S program.py NOTES KIND LINES SECONDS

Nothing but the standard library, and as little of that as possible: it is started thousands of times. It
appends to NOTES/runs when it starts and when it is about to end, and holds locks for as long as anything of
it lives: its children inherit them. A lock of another run of the same replica, or of another attempt of the
same job, that is held when it starts is written down too; so is one that was left behind.
"""

import fcntl
import os
import signal
import sys
import time

NOTES, KIND, LINES, SECONDS = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
RUN = os.environ["TRAINSHED_RUN"]  # job.attempt.pool.index.restart
JOB, ATTEMPT, POOL, INDEX, RESTART = RUN.rsplit(".", 4)


def note(what: str, more: str = "") -> None:
    """One line, one write: lines of many programs do not mix."""
    line = f'{{"what": "{what}", "run": "{RUN}", "pid": {os.getpid()}, "at": {time.monotonic_ns()}{more}}}\n'
    file = os.open(f"{NOTES}/runs", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(file, line.encode())
    os.close(file)


def hold_lock() -> None:
    folder = f"{NOTES}/locks/{JOB}"
    os.makedirs(folder, exist_ok=True)
    mine = os.open(f"{folder}/{ATTEMPT}.{POOL}.{INDEX}.{RESTART}", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(mine, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        note("twice")
    os.set_inheritable(mine, True)
    for other in os.listdir(folder):
        attempt, pool, index, restart = other.split(".")
        same_replica = (attempt, pool, index) == (ATTEMPT, POOL, INDEX) and restart != RESTART
        if same_replica or attempt != ATTEMPT:
            look = os.open(f"{folder}/{other}", os.O_RDWR)
            try:
                fcntl.flock(look, fcntl.LOCK_SH | fcntl.LOCK_NB)  # shared: others look at the same time
            except BlockingIOError:
                note("together", f', "other": "{other}"')
            os.close(look)


def leave_a_sleeper() -> None:
    """What wants to stay: forked twice, in a session of its own, without a word in its environment."""
    middle = os.fork()
    if middle == 0:
        os.setsid()
        if os.fork() == 0:
            os.chdir("/")
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            os.execve("/bin/sleep", ["sleep", "600"], {})
        os._exit(0)
    os.waitpid(middle, 0)


def main() -> None:
    if KIND == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    hold_lock()
    note("start")
    if KIND in ("deaf", "leaky"):
        leave_a_sleeper()
    for number in range(LINES):
        # Whole lines by single writes: a program killed between two has printed whole lines only.
        os.write(2 if number % 5 == 4 else 1, f"{RUN} {number}\n".encode())
        time.sleep(SECONDS / LINES)
    first = (ATTEMPT, RESTART) == ("0", "0")
    match KIND:
        case "fails":
            note("end", f', "code": 3, "lines": {LINES}')
            sys.exit(3)
        case "dies":
            note("end", f', "signal": 9, "lines": {LINES}')
            os.kill(os.getpid(), signal.SIGKILL)
        case "stumbles" if first:
            note("end", f', "signal": 15, "lines": {LINES}')
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(600)
        case "deaf":
            time.sleep(600)
    note("end", f', "code": 0, "lines": {LINES}')


main()

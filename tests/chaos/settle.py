"""After the storm: wait until everything is over, then look for what should not be there any more."""

import os
import time
from pathlib import Path

from tests.chaos.checker import Final, identity
from tests.chaos.clients import World, must_be_cancelled, path_of
from tests.chaos.notes import held_locks
from tests.live import FINAL, JOBS, LiveServer, pool, python
from trainshed.backends.process.net import label

PATIENCE = 180.0


def settle(world: World) -> Final:
    """The final state. The server is up, the clients have gone home."""
    server = world.server
    for job in must_be_cancelled(world):
        if job not in world.doomed:
            world.insist("cancel", "POST", f"{path_of(job)}:cancel", job=job)
    left = [f"job {job} is still {state}" for job, state in _wait_until_over(server).items()]
    left += _look_for_leftovers(world)
    left += _whole_machine_is_free(server)
    jobs = _all_jobs(server)
    # Followed, not read: of a job that is over, a follower gets every line and is sent home.
    lines = {
        identity(job): [(row["insertId"], row["text"]) for row in server.lines(job["name"], follow="true")]
        for job in jobs
    }
    if "Traceback" in server.said():
        left.append("the server's log has a Traceback")
    return Final(jobs=jobs, lines=lines, left=left)


def _all_jobs(server: LiveServer) -> list[dict[str, str]]:
    jobs: list[dict[str, str]] = []
    token = ""
    while True:
        page = server.get(JOBS, pageSize=100, pageToken=token)
        jobs += [job for job in page.get("customJobs", []) if job["displayName"] != "whole machine"]
        token = page.get("nextPageToken", "")
        if not token:
            return jobs


def _wait_until_over(server: LiveServer) -> dict[str, str]:
    """Those that are not, when patience is at its end."""
    deadline = time.monotonic() + PATIENCE
    while True:
        alive = {identity(job): job["state"] for job in _all_jobs(server) if job["state"] not in FINAL}
        if not alive or time.monotonic() > deadline:
            return alive
        time.sleep(0.2)


def _look_for_leftovers(world: World) -> list[str]:
    """Cleaning up follows the final state by moments; what is there for longer is left behind."""
    deadline = time.monotonic() + 30
    while (left := _leftovers(world)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return left


def _leftovers(world: World) -> list[str]:
    server = world.server
    left = [f"process {pid} is left: {_command(pid)}" for pid in server.processes()]
    left += [f"something of run {run} still lives" for run in held_locks(world.notes)]
    run = server.home / "run"
    left += [
        f"{path.relative_to(server.home)} is left"
        for path in (*(run / "jobs").iterdir(), *(run / "trash").iterdir())
    ]
    left += [f"cgroup {path} is left" for path in cgroups(run)]
    kept = {identity(job) for job in _all_jobs(server)}
    left += [
        f"logs of job {path.name} are left"
        for path in (server.home / "logs").iterdir()
        if path.name not in kept
    ]
    return left


def cgroups(run: Path) -> list[str]:
    """The groups of runs. Walked, not globbed: those of others come and go meanwhile."""
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    found: list[str] = []
    for mount in mounts:
        if mount[2] == "cgroup2":
            for folder, inside, _ in os.walk(mount[1]):
                if Path(folder).name == label(run):
                    found += [f"{folder}/{name}" for name in inside]
    return found


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")[:200]
    except OSError:
        return "gone by now"


def _whole_machine_is_free(server: LiveServer) -> list[str]:
    """A job that needs all there is starts: no slot is held by the dead."""
    job = server.submit(name="whole machine", pools=[pool(python("pass"), machine=WHOLE)])
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if server.state(job) == "JOB_STATE_SUCCEEDED":
            return []
        time.sleep(0.05)
    return [f"a job that needs the whole machine does not run: {server.get(f'/v1/{job}:status')}"]


WHOLE = "n1-standard-32"
ROOM = ("--cpus", "32", "--memory", "120GiB", "--fit", "strict")

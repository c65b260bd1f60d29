"""The entry point, and the words of the menu. It imports nothing that the command asked for may not need.

The menu repeats each command's first sentence so that `--help` need not import them; a test holds them equal.
"""

import gc
import os
import sys

SECTIONS: dict[str, dict[str, str]] = {
    "Jobs": {
        "submit": "Submit a program with its folder, or a job in a YAML file.",
        "tune": "Search good parameters of a program: a study of many trials.",
        "study": "Look at studies, stop and resume them, add trials, run the best one.",
        "apply": "Run Kubernetes' manifests: Pod, Job, JobSet, PyTorchJob and more.",
        "ls": "List jobs, newest first.",
        "get": "List what was applied: pods, jobs, pytorchjobs and more.",
        "show": "Show everything about a job: why it waits, how it runs, why it failed.",
        "logs": "Print what a job's replicas wrote.",
        "events": "Print what happened to a job.",
        "top": "Show what each replica uses and how far it is, live.",
        "stacks": "Show where each replica of a running job is.",
        "shell": "Open a shell inside a running replica.",
        "queue": "Show the waiting jobs in their order, and what is prepared for them.",
        "why": "Say why a job waits, what would start it now, and when it may start.",
        "wait": "Wait until a job has ended; exit as it did.",
        "cancel": "Cancel jobs: their processes are asked to stop, then made to.",
        "delete": "Delete ended jobs with their logs.",
        "retry": "Submit a job once more, with the same spec.",
        "code": "Fetch the files a job was submitted with.",
        "diff": "Compare two jobs: what was asked for, and their files.",
    },
    "Data": {
        "storage": "Copy, list, print and remove objects in buckets.",
        "secrets": "Keep secrets of a project, which jobs take by name.",
    },
    "Server": {
        "up": "Run the server in the foreground.",
        "doctor": "Check what a server needs, here or in a cluster; say what mends it.",
        "console": "Open the console in your browser, signed in.",
        "backup": "Copy all that a server keeps into a file or folder, while it runs.",
        "restore": "Make a home of a backup, or the buckets' index of their files.",
        "costs": "Show what jobs used and cost, and how much of it they computed.",
        "shares": "See and set the shares that projects have of the machines.",
        "quota": "Show what a project may have of the machines, has, and waits for.",
        "nodes": "Show the machines: what is free, and who holds the rest.",
        "images": "See, build, load, save, push, pull and remove container images.",
        "runtimes": "See, build and remove the environments jobs run in.",
        "kube": "See to what jobs left in a Kubernetes cluster, without a server.",
        "notify": "Have people told when jobs end, fail or hang: webhook, Slack, mail.",
        "env": "Print the variables that point gcloud and scripts at the server.",
    },
    "People": {
        "login": "Sign in to a server, for all commands that follow.",
        "whoami": "Say who you are to the server, and what you may do.",
        "tokens": "Make, see and revoke tokens of accounts.",
        "users": "See, add, disable and remove accounts of people and services.",
        "groups": "See, set and remove groups: accounts that get roles together.",
        "roles": "See, give and take roles: viewer, user or admin.",
        "audit": "Show who changed what, from where, and who was refused.",
    },
    "Other ways in": {
        "ai": "Speak gcloud's grammar: ai custom-jobs, hp-tuning-jobs, persistent-resources.",
        "docker-shim": "Make a `docker` that gcloud can build and run images with.",
        "ai-platform": "The older grammar: ai-platform jobs submit training, list, describe, cancel, update.",
        "completion": "Print the script that completes commands and jobs in your shell.",
    },
}
# Commands that are not in `trainshed.cli`, by the module that has them.
DIALECTS = {
    "apply": "trainshed.dialects.kubernetes.cli.apply",
    "get": "trainshed.dialects.kubernetes.cli.get",
    "ai-platform": "trainshed.dialects.ai_platform.cli",
}
SYNONYMS = ("help", "status", "describe", "create")  # what other tools call help, show or ls, apply or submit
TRACKS = ("beta", "alpha")  # gcloud's: `trainshed beta ai …` is `trainshed ai …`, and so on

EPILOG = """\b
First steps:
  trainshed up               in one terminal
  trainshed submit train.py  in another

\b
A JOB is an id, the beginning of one, a display name, or a full resource name
(projects/P/locations/L/customJobs/ID), as long as it means one job only;
of several of one display name, commands that only look take the newest.

\b
Exit codes:
  0    done; with wait, and where submit and retry follow: the job succeeded
  1    an error, said on stderr; or the job was cancelled, or failed without an exit code;
       with diff: the jobs are different
  2    the command line was wrong; with diff: an error
  N    with wait and where one follows: the failed replica's exit code, 128 + the signal if killed;
       with shell: the program's
  124  wait --timeout passed before the job ended
  130  Ctrl-C: the command stopped, the job goes on
  141  the reader of the output went away

\b
Environment:
  TRAINSHED_URL, TRAINSHED_TOKEN, TRAINSHED_TOKEN_FILE, TRAINSHED_CA, TRAINSHED_HOME,
  TRAINSHED_PROJECT, TRAINSHED_LOCATION, NO_COLOR
"""


def run(args: list[str]) -> int:
    """The exit code. Plain words submit a program, or start a server, without click: a person waits."""
    try:
        completes = "_TRAINSHED_COMPLETE" in os.environ
        if args[:1] == ["up"] and not completes:
            from trainshed.cli.become_server import swift

            swift(args[1:])
        if args[:1] == ["submit"] and not completes:
            from trainshed.cli import submission

            if (code := submission.swift(args[1:])) is not None:
                if sys.stdout is not None:  # pyright: ignore[reportUnnecessaryComparison] - closed at our start
                    sys.stdout.flush()
                return code
        from trainshed.cli.menu import run as choose

        return choose(args)
    except BrokenPipeError:
        return hang_up()
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        if error.filename is not None:
            raise
        sys.stderr.write(f"error: the output cannot be written: {error.strerror}\n")
        hang_up()
        return 1


def hang_up() -> int:
    """Python flushes stdout once more at its end; there is nobody left to read it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 141


def _fill_closed() -> None:
    """Streams that were closed at our start lead nowhere, so that no socket or file takes their numbers."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115, PTH123 - pathlib is dear


def _guard_terminals() -> None:
    """Whatever a command prints, no terminal gets commands that stand in a name or a message."""
    from trainshed.cli.paint import guard

    sys.stdout, sys.stderr = guard(sys.stdout), guard(sys.stderr)


def main() -> None:
    _fill_closed()
    _guard_terminals()
    gc.set_threshold(100_000)  # looking for garbage while importing is a tenth of a short command's time
    sys.exit(run(sys.argv[1:]))

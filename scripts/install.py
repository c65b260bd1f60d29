"""Installs packages into an environment: with uv, or with pip where uv is missing or cannot do it.

    .venv/bin/python scripts/install.py ENVIRONMENT WORDS

`scripts/venv` runs it, with the Python of .venv, which has both. The words are what both understand after
`install`. uv takes a sixth of the time, but reads none of pip's settings: it is told them here. A line for
each thing fetched is printed at once, and all that was said if it fails. Nothing is compiled.
"""

import ast
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input")
UV = Path(sys.executable).with_name("uv")
SHARED = ("index-url", "extra-index-url", "find-links", "cert")  # settings that uv has under the same names
HARMLESS = (
    "timeout",
    "default-timeout",
    "disable-pip-version-check",
    "no-input",
    "root-user-action",
    "no-cache-dir",
)
FETCHED = re.compile(
    r" *(Downloading|Using cached|Processing) (?:\S*/)?(\S+?)(?:-(?:cp|py)\d\S*\.whl)?(?: (\(.*\)))?$"
)
SUMMARY = re.compile(r"(?:Prepared|Installed) \d+ packages?|Installing collected packages")
REMINDER = 10  # seconds
TEXT = {"text": True, "encoding": "utf-8", "errors": "replace"}


def main(environment: str, *words: str) -> int:
    python = str(Path(environment, "bin", "python"))
    settings = settings_of_pip() if UV.exists() else None
    if settings is not None:
        how = ("--no-config", "--index-strategy=unsafe-best-match", "--python", python)
        if run(environment, (str(UV), "pip", "install", *how, *settings, *words)) == 0:
            return 0
        print("setup: uv could not install this, so pip tries it", flush=True)
    return run(environment, (*PIP, "--python", python, "install", "--no-compile", *words))


def settings_of_pip() -> list[str] | None:
    """The words that tell uv what pip is set up with; None where it has a setting that uv does not have."""
    listed = subprocess.run((*PIP, "config", "list"), capture_output=True, check=True, **TEXT).stdout
    settings = dict(line.split("=", 1) for line in listed.splitlines())
    words: list[str] = []
    for key, value in settings.items():
        scope, _, name = key.rpartition(".")
        if name in HARMLESS or (scope != ":env:" and f":env:.{name}" in settings):  # a variable counts
            continue
        if name not in SHARED:
            return None
        words += [f"--{name}={word}" for word in str(ast.literal_eval(value)).split()]
    return words


def run(environment: str, command: tuple[str, ...]) -> int:
    done = threading.Event()
    threading.Thread(target=remind, args=(environment, done), daemon=True).start()
    said: list[str] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **TEXT) as child:
        for line in child.stdout or ():
            said.append(line)
            if (fetched := FETCHED.match(line)) and ".metadata" not in line:
                print("  " + " ".join(filter(None, fetched.groups())), flush=True)
            elif SUMMARY.match(line):
                print(f"  {line.partition(':')[0].rstrip()}", flush=True)
    done.set()
    if child.returncode:
        sys.stderr.writelines(said)
    return child.returncode


def remind(environment: str, done: threading.Event) -> None:
    begun = time.monotonic()
    while not done.wait(REMINDER):
        print(f"  … {environment}: still at it after {time.monotonic() - begun:.0f} s", flush=True)


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)

"""Runs inside a container, with the image's own interpreter: installs what a job needs on top of the image.

    python3 /.trainshed/fit.py

install.py starts it. It uses only the standard library of Python 3.6, the plan beside it and the files the
plan names. It uses the image's pip, or the one mounted from the server where the image has none. The server
reads its output while it works. It never writes down index addresses. It exits as pip does, with 3 where
there is no pip.
"""

import importlib
import importlib.util
import json
import os
import site
import subprocess
import sys
from pathlib import Path
from typing import Any

PLAN = "/.trainshed/plan.json"
NO_PIP = 3
OLDEST = (3, 9)  # the oldest Python that the mounted setuptools supports
# Runs pip without PYTHONPATH, which is meant for the builds that pip starts.
PIP = """import runpy, sys
if sys.argv[1]: sys.path.insert(0, sys.argv[1])
sys.argv[:] = ['pip'] + sys.argv[2:]
runpy.run_module('pip', run_name='__main__', alter_sys=True)"""
# Variables of an image that would make pip install elsewhere.
HARMFUL = ("PYTHONPATH", "PYTHONHOME", "PIP_USER", "PIP_TARGET", "PIP_PREFIX", "PIP_REQUIRE_VIRTUALENV")


def main() -> int:
    plan = json.loads(Path(PLAN).read_text(encoding="utf-8"))
    lent = "" if importlib.util.find_spec("pip") else str(plan["pip"])
    if not lent and not importlib.util.find_spec("pip"):
        print("ERROR: neither this image nor the server has pip.", flush=True)
        return NO_PIP
    env = dict(os.environ, **plan["env"])
    for name in HARMFUL:
        env.pop(name, None)
    # Debian's guard against pip protects machines; an image needs none.
    env.update(PIP_BREAK_SYSTEM_PACKAGES="1", PIP_ROOT_USER_ACTION="ignore", PIP_NO_CACHE_DIR="1")
    env.update(PYTHONUNBUFFERED="1", LC_ALL="C.UTF-8", TMPDIR="/.trainshed/tmp")
    is_old = sys.version_info < OLDEST
    if plan["tools"] and not is_old:
        env["PYTHONPATH"] = str(plan["tools"])
    before = needing()
    for isolated, paths in groups(plan["packages"], is_old):
        how = [] if isolated else ["--no-index", "--no-build-isolation"]
        code = pip(lent, env, ["--no-deps", "--force-reinstall", *how, *map(address, paths)])
        if code:
            return code
    more = [line for line in needing() if line not in before] if plan["packages"] else []
    if is_old:  # metadata was not read: pip finds out what they need
        more = [address(item["path"]) for item in plan["packages"]]
    lines = [*plan["requirements"], *more]
    if not lines:
        return 0
    names = Path(env["TMPDIR"]) / "requirements.txt"
    names.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return pip(lent, env, ["-r", str(names)])


def groups(packages: "list[dict[str, Any]]", is_old: bool) -> "list[tuple[bool, list[str]]]":
    """In order, neighbours grouped that are built in the same way."""
    result: list[tuple[bool, list[str]]] = []
    for package in packages:
        isolated = bool(package["isolated"]) or (is_old and not package["path"].endswith(".whl"))
        if not result or result[-1][0] != isolated:
            result.append((isolated, []))
        result[-1][1].append(str(package["path"]))
    return result


def address(path: str) -> str:
    """Pip takes brackets in a path for extras."""
    from urllib.parse import quote

    return "file://" + quote(path)


def needing() -> "list[str]":
    """NAME==VERSION of each installed distribution that has requirements."""
    try:
        from importlib.metadata import distributions
    except ImportError:  # before 3.8
        return []
    importlib.invalidate_caches()
    places = list(dict.fromkeys([*sys.path[1:], *site.getsitepackages()]))  # new ones are not on sys.path
    installed = [distribution for distribution in distributions(path=places) if distribution.requires]
    return [f"{item.metadata['Name']}=={item.version}" for item in installed]


def pip(lent: str, env: "dict[str, str]", words: "list[str]") -> int:
    quiet = ["--no-input", "--disable-pip-version-check", "--progress-bar", "off", "--no-color"]
    return subprocess.call([sys.executable, "-I", "-c", PIP, lent, "install", *quiet, *words], env=env)


if __name__ == "__main__":
    sys.exit(main())

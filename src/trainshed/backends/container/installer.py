"""Runs inside a container of an image, by the image's own interpreter: installs what a job needs on top.

    python3 /.trainshed/fit.py

It may assume nothing but the standard library of Python 3.6 and the plan beside it, with what that names.
Pip is the image's own, or where it has none the one it is lent. What it prints is read while it works; what
it is told of indexes it writes nowhere. It ends as pip does, with 3 where there is no pip to be had.
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
OLDEST = (3, 9)  # that the lent setuptools builds with
# Pip by itself, blind to PYTHONPATH: what is on that is for what it builds.
PIP = """import runpy, sys
if sys.argv[1]: sys.path.insert(0, sys.argv[1])
sys.argv[:] = ['pip'] + sys.argv[2:]
runpy.run_module('pip', run_name='__main__', alter_sys=True)"""
# Of what the image says: what would lead pip elsewhere than into it.
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
    # An image is nobody's system: Debian's word against pip is for machines.
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
    if is_old:  # nobody told: pip itself finds out what they need
        more = [address(item["path"]) for item in plan["packages"]]
    lines = [*plan["requirements"], *more]
    if not lines:
        return 0
    names = Path(env["TMPDIR"]) / "requirements.txt"
    names.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return pip(lent, env, ["-r", str(names)])


def groups(packages: "list[dict[str, Any]]", is_old: bool) -> "list[tuple[bool, list[str]]]":
    """In order, those together that are built in the same way."""
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
    """By name and version, what is installed now and needs anything itself."""
    try:
        from importlib.metadata import distributions
    except ImportError:  # before 3.8
        return []
    importlib.invalidate_caches()
    places = list(dict.fromkeys([*sys.path[1:], *site.getsitepackages()]))  # a new one is on no path yet
    installed = [distribution for distribution in distributions(path=places) if distribution.requires]
    return [f"{item.metadata['Name']}=={item.version}" for item in installed]


def pip(lent: str, env: "dict[str, str]", words: "list[str]") -> int:
    quiet = ["--no-input", "--disable-pip-version-check", "--progress-bar", "off", "--no-color"]
    return subprocess.call([sys.executable, "-I", "-c", PIP, lent, "install", *quiet, *words], env=env)


if __name__ == "__main__":
    sys.exit(main())

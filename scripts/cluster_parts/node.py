"""A node as the machine sees it: one process that owns all the others, in namespaces of its own.

Its mounts, its processes and those of its pods are in namespaces that end with their first process. So to
kill that one is to switch the node off, and nothing of it is left to unmount. `node_inside.py` is that
first process.
"""

import json
import subprocess
import sys
from pathlib import Path

from scripts.cluster_parts import groups
from scripts.cluster_parts.place import ROOT, Place
from scripts.cluster_parts.processes import end, running, start

SOCKET = "/run/containerd/containerd.sock"  # inside the node
PAUSE = "localhost/pause:3.2"
CAP_SYS_RESOURCE = 24

CONTAINERD = """version = 2
oom_score = 0
[plugins."io.containerd.internal.v1.opt"]
  path = "/var/lib/containerd/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  restrict_oom_score_adj = {restricted}
  disable_apparmor = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{plugins}"
    conf_dir = "{folder}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "{snapshotter}"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
  [plugins."io.containerd.grpc.v1.cri".registry.mirrors."{registry}"]
    endpoint = ["http://{registry}"]
  [plugins."io.containerd.grpc.v1.cri".registry.mirrors."{machine_registry}"]
    endpoint = ["http://{machine_registry}"]
"""


def name_of(number: int) -> str:
    return f"node{number}"


def write_files(place: Place, number: int) -> None:
    """What the programs of the node read."""
    folder = place.of_node(number)
    (folder / "cni").mkdir(parents=True)
    (folder / "var").mkdir()
    texts = {
        "containerd.toml": CONTAINERD.format(
            pause=PAUSE,
            folder=folder,
            plugins=place.programs.plugins,
            registry=place.addresses.registry,
            machine_registry=place.addresses.machine_registry,
            restricted="false" if _may_lower_oom_score() else "true",
            snapshotter="native" if _on_overlay(folder) else "overlayfs",
        ),
        "cni/10-bridge.conflist": json.dumps(_pod_network(place, number), indent=1),
        "kubelet.json": json.dumps(_kubelet(place, number), indent=1),
        "proxy.json": json.dumps(_proxy(place, number), indent=1),
        "resolv.conf": f"nameserver {place.addresses.control}\n",
        "node.json": json.dumps(_inside(place, number), indent=1),
    }
    for name, text in texts.items():
        (folder / name).write_text(text)


def _may_lower_oom_score() -> bool:
    rows = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return bool(int(rows["CapEff"].strip(), 16) >> CAP_SYS_RESOURCE & 1)


def _on_overlay(folder: Path) -> bool:
    """One overlay does not lie upon another: inside a container the layers are copied instead."""
    kind = subprocess.run(
        ["stat", "-f", "-c", "%T", str(folder)], capture_output=True, text=True, check=False
    )
    return kind.stdout.strip() == "overlayfs"


def _pod_network(place: Place, number: int) -> dict[str, object]:
    addresses = {
        "type": "host-local",
        "ranges": [[{"subnet": place.addresses.pods_of(number)}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    bridge = {"type": "bridge", "bridge": "cni0", "isGateway": True, "hairpinMode": True, "ipam": addresses}
    ports = {"type": "portmap", "capabilities": {"portMappings": True}}
    return {"cniVersion": "0.4.0", "name": "pods", "plugins": [bridge, ports]}


def _kubelet(place: Place, number: int) -> dict[str, object]:
    keys = place.certificates
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": f"{keys}/ca.crt"},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": f"{keys}/{name_of(number)}.crt",
        "tlsPrivateKeyFile": f"{keys}/{name_of(number)}.key",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{place.addresses.group}/{name_of(number)}",
        "clusterDNS": [place.addresses.control],
        "clusterDomain": "cluster.local",
        "resolvConf": f"{place.of_node(number)}/resolv.conf",
        "failSwapOn": False,
        "oomScoreAdj": 0,
        "kubeAPIQPS": 50,
        "kubeAPIBurst": 100,
        # A disk that is nearly full is no reason to remove images that nobody could pull again.
        "imageGCHighThresholdPercent": 100,
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        # Looked at often, so that a node is ready soon; reported only when something changes, as elsewhere.
        "nodeStatusUpdateFrequency": "1s",
        "nodeStatusReportFrequency": "5m",
        # Renewed four times in that time: a node that lives is never taken for a lost one.
        "nodeLeaseDurationSeconds": place.node_grace or 40,
    }


def _proxy(place: Place, number: int) -> dict[str, object]:
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": f"{place.certificates}/proxy.kubeconfig"},
        "mode": "iptables",
        "clusterCIDR": place.addresses.pods,
        "hostnameOverride": name_of(number),
        "oomScoreAdj": 0,
        # Limits on connections are the machine's, not the namespace's.
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
    }


def _inside(place: Place, number: int) -> dict[str, object]:
    """What the node's first process is told: which folders stay in sight, and what it starts."""
    folder, name = place.of_node(number), name_of(number)
    kubelet = [place.programs.path("kubelet"), f"--config={folder}/kubelet.json"]
    kubelet += [f"--kubeconfig={place.certificates}/{name}.kubeconfig", f"--hostname-override={name}"]
    kubelet += ["--container-runtime=remote", f"--container-runtime-endpoint=unix://{SOCKET}"]
    kubelet += [f"--node-ip={place.addresses.node(number)}", "--cert-dir=/var/lib/kubelet/pki"]
    kubelet += ["--volume-plugin-dir=/var/lib/kubelet/volume-plugins"]
    return {
        "folder": str(folder),
        "seen": [str(place.folder), str(place.programs.folder), str(ROOT), sys.prefix, sys.base_prefix],
        "api": [place.addresses.control, 6443],
        "logs": str(place.folder / "logs"),
        "name": name,
        "socket": SOCKET,
        "pause": [PAUSE, str(place.programs.pause_image)],
        "containerd": ["containerd", "--config", f"{folder}/containerd.toml"],
        "kubelet": kubelet,
        "proxy": [place.programs.path("kube-proxy"), f"--config={folder}/proxy.json"],
    }


def switch_on(place: Place, number: int) -> "subprocess.Popen[bytes]":
    groups.make(place.addresses, name_of(number))
    first = [sys.executable, "-S", str(ROOT / "scripts" / "cluster"), "--folder", str(place.folder)]
    apart = [
        "unshare",
        "--pid",
        "--fork",
        "--kill-child=KILL",
        "--mount",
        "--mount-proc",
        "--ipc",
        "--uts",
        "--",
    ]
    words = [*apart, *first, "be-node", str(place.of_node(number) / "node.json")]
    return start(place, name_of(number), words, place.addresses.node_namespace(number))


def switch_off(place: Place, number: int) -> None:
    """Everything in it dies at once, as when the power fails: no process is told, no pod is reported."""
    end(place.folder, name_of(number))


def inside(place: Place, number: int, words: list[str]) -> "subprocess.CompletedProcess[str]":
    """Runs a program among the mounts and processes of the node."""
    first = _first_process(place, number)
    enter = ["nsenter", f"--target={first}", "--mount", "--pid", "--net", "--"]
    return subprocess.run(
        [*enter, *words], env=place.programs.environment(), capture_output=True, text=True, check=False
    )


def _first_process(place: Place, number: int) -> int:
    """The one that has id 1 in its own namespace; the process above it is `unshare`."""
    for pid in running(place.folder, name_of(number)):
        try:
            rows = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        except OSError:
            continue
        if rows["NSpid"].split()[1:] == ["1"]:
            return pid
    raise SystemExit(f"cluster: {name_of(number)} is off")


def load(place: Place, number: int, archive: Path) -> None:
    """An image from a docker-archive, for the pods of this node."""
    words = ["ctr", "--namespace=k8s.io", "images", "import", "--no-unpack", str(archive)]
    done = inside(place, number, words)
    if done.returncode != 0:
        raise SystemExit(f"cluster: {name_of(number)} does not take {archive}: {done.stderr.strip()}")

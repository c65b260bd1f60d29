"""The control plane: etcd, the API server, the controller manager, the scheduler, the names and a registry.

Each is one process in the control plane's namespace. What stands here are Kubernetes' own defaults, but
for what a throw-away cluster on a small machine needs: nothing is flushed to disk, nobody elects a leader.
"""

import shutil
import subprocess
import sys

from scripts.cluster_parts.place import ROOT, Place
from scripts.cluster_parts.processes import start

REGISTRY = """version: 0.1
log: {{level: warn}}
storage: {{filesystem: {{rootdirectory: {folder}/registry}}, delete: {{enabled: true}}}}
http: {{addr: "{address}"}}
"""


def etcd(place: Place) -> "subprocess.Popen[bytes]":
    clients, peers = "http://127.0.0.1:2379", "http://127.0.0.1:2380"
    words = [str(place.programs.folder / "tools/usr/bin/etcd"), "--unsafe-no-fsync"]
    words += ["--data-dir", f"{place.folder}/etcd", "--listen-peer-urls", peers, "--logger", "zap"]
    words += ["--listen-client-urls", clients, "--advertise-client-urls", clients, "--log-level", "warn"]
    return start(place, "etcd", words, place.addresses.namespace)


def apiserver(place: Place) -> "subprocess.Popen[bytes]":
    keys, addresses = place.certificates, place.addresses
    options = {
        "etcd-servers": "http://127.0.0.1:2379",
        "advertise-address": addresses.control,
        "service-cluster-ip-range": addresses.services,
        "tls-cert-file": f"{keys}/apiserver.crt",
        "tls-private-key-file": f"{keys}/apiserver.key",
        "client-ca-file": f"{keys}/ca.crt",
        "requestheader-client-ca-file": f"{keys}/ca.crt",
        "requestheader-allowed-names": "front-proxy-client",
        "requestheader-username-headers": "X-Remote-User",
        "requestheader-group-headers": "X-Remote-Group",
        "requestheader-extra-headers-prefix": "X-Remote-Extra-",
        "authorization-mode": "Node,RBAC",
        "enable-admission-plugins": "NodeRestriction",
        "allow-privileged": "true",
        "kubelet-client-certificate": f"{keys}/kubelet-client.crt",
        "kubelet-client-key": f"{keys}/kubelet-client.key",
        "kubelet-certificate-authority": f"{keys}/ca.crt",
        "kubelet-preferred-address-types": "InternalIP",
        "service-account-key-file": f"{keys}/service-accounts.key",
        "service-account-signing-key-file": f"{keys}/service-accounts.key",
        "service-account-issuer": "https://kubernetes.default.svc",
    }
    if place.eviction is not None:
        options["default-not-ready-toleration-seconds"] = str(place.eviction)
        options["default-unreachable-toleration-seconds"] = str(place.eviction)
    return _component(place, "apiserver", options)


def controller_manager(place: Place) -> "subprocess.Popen[bytes]":
    keys = place.certificates
    options = {
        **_as_user(place, "controller-manager"),
        "service-account-private-key-file": f"{keys}/service-accounts.key",
        "root-ca-file": f"{keys}/ca.crt",
        "cluster-signing-cert-file": f"{keys}/ca.crt",
        "cluster-signing-key-file": f"{keys}/ca.key",
        "use-service-account-credentials": "true",
        "cluster-cidr": place.addresses.pods,
    }
    if place.node_grace is not None:
        options["node-monitor-grace-period"] = f"{place.node_grace}s"
        options["node-monitor-period"] = "1s"
    return _component(place, "controller-manager", options)


def scheduler(place: Place) -> "subprocess.Popen[bytes]":
    return _component(place, "scheduler", _as_user(place, "scheduler"))


def _as_user(place: Place, name: str) -> dict[str, str]:
    """They get a certificate for their own doors, because making one takes them long."""
    file = f"{place.certificates}/{name}"
    door = {
        "bind-address": "127.0.0.1",
        "tls-cert-file": f"{file}.crt",
        "tls-private-key-file": f"{file}.key",
    }
    return {"kubeconfig": f"{file}.kubeconfig", "leader-elect": "false", "port": "0", **door}


def _component(place: Place, name: str, options: dict[str, str]) -> "subprocess.Popen[bytes]":
    words = [f"--{option}={value}" for option, value in options.items()]
    return start(place, name, [place.programs.path(f"kube-{name}"), *words], place.addresses.namespace)


def names(place: Place) -> "subprocess.Popen[bytes]":
    words = [sys.executable, "-S", str(ROOT / "scripts" / "cluster"), "--folder", str(place.folder)]
    return start(place, "names", [*words, "serve-names"], place.addresses.namespace)


def registry(place: Place) -> "subprocess.Popen[bytes] | None":
    """Where Debian's docker-registry is installed; pods take images from it, and anybody may push."""
    program = shutil.which("docker-registry", path=place.programs.environment()["PATH"])
    if program is None:
        return None
    config = place.folder / "registry.yml"
    config.write_text(REGISTRY.format(folder=place.folder, address=place.addresses.registry))
    return start(place, "registry", [program, "serve", str(config)], place.addresses.namespace)

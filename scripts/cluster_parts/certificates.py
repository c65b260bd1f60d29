"""Keys and certificates of a cluster, made with openssl, and the files by which clients use them.

`up` makes them anew each time: they are worth nothing outside the cluster's own network.
"""

import base64
import json
import subprocess
from pathlib import Path

from scripts.cluster_parts.place import Place

CONFIG = """[req]
distinguished_name = name
[name]
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign, cRLSign
[leaf]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth, clientAuth
"""
CURVE = ["-pkeyopt", "ec_paramgen_curve:P-256"]
API_NAMES = ["kubernetes", "kubernetes.default", "kubernetes.default.svc", "localhost"]

# file: (user, group). The roles of these users come with Kubernetes.
USERS = {
    "admin": ("kubernetes-admin", "system:masters"),
    "controller-manager": ("system:kube-controller-manager", "system:kube-controller-manager"),
    "scheduler": ("system:kube-scheduler", "system:kube-scheduler"),
    "proxy": ("system:kube-proxy", "system:node-proxier"),
    "names": ("system:serviceaccount:kube-system:kube-dns", "system:serviceaccounts"),
    "kubelet-client": ("kube-apiserver-kubelet-client", "system:masters"),
}


def make(place: Place) -> None:
    folder = place.certificates
    folder.mkdir(mode=0o700)
    (folder / "openssl.cnf").write_text(CONFIG)
    _openssl(folder, ["req", "-x509", "-extensions", "authority", "-subj", "/CN=trainshed-cluster"], "ca")
    addresses = place.addresses
    names = [f"DNS:{name}" for name in (*API_NAMES, "kubernetes.default.svc.cluster.local")]
    names += [f"IP:{address}" for address in (addresses.control, addresses.first_service, "127.0.0.1")]
    issue(folder, "apiserver", ("kube-apiserver", "trainshed"), names)
    for name, user in USERS.items():
        issue(folder, name, user)
    for number in place.numbers():
        name = f"node{number}"
        own = [f"DNS:{name}", f"IP:{addresses.node(number)}"]
        issue(folder, name, (f"system:node:{name}", "system:nodes"), own)
    curve = ["-name", "prime256v1", "-genkey", "-noout"]  # in the older form, which the API server reads
    _run(["openssl", "ecparam", *curve, "-out", f"{folder}/service-accounts.key"])
    for name in ("admin", "controller-manager", "scheduler", "proxy", "names"):
        write_kubeconfig(place, name)
    for number in place.numbers():
        write_kubeconfig(place, f"node{number}")
    place.kubeconfig.write_text((folder / "admin.kubeconfig").read_text())
    place.kubeconfig.chmod(0o600)


def issue(folder: Path, name: str, user: tuple[str, str], names: list[str] | None = None) -> None:
    common, organisation = user
    words = ["req", "-x509", "-CA", f"{folder}/ca.crt", "-CAkey", f"{folder}/ca.key", "-extensions", "leaf"]
    words += ["-subj", f"/O={organisation}/CN={common}"]
    if names:
        words += ["-addext", f"subjectAltName={','.join(names)}"]
    _openssl(folder, words, name)


def _openssl(folder: Path, words: list[str], name: str) -> None:
    files = ["-keyout", f"{folder}/{name}.key", "-out", f"{folder}/{name}.crt"]
    shape = ["-config", f"{folder}/openssl.cnf", "-newkey", "ec", *CURVE, "-nodes", "-days", "365"]
    _run(["openssl", *words, *shape, *files])


def _run(words: list[str]) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"cluster: {' '.join(words)}: {done.stderr.strip()}")


def write_kubeconfig(place: Place, name: str) -> None:
    """With keys and certificates in it, so that it can be copied anywhere on this machine."""
    folder = place.certificates

    def packed(file: str) -> str:
        return base64.b64encode((folder / file).read_bytes()).decode()

    cluster = {"server": place.addresses.api, "certificate-authority-data": packed("ca.crt")}
    user = {"client-certificate-data": packed(f"{name}.crt"), "client-key-data": packed(f"{name}.key")}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "trainshed", "cluster": cluster}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": "trainshed", "context": {"cluster": "trainshed", "user": name}}],
        "current-context": "trainshed",
    }
    path = folder / f"{name}.kubeconfig"
    path.write_text(json.dumps(config, indent=1) + "\n")
    path.chmod(0o600)

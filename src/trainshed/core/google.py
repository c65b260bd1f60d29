"""Google's host names as the programs of a job see them, and the variables that go with them. Pure.

The backends, `service/access.py` and the listener for Google's names use it (ADR 34). Set the variables only
where the names do lead to this server: elsewhere they would send a job's token to Google.
"""

from collections.abc import Mapping
from dataclasses import dataclass

API, STORAGE, OAUTH = "www.googleapis.com", "storage.googleapis.com", "oauth2.googleapis.com"
HOSTS = (API, STORAGE, OAUTH)
PORT = 443  # part of addresses that are compiled into programs
TOKEN = "GOOGLE_AUTH_TOKEN_FOR_TESTING"  # where TensorFlow and TensorStore look for a token first

# Each names a file of trusted root certificates to some library, which then trusts no others.
ROOTS = (
    "CURL_CA_BUNDLE",  # curl, and the one inside TensorFlow
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_FILE",  # OpenSSL, so Python's ssl; Go
    "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
    "HTTPLIB2_CA_CERTS",
    "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE",
    "TENSORSTORE_CA_BUNDLE",
)

_PROXIES = ("https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY")


@dataclass(frozen=True, slots=True)
class GoogleAccess:
    """By what a program reaches this server under Google's names."""

    address: str  # the server's own
    token: str  # its job's

    def env(self, roots: str) -> dict[str, str]:
        """Variables that make programs trust this server under those names and send their job's token.

        `roots` is a file of root certificates that includes this server's, where the program finds it.
        """
        # Libraries prepend "http://" and append a path, so the value may include the token.
        metadata = f"{self.address.removeprefix('http://')}/t/{self.token}"
        return {
            **trust_env(roots),
            TOKEN: self.token,
            "GCE_METADATA_HOST": metadata,
            "GCE_METADATA_IP": metadata,
        }


def trust_env(roots: str) -> dict[str, str]:
    """The part of these variables that is the same for all jobs."""
    return dict.fromkeys(ROOTS, roots)


def wants_google(env: Mapping[str, str]) -> bool:
    """Whether a job uses Google's own buckets: it sets the variable to Google's own host."""
    return env.get("STORAGE_EMULATOR_HOST", "").removeprefix("https://").partition("/")[0] in HOSTS


def past_proxies(env: Mapping[str, str]) -> dict[str, str]:
    """Variables that keep clients from sending these names to a proxy, where `env` names a proxy."""
    if not any(env.get(name) for name in _PROXIES):
        return {}
    listed = env.get("no_proxy") or env.get("NO_PROXY")
    return dict.fromkeys(("no_proxy", "NO_PROXY"), ",".join(filter(None, (listed, "127.0.0.1", *HOSTS))))


def hosts_file(machine: str, address: str) -> str:
    """The machine's /etc/hosts, changed so that the names lead to this address only."""
    lines = [f"{address} {' '.join(HOSTS)}"]
    for line in machine.splitlines():
        words = line.partition("#")[0].split()
        kept = [word for word in words if word not in HOSTS]
        lines.append(line if kept == words else " ".join(kept) if len(kept) > 1 else "")
    return "\n".join((*lines, ""))

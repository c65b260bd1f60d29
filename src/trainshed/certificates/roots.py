"""The root certificates that this machine trusts, as text. `certificates` and `trainshed env` use it.

Clients that are given a file of roots trust no others. So that file has the machine's roots, and ours beside
them. This only reads.
"""

import os
import re
import ssl
from collections.abc import Iterable, Mapping
from pathlib import Path

_ROOT = re.compile("-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----")
# Where distributions keep the roots of a machine, all in one file.
_USUAL = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
_VARIABLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_DIR")


def certificates_in(text: str) -> list[str]:
    """The certificates of a PEM file, without keys and remarks."""
    return _ROOT.findall(text)


def machine_roots(environ: Mapping[str, str]) -> list[str]:
    """The machine's own, and those that its variables name."""
    default = ssl.get_default_verify_paths()
    usual = next(filter(os.path.exists, _USUAL), "")
    places = [usual, default.cafile or "", *(environ.get(name, "") for name in _VARIABLES)]
    return [root for place in dict.fromkeys(places) for root in _roots_at(place)]


def bundle(roots: Iterable[str]) -> str:
    """Root certificates as the text of a file, each once."""
    return "".join(f"{root}\n" for root in dict.fromkeys(roots))


def _roots_at(place: str) -> list[str]:
    """The certificates in a file, or in the files of a folder; several folders are told with colons."""
    if not place:
        return []
    path = Path(place)
    if not path.exists():
        return [root for part in place.split(":") if part != place for root in _roots_at(part)]
    try:
        files = sorted(path.iterdir()) if path.is_dir() else [path]
        texts = [file.read_text(errors="replace") for file in files if file.is_file()]
    except OSError:
        return []
    return [root for text in texts for root in certificates_in(text)]

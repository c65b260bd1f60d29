"""The certificates by which programs of jobs trust this server under Google's names (decision 34).

`google_listener` has them renewed.

An authority of the home's own signs one certificate for those names; both are made by
the `openssl` program, since Python's library cannot. The authority is bound to its names: whoever got its key
could not sign for others. It never leaves the home, and no store of the machine is changed: programs are
given a file with the machine's roots and this one. A kill at any line leaves whole files or none.
"""

import contextlib
import os
import re
import shutil
import ssl
import subprocess
import tempfile
import time
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path

from trainshed.core.errors import Unavailable

_DAY = 86_400
_AUTHORITY_DAYS, _SERVER_DAYS = 3650, 397
_SPARE_DAYS = 30  # a certificate is made anew that long before it expires
_PATIENCE = 30  # seconds for openssl
_NEW_KEY = ("-sha256", "-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-keyout")
_MARK = "trainshed:"  # the first line of a file: when it expires, and for which names it is

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


class Certificates:
    """Those of one home, in a folder of it. All methods block: call them in a thread."""

    def __init__(self, folder: Path, names: Sequence[str], environ: Mapping[str, str]) -> None:
        self._folder, self._names, self._environ = folder, tuple(names), environ
        self._authority = folder / "authority.pem"
        self.server = folder / "server.pem"  # key and certificate
        self.roots = folder / "roots.pem"  # for programs

    def renew(self) -> None:
        """Make what is missing or expires soon; Unavailable with the reason where that cannot be done."""
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not self._is_fresh(self._authority):
                self._write(self._authority, self._make_authority(), 0o600)
                self.server.unlink(missing_ok=True)
            if not self._is_fresh(self.server):
                self._write(self.server, self._make_server(), 0o600)
            self._write(self.roots, self._make_roots(), 0o644)
        except OSError as error:
            raise Unavailable(f"no certificate can be kept in {self._folder}: {error}") from error

    def _is_fresh(self, file: Path) -> bool:
        try:
            with file.open() as lines:
                mark, expires, *names = lines.readline().split()
            soon = time.time() + _SPARE_DAYS * _DAY
            return mark == _MARK and int(expires) > soon and tuple(names) == self._names
        except (FileNotFoundError, ValueError):  # nothing, or nothing of ours
            return False

    def _make_authority(self) -> str:
        bound = [f"permitted;DNS:{name}" for name in self._names]
        bound += ["excluded;IP:0.0.0.0/0.0.0.0", "excluded;IP:0:0:0:0:0:0:0:0/0:0:0:0:0:0:0:0"]
        extensions = (
            "basicConstraints=critical,CA:TRUE,pathlen:0",
            "keyUsage=critical,keyCertSign,cRLSign",
            "subjectKeyIdentifier=hash",
            f"nameConstraints=critical,{','.join(bound)}",
        )
        with self._workshop(f"Trainshed {os.urandom(4).hex()}", extensions) as work:
            self._openssl(
                *("req", "-x509", *_NEW_KEY, f"{work}/key", "-days", str(_AUTHORITY_DAYS)),
                *("-config", f"{work}/config", "-extensions", "extensions", "-out", f"{work}/made"),
            )
            return self._marked(work, _AUTHORITY_DAYS)

    def _make_server(self) -> str:
        extensions = (
            "basicConstraints=critical,CA:FALSE",
            "keyUsage=critical,digitalSignature",
            "extendedKeyUsage=serverAuth",
            "authorityKeyIdentifier=keyid",
            f"subjectAltName={','.join(f'DNS:{name}' for name in self._names)}",
        )
        with self._workshop(self._names[0], extensions) as work:
            self._openssl(
                *("req", "-new", *_NEW_KEY, f"{work}/key"),
                *("-config", f"{work}/config", "-out", f"{work}/request"),
            )
            self._openssl(
                *("x509", "-req", "-sha256", "-days", str(_SERVER_DAYS), "-in", f"{work}/request"),
                *("-CA", str(self._authority), "-CAkey", str(self._authority)),
                *("-set_serial", str(int.from_bytes(os.urandom(8), "big"))),
                *("-extfile", f"{work}/config", "-extensions", "extensions", "-out", f"{work}/made"),
            )
            return self._marked(work, _SERVER_DAYS)

    @contextlib.contextmanager
    def _workshop(self, name: str, extensions: Sequence[str]) -> Generator[str]:
        """A folder with openssl's configuration, for as long as it is needed; nobody else can look in."""
        with tempfile.TemporaryDirectory(dir=self._folder, prefix=".new-") as work:
            config = ("[req]", "prompt=no", "distinguished_name=name", "[name]", f"CN={name}", "[extensions]")
            Path(work, "config").write_text("\n".join((*config, *extensions, "")))
            yield work

    def _marked(self, work: str, days: int) -> str:
        expires = int(time.time()) + days * _DAY
        both = Path(work, "key").read_text() + Path(work, "made").read_text()
        return f"{_MARK} {expires} {' '.join(self._names)}\n{both}"

    def _make_roots(self) -> str:
        """The machine's, those its settings name, and ours."""
        default = ssl.get_default_verify_paths()
        usual = next(filter(os.path.exists, _USUAL), "")
        places = [usual, default.cafile or "", *(self._environ.get(name, "") for name in _VARIABLES)]
        roots = [root for place in dict.fromkeys(places) for root in _roots_at(place)]
        if not roots:
            raise Unavailable("this machine has no file of root certificates (package ca-certificates)")
        roots += _ROOT.findall(self._authority.read_text())
        return "".join(f"{root}\n" for root in dict.fromkeys(roots))

    def _write(self, file: Path, text: str, mode: int) -> None:
        """As a whole or not at all; a file that is as it should be is left alone."""
        with contextlib.suppress(FileNotFoundError):
            if file.read_text(errors="replace") == text:
                return
        draft = file.with_name(f".{file.name}")
        draft.unlink(missing_ok=True)
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "w") as opened:
            opened.write(text)
            opened.flush()
            os.fchmod(handle, mode)
            os.fsync(handle)
        draft.replace(file)

    def _openssl(self, *words: str) -> None:
        program = shutil.which("openssl", path=self._environ.get("PATH"))
        if program is None:
            raise Unavailable("the program openssl, which makes certificates, is not on this machine")
        try:
            subprocess.run([program, *words], check=True, capture_output=True, text=True, timeout=_PATIENCE)
        except subprocess.CalledProcessError as error:
            last = str(error.stderr).strip().splitlines()[-1:]
            raise Unavailable(f"openssl {words[0]} failed: {''.join(last)}") from error
        except subprocess.SubprocessError as error:
            raise Unavailable(f"openssl {words[0]} failed: {error}") from error


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
    return [root for text in texts for root in _ROOT.findall(text)]

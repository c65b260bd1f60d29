"""Certificates of the home: for Google's names (decision 34), and for the server's own (decision 66).

`google_listener` and `server_tls` have them renewed.

An authority of the home's own signs one certificate for some names; both are made by
the `openssl` program, since Python's library cannot. The authority is bound to its names: whoever got its key
could not sign for others. It never leaves the home, and no store of the machine is changed: programs are
given a file with the machine's roots and this one. A kill at any line leaves whole files or none.
"""

import contextlib
import ipaddress
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path

from trainshed.certificates.roots import bundle, certificates_in, machine_roots
from trainshed.core.errors import Unavailable

_DAY = 86_400
_AUTHORITY_DAYS, _SERVER_DAYS = 3650, 397
_SPARE_DAYS = 30  # a certificate is made anew that long before it expires
_PATIENCE = 30  # seconds for openssl
_NEW_KEY = ("-sha256", "-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-keyout")
_MARK = "trainshed:"  # the first line of a file: when it expires, and for which names it is


class Certificates:
    """Those of one home, in a folder of it. All methods block: call them in a thread."""

    def __init__(
        self, folder: Path, names: Sequence[str], environ: Mapping[str, str], *, has_roots: bool = True
    ) -> None:
        """With `has_roots` there is also a file with the machine's roots, for programs of jobs."""
        self._folder, self._names, self._environ = folder, tuple(names), environ
        self._has_roots = has_roots
        self._authority = folder / "authority.pem"
        self.server = folder / "server.pem"  # key and certificate
        self.roots = folder / "roots.pem"  # for programs
        self.ca = folder / "ca.pem"  # the authority's certificate alone, to copy to other machines

    def renew(self) -> None:
        """Make what is missing or expires soon; Unavailable with the reason where that cannot be done."""
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not self._is_fresh(self._authority):
                authority = self._make_authority()
                # First: a kill here must not leave one of another authority.
                self.server.unlink(missing_ok=True)
                self._write(self._authority, authority, 0o600)
            if not self._is_fresh(self.server):
                self._write(self.server, self._make_server(), 0o600)
            own = certificates_in(self._authority.read_text())
            self._write(self.ca, bundle(own), 0o644)
            if self._has_roots:
                self._write(self.roots, self._make_roots(own), 0o644)
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
        bound = _constraints(self._names)
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
            f"subjectAltName={','.join(map(_subject, self._names))}",
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

    def _make_roots(self, own: Sequence[str]) -> str:
        """The machine's, those its settings name, and ours."""
        if not (roots := machine_roots(self._environ)):
            raise Unavailable("this machine has no file of root certificates (package ca-certificates)")
        return bundle((*roots, *own))

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


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


def _subject(name: str) -> str:
    return f"{'DNS' if _address(name) is None else 'IP'}:{name}"


def _constraints(names: Sequence[str]) -> list[str]:
    """What the authority may sign for: these names and addresses, and no others."""
    addresses = [address for name in names if (address := _address(name)) is not None]
    bound = [f"permitted;DNS:{name}" for name in names if _address(name) is None]
    for every in (ipaddress.ip_network("0.0.0.0/0"), ipaddress.ip_network("::/0")):
        own = [address for address in addresses if address.version == every.version]
        networks = [("permitted", ipaddress.ip_network(address)) for address in own] or [("excluded", every)]
        bound += [
            f"{rule};IP:{network.network_address.exploded}/{network.netmask.exploded}"
            for rule, network in networks
        ]
    return bound

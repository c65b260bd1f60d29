"""The authority of a home and what it signs, made by the real openssl."""

import os
import ssl
import subprocess
import time
from pathlib import Path

import pytest

from trainshed.certificates.home import Certificates
from trainshed.core.errors import Unavailable

NAMES = ("www.googleapis.com", "storage.googleapis.com")


def made(folder: Path, **environ: str) -> Certificates:
    certificates = Certificates(folder / "tls", NAMES, {"PATH": os.environ["PATH"], **environ})
    certificates.renew()
    return certificates


def handshake(server: Path, roots: Path, name: str) -> None:
    """Both sides of a connection, without a network."""
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(server)
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    left = ssl.create_default_context(cafile=str(roots)).wrap_bio(back, there, server_hostname=name)
    right = serving.wrap_bio(there, back, server_side=True)
    for _ in range(4):
        for side in (left, right):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue


def test_a_program_with_the_roots_trusts_the_server_under_each_name_and_no_other(tmp_path: Path) -> None:
    certificates = made(tmp_path)
    for name in NAMES:
        handshake(certificates.server, certificates.roots, name)
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(certificates.server, certificates.roots, "example.com")


def test_keys_are_for_the_owner_alone_and_roots_for_everybody(tmp_path: Path) -> None:
    certificates = made(tmp_path)
    modes = {file.name: file.stat().st_mode & 0o777 for file in (tmp_path / "tls").iterdir()}
    assert modes == {"authority.pem": 0o600, "server.pem": 0o600, "roots.pem": 0o644, "ca.pem": 0o644}
    assert "PRIVATE KEY" not in certificates.roots.read_text()


def test_what_is_fresh_is_left_alone_and_what_expires_soon_is_made_anew(tmp_path: Path) -> None:
    certificates = made(tmp_path)
    authority, server = tmp_path / "tls" / "authority.pem", certificates.server
    before = authority.read_text(), server.read_text()
    certificates.renew()
    assert (authority.read_text(), server.read_text()) == before
    mark, _, *rest = before[1].split(" ")
    server.write_text(" ".join((mark, str(int(time.time()) + 20 * 86_400), *rest)))
    certificates.renew()
    assert authority.read_text() == before[0]
    assert server.read_text() != before[1]
    handshake(server, certificates.roots, NAMES[0])


def test_a_certificate_for_other_names_or_half_a_file_is_made_anew(tmp_path: Path) -> None:
    certificates = made(tmp_path)
    for text in (
        "",
        "trainshed:",
        certificates.server.read_text().replace(NAMES[1], "old.googleapis.com", 1),
    ):
        certificates.server.write_text(text)
        certificates.renew()
        handshake(certificates.server, certificates.roots, NAMES[1])


def test_the_authority_cannot_sign_for_other_names(tmp_path: Path) -> None:
    certificates = made(tmp_path)
    stranger = Certificates(tmp_path / "tls", ("example.com",), {"PATH": os.environ["PATH"]})
    certificates.server.write_text(stranger._make_server())
    with pytest.raises(ssl.SSLCertVerificationError, match="permitted subtree"):
        handshake(certificates.server, certificates.roots, "example.com")


def test_a_certificate_for_addresses_and_names_is_good_for_these_and_the_authority_for_no_others(
    tmp_path: Path,
) -> None:
    names = ("gpu-box.example", "10.0.0.5", "::1", "localhost")
    own = Certificates(tmp_path / "tls", names, {"PATH": os.environ["PATH"]}, has_roots=False)
    own.renew()
    for name in names:
        handshake(own.server, own.ca, name)
    stranger = Certificates(tmp_path / "tls", ("10.0.0.6", "localhost"), {"PATH": os.environ["PATH"]})
    own.server.write_text(stranger._make_server())
    with pytest.raises(ssl.SSLCertVerificationError, match="permitted subtree"):
        handshake(own.server, own.ca, "10.0.0.6")
    assert not own.roots.exists()


def test_roots_hold_those_of_the_machine_and_those_its_settings_name(tmp_path: Path) -> None:
    own = tmp_path / "own.pem"
    words = (
        "req",
        "-x509",
        "-nodes",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-subj",
        "/CN=firm",
    )
    subprocess.run(["openssl", *words, "-keyout", "/dev/null", "-out", own], check=True, capture_output=True)
    plain, named = made(tmp_path / "a"), made(tmp_path / "b", REQUESTS_CA_BUNDLE=str(own))
    assert own.read_text().strip() in named.roots.read_text()
    count = named.roots.read_text().count("BEGIN CERTIFICATE")
    assert count == plain.roots.read_text().count("BEGIN CERTIFICATE") + 1 > 10


def test_without_openssl_the_reason_is_told(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="openssl"):
        Certificates(tmp_path / "tls", NAMES, {"PATH": str(tmp_path)}).renew()

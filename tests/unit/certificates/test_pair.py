"""A certificate and its key in files: what is told of a bad pair, and what happens when they are replaced."""

import os
import ssl
import subprocess
from pathlib import Path

import pytest

from trainshed.certificates import pair as certificate_pair
from trainshed.certificates.pair import CertificatePair, load, names_in
from trainshed.serving.server_tls import is_covered, name_to_call, own_names
from trainshed.settings.table import Settings, SettingsError


def write_pair(folder: Path, name: str, *words: str) -> tuple[Path, Path]:
    """A self-signed certificate for the name, and its key."""
    folder.mkdir(exist_ok=True)
    certificate, key = folder / "fullchain.pem", folder / "privkey.pem"
    new = ("req", "-x509", "-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256")
    about = ("-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name},IP:::1")
    files = ("-keyout", str(key), "-out", str(certificate))
    subprocess.run(["openssl", *new, *about, *files, *words], check=True, capture_output=True)
    return certificate, key


def write_expired(folder: Path) -> tuple[Path, Path]:
    """As `write_pair`, of the year 2020: openssl's `ca` can be told a date, its `req` cannot everywhere."""
    certificate, key = write_pair(folder, "old.example")
    request, config, made = folder / "request", folder / "config", folder / "made"
    words = ("req", "-new", "-key", str(key), "-subj", "/CN=old.example", "-out", str(request))
    subprocess.run(["openssl", *words], check=True, capture_output=True)
    made.mkdir()
    (folder / "index").touch()
    config.write_text(
        f"[ca]\ndefault_ca=d\n[d]\nnew_certs_dir={made}\ndatabase={folder}/index\nrand_serial=yes\n"
        "default_md=sha256\npolicy=p\n[p]\ncommonName=supplied\n"
    )
    dates = ("-startdate", "200101000000Z", "-enddate", "200201000000Z")
    ca = ("ca", "-selfsign", "-batch", "-config", str(config), "-keyfile", str(key), "-in", str(request))
    subprocess.run(["openssl", *ca, *dates, "-out", str(certificate)], check=True, capture_output=True)
    return certificate, key


def shown_name(context: ssl.SSLContext, certificate: Path) -> str:
    about = certificate_pair._seen_by_client(context, certificate)
    return names_in(about)[0]


@pytest.fixture(autouse=True)
def look_always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificate_pair, "FRESH", 0.0)


def test_a_pair_says_for_which_names_it_is_and_speaks_tls_1_2_at_least(tmp_path: Path) -> None:
    context, about = load(*write_pair(tmp_path, "A.example"))
    assert names_in(about) == ("a.example", "::1")
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2


def test_each_fault_names_the_setting_the_file_and_the_fix(tmp_path: Path) -> None:
    certificate, key = write_pair(tmp_path / "a", "a.example")
    _, other = write_pair(tmp_path / "b", "b.example")
    cut, locked = tmp_path / "cut.pem", tmp_path / "locked.pem"
    cut.write_bytes(certificate.read_bytes()[:100])
    words = ("pkey", "-in", str(key), "-aes256", "-passout", "pass:x", "-out", str(locked))
    subprocess.run(["openssl", *words], check=True, capture_output=True)
    rows = (
        (
            tmp_path / "none.pem",
            key,
            r"--tls-cert: .*none\.pem cannot be read: No such file .*fullchain\.pem",
        ),
        (certificate, tmp_path / "none.pem", r"--tls-key: .*none\.pem cannot be read: No such file"),
        (certificate, tmp_path, "--tls-key: .* cannot be read: Is a directory"),
        (key, key, r"--tls-cert: .*privkey\.pem has no certificate in PEM; give the two files"),
        (certificate, certificate, "--tls-key: .* has no private key in PEM"),
        (certificate, other, "--tls-key: .* is not the key of the certificate .*: give the two files"),
        (certificate, locked, "--tls-key: .* has a passphrase: write it without one, `openssl pkey"),
        (cut, key, r"--tls-cert: .*cut\.pem and --tls-key: .* cannot be used"),
    )
    for given_certificate, given_key, sentence in rows:
        with pytest.raises(SettingsError, match=sentence):
            load(given_certificate, given_key)


def test_an_expired_certificate_is_refused_and_says_so(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"--tls-cert: the certificate .* has expired: renew it"):
        CertificatePair(*write_expired(tmp_path))


def test_a_renewed_pair_counts_once_it_is_whole(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    certificate, key = write_pair(tmp_path / "live", "a.example")
    pair = CertificatePair(certificate, key)
    first = pair.context()
    assert pair.context() is first
    new_certificate, new_key = write_pair(tmp_path / "new", "b.example")
    certificate.write_bytes(new_certificate.read_bytes()[:200])  # half of it
    for _ in range(3):
        assert pair.context() is first
    assert len(caplog.messages) == 1
    os.replace(new_certificate, certificate)  # whole, and its key has not come yet
    assert pair.context() is first
    assert "is not the key of the certificate" in caplog.messages[-1]
    os.replace(new_key, key)
    assert shown_name(pair.context(), certificate) == "b.example"
    certificate.unlink()
    assert shown_name(pair.context(), _copy(tmp_path, pair)) == "b.example"


def _copy(folder: Path, pair: CertificatePair) -> Path:
    """The certificate that a pair shows, in a file."""
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    left = client.wrap_bio(back, there)
    right = pair.context().wrap_bio(there, back, server_side=True)
    for side in (left, right, left):
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
    file = folder / "shown.pem"
    file.write_text(ssl.DER_cert_to_PEM_cert(left.getpeercert(binary_form=True) or b""))
    return file


def test_a_server_is_called_by_the_first_of_its_names_that_the_certificate_has() -> None:
    settings = Settings(host="0.0.0.0", allowed_hosts=("gpu-box.example:8443", "[::1]", "b_ad/"))
    names = own_names(settings)
    assert names == ("gpu-box.example", "::1", "127.0.0.1", "localhost")
    assert name_to_call(names, ("*.example",)) == "gpu-box.example"
    assert name_to_call(names, ("::1", "gpu-box.example")) == "gpu-box.example"
    assert name_to_call(names, ("*.firm.example", "train.firm.example")) == "train.firm.example"
    with pytest.raises(SettingsError, match=r"is for \*.firm.example, and this server is .*--allowed-host"):
        name_to_call(names, ("*.firm.example",))
    assert not is_covered("a.b.example", "*.example")
    assert not is_covered("example", "*.example")

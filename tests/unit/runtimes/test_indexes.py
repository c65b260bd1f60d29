"""Where pip looks here, as it is said inside a container."""

from pathlib import Path

import pytest

from trainshed.runtimes.indexes import config_files, indexes, read_files


def test_variables_win_over_files_and_of_files_the_later_line_wins(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text(
        "[global]\nindex-url = http://one/simple\ntimeout = 5\nuser = true\n[install]\npre = yes\n"
    )
    second.write_text("[global]\nindex_url = http://two/simple\ntrusted-host =\n    a\n    b\n")
    said = read_files([first, second, tmp_path / "absent"])
    found = indexes(said, {"PIP_TIMEOUT": "9", "PIP_TARGET": "/x", "HOME": "/root"}, "/lent")
    assert found.env == {
        "PIP_INDEX_URL": "http://two/simple",
        "PIP_TIMEOUT": "9",
        "PIP_TRUSTED_HOST": "a b",
        "PIP_PRE": "yes",
    }
    assert found.addresses == ("http://two/simple",)
    assert found.shown == ()


def test_folders_are_shown_at_their_own_paths_and_files_at_ours(tmp_path: Path) -> None:
    folder, spaced, cert = tmp_path / "wheels", tmp_path / "my index", tmp_path / "ca.crt"
    folder.mkdir()
    spaced.mkdir()
    cert.write_text("x")
    links = f"{folder} {spaced.as_uri()} {tmp_path}/absent http://there/links"
    found = indexes({}, {"PIP_FIND_LINKS": links, "SSL_CERT_FILE": str(cert)}, "/lent")
    assert found.env == {"PIP_FIND_LINKS": links, "PIP_CERT": "/lent/cert"}
    assert dict(found.shown) == {
        str(folder): str(folder),
        str(spaced): str(spaced),
        str(cert): "/lent/cert",
    }
    assert found.addresses == ("http://there/links",)


@pytest.mark.parametrize(
    ("url", "secrets"),
    [
        ("https://ann:s3cret@host/simple", {"s3cret"}),
        ("https://ann:a%2Fb@host/simple", {"a%2Fb", "a/b"}),
        ("https://token@host/simple", {"token"}),
        ("https://host/simple", set[str]()),
    ],
)
def test_what_must_not_be_said_aloud_is_known(url: str, secrets: set[str]) -> None:
    assert indexes({}, {"PIP_EXTRA_INDEX_URL": url}, "").secrets == secrets
    assert indexes({}, {"HTTPS_PROXY": url}, "").secrets == secrets


def test_proxies_are_taken_along() -> None:
    assert indexes({}, {"https_proxy": "http://p:1", "PIP_PROXY": "http://q:2"}, "").env == {
        "https_proxy": "http://p:1",
        "PIP_PROXY": "http://q:2",
    }


def test_pips_files_are_looked_for_where_pip_looks() -> None:
    found = config_files({"HOME": "/h", "PIP_CONFIG_FILE": "/own.conf"}, "/venv")
    assert [str(path) for path in found] == [
        *("/etc/xdg/pip/pip.conf", "/etc/pip.conf", "/h/.pip/pip.conf", "/h/.config/pip/pip.conf"),
        *("/venv/pip.conf", "/own.conf"),
    ]
    assert config_files({"PIP_CONFIG_FILE": "/dev/null"}, "/venv") == []

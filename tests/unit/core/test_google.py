"""What programs are told so that Google's names lead them to this server."""

from trainshed.core.google import HOSTS, ROOTS, TOKEN, GoogleAccess, hosts_file, past_proxies


def test_the_names_lead_to_the_address_and_nowhere_else() -> None:
    machine = (
        "127.0.0.1 localhost\n10.0.0.1 storage.googleapis.com mirror # ours\n10.0.0.2 www.googleapis.com\n"
    )
    lines = hosts_file(machine, "127.77.1.2").splitlines()
    assert lines[0].split() == ["127.77.1.2", *HOSTS]
    assert lines[1:] == ["127.0.0.1 localhost", "10.0.0.1 mirror", ""]


def test_every_library_is_told_the_roots_and_the_token() -> None:
    env = GoogleAccess("http://127.0.0.1:8080", "job.1.x").env("/r.pem")
    assert {env[name] for name in ROOTS} == {"/r.pem"}
    assert env[TOKEN] == "job.1.x"
    assert env["GCE_METADATA_HOST"] == env["GCE_METADATA_IP"] == "127.0.0.1:8080/t/job.1.x"


def test_a_proxy_is_not_asked_for_the_names() -> None:
    assert past_proxies({"HOME": "/"}) == {}
    told = past_proxies({"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": "firm.example"})
    assert told["no_proxy"] == told["NO_PROXY"]
    assert told["NO_PROXY"].split(",") == ["firm.example", "127.0.0.1", *HOSTS]

"""Which addresses lead into the server's own network, however they are written."""

import pytest

from trainshed.core.supplies.inward import inward, never_a_registry

INWARD = [
    "127.0.0.1",
    "127.8.8.8",
    "0.0.0.0",
    "10.1.2.3",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "224.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "fe80::1%eth0",
    "fd00:ec2::254",
    "ff02::1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "64:ff9b::7f00:1",
    "2002:7f00:1::",
    "not-an-address",
]
OUTWARD = ["8.8.8.8", "151.101.0.223", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"]


@pytest.mark.parametrize("address", INWARD)
def test_an_address_inside_is_seen_in_any_form(address: str):
    assert inward([address]) == address


@pytest.mark.parametrize("address", OUTWARD)
def test_an_address_outside_is_none(address: str):
    assert inward([address]) == ""


def test_one_inward_address_among_others_is_enough():
    assert inward(["8.8.8.8", "10.0.0.1", "::1"]) == "10.0.0.1"
    assert inward([]) == ""


@pytest.mark.parametrize("address", ["169.254.169.254", "0.0.0.0", "fe80::1", "::ffff:169.254.169.254"])
def test_no_registry_is_asked_where_clouds_keep_credentials(address: str):
    assert never_a_registry([address], is_own_name=True) == address


def test_this_machine_s_registry_goes_by_its_own_name_only_and_private_ones_by_any():
    assert never_a_registry(["127.0.0.1"], is_own_name=True) == ""
    assert never_a_registry(["127.0.0.1"], is_own_name=False) == "127.0.0.1"
    assert never_a_registry(["10.0.0.5", "fd00::5"], is_own_name=False) == ""
    assert never_a_registry(["10.0.0.5", "::1"], is_own_name=False) == "::1"

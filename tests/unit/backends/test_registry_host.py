"""Which registries are asked for an image, by what their names lead to."""

import pytest

from trainshed.backends.machine.registry_host import inward_registry
from trainshed.core.supplies.image import parse

HOSTS = {
    "rebound.example": ("127.0.0.1",),
    "mixed.example": ("8.8.8.8", "::1"),
    "credentials.example": ("169.254.169.254",),
    "registry.corp": ("10.0.0.5",),
    "public.example": ("8.8.8.8",),
    "localhost": ("127.0.0.1", "::1"),
    "127.0.0.1": ("127.0.0.1",),
    "169.254.169.254": ("169.254.169.254",),
    "0.0.0.0": ("0.0.0.0",),
}


async def resolve(host: str) -> tuple[str, ...]:
    return HOSTS.get(host, ())


async def asked(image: str, *, has_credentials: bool = False) -> bool:
    why = await inward_registry(parse(image).domain, has_credentials=has_credentials, resolve=resolve)
    assert not why or "leads to" in why
    return not why


@pytest.mark.parametrize(
    "image",
    [
        "rebound.example/x",
        "rebound.example:5000/x:1",
        "mixed.example/x",
        "credentials.example/x",
        "169.254.169.254/x",
        "0.0.0.0:5000/x",
    ],
)
async def test_a_registry_by_a_name_that_leads_to_this_machine_or_beside_it_is_not_asked(image: str):
    assert not await asked(image)


@pytest.mark.parametrize(
    "image",
    [
        "python:3",
        "localhost:5000/x",
        "127.0.0.1:5000/x",
        "registry.corp/x",
        "public.example/x",
        "unknown.example/x",
    ],
)
async def test_this_machine_s_own_private_public_and_unknown_ones_are_asked(image: str):
    assert await asked(image)


async def test_one_that_the_operator_logged_in_to_may_be_on_this_machine_but_never_where_credentials_are():
    assert await asked("rebound.example/x", has_credentials=True)
    assert not await asked("credentials.example/x", has_credentials=True)

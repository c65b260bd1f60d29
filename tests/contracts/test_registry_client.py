"""What an image says of itself, read from registries as they are: indexes, tokens, redirects, refusals."""

import pytest

from tests.containers.small_registry import TOKEN, SmallRegistry, a_small_registry, digest
from trainshed.backends.cluster.registry import RegistryClient, RegistryFault, RegistryImage
from trainshed.backends.cluster.registry_token import Challenge, read_challenge
from trainshed.backends.machine.registry_auth import Credentials
from trainshed.core.supplies.image import Reference, parse

CONFIG = {
    "Entrypoint": ["/serve"],
    "Cmd": ["--all"],
    "Env": ["A=1", "B=x=y"],
    "User": "12:34",
    "WorkingDir": "/srv",
}


async def read(
    registry: SmallRegistry, name: str = "team/app:1", credentials: Credentials | None = None
) -> RegistryImage:
    async def known(reference: Reference) -> Credentials | None:
        return credentials

    return await RegistryClient(known).read(parse(f"{registry.host}/{name}"), {"arm64"})


async def test_the_configuration_for_the_architecture_of_the_nodes_is_read_and_the_image_is_pinned():
    with a_small_registry(CONFIG) as registry:
        image = await read(registry)
    assert image.config.entrypoint == ("/serve",) and image.config.command == ("--all",)
    assert image.config.env == {"A": "1", "B": "x=y"}
    assert (image.config.user, image.config.workdir) == ("12:34", "/srv")
    assert image.reference.canonical == f"{registry.host}/team/app@{digest(registry.index)}"


async def test_an_architecture_that_there_is_none_for_is_named():
    with a_small_registry(CONFIG, "mips") as registry, pytest.raises(RegistryFault, match="on arm64"):
        await read(registry)


async def test_the_architectures_that_an_image_is_for_are_told():
    async def nobody(_: Reference) -> None:
        return None

    with a_small_registry(CONFIG) as registry:
        client, name = RegistryClient(nobody), f"{registry.host}/team/app"
        assert await client.architectures(parse(f"{name}:1")) == {"arm64", "s390x"}
        assert await client.architectures(parse(f"{name}@{digest(registry.manifest)}")) == {"arm64"}


async def test_a_token_is_asked_for_where_the_registry_wants_one():
    with a_small_registry(CONFIG, realm="http://HOST/token") as registry:
        assert (await read(registry)).config.entrypoint == ("/serve",)
    first = [path.partition("?")[0] for path, _ in registry.seen[:3]]
    assert first == ["/v2/team/app/manifests/1", "/token", "/v2/team/app/manifests/1"]
    assert registry.seen[2][1] == f"Bearer {TOKEN}"


async def test_credentials_go_to_the_realm_and_their_lack_is_told():
    with a_small_registry(CONFIG, realm="http://HOST/token", user="ann:s3cret") as registry:
        with pytest.raises(RegistryFault, match="gives no access"):
            await read(registry)
        assert (await read(registry, credentials=Credentials("ann", "s3cret"))).config.user == "12:34"


async def test_a_registry_that_does_not_know_the_image_is_quoted():
    with a_small_registry(CONFIG) as registry, pytest.raises(RegistryFault, match="unknown to the registry"):
        await read(registry, "team/other:1")


@pytest.mark.parametrize(
    "wanted",
    [
        {"store": "http://169.254.169.254/x"},
        {"realm": "http://169.254.169.254/token"},
        {"store": "file:///x"},
    ],
)
async def test_a_registry_sends_nobody_to_where_no_registry_can_be(wanted: dict[str, str]):
    with a_small_registry(CONFIG, **wanted) as registry, pytest.raises(RegistryFault, match="sends on"):
        await read(registry)


async def test_a_registry_that_is_not_there_is_named():
    async def nothing(reference: Reference) -> None:
        return None

    with pytest.raises(RegistryFault, match=r"127\.0\.0\.1:9 cannot be reached from the server"):
        await RegistryClient(nothing).read(parse("127.0.0.1:9/a:1"), {"arm64"})


def test_what_a_registry_wants_is_read():
    assert read_challenge('Basic realm="x"') == Challenge(is_basic=True)
    bearer = 'Bearer realm="https://a/b?c=d",service="s, t",scope="repository:x/y:pull,push"'
    assert read_challenge(bearer) == Challenge(
        realm="https://a/b?c=d", service="s, t", scope="repository:x/y:pull,push"
    )
    assert read_challenge("") is None and read_challenge("Negotiate") is None

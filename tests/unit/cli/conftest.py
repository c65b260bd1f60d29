from collections.abc import Iterator

import pytest

from tests.unit.client.scripted import Script, scripted


@pytest.fixture
def script() -> Iterator[Script]:
    with scripted() as found:
        yield found

"""Work in the background: done, failed, given up."""

import asyncio

import pytest

from trainshed.background_tasks import BackgroundTasks


async def test_what_goes_wrong_on_an_errand_is_told_in_the_log(caplog: pytest.LogCaptureFixture):
    async def fail() -> None:
        raise ValueError("no bread left")

    background = BackgroundTasks()
    await asyncio.wait([background.run(fail())])
    assert "no bread left" in caplog.text


async def test_at_the_end_errands_are_given_up_and_have_tidied_up(caplog: pytest.LogCaptureFixture):
    tidied: list[str] = []

    async def stay() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            tidied.append("yes")

    background = BackgroundTasks()
    background.run(stay())
    await asyncio.sleep(0)
    await background.close()
    assert tidied == ["yes"]
    assert caplog.text == ""

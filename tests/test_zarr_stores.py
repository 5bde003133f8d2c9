"""What dsel asks of zarr's stores."""

import asyncio
import time

import pytest
from zarr.core.sync import sync

from dsel.zarr_stores import finish_writes


def test_finish_writes__waits_for_those_beside_one_that_failed():
    written = []

    def write_slowly():
        time.sleep(0.3)
        written.append("a file")

    async def fail():
        raise OSError("no room")

    async def write_both():
        await asyncio.gather(asyncio.to_thread(write_slowly), fail())

    with pytest.raises(OSError, match="no room"):
        sync(write_both())
    assert not written
    finish_writes()
    assert written == ["a file"]

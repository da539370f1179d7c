import asyncio
from datetime import timedelta

import pytest

from junhong_cmp.gateway.bulkhead import Bulkhead
from junhong_cmp.gateway.client import GatewayAccount
from junhong_cmp.gateway.errors import Saturated

SLOW = GatewayAccount(1, "slow", concurrency=1)
OTHER = GatewayAccount(2, "other", concurrency=1)


async def test_a_full_account_throttles_itself_and_nobody_else() -> None:
    bulkhead = Bulkhead(patience=timedelta(milliseconds=20))
    async with bulkhead.slot(SLOW):
        async with bulkhead.slot(OTHER):
            pass
        with pytest.raises(Saturated, match="并发调用已满") as caught:
            async with bulkhead.slot(SLOW):
                pytest.fail("there was no slot")
    assert caught.value.pause == timedelta(seconds=1)
    async with bulkhead.slot(SLOW):
        pass


async def test_a_waiting_call_gets_the_slot_that_becomes_free() -> None:
    bulkhead = Bulkhead(patience=timedelta(seconds=5))
    entered = asyncio.Event()

    async def wait_for_slot() -> None:
        async with bulkhead.slot(SLOW):
            entered.set()

    async with bulkhead.slot(SLOW):
        waiting = asyncio.create_task(wait_for_slot())
        await asyncio.sleep(0)
        assert not entered.is_set()
    await waiting
    assert entered.is_set()


async def test_a_failing_or_cancelled_call_gives_its_slot_back() -> None:
    bulkhead = Bulkhead(patience=timedelta(0))
    with pytest.raises(RuntimeError):
        async with bulkhead.slot(SLOW):
            raise RuntimeError
    async with bulkhead.slot(SLOW):
        pass


async def test_a_changed_limit_counts_for_later_calls() -> None:
    bulkhead = Bulkhead(patience=timedelta(0))
    wider = GatewayAccount(1, "slow", concurrency=2)
    async with bulkhead.slot(SLOW), bulkhead.slot(wider), bulkhead.slot(wider):
        with pytest.raises(Saturated):
            async with bulkhead.slot(wider):
                pytest.fail("there was no slot")

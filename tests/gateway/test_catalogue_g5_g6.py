"""G5 and G6: answers about another card, and figures that cannot be."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.gateway.clients import ACCOUNT, CARD, gateway_for
from tests.gateway.scripted_server import always, json_answer, scripted_server

from junhong_cmp.gateway.client import CardRef
from junhong_cmp.gateway.errors import BadResponse, WrongCard
from junhong_cmp.gateway.http import HttpGateway

OTHER = CardRef(2, "89860012345678900025")
NEVER_ASKED = "89860099999999999999"
Call = Callable[[HttpGateway], Awaitable[Any]]

CALLS: dict[str, Call] = {
    "usage": lambda gateway: gateway.query_usage(ACCOUNT, CARD),
    "status": lambda gateway: gateway.query_status(ACCOUNT, CARD),
    "real name": lambda gateway: gateway.query_realname(ACCOUNT, CARD),
    "session": lambda gateway: gateway.query_session(ACCOUNT, CARD),
    "stop": lambda gateway: gateway.stop(ACCOUNT, CARD, "op-1"),
    "resume": lambda gateway: gateway.resume(ACCOUNT, CARD, "op-1"),
    "operation": lambda gateway: gateway.query_operation(ACCOUNT, CARD, "op-1"),
    "usage batch": lambda gateway: gateway.query_usage_batch(ACCOUNT, [CARD, OTHER]),
    "status batch": lambda gateway: gateway.query_status_batch(ACCOUNT, [CARD, OTHER]),
    "real-name batch": lambda gateway: gateway.query_realname_batch(ACCOUNT, [CARD, OTHER]),
}


def everything_about(iccid: str, **changed: object) -> dict[str, object]:
    """Return an item that answers any question about a card."""
    now = datetime.now(UTC).isoformat()
    return {
        "iccid": iccid,
        "used": 1,
        "unit": "KB",
        "reading_at": now,
        "observed_at": now,
        "status": "active",
        "real_name": "verified",
        "online": True,
        "request_id": "op-1",
        "state": "done",
    } | changed


def answer_about(iccid: str, **changed: object) -> bytes:
    item = everything_about(iccid, **changed)
    return json_answer({**item, "items": [item, everything_about(OTHER.iccid)]})


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
async def test_g5_an_answer_about_the_card_is_taken(call: Call) -> None:
    async with (
        scripted_server(always(answer_about(CARD.iccid))) as server,
        gateway_for(server.url) as gateway,
    ):
        answer = await call(gateway)
    if isinstance(answer, dict):
        assert {each.iccid for each in answer.values()} == {CARD.iccid, OTHER.iccid}
    else:
        assert answer.iccid == CARD.iccid


SINGLE = {name: call for name, call in CALLS.items() if "batch" not in name}
BATCH = {name: call for name, call in CALLS.items() if "batch" in name}


@pytest.mark.parametrize("call", BATCH.values(), ids=BATCH)
async def test_g5_another_card_in_a_batch_is_refused_and_told_and_costs_no_neighbour(call: Call) -> None:
    async with (
        scripted_server(always(answer_about(NEVER_ASKED))) as server,
        gateway_for(server.url) as gateway,
    ):
        with capture_logs() as logs:
            answers = await call(gateway)
    assert type(answers[CARD.card_id]) is WrongCard
    assert answers[OTHER.card_id].iccid == OTHER.iccid
    assert [(entry["event"], entry["log_level"]) for entry in logs] == [
        ("批量应答中有未查询的卡，已拒绝", "warning")
    ]
    assert logs[0]["card_ids"] == [CARD.card_id]
    assert "8986" not in str(logs)


@pytest.mark.parametrize("call", SINGLE.values(), ids=SINGLE)
async def test_g5_an_answer_about_another_card_is_refused_and_told(call: Call) -> None:
    async with (
        scripted_server(always(answer_about(NEVER_ASKED))) as server,
        gateway_for(server.url) as gateway,
    ):
        with capture_logs() as logs, pytest.raises(WrongCard):
            await call(gateway)
    assert [(entry["event"], entry["log_level"]) for entry in logs] == [
        ("网关返回了其他卡的数据，已拒绝", "warning")
    ]
    assert logs[0]["account"] == ACCOUNT.code
    assert "8986" not in str(logs)


async def test_g5_an_operation_of_another_name_is_refused() -> None:
    answer = answer_about(CARD.iccid, request_id="op-2")
    async with scripted_server(always(answer)) as server, gateway_for(server.url) as gateway:
        with pytest.raises(WrongCard):
            await gateway.query_operation(ACCOUNT, CARD, "op-1")


@pytest.mark.parametrize(
    ("used", "unit"),
    [
        (-1, "KB"),
        ("-1", "KB"),
        ("-1KB", None),
        (2**51, "KB"),
        ("1048577TB", None),
        ("1" + "0" * 30, "B"),
        (1, "Kbit"),
        (1, "FORTNIGHT"),
        ("1MB", "KB"),
        ("1 MB 5 KB", None),
        ("1,024", "KB"),
        ("0x10", "KB"),
        ("1e3", "KB"),
        ("\u0661", "KB"),
        (True, "KB"),
        (None, "KB"),
        ([], "KB"),
        ("", "KB"),
        ("NaN", "KB"),
    ],
)
async def test_g6_a_figure_that_cannot_be_is_refused(used: object, unit: str | None) -> None:
    answer = answer_about(CARD.iccid, used=used, unit=unit)
    async with scripted_server(always(answer)) as server, gateway_for(server.url) as gateway:
        with pytest.raises(BadResponse, match="用量"):
            await gateway.query_usage(ACCOUNT, CARD)


@pytest.mark.parametrize(
    ("used", "unit", "used_kb"),
    [
        (0, "KB", 0),
        (1023, "B", 0),
        (12, None, 12),
        ("12.34MB", None, 12636),
        ("12.34", "mb", 12636),
        (1.5, "GB", 1572864),
        (2**50, "KB", 2**50),
    ],
)
async def test_g6_a_figure_is_kept_in_whole_kilobytes(used: object, unit: str | None, used_kb: int) -> None:
    answer = answer_about(CARD.iccid, used=used, unit=unit)
    async with scripted_server(always(answer)) as server, gateway_for(server.url) as gateway:
        assert (await gateway.query_usage(ACCOUNT, CARD)).used_kb == used_kb


async def test_g6_one_bad_figure_of_a_batch_spoils_no_other() -> None:
    answer = answer_about(CARD.iccid, used=-1)
    async with scripted_server(always(answer)) as server, gateway_for(server.url) as gateway:
        answers = await gateway.query_usage_batch(ACCOUNT, [CARD, OTHER])
    assert isinstance(answers[CARD.card_id], BadResponse)
    assert not isinstance(answers[OTHER.card_id], Exception)

"""Reading carriers' usage answers back from their bytes, without the drivers: card, volume, and of when."""

import re
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any

import orjson
from tests.simulation.plan import CHINA

Told = tuple[str, int, datetime | None]
"""A card, the KB told of it, and the instant the carrier says they are of, if it does."""

_KB_PER_MB = 1024


def read_usage(driver: str, asked: Sequence[str], body: bytes) -> list[Told]:
    """Return what an answer about these cards tells."""
    return _READERS[driver](asked, body)


def _generic(_: Sequence[str], body: bytes) -> list[Told]:
    answer = orjson.loads(body)
    items: list[dict[str, Any]] = answer.get("items", [answer])
    return [
        (item["iccid"], int(item["used"]), datetime.fromisoformat(item["reading_at"]))
        for item in items
        if item["unit"] == "KB"
    ]


def _unicom(_: Sequence[str], body: bytes) -> list[Told]:
    terminals = orjson.loads(body)["data"]["terminals"]
    return [(one["iccid"], _megabytes(one["monthToDateDataUsage"]), None) for one in terminals]


def _telecom(asked: Sequence[str], body: bytes) -> list[Told]:
    found = re.search(r"<TOTAL_BYTES_CNT>([0-9.]+)MB</TOTAL_BYTES_CNT>", body.decode())
    assert found is not None, body
    return [(asked[0], _megabytes(found[1]), None)]


def _onelink(asked: Sequence[str], body: bytes) -> list[Told]:
    (result,) = orjson.loads(body)["result"]
    if "dataAmountList" not in result:
        return [(asked[0], int(result["dataAmount"]), None)]
    if not result["deadLine"].strip():
        return []
    last = datetime.strptime(result["deadLine"], "%Y%m%d").replace(tzinfo=CHINA)
    end = last + timedelta(days=1, milliseconds=-1)
    return [(entry["iccid"], int(entry["dataAmount"]), end) for entry in result["dataAmountList"]]


def _megabytes(text: str) -> int:
    return int(Fraction(text) * _KB_PER_MB)


_READERS: dict[str, Callable[[Sequence[str], bytes], list[Told]]] = {
    "generic": _generic,
    "unicom": _unicom,
    "ctcc": _telecom,
    "onelink": _onelink,
}

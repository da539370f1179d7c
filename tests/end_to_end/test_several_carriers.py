"""Carriers of several kinds polled side by side, each held against its simulator's own book."""

import json
import re
import signal
from collections import defaultdict
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Final

import asyncpg
import psutil
import pytest
from tests.up_process import UpProcess, up
from tests.waiting import wait_until

from junhong_cmp.gateway.drivers.ctcc_cipher import KEY_CHARS
from junhong_cmp.gateway.drivers.table import DRIVERS
from junhong_cmp.gateway.simulator_cards import expected_usage_kb
from junhong_cmp.gateway.simulator_log import CallRecord, read_log

CARDS_EACH: Final = 30  # polled 0.35 times a second each: usage every 5 s, status and real-name less often
DUE_PER_S: Final = 0.35 * CARDS_EACH
PARTS_OF_MB: Final = {"unicom": 1000, "ctcc": 100}  # what a carrier writes behind the point


@pytest.mark.parametrize(
    ("carriers", "throttled"),
    [("onelink,unicom,ctcc", None), ("onelink,unicom,ctcc", "unicom"), ("generic,ctcc", "ctcc")],
)
async def test_every_account_is_polled_and_only_the_throttled_one_pauses(
    data_folder: Path, carriers: str, throttled: str | None
) -> None:
    drivers = carriers.split(",")
    cards = len(drivers) * CARDS_EACH
    slow = [] if throttled is None else ["--throttle", throttled]
    requests = data_folder / "requests.jsonl"
    arguments = ["--carriers", carriers, "--cards", str(cards), *slow, "--simulator-log", str(requests)]
    async with up(data_folder / "data", *arguments, "--json") as run:
        await run.polls()
        keys = credentials(run)
        rows = await polled_for_a_while(run, {f"demo-{driver}" for driver in drivers} - {f"demo-{throttled}"})
        run.process.send_signal(signal.SIGINT)
        assert await run.finish() == 0, run.err

    assert (run.summary["cards"], run.summary["failed"]) == (cards, 0)
    accounts = {each["driver"]: each for each in run.summary["accounts"]}
    assert list(accounts) == drivers
    for driver, account in accounts.items():
        assert (account["account"], account["cards"]) == (f"demo-{driver}", CARDS_EACH)
        assert account["polled"] > 0
        assert account["failed"] == 0
        if driver == throttled:
            assert account["throttled"] > 0
            assert account["pause_reason"] == "throttled"
            assert account["paused_until"] is not None
        else:
            assert (account["throttled"], account["paused"], account["pause_reason"]) == (0, False, None)
            assert account["polled_per_s"] > DUE_PER_S / 2
    check_against_the_books(rows, {driver: log_of(requests, driver) for driver in drivers})
    assert set(keys) == {f"demo-{driver}" for driver in drivers}
    hidden = {key["secret"] for key in keys.values()}
    hidden |= {key["secret"][:-KEY_CHARS] for key in keys.values()}  # Telecom's password, without its key
    assert_nowhere(hidden, data_folder, run.out + run.err)


def credentials(run: UpProcess) -> Mapping[str, Mapping[str, str]]:
    """What the worker was given, which nothing else ever shows."""
    variables = psutil.Process(run.pids()["worker"]).environ()
    return dict(json.loads(variables["JUNHONG_GATEWAY_CREDENTIALS"]))


async def polled_for_a_while(run: UpProcess, free: set[str]) -> list[asyncpg.Record]:
    """Wait until accounts nobody throttles have been polled about nine seconds long; return all readings."""
    found = re.search("PostgreSQL：(.*)（进程", run.err)
    assert found is not None
    connection = await asyncpg.connect(found[1])

    async def long_enough() -> bool:
        rows = await connection.fetch(
            "SELECT code, sum(done) AS done FROM poll_minute JOIN carrier_account a ON a.id = account_id"
            " GROUP BY code"
        )
        done = {row["code"]: row["done"] for row in rows}
        unread = await connection.fetchval(
            "SELECT count(*) FROM iot_card JOIN carrier_account a ON a.id = account_id"
            " WHERE last_reading_kb IS NULL AND code = ANY($1::text[])",
            list(free),
        )
        return not unread and all(done.get(code, 0) >= 3 * CARDS_EACH for code in free)

    try:
        await wait_until(long_enough, timeout=60, description="every account is polled for a while")
        return list(
            await connection.fetch(
                "SELECT driver, iccid, last_reading_kb, last_reading_at, cycle, billing_day"
                " FROM iot_card JOIN carrier_account a ON a.id = account_id WHERE last_reading_kb IS NOT NULL"
            )
        )
    finally:
        await connection.close()


def check_against_the_books(
    rows: list[asyncpg.Record], logs: Mapping[str, Mapping[str, list[CallRecord]]]
) -> None:
    """Each reading is what the carrier had in its book while it was answering, or at the reading's own time.

    Most interfaces tell no time, and our clock is read a little before or after theirs.
    """
    assert {row["driver"] for row in rows} == set(logs)
    for row in rows:
        driver, iccid, stated = row["driver"], row["iccid"], row["last_reading_at"]
        assert DRIVERS[driver].defaults.billing_day == row["billing_day"]
        assert row["cycle"].endswith(f"-{row['billing_day']:02d}")
        spans = [(stated, stated)]
        spans += [(instant(call.t_start), instant(call.t_end)) for call in logs[driver][iccid[:19]]]
        assert any(
            told(driver, iccid, begin) <= row["last_reading_kb"] <= told(driver, iccid, end)
            for begin, end in spans
        ), (driver, iccid, row["last_reading_kb"])


def told(driver: str, iccid: str, at: datetime) -> int:
    """What is left of the carrier's number, in KB, after it was written down with a few decimal places."""
    used_kb = expected_usage_kb(iccid, at, billing_day=DRIVERS[driver].defaults.billing_day)
    parts = PARTS_OF_MB.get(driver)
    return used_kb if parts is None else used_kb * parts // 1024 * 1024 // parts


def log_of(requests: Path, driver: str) -> Mapping[str, list[CallRecord]]:
    """What the carrier answered about usage, by card; no card was ever asked about by two calls at once."""
    calls: defaultdict[str, list[CallRecord]] = defaultdict(list)
    for call in read_log(requests.with_name(f"requests-{driver}.jsonl")):
        if call.op == "usage" and call.outcome == "ok":
            calls[call.iccid[:19]].append(call)
    for asked in calls.values():
        asked.sort(key=lambda call: call.t_start)
        assert all(one.t_end <= other.t_start for one, other in pairwise(asked))
    return calls


def instant(unix_s: float) -> datetime:
    return datetime.fromtimestamp(unix_s, UTC)


def assert_nowhere(secrets: set[str], folder: Path, printed: str) -> None:
    """No secret was printed or left in a log, or in any other file of the run."""
    assert len(secrets) >= 2
    files = [path for path in folder.rglob("*") if path.is_file() and "postgres" not in path.parts]
    assert len(files) > 5
    texts = [printed, *(path.read_bytes().decode("utf-8", "replace") for path in files)]
    assert not [secret for secret in secrets for text in texts if secret in text]

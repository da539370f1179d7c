"""The obvious build of a poll, run in the peers' environment: arq, httpx, a SELECT and an UPDATE a card.

obvious.py fill  <redis url> <cards>
obvious.py serve <redis url> <concurrency> <cards> <postgres dsn> <gateway url>   (secret: GATEWAY_SECRET)

It does what the job asks for and nothing of what keeps a fleet whole: no claims, no limits of an account, no
history, no billing cycles, no back-off.
"""

import hashlib
import hmac
import logging
import os
import secrets
import sys
import time
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import uvloop
from arq import create_pool
from arq.connections import RedisSettings
from arq.worker import Worker, func

sys.path.append(str(Path(__file__).parents[1] / "peers"))
from tally import Tally

KEY_ID = "bench"
PATH = "/v1/usage/query"
SELECT = """
    SELECT c.iccid, a.code FROM iot_card AS c JOIN carrier_account AS a ON a.id = c.account_id
    WHERE c.id = $1 AND c.deleted_at IS NULL
"""
UPDATE = """
    UPDATE iot_card
    SET last_reading_kb = $2, last_reading_at = now(), cycle_used_kb = greatest(cycle_used_kb, $2),
        carddata_attempted_at = now(), carddata_succeeded_at = now(), carddata_fail_count = 0,
        updated_at = now()
    WHERE id = $1
"""


def signed(body: bytes) -> dict[str, str]:
    """Sign a request as the carrier wants it."""
    timestamp, nonce = str(int(time.time())), secrets.token_hex(16)
    digest = hashlib.sha256(body).hexdigest()
    canonical = f"JUNHONG-HMAC-SHA256-V1\nPOST\n{PATH}\n{KEY_ID}\n{timestamp}\n{nonce}\n{digest}"
    secret = os.environ["GATEWAY_SECRET"].encode()
    return {
        "Content-Type": "application/json",
        "X-Junhong-Key-Id": KEY_ID,
        "X-Junhong-Timestamp": timestamp,
        "X-Junhong-Nonce": nonce,
        "X-Junhong-Signature": hmac.new(secret, canonical.encode(), hashlib.sha256).hexdigest(),
    }


async def poll(context: dict[str, Any], card_id: int) -> None:
    """Poll one card."""
    row = await context["pool"].fetchrow(SELECT, card_id)
    request = httpx.Request(
        "POST", f"{context['url']}{PATH}", json={"account": row["code"], "iccid": row["iccid"]}
    )
    request.headers.update(signed(request.content))
    response = await context["http"].send(request)
    response.raise_for_status()
    answer = response.json()
    if answer["iccid"] != row["iccid"]:
        raise ValueError(answer["iccid"])
    await context["pool"].execute(UPDATE, card_id, answer["used"])
    context["tally"].count()


async def fill(url: str, cards: int) -> None:
    """Enqueue a job for each card."""
    pool = await create_pool(RedisSettings.from_dsn(url))
    for card_id in range(1, cards + 1):
        await pool.enqueue_job("poll", card_id)
    await pool.aclose()


async def serve(url: str, concurrency: int, cards: int, dsn: str, gateway_url: str) -> None:
    """Work jobs off."""
    limits = httpx.Limits(max_connections=concurrency, max_keepalive_connections=concurrency)
    async with asyncpg.create_pool(dsn, max_size=10) as pool, httpx.AsyncClient(limits=limits) as client:
        worker = Worker(
            [func(poll, name="poll", keep_result=0)],
            redis_settings=RedisSettings.from_dsn(url),
            max_jobs=concurrency,
            handle_signals=False,
            ctx={
                "pool": pool,
                "http": client,
                "url": gateway_url,
                "tally": Tally(cards),
            },
        )
        await worker.async_run()


def main() -> None:
    """Run one subcommand."""
    logging.disable(logging.WARNING)
    command, url, number, *rest = sys.argv[1:]
    if command == "fill":
        uvloop.run(fill(url, int(number)))
        return
    print("ready", flush=True)
    cards, dsn, gateway_url = rest
    uvloop.run(serve(url, int(number), int(cards), dsn, gateway_url))


if __name__ == "__main__":
    main()

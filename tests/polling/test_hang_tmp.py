import asyncio, pytest, io
from junhong_cmp.polling.scheduler import PollingScheduler
from junhong_cmp.polling.queue_manager import PollingQueueManager
from junhong_cmp.polling.config_manager import PollingConfigManager
from junhong_cmp.polling.concurrency import AccountConcurrency
from junhong_cmp.polling.stats import PollStats
from junhong_cmp.asynq.client import Client
from junhong_cmp.asynq.connection import open_redis
from junhong_cmp.cards.account_store import NewAccount, record_account
from junhong_cmp.cards.carrier import Carrier
from junhong_cmp.db.pool import open_pool

@pytest.mark.parametrize("i", range(40))
async def test_hang(redis_url, postgres_dsn, i):
    pool = await open_pool(postgres_dsn)
    async with pool.acquire() as conn:
        await record_account(conn, NewAccount(code="d", carrier=Carrier.CMCC))
    redis = open_redis(redis_url)
    qm = PollingQueueManager(redis)
    cm = PollingConfigManager(pool, postgres_dsn)
    await cm.start()
    con = AccountConcurrency(redis)
    s = PollingScheduler(redis=redis, queue_manager=qm, config_manager=cm, concurrency=con, client=Client(redis), stats=PollStats(pool), has_gateway=True)
    await s.start()
    for _ in range(i*2): await asyncio.sleep(0)
    await asyncio.sleep(i/4000)
    task = s._running
    stop = asyncio.create_task(s.stop())
    try:
        await asyncio.wait_for(asyncio.shield(stop), 1)
    except TimeoutError:
        out = io.StringIO(); task.print_stack(file=out); 
        c = task.get_coro()
        while c is not None:
            out.write(f"{c} {getattr(c,'cr_frame',None) and c.cr_frame.f_lineno}\n"); c = getattr(c, 'cr_await', None)
        print(out.getvalue()); task.cancel(); await stop
        raise AssertionError(out.getvalue())
    finally:
        await cm.stop(); await qm.close(); await con.close(); await redis.aclose(); await pool.close()

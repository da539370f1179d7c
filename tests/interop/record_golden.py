"""Records anew what the real Asynq leaves in Redis: `.venv/bin/python -m tests.interop.record_golden`.

Needs Go, root (or user namespaces) for a host name that is nobody's, and half a minute.
"""

import asyncio
import os
import tempfile
from pathlib import Path

from tests.interop.programs import build, run
from tests.redis_servers import SingleRedis

GOLDEN = Path(__file__).parents[1] / "asynq" / "golden" / "asynq-v0.26.0.json"


async def record() -> None:
    with tempfile.TemporaryDirectory(prefix="jh-r-", dir="/tmp") as name:
        folder = Path(name)
        programs = build(folder / "programs")
        server = SingleRedis(folder)
        await server.start()
        try:
            # Option texts hold local times, server records the name of the host.
            command = f"hostname host; exec {programs.interop} record {server.socket_path}"
            os.environ["TZ"] = "UTC"
            recorded = await run("unshare", "--uts", "sh", "-c", command)
        finally:
            await server.stop()
    GOLDEN.write_text(recorded, encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(record())

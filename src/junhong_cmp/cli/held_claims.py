"""How a command says that the leader gives no claims for a while."""

import math
from datetime import timedelta


def held_text(wait: timedelta) -> str:
    """Return why nothing is polled and how long that will last."""
    return (
        "主节点暂缓认领：Redis 重启、切换或丢失过数据，等待此前发出的查询全部结束，"
        f"约 {math.ceil(wait.total_seconds())} 秒后恢复轮询"
    )

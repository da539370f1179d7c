from junhong_cmp.asynq.keys import ProcessKeys, queue_keys


def test_keys_of_a_queue_carry_its_hash_tag() -> None:
    keys = queue_keys("low")
    assert keys.task("1") == "asynq:{low}:t:1"
    assert keys.group("g") == "asynq:{low}:g:g"
    assert keys.processed_on("2026-03-01") == "asynq:{low}:processed:2026-03-01"
    assert keys.failed_on("2026-03-01") == "asynq:{low}:failed:2026-03-01"
    assert keys.cron_last("daily") == "asynq:{low}:cron:daily:last"
    assert keys.cron_since("daily") == "asynq:{low}:cron:daily:since"
    names = ("pending", "active", "lease", "scheduled", "retry", "archived", "completed", "paused", "groups")
    assert [getattr(keys, name) for name in names] == [f"asynq:{{low}}:{name}" for name in names]


def test_the_unique_key_is_the_digest_of_the_raw_payload() -> None:
    keys = queue_keys("low")
    assert keys.unique("t", b"{}") == "asynq:{low}:unique:t:99914b932bd37a50b983c5e7c90ae93b"
    assert keys.unique("t", b"") == "asynq:{low}:unique:t:"


def test_keys_of_a_process() -> None:
    keys = ProcessKeys("h:1:x")
    assert keys.server == "asynq:servers:{h:1:x}"
    assert keys.workers == "asynq:workers:{h:1:x}"
    assert ProcessKeys.workers_of(keys.server) == keys.workers
    assert keys.scheduler == "asynq:schedulers:{h:1:x}"
    assert ProcessKeys.history("daily") == "asynq:scheduler_history:daily"

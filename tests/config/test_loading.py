"""Precedence, origins, and every fault at once."""

from pathlib import Path

import pytest

from junhong_cmp import config
from junhong_cmp.config import WorkerRole
from junhong_cmp.errors import ConfigError, ExitCode

NEEDED = {
    "JUNHONG_REDIS_URL": "redis://:redis-canary@127.0.0.1:6379/0",
    "JUNHONG_POSTGRES_DSN": "postgresql://u:pg-canary@127.0.0.1/db",
}


def resolve(tmp_path: Path, flags: dict[str, object] | None = None, **environ: str) -> config.Resolution:
    return config.resolve(flags=flags, environ={**NEEDED, **environ}, cwd=tmp_path)


def problems(tmp_path: Path, **environ: str) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        resolve(tmp_path, None, **environ)
    assert caught.value.exit_code is ExitCode.CONFIGURATION
    return caught.value.problems


def origin_of(resolution: config.Resolution, variable: str) -> str:
    return next(item.origin for item in resolution.values if item.variable == variable)


def test_defaults(tmp_path: Path) -> None:
    settings = resolve(tmp_path).settings
    assert settings.worker.role is WorkerRole.ALL
    assert settings.worker.instance_name == ""
    assert settings.queue.weights == {"polling": 6, "import": 2, "default": 1}
    assert settings.storage.url is None
    assert settings.gateway.url is None


def test_flags_win_over_environment_over_dotenv_over_yaml_over_default(tmp_path: Path) -> None:
    variable = "JUNHONG_QUEUE_CONCURRENCY"
    yaml = tmp_path / "junhong.yaml"
    yaml.write_text("queue: {concurrency: 2}\n", encoding="utf-8")
    dotenv = tmp_path / ".env"
    dotenv.write_text(f"{variable}=3\n", encoding="utf-8")

    assert resolve(tmp_path).settings.queue.concurrency == 3
    flagged = resolve(tmp_path, {"queue.concurrency": 5, "config": "junhong.yaml"}, **{variable: "4"})
    assert flagged.settings.queue.concurrency == 5
    assert origin_of(flagged, variable) == "命令行参数"
    exported = resolve(tmp_path, {"config": "junhong.yaml"}, **{variable: "4"})
    assert (exported.settings.queue.concurrency, origin_of(exported, variable)) == (4, "环境变量")
    written = resolve(tmp_path, {"config": "junhong.yaml"})
    assert (written.settings.queue.concurrency, origin_of(written, variable)) == (3, ".env 文件")
    dotenv.unlink()
    filed = resolve(tmp_path, JUNHONG_CONFIG="junhong.yaml")
    assert filed.settings.queue.concurrency == 2
    assert "junhong.yaml" in origin_of(filed, variable)
    assert origin_of(resolve(tmp_path), variable) == "默认值"


def test_empty_is_unset(tmp_path: Path) -> None:
    resolution = resolve(tmp_path, JUNHONG_WORKER_ROLE="", JUNHONG_STORAGE_URL="")
    assert resolution.settings.worker.role is WorkerRole.ALL
    assert origin_of(resolution, "JUNHONG_WORKER_ROLE") == "默认值"


@pytest.mark.parametrize("role", ["scheduler", "Leader", " leader ", "ALL", "all,leader"])
def test_role_must_match_exactly(tmp_path: Path, role: str) -> None:
    assert problems(tmp_path, JUNHONG_WORKER_ROLE=role) == (
        f'JUNHONG_WORKER_ROLE 只能为 all、leader、consumer，实际为 "{role}"',
    )


@pytest.mark.parametrize("role", list(WorkerRole))
def test_every_role_is_accepted(tmp_path: Path, role: WorkerRole) -> None:
    assert resolve(tmp_path, JUNHONG_WORKER_ROLE=role.value).settings.worker.role is role


def test_every_fault_is_reported_at_once(tmp_path: Path) -> None:
    found = problems(
        tmp_path,
        JUNHONG_WORKER_ROLE="scheduler",
        JUNHONG_QUEUE_CONCURRENCY="many",
        JUNHONG_REDIS_URL="http://:redis-canary@127.0.0.1",
        JUNHONG_POSTGRES_DSN="postgresql://u:pg-canary@h:99999/db",
        JUNHONG_SHUTDOWN_GRACE="soon",
        JUNHONG_QUEUE_WEIGHTS="polling=0",
        JUNHONG_LEASE_TTL="3s",
        JUNHONG_GATEWAY_URL="http://127.0.0.1:1",
        JUNHONG_LOG_LEVEL="loud",
        JUNHONG_GATEWAY_SECRET_FILE=str(tmp_path / "absent"),
    )
    text = "\n".join(found)
    for sentence in (
        '只能为 all、leader、consumer，实际为 "scheduler"',
        'JUNHONG_QUEUE_CONCURRENCY 须为整数，实际为 "many"',
        "JUNHONG_REDIS_URL 须以 redis://",
        "JUNHONG_POSTGRES_DSN 中的端口无效",
        "JUNHONG_SHUTDOWN_GRACE 不是时长",
        "JUNHONG_QUEUE_WEIGHTS 写法须如",
        "之和须小于 JUNHONG_LEASE_TTL",
        "JUNHONG_GATEWAY_ALLOW_HTTP=true",
        "JUNHONG_LOG_LEVEL 只能为 debug、info、warning、error",
        "JUNHONG_GATEWAY_SECRET_FILE 指向的文件",
    ):
        assert sentence in text
    assert "canary" not in text


def test_checks_over_several_variables_are_all_told(tmp_path: Path) -> None:
    found = "".join(
        problems(tmp_path, JUNHONG_GATEWAY_URL="http://gw.example", JUNHONG_GATEWAY_KEY_ID="alone")
    )
    assert "JUNHONG_GATEWAY_ALLOW_HTTP=true" in found
    assert "JUNHONG_GATEWAY_KEY_ID 与 JUNHONG_GATEWAY_SECRET 须同时设置" in found


def test_a_gateway_must_answer_within_a_turn(tmp_path: Path) -> None:
    (problem,) = problems(
        tmp_path, JUNHONG_GATEWAY_URL="https://gw.example", JUNHONG_POLLING_TURN_TIMEOUT="10s"
    )
    assert problem.startswith("JUNHONG_GATEWAY_TOTAL_TIMEOUT 须小于 JUNHONG_POLLING_TURN_TIMEOUT")
    assert resolve(tmp_path, JUNHONG_POLLING_TURN_TIMEOUT="10s").settings.gateway.url is None


def test_a_mistyped_name_is_told_with_what_it_leaves_missing(tmp_path: Path) -> None:
    environ = {"JUNHONG_REDIS_ULR": "redis://h", "JUNHONG_POSTGRES_DSN": NEEDED["JUNHONG_POSTGRES_DSN"]}
    with pytest.raises(ConfigError) as caught:
        config.load(environ=environ, cwd=tmp_path)
    missing, hint = caught.value.problems
    assert missing.startswith("JUNHONG_REDIS_URL 未设置")
    assert "JUNHONG_REDIS_ULR，是否应为 JUNHONG_REDIS_URL" in hint


def test_missing_addresses_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        config.load(environ={}, cwd=tmp_path)
    assert [problem.split(" ")[0] for problem in caught.value.problems] == [
        "JUNHONG_REDIS_URL",
        "JUNHONG_POSTGRES_DSN",
    ]


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("JUNHONG_QUEUE_CONCURRENCY", "0"),
        ("JUNHONG_QUEUE_CONCURRENCY", "1.5"),
        ("JUNHONG_QUEUE_STRICT_PRIORITY", "maybe"),
        ("JUNHONG_SHUTDOWN_GRACE", "-1s"),
        ("JUNHONG_POLLING_VISIBILITY", "10ms"),
        ("JUNHONG_QUEUE_WEIGHTS", "a=1,a=2"),
        ("JUNHONG_QUEUE_WEIGHTS", "a=99999999999"),
        ("JUNHONG_POSTGRES_DSN", "postgresql://u:p,w@h1:many,h2/db"),
        ("JUNHONG_POSTGRES_DSN", "postgresql://h1:5432,h2:99999/db"),
        ("JUNHONG_POSTGRES_DSN", "postgresql://h/db?sslmode=full"),
        ("JUNHONG_POSTGRES_DSN", "postgresql:///db?host=/run/a,/run/b&port=5432,x"),
        ("JUNHONG_REDIS_URL", "redis-cluster://h1:7000,h2:port"),
        ("JUNHONG_WORKER_INSTANCE_NAME", "x" * 65),
        ("JUNHONG_WORKER_INSTANCE_NAME", "a\nb"),
        ("JUNHONG_STORAGE_URL", "ftp://h/x"),
        ("JUNHONG_GATEWAY_CREDENTIALS", "{"),
        ("JUNHONG_LOG_FORMAT", "xml"),
    ],
)
def test_bad_values_are_refused_by_name(tmp_path: Path, variable: str, value: str) -> None:
    (problem,) = problems(tmp_path, **{variable: value})
    assert problem.startswith(variable)


def test_secret_files(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("file-canary\n", encoding="utf-8")
    path = str(tmp_path / "secret")
    resolution = resolve(tmp_path, JUNHONG_GATEWAY_KEY_ID="k", JUNHONG_GATEWAY_SECRET_FILE=path)
    secret = resolution.settings.gateway.secret
    assert secret is not None
    assert secret.get_secret_value() == "file-canary"
    (origin,) = (item.origin for item in resolution.values if item.variable == "JUNHONG_GATEWAY_SECRET")
    assert origin == f"环境变量 JUNHONG_GATEWAY_SECRET_FILE={path}"
    both = problems(tmp_path, JUNHONG_GATEWAY_SECRET="x", JUNHONG_GATEWAY_SECRET_FILE=path)
    assert "JUNHONG_GATEWAY_SECRET 与 JUNHONG_GATEWAY_SECRET_FILE 只能设置其一" in both


def test_no_secret_shows(tmp_path: Path) -> None:
    credentials = '{"acc": {"key_id": "k1", "secret": "cred-canary"}}'
    resolution = resolve(
        tmp_path,
        JUNHONG_GATEWAY_URL="https://user:url-canary@gw.example",
        JUNHONG_GATEWAY_KEY_ID="k",
        JUNHONG_GATEWAY_SECRET="gw-canary",
        JUNHONG_GATEWAY_CREDENTIALS=credentials,
    )
    assert "canary" not in repr(resolution.values)
    assert "canary" not in repr(resolution.settings)
    assert set(resolution.secrets) == {"redis-canary", "pg-canary", "url-canary", "gw-canary", "cred-canary"}


@pytest.mark.parametrize(
    ("credentials", "complaint"),
    [
        ('{"acc": {"key_id": "k1"}}', "中的 acc.secret 未设置："),
        ('{"acc": {"key_id": "k1", "secret": ""}}', "中的 acc.secret 不能为空"),
        ('{"acc": {"key_id": "k1", "secret": "cred-canary", "app": "x"}}', "中的 acc.app 不是已知的项"),
        ('{"acc": {"key_id": 7, "secret": "cred-canary"}}', "中的 acc.key_id 须为文本"),
        ('{"acc": "cred-canary"}', "中的 acc 须为映射"),
        ('["cred-canary"]', "须为映射"),
        ('{"acc": {"key_id": "k1", "secret": "cred-canary"}, "acc": {}}', "中 acc 出现两次"),
        ('{"acc": cred-canary}', "不是有效的 JSON"),
        ("[" * 100_000, "不是有效的 JSON"),
    ],
)
def test_wrong_credentials_are_told_by_place_and_never_shown(
    tmp_path: Path, credentials: str, complaint: str
) -> None:
    (problem,) = problems(tmp_path, JUNHONG_GATEWAY_CREDENTIALS=credentials)
    assert problem.startswith("JUNHONG_GATEWAY_CREDENTIALS ")
    assert complaint in problem
    assert "canary" not in problem


@pytest.mark.parametrize("source", ["variable", "file", "yaml"])
def test_every_account_may_have_credentials_of_its_own(tmp_path: Path, source: str) -> None:
    text = '{"cmcc-01": {"key_id": "k1", "secret": "s1"}, "cucc-01": {"key_id": "k2", "secret": "s2"}}'
    (tmp_path / "keys.json").write_text(text + "\n", encoding="utf-8")
    (tmp_path / "keys.yaml").write_text(f"gateway:\n  credentials: {text}\n", encoding="utf-8")
    variables = {
        "variable": {"JUNHONG_GATEWAY_CREDENTIALS": text},
        "file": {"JUNHONG_GATEWAY_CREDENTIALS_FILE": str(tmp_path / "keys.json")},
        "yaml": {"JUNHONG_CONFIG": str(tmp_path / "keys.yaml")},
    }
    resolution = resolve(tmp_path, None, **variables[source])
    found = resolution.settings.gateway.credentials
    assert {ref: (each.key_id, each.secret.get_secret_value()) for ref, each in found.items()} == {
        "cmcc-01": ("k1", "s1"),
        "cucc-01": ("k2", "s2"),
    }
    assert {"s1", "s2"} <= set(resolution.secrets)
    (shown,) = (each.shown for each in resolution.values if each.variable == "JUNHONG_GATEWAY_CREDENTIALS")
    assert shown == "***"


def test_unknown_names_are_warned_about_with_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("worker: {rolle: leader}\nqueues: {}\n", encoding="utf-8")
    warnings = resolve(tmp_path, {"config": "c.yaml"}, JUNHONG_WORKER_ROEL="leader").warnings
    assert any("JUNHONG_WORKER_ROEL，是否应为 JUNHONG_WORKER_ROLE" in warning for warning in warnings)
    assert any("worker.rolle，是否应为 worker.role" in warning for warning in warnings)
    assert any("queues" in warning for warning in warnings)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("worker: [", "不是有效的 YAML"),
        ("- a", "最外层须为映射"),
        ("worker: leader", "worker 须为映射"),
    ],
)
def test_broken_yaml_is_a_fault(tmp_path: Path, content: str, sentence: str) -> None:
    (tmp_path / "c.yaml").write_text(content, encoding="utf-8")
    (problem,) = problems(tmp_path, JUNHONG_CONFIG="c.yaml")
    assert sentence in problem


def test_absent_yaml_is_a_fault_and_absent_dotenv_is_not(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, JUNHONG_CONFIG="absent.yaml")
    assert "文件不存在" in problem


def test_a_fault_from_a_file_says_so(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("JUNHONG_WORKER_ROLE=Leader\n", encoding="utf-8")
    (problem,) = problems(tmp_path)
    assert problem.endswith("（来自.env 文件）")


@pytest.mark.parametrize(
    ("dsn", "whole"),
    [
        ("postgresql://u@h:5432/db", "postgresql://u:p%40ss%2F@h:5432/db"),
        ("postgresql://u@/db?host=/run/pg", "postgresql://u:p%40ss%2F@/db?host=/run/pg"),
        ("postgresql://h/db", "postgresql://:p%40ss%2F@h/db"),
    ],
)
def test_a_password_of_its_own_goes_into_the_dsn(tmp_path: Path, dsn: str, whole: str) -> None:
    (tmp_path / "password").write_text("p@ss/\n", encoding="utf-8")
    resolution = resolve(
        tmp_path, JUNHONG_POSTGRES_DSN=dsn, JUNHONG_POSTGRES_PASSWORD_FILE=str(tmp_path / "password")
    )
    assert resolution.settings.postgres.dsn.get_secret_value() == whole
    assert {"p@ss/", "p%40ss%2F"} <= set(resolution.secrets)


def test_a_fallback_counts_where_no_source_gives_a_value(tmp_path: Path) -> None:
    fallbacks = {"redis.url": "unix:///unused", "worker.role": "consumer"}
    given = {"JUNHONG_POSTGRES_DSN": "postgresql://h/d", "JUNHONG_WORKER_ROLE": "leader"}
    resolution = config.resolve(environ=given, cwd=tmp_path, fallbacks=fallbacks)
    assert resolution.settings.redis.url.get_secret_value() == "unix:///unused"
    assert resolution.settings.worker.role is WorkerRole.LEADER
    assert origin_of(resolution, "JUNHONG_REDIS_URL") == "默认值"
    with pytest.raises(ConfigError, match="JUNHONG_REDIS_URL"):
        config.resolve(environ=given | {"JUNHONG_REDIS_URL": "http://h"}, cwd=tmp_path, fallbacks=fallbacks)


def test_two_passwords_are_one_too_many(tmp_path: Path) -> None:
    assert problems(tmp_path, JUNHONG_POSTGRES_PASSWORD="other") == (
        "JUNHONG_POSTGRES_DSN 中已有密码，不能再设置 JUNHONG_POSTGRES_PASSWORD",
    )


def test_what_a_caller_demands_is_told_with_all_other_faults(tmp_path: Path) -> None:
    def shared(url: object) -> str | None:
        return None if url else "未设置：须共享"

    environ = {**NEEDED, "JUNHONG_QUEUE_CONCURRENCY": "many"}
    demands = {"storage.url": shared}
    with pytest.raises(ConfigError) as refused:
        config.resolve(environ=environ, cwd=tmp_path, demands=demands)
    assert len(refused.value.problems) == 2
    assert "JUNHONG_STORAGE_URL 未设置：须共享" in refused.value.problems
    environ = {**NEEDED, "JUNHONG_STORAGE_URL": "file:///cards"}
    assert config.resolve(environ=environ, cwd=tmp_path, demands=demands).settings.storage.url is not None

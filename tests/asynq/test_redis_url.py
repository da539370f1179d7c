"""What the forms of an address mean; see also test_connection.py."""

import pytest

from junhong_cmp.asynq.redis_url import RedisOptions, RedisUrlError, TlsOptions


def test_tls_trusts_the_system_and_verifies_unless_told_otherwise() -> None:
    assert RedisOptions.parse("rediss://h").tls == TlsOptions()
    assert RedisOptions.parse("redis://h").tls is None
    assert TlsOptions().settings()["ssl_cert_reqs"] == "required"
    assert TlsOptions().settings()["ssl_check_hostname"] is True


@pytest.mark.parametrize(
    "form",
    [
        "rediss://h?",
        "redis://h?tls=true&",
        "redis-sentinel://h?master=m&tls=1&",
        "redis-cluster://h?tls=yes&",
    ],
)
def test_the_files_of_tls_are_named_in_any_form(form: str) -> None:
    tls = RedisOptions.parse(form + "ssl_ca_certs=/c/ca.pem&ssl_certfile=/c/my.pem&ssl_keyfile=/c/my.key").tls
    assert tls == TlsOptions("/c/ca.pem", "/c/my.pem", "/c/my.key", verified=True)


def test_verification_is_given_up_only_as_a_whole() -> None:
    tls = RedisOptions.parse("rediss://h?ssl_cert_reqs=none").tls
    assert tls is not None
    assert (tls.settings()["ssl_cert_reqs"], tls.settings()["ssl_check_hostname"]) == ("none", False)


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("rediss://h?ssl_cert_reqs=optional", "ssl_cert_reqs 只能为"),
        ("rediss://h?ssl_keyfile=/k", "必须同时给出 ssl_certfile"),
        ("rediss://h?ssl_ca_cert=/typo", "参数只能为"),
        ("redis://u:p?canary=w@h/0", "特殊字符须转义"),
    ],
)
def test_a_parameter_nobody_understands_is_refused_rather_than_ignored(url: str, says: str) -> None:
    with pytest.raises(RedisUrlError, match=says) as caught:
        RedisOptions.parse(url)
    assert "canary" not in str(caught.value)


def test_sentinels_and_primary_have_users_of_their_own() -> None:
    options = RedisOptions.parse("redis-sentinel://watcher:spw@a?master=m&username=worker&password=pw")
    assert (options.sentinel_username, options.sentinel_password) == ("watcher", "spw")
    assert (options.username, options.password) == ("worker", "pw")

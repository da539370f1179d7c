"""An account changed by ``key=value`` texts: judged as a whole, every fault named at once. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from difflib import get_close_matches
from typing import Final, NamedTuple

from yarl import URL

from junhong_cmp.cards.account_store import NewAccount
from junhong_cmp.cards.carrier import Carrier
from junhong_cmp.cli.account_fields import FIELDS, AccountField
from junhong_cmp.gateway.drivers.table import DRIVERS, DriverRow
from junhong_cmp.polling.rule_editor import RuleRefusedError

_SHOWN_CHARS: Final = 40
_LEAST_REST: Final = timedelta(minutes=3)
"""The least most carriers demand between two changes of a card."""


class Difference(NamedTuple):
    """A value before (None: there was no account) and after, as an operator would type them."""

    key: str
    old: str | None
    new: str


def changed(account: NewAccount, texts: Sequence[str]) -> NewAccount:
    """Return the account with what the texts say.

    Raises:
        RuleRefusedError: naming every key that is unknown, every value out of its range, and what the
            account's driver does not bear.

    """
    problems: list[str] = []
    given = dict(_read(texts, problems))
    # A wrong value leaves the old one, by which the driver's demands on the others are judged all the same.
    new = replace(account, **{FIELDS[key].attribute: value for key, value in given.items()})  # type: ignore[arg-type]  # each key is read as the type of its attribute
    problems += _driver_problems(new, given)
    if problems:
        raise RuleRefusedError("".join(f"\n  {problem}" for problem in problems))
    return new


def with_defaults(code: str, driver: DriverRow) -> NewAccount:
    """Return an account as its driver suggests it, with batches as large as the carrier takes."""
    return NewAccount(
        code=code,
        carrier=Carrier(driver.carrier),
        driver=driver.name,
        billing_day=driver.defaults.billing_day,
        usage_unit=driver.defaults.usage_unit,
        batch_size=_largest_batch(driver),
        operation_min_gap=max(_LEAST_REST, driver.defaults.change_rest),
    )


def differences(old: NewAccount | None, new: NewAccount) -> list[Difference]:
    """Return what differs between two descriptions of an account; of a new one, everything."""
    pairs = [
        Difference(key, None if old is None else field.shown(old), field.shown(new))
        for key, field in FIELDS.items()
    ]
    return [pair for pair in pairs if pair.old != pair.new]


def hints(account: NewAccount, keys: Sequence[str]) -> list[str]:
    """Return what is worth knowing now that these keys have changed: nothing that forbids the change."""
    touched = {*keys, *(("billing_day", "usage_unit", "batch_size") if "driver" in keys else ())}
    if "protect_enabled" in keys and account.protect_enabled:
        touched.add("batch_size")
    return [text for key, text in _hints(account) if key in touched]


def _hints(account: NewAccount) -> Iterator[tuple[str, str]]:
    if account.base_url is not None:
        host = URL(account.base_url).host
        yield "base_url", f"主机 {host} 须在每个 Worker 的 JUNHONG_GATEWAY_ALLOWED_HOSTS 之内"
    if account.credential_ref is not None:
        yield (
            "credential_ref",
            f"凭据 {account.credential_ref} 须在每个 Worker 的 JUNHONG_GATEWAY_CREDENTIALS 之内",
        )
    driver = DRIVERS.get(account.driver)
    for key in ("billing_day", "usage_unit"):
        usual, now = getattr(driver and driver.defaults, key, None), getattr(account, key)
        if usual not in (None, now):
            yield key, f"驱动 {account.driver} 通常为 {key}={usual}，现为 {now}"
    ends = None if driver is None else driver.defaults.batch_usage_ends
    if account.batch_size > 1 and ends is not None:
        yield (
            "batch_size",
            f"驱动 {account.driver} 批量查询的用量只到{ends}，需要及时停机或告警的账号请设 batch_size=1",
        )
    for key in ("daily_quota", "monthly_quota"):
        if getattr(account, key) == 0:
            yield key, f"{key} 为 0：该账号不会被调用"


def _read(texts: Sequence[str], problems: list[str]) -> Iterator[tuple[str, object]]:
    seen = set()
    for text in texts:
        key, sign, value = text.partition("=")
        field = FIELDS.get(key)
        if not sign:
            problems.append(f"{_cut(key)}：须写作 键=值")
        elif field is None:
            problems.append(_unknown(key))
        elif key in seen:
            problems.append(f"{key} 给出了不止一次")
        else:
            seen.add(key)
            try:
                yield key, field.read(value.strip())
            except ValueError:
                problems.append(_out_of_range(field, value))


def _out_of_range(field: AccountField, value: str) -> str:
    said = field.key if field.private else f"{field.key}={_cut(value)}"
    gap = " " if field.takes[0].isascii() else ""
    return f"{said}：须为{gap}{field.takes}"


def _unknown(key: str) -> str:
    near = get_close_matches(key.strip().lower().replace("-", "_"), FIELDS, n=1, cutoff=0.5)
    advice = f"是否应为 {near[0]}" if near else f"可用：{'、'.join(FIELDS)}"
    return f"没有键 {_cut(key)}，{advice}"


def _driver_problems(account: NewAccount, given: Mapping[str, object]) -> Iterator[str]:
    driver = DRIVERS.get(account.driver)
    if driver is None:  # a newer release's, left as it is: whoever is to make calls will tell
        return
    most = _largest_batch(driver)
    if account.batch_size > most and {"batch_size", "driver"} & given.keys():
        range_ = f"须为 1 到 {most} 的整数" if most > 1 else "没有批量接口，须为 1"
        yield f"batch_size={account.batch_size}：驱动 {driver.name} {range_}"
    least = driver.defaults.change_rest
    if account.operation_min_gap < least and {"operation_min_gap_s", "driver"} & given.keys():
        seconds = int(account.operation_min_gap.total_seconds())
        yield (
            f"operation_min_gap_s={seconds}：驱动 {driver.name} 要求不小于 {int(least.total_seconds())}（秒）"
        )


def _largest_batch(driver: DriverRow) -> int:
    return max(driver.defaults.batch_sizes.values(), default=1)


def _cut(text: str) -> str:
    shown = text if text.isprintable() else repr(text)[1:-1]
    return shown if len(shown) <= _SHOWN_CHARS else f"{shown[:_SHOWN_CHARS]}…"

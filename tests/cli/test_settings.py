"""A command asks for the services it uses, and for no other."""

import pytest

from junhong_cmp.cli.app import run
from junhong_cmp.cli.signals import StopSignals

ICCID = "89860000000000000000"
ADDRESSES = {"JUNHONG_REDIS_URL": "redis://127.0.0.1:1", "JUNHONG_POSTGRES_DSN": "postgresql://127.0.0.1:1/d"}
WITHOUT = {
    "JUNHONG_POSTGRES_DSN": (
        "queue ls",
        "queue inspect q",
        "queue pause q",
        "queue repair",
        "task ls -q q -s pending",
        "task inspect -q q 1",
        "task run -q q 1",
        "task cancel 1",
    ),
    "JUNHONG_REDIS_URL": (
        "migrate",
        "import ls",
        "import watch 1",
        "import cancel 1",
        "card show " + ICCID,
        "card export",
        "account set a qps=1",
        "account add a --driver generic",
        "account resume a",
        "plan ls",
        "plan set a p --quota 1MB",
        "polling pauses",
        "polling pause a",
        "polling resume a",
        "polling rules ls",
        "polling rules check",
        "polling rules rm r",
    ),
}
NEEDING_BOTH = (
    "status",
    "polling now -a a",
    "account ls",
    "account show a",
    f"card stop {ICCID}",
    f"card resume {ICCID}",
)


@pytest.fixture(autouse=True)
def addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both services have an address, where nobody listens."""
    for name, address in ADDRESSES.items():
        monkeypatch.setenv(name, address)


@pytest.mark.parametrize(
    ("line", "unset"), [(line, unset) for unset, lines in WITHOUT.items() for line in lines]
)
def test_the_address_of_what_is_not_used_may_be_unset(
    line: str, unset: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv(unset)
    assert run(StopSignals(), line.split()) == 69, "it went for the other service"
    told = capsys.readouterr().err
    (used,) = set(ADDRESSES) - {unset}
    assert used in told
    assert unset not in told


@pytest.mark.parametrize("line", NEEDING_BOTH)
@pytest.mark.parametrize("unset", ADDRESSES)
def test_the_address_of_what_is_used_may_not(
    line: str, unset: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv(unset)
    assert run(StopSignals(), line.split()) == 78
    assert f"{unset} 未设置" in capsys.readouterr().err

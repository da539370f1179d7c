from pathlib import Path

import pytest

from junhong_cmp.gateway.simulator_log import CallRecord, RequestLog, read_log, summarise


def call(start: float, end: float, *, iccid: str = "A", op: str = "usage", outcome: str = "ok") -> CallRecord:
    return CallRecord(start, end, op, iccid, "acc", outcome)


def test_what_was_added_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    log = RequestLog(path)
    log.open()
    records = [call(1.25, 2.5), call(3.0, 4.0, iccid="B", outcome="throttled")]
    for record in records:
        log.add(record)
    assert list(read_log(path)) == []
    log.flush()
    assert list(read_log(path)) == records
    log.add(call(5.0, 6.0))
    log.close()
    log.close()
    assert len(list(read_log(path))) == 3


def test_a_second_run_appends(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    for start in (1.0, 2.0):
        log = RequestLog(path)
        log.open()
        log.add(call(start, start + 0.5))
        log.close()
    assert [record.t_start for record in read_log(path)] == [1.0, 2.0]


def test_a_cut_last_line_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    log = RequestLog(path)
    log.open()
    log.add(call(1.0, 2.0))
    log.close()
    with path.open("ab") as file:
        file.write(b'{"t_start":3.0,"t_e')
    assert list(read_log(path)) == [call(1.0, 2.0)]


def test_without_a_path_nothing_is_kept() -> None:
    log = RequestLog(None)
    log.open()
    log.add(call(1.0, 2.0))
    log.close()
    assert log._records == []


def test_calls_are_counted_by_card_and_kind() -> None:
    summary = summarise(
        [call(1, 2), call(3, 4), call(5, 6, op="status"), call(7, 8, iccid="B", outcome="throttled")]
    )
    assert summary.calls == {("A", "usage"): 2, ("A", "status"): 1, ("B", "usage"): 1}
    assert summary.outcomes == {"ok": 3, "throttled": 1}
    assert summary.cards("usage") == {"A", "B"}
    assert summary.overlaps == ()


@pytest.mark.parametrize(
    ("records", "overlaps"),
    [
        ([call(1, 3), call(2, 4)], 1),
        ([call(2, 4), call(1, 3)], 1),
        ([call(1, 9), call(2, 3), call(4, 5)], 2),
        ([call(1, 2), call(2, 3)], 0),
        ([call(1, 3), call(2, 4, op="status")], 0),
        ([call(1, 3), call(2, 4, iccid="B")], 0),
        ([call(1, 1), call(1, 1)], 0),
    ],
    ids=["overlap", "any order", "within a long one", "end to end", "other kind", "other card", "instant"],
)
def test_two_calls_of_one_kind_about_one_card_are_found(records: list[CallRecord], overlaps: int) -> None:
    assert len(summarise(records).overlaps) == overlaps


def test_the_clock_of_the_log_never_steps_back() -> None:
    log = RequestLog(None)
    readings = [log.now_s() for _ in range(1000)]
    assert readings == sorted(readings)


def test_a_burst_is_written_before_the_next_regular_flush(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    log = RequestLog(path)
    log.open()
    for number in range(20_000):
        log.add(call(number, number + 1))
    assert len(list(read_log(path))) == 20_000
    log.close()

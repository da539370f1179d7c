import time

from junhong_cmp.leadership.term import Term, TermEnd


def lasting(seconds: float = 60.0) -> Term:
    return Term(7, trusted_until=time.monotonic() + seconds)


def test_trust_runs_out_by_itself() -> None:
    assert lasting().trusted
    term = lasting(-1)
    assert not term.trusted
    assert term.end_reason is None
    term.extend(time.monotonic() + 1)
    assert term.trusted


def test_the_first_reason_counts_and_is_told_once() -> None:
    term, told = lasting(), list[str]()
    term.listen(lambda: told.append("end"))
    term.end(TermEnd.LOST)
    term.end(TermEnd.RESIGNED)
    assert (term.end_reason, told, term.trusted) == (TermEnd.LOST, ["end"], False)


def test_who_listens_late_is_told_at_once() -> None:
    term, told = lasting(), list[str]()
    term.end(TermEnd.LAPSED)
    term.listen(lambda: told.append("end"))
    assert told == ["end"]


def test_a_higher_fence_isolates_and_is_kept_for_the_next_term() -> None:
    term = lasting()
    term.dispute(9)
    assert (term.end_reason, term.fence) == (TermEnd.FENCED, 9)


def test_a_missing_or_lower_fence_is_lost_data() -> None:
    for fence in (None, 3):
        term = lasting()
        term.dispute(fence)
        assert term.end_reason is TermEnd.DATA_LOST

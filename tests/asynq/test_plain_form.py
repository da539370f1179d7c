from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from junhong_cmp.asynq.errors import InvalidTaskError
from junhong_cmp.asynq.message import encode, prepare
from junhong_cmp.asynq.plain_form import PlainForms
from junhong_cmp.asynq.task import EnqueueOptions, Task

LIMIT = 1_000
texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip)
ids = st.text(st.characters(codec="ascii"), min_size=1, max_size=200).filter(str.strip)
durations = st.none() | st.timedeltas(timedelta(0), timedelta(days=400))
deadlines = st.none() | st.datetimes(datetime(2001, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - the zone comes with the strategy
plain_options = st.builds(
    EnqueueOptions,
    queue=texts,
    max_retry=st.integers(-3, 2**31 - 1),
    timeout=durations,
    deadline=deadlines,
    retention=durations,
    task_id=ids,
)


@given(texts, st.binary(max_size=LIMIT), plain_options)
def test_a_form_gives_the_very_bytes_of_the_message(
    task_type: str, payload: bytes, options: EnqueueOptions
) -> None:
    task = Task(task_type, payload)
    form = PlainForms(LIMIT).find(task, options)
    assert form is not None
    assert options.task_id is not None
    made = form.encode(payload, options.task_id.encode())
    assert made == encode(prepare(task, options, 0).message)


def test_tasks_alike_share_a_form_and_others_do_not() -> None:
    forms = PlainForms(LIMIT)
    first = forms.find(Task("a", b"1"), EnqueueOptions(task_id="x"))
    assert forms.find(Task("a", b"2"), EnqueueOptions(task_id="y")) is first
    assert forms.find(Task("b", b"1"), EnqueueOptions()) is not first
    for other in (
        EnqueueOptions(queue="low"),
        EnqueueOptions(max_retry=1),
        EnqueueOptions(timeout=timedelta(seconds=1)),
        EnqueueOptions(deadline=datetime(2030, 1, 1, tzinfo=UTC)),
        EnqueueOptions(retention=timedelta(seconds=1)),
    ):
        assert forms.find(Task("a"), other) not in {None, first}


@pytest.mark.parametrize(
    ("task", "options"),
    [
        (Task("a"), EnqueueOptions(unique_for=timedelta(seconds=5))),
        (Task("a"), EnqueueOptions(group="g")),
        (Task("a"), EnqueueOptions(process_in=timedelta(seconds=5))),
        (Task("a"), EnqueueOptions(process_at=datetime(2030, 1, 1, tzinfo=UTC))),
        (Task("a", headers={"k": "v"}), EnqueueOptions()),
        (Task("a", b"x" * (LIMIT + 1)), EnqueueOptions()),
        (Task("a", "text"), EnqueueOptions()),  # type: ignore[arg-type] # what a caller without types may do
        (Task("a"), EnqueueOptions(task_id=" ")),
        (Task("a"), EnqueueOptions(task_id="编号")),
    ],
)
def test_what_is_not_plain_or_not_evidently_right_has_no_form(task: Task, options: EnqueueOptions) -> None:
    assert PlainForms(LIMIT).find(task, options) is None


@pytest.mark.parametrize("options", [EnqueueOptions(queue=" "), EnqueueOptions(max_retry=2**31)])
def test_wrong_options_are_refused(options: EnqueueOptions) -> None:
    with pytest.raises(InvalidTaskError):
        PlainForms(LIMIT).find(Task("a"), options)


def test_forms_of_ever_new_deadlines_do_not_pile_up() -> None:
    forms = PlainForms(LIMIT)
    at = datetime(2026, 1, 1, tzinfo=UTC)
    found = {id(forms.find(Task("a"), EnqueueOptions(deadline=at + timedelta(minutes=n)))) for n in range(50)}
    assert len(found) == 50
    for minute in range(3000):
        forms.find(Task("a"), EnqueueOptions(deadline=at + timedelta(minutes=minute)))
    assert forms.size <= 1000

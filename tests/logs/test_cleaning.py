"""One record is one line, whatever it holds."""

from junhong_cmp.logs.cleaning import MAX_ITEMS, MAX_VALUE_CHARS, clean_record


def clean(**fields: object) -> dict[str, object]:
    return dict(clean_record(None, "info", fields))


def test_control_characters_are_escaped() -> None:
    hostile = '8986\n{"event":"forged"}\r\x1b[31m\x00\x85\u2028\u2029\u202e\u200f\ufeff'
    text = clean(iccid=hostile)["iccid"]
    assert isinstance(text, str)
    assert text.isprintable()
    assert "\\x0a" in text
    assert "\\u202e" in text


def test_a_lone_surrogate_does_not_break_the_line() -> None:
    assert clean(name="a\ud800b")["name"] == "a\\ud800b"


def test_keys_and_nested_values_are_cleaned() -> None:
    assert clean(body={"a\nb": ["x\ty"]})["body"] == {"a\\x0ab": ["x\\x09y"]}


def test_a_traceback_keeps_its_lines() -> None:
    assert clean(exception="a\n\tb\x1b")["exception"] == "a\n\tb\\x1b"


def test_long_values_are_shortened_and_say_so() -> None:
    text = clean(value="x" * 1000)["value"]
    assert isinstance(text, str)
    assert text == "x" * MAX_VALUE_CHARS + "…（共 1000 字符）"
    items = clean(value=list(range(1000)))["value"]
    assert isinstance(items, list)
    assert len(items) == MAX_ITEMS + 1

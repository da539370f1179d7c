import pytest

from junhong_cmp.gateway.drivers.ctcc_fields import an_object, object_of, text_of
from junhong_cmp.gateway.errors import BadResponse


@pytest.mark.parametrize(("value", "text"), [("x", "x"), (5, "5"), ("长" * 128, "长" * 128)])
def test_texts_and_whole_numbers_are_texts(value: object, text: str) -> None:
    assert text_of({"name": value}, "name") == text


@pytest.mark.parametrize("value", [None, "", True, 5.5, [], {}, "长" * 129, "a\nb", "\u202e"])
def test_anything_else_is_none(value: object) -> None:
    with pytest.raises(BadResponse, match="name"):
        text_of({"name": value}, "name")


@pytest.mark.parametrize("fields", [{}, {"name": None}, {"name": ""}])
def test_some_texts_may_be_missing(fields: dict[str, object]) -> None:
    assert text_of(fields, "name", may_be_empty=True) == ""


def test_an_object_is_one() -> None:
    assert object_of({"a": {"b": 1}}, "a") == {"b": 1}


@pytest.mark.parametrize("value", [None, [], "x"])
def test_anything_else_is_no_object(value: object) -> None:
    with pytest.raises(BadResponse):
        an_object(value)

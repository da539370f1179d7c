import pytest
from hypothesis import given
from hypothesis import strategies as st

from junhong_cmp.cards.carrier import Carrier
from junhong_cmp.cards.iccid import IccidError, IccidProblem, clean_cell, is_same_card, normalise

PLAIN = "89860012345678901234"
LUHN_20 = "89860012345678901238"


def full_width(text: str) -> str:
    return "".join(chr(ord(char) + 0xFEE0) if "!" <= char <= "~" else char for char in text)


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (PLAIN, PLAIN),
        ("898604B7192270274525", "898604B7192270274525"),
        ("898604b7192270274525", "898604B7192270274525"),
        ("8986001234567890123F", "8986001234567890123"),
        ("8986001234567890123f", "8986001234567890123"),
        ("8986001234567890123", "8986001234567890123"),
        (full_width(PLAIN), PLAIN),
        (" 8986 0012\u00a03456\u200b7890\t1234 \ufeff", PLAIN),
        (f"'{PLAIN}", PLAIN),
        (f'="{PLAIN}"', PLAIN),
        (f' ="{PLAIN}" ', PLAIN),
        ("898600E2192270274525", "898600E2192270274525"),
        ("8986001234567890E234", "8986001234567890E234"),
    ],
)
def test_accepted(raw: str, value: str) -> None:
    iccid = normalise(raw)
    assert iccid.value == value
    assert iccid.iccid19 == value[:19]


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (None, IccidProblem.EMPTY),
        ("", IccidProblem.EMPTY),
        (" \u200b ", IccidProblem.EMPTY),
        ('=""', IccidProblem.EMPTY),
        ("8.98605E+19", IccidProblem.SCIENTIFIC),
        ("8.98605e19", IccidProblem.SCIENTIFIC),
        ("898605E+14", IccidProblem.SCIENTIFIC),
        ("89860012345678901234.0", IccidProblem.DECIMAL),
        ("89860012345678901234.", IccidProblem.DECIMAL),
        (8.986001234567891e19, IccidProblem.NUMERIC_CELL),
        (89860012345678901234, IccidProblem.NUMERIC_CELL),
        (float("nan"), IccidProblem.NUMERIC_CELL),
        ("898600123456789012", IccidProblem.LENGTH),
        ("898600123456789012345", IccidProblem.LENGTH),
        ("898600123456789012FF3", IccidProblem.LENGTH),
        ("89860012345678901G34", IccidProblem.ALPHABET),
        ("8986-0012-3456-7890-1234", IccidProblem.ALPHABET),
        ("٨٩٨٦٠٠١٢٣٤٥٦٧٨٩٠١٢٣٤", IccidProblem.ALPHABET),
        ("\x008986001234567890123", IccidProblem.ALPHABET),
    ],
)
def test_refused(raw: str | float | None, code: IccidProblem) -> None:
    with pytest.raises(IccidError) as caught:
        normalise(raw)
    assert caught.value.code is code
    assert caught.value.text == str(caught.value)


def test_luhn_only_warns() -> None:
    assert normalise(LUHN_20).warnings == ()
    assert normalise(PLAIN).warnings == ("Luhn 校验未通过",)
    assert normalise("898604B7192270274525").warnings == ()


def test_a_prefix_of_another_carrier_only_warns() -> None:
    assert normalise(LUHN_20, carrier=Carrier.CMCC).warnings == ()
    assert normalise(LUHN_20, carrier=Carrier.CUCC).warnings == ("号段 898600 通常属于中国移动",)
    assert normalise(LUHN_20, carrier=Carrier.OTHER).warnings == ()
    assert normalise("8985201234567890123A", carrier=Carrier.CUCC).warnings == ()


@pytest.mark.parametrize("raw", ["89860012345678900000", "8986001234567890000"])
def test_a_tail_of_zeros_where_a_spreadsheet_loses_digits_warns(raw: str) -> None:
    assert "末尾连续为零，可能在表格中丢失了精度" in normalise(raw).warnings


def test_other_cells_are_cleaned_too() -> None:
    assert clean_cell(f"'{full_width('138')}\u00a00000") == "1380000"
    assert clean_cell(' ="0138" ') == "0138"


@given(st.text(st.characters(codec="ascii"), max_size=12))
def test_text_of_ascii_is_cleaned_as_any_other(text: str) -> None:
    assert clean_cell(text) == clean_cell(f"{text}\u200b")


def test_the_two_forms_are_one_card_and_two_long_ones_are_not() -> None:
    short = PLAIN[:19]
    assert is_same_card(short, PLAIN)
    assert is_same_card(PLAIN, short)
    assert is_same_card(PLAIN, PLAIN)
    assert not is_same_card(PLAIN, LUHN_20)
    assert not is_same_card(short, "9" + PLAIN[1:])


CANONICAL = st.from_regex(r"\A[0-9A-F]{19}\Z") | st.from_regex(r"\A[0-9A-F]{19}[0-9A-E]\Z")
NOISE = st.text(alphabet=" \t\u00a0\u200b\ufeff\u3000", max_size=3)


@given(value=CANONICAL, before=NOISE, after=NOISE, split=st.integers(0, 19), style=st.integers(0, 4))
def test_every_disguise_of_a_number_comes_off(
    value: str, before: str, after: str, split: int, style: int
) -> None:
    inner = value[:split] + before + value[split:]
    styled = [
        inner,
        f"'{inner}",
        f'="{inner}"',
        inner.lower(),
        full_width(inner),
    ][style]
    assert normalise(before + styled + after).value == value
    assert normalise(normalise(styled).value).value == value


@given(st.from_regex(r"\A8?[0-9]{17,20}0{,4}\Z") | st.just(LUHN_20), st.none() | st.sampled_from(Carrier))
def test_plain_digits_are_judged_as_those_that_have_to_be_cleaned(
    value: str, carrier: Carrier | None
) -> None:
    def judge(raw: str) -> object:
        try:
            return normalise(raw, carrier=carrier)
        except IccidError as error:
            return error.code, error.text

    assert judge(value) == judge(f"'{value}")


@given(value=st.from_regex(r"\A[0-9A-F]{19}\Z"))
def test_padding_makes_no_difference(value: str) -> None:
    assert normalise(value + "F") == normalise(value)


@given(st.text(max_size=30) | st.floats() | st.integers() | st.none())
def test_anything_else_is_refused_or_canonical(raw: str | float | None) -> None:
    try:
        value = normalise(raw).value
    except IccidError:
        return
    assert len(value) in (19, 20)
    assert set(value) <= set("0123456789ABCDEF")

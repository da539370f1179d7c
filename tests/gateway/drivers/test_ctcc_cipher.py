import pytest
from hypothesis import given
from hypothesis import strategies as st

from junhong_cmp.gateway.drivers.ctcc_cipher import CtccCipher

# The platform's own published example: key "abcdefghi".
SIGNED = "14914000000,queryPakage,test,test"
SIGNATURE = (
    "45E8B9924DE397A8F7E5764767810CF774CC7E1685BA702C9C4C367EFDAE5D932B37C0C8F0F8EB0C"
    "AD6372289F407CA941894168BD86A2CC32E5804EA05BAA5099649468B9418E52"
)
VECTORS = [("test", "41894168BD86A2CC"), (SIGNED, SIGNATURE)]


@pytest.mark.parametrize(("text", "enciphered"), VECTORS)
def test_it_writes_what_the_platform_writes(text: str, enciphered: str) -> None:
    assert CtccCipher("abcdefghi").encrypt(text) == enciphered


def test_nothing_becomes_nothing() -> None:
    assert CtccCipher("abcdefghi").encrypt("") == ""


@pytest.mark.parametrize("key", ["", "abcdefgh", "abcdefghij"])
def test_a_key_has_nine_characters(key: str) -> None:
    with pytest.raises(ValueError, match="9"):
        CtccCipher(key)


@given(st.text(st.characters(codec="utf-16-be"), max_size=40))
def test_every_four_characters_make_sixteen_digits_that_depend_on_nothing_else(text: str) -> None:
    cipher = CtccCipher("k3y-f0r-1")
    units = len(text.encode("utf-16-be")) // 2
    whole = cipher.encrypt(text)
    assert len(whole) == -(-units // 4) * 16
    assert whole == whole.upper()
    assert cipher.encrypt("same" + text)[:16] == cipher.encrypt("same")


def test_every_third_of_the_key_counts() -> None:
    keys = ["abcdefghi", "Abcdefghi", "abcDefghi", "abcdefGhi"]
    assert len({CtccCipher(key).encrypt("test") for key in keys}) == len(keys)

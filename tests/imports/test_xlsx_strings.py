from junhong_cmp.imports.xlsx_strings import read_strings


def read(items: str) -> list[str]:
    return read_strings([f"<sst>{items}</sst>".encode()], cell_chars=10)


def test_runs_are_joined_and_phonetic_guides_left_out() -> None:
    rich = "<si><r><t>月</t></r><r><rPr/><t>包</t></r><rPh sb='0' eb='1'><t>yue</t></rPh></si>"
    assert read(f"<si><t>a</t></si>{rich}<si/><si><t>_x000D_</t></si>") == ["a", "月包", "", "\r"]


def test_a_long_string_is_cut_right_behind_the_cap() -> None:
    assert read(f"<si><t>{'x' * 100}</t></si>") == ["x" * 11]
    assert read("<si>" + "<r><t>xx</t></r>" * 100 + "</si>") == ["x" * 11]

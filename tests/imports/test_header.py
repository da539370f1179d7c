import pytest

from junhong_cmp.imports.errors import FileRefusedError
from junhong_cmp.imports.header import Field, recognise_header

FULL_WIDTH = " " + "".join(chr(ord(letter) + 0xFEE0) for letter in "ICCID") + " "


@pytest.mark.parametrize(
    "name",
    [
        "ICCID",
        "iccid",
        FULL_WIDTH,
        "卡号ICCID",
        "集成电路卡号",
        "ICCID（必填）",
        "*ICCID",
        "\ufeffICCID",
        '="ICCID"',
        "ICCID号",
        "iccid【20位】",
        "卡号\nICCID",
        "I C C I D",
    ],
)
def test_many_names_mean_the_iccid(name: str) -> None:
    columns = recognise_header(["序号", name])
    assert columns is not None
    assert columns.index == {Field.ICCID: 1}


def test_all_fields_by_their_synonyms() -> None:
    columns = recognise_header(["接入号", "卡号ICCID", "IMSI", "运营商", "通道", "套餐", "批次号", "备注"])
    assert columns is not None
    assert [columns.index[field] for field in (Field.MSISDN, Field.ICCID, Field.IMSI, Field.CARRIER)] == [
        0,
        1,
        2,
        3,
    ]
    assert [columns.index[field] for field in (Field.ACCOUNT, Field.PLAN, Field.BATCH)] == [4, 5, 6]
    assert columns.width == 8


def test_a_card_number_beside_the_iccid_is_the_access_number() -> None:
    columns = recognise_header(["卡号", "ICCID"])
    assert columns is not None
    assert columns.index == {Field.MSISDN: 0, Field.ICCID: 1}


@pytest.mark.parametrize("cells", [[], [""], ["卡号"], ["89860400000000000001"], ["ICCIDS"], ["x" * 100_000]])
def test_other_rows_are_no_header(cells: list[str]) -> None:
    assert recognise_header(cells) is None


def test_the_first_column_of_a_kind_counts_but_two_iccids_are_refused() -> None:
    columns = recognise_header(["ICCID", "手机号", "接入号"])
    assert columns is not None
    assert columns.index[Field.MSISDN] == 1
    with pytest.raises(FileRefusedError, match="多个 ICCID 列：第 1 列与第 3 列"):
        recognise_header(["ICCID", "x", "集成电路卡号"])

from datetime import timedelta

import pytest

from junhong_cmp.cards.carrier import Carrier
from junhong_cmp.imports.formats import FileFormat
from junhong_cmp.imports.limits import ImportLimits, ParserLimits, WorkbookLimits
from junhong_cmp.imports.parser_order import ParserAccount, ParserOrder


@pytest.mark.parametrize("name", ["", "卡 '\"& $(x)"])
def test_an_order_arrives_as_it_was_given(name: str) -> None:
    order = ParserOrder(
        format=FileFormat.XLS,
        encoding="gb18030",
        sheet=name,
        from_line=7,
        account=ParserAccount(Carrier.CUCC, "acc", name),
        parent=1,
        cpu=timedelta(seconds=2.5),
        limits=ImportLimits(columns=3),
        workbook_limits=WorkbookLimits(ratio=7),
        parser_limits=ParserLimits(cpu=timedelta(seconds=1.5)),
    )
    assert ParserOrder.decode(order.encode()) == order

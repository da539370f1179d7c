from datetime import timedelta

import pytest

from junhong_cmp.imports.formats import FileFormat
from junhong_cmp.imports.limits import ImportLimits, WorkbookLimits
from junhong_cmp.imports.workbook_order import WorkbookOrder


@pytest.mark.parametrize("sheet", ["", "卡 '\"& $(x)"])
def test_an_order_arrives_as_it_was_given(sheet: str) -> None:
    order = WorkbookOrder(
        format=FileFormat.XLS,
        sheet=sheet,
        from_line=7,
        parent=1,
        limits=ImportLimits(columns=3),
        workbook_limits=WorkbookLimits(cpu=timedelta(seconds=1.5)),
    )
    assert WorkbookOrder.decode(order.encode()) == order

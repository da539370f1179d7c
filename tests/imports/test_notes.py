from junhong_cmp.imports.notes import column_notes, sheet_notes


def test_nothing_odd_needs_no_words() -> None:
    assert column_notes([]) == []
    assert sheet_notes("卡", []) == []


def test_long_lists_are_cut_and_names_defused() -> None:
    assert column_notes([f"列{n}" for n in range(20)]) == [
        "未识别的列已忽略：列0、列1、列2、列3、列4、列5、列6、列7、列8、列9、列10、列11 等 20 个"
    ]
    assert sheet_notes("卡\x07", ["旧\n", "x" * 100]) == [
        f"只读取了工作表“卡\\u0007”，未读取：旧、{'x' * 63}…"
    ]

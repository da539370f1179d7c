"""What is printed of an import that is over."""

import pytest
from tests.imports.card_files import make_import

from junhong_cmp.cli.import_screen import report
from junhong_cmp.imports.model import ImportStatus


def test_a_result_file_that_is_still_to_come_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    report(make_import(id=7, status=ImportStatus.CANCELLED, total=3), None, as_json=False)
    told = capsys.readouterr().out
    assert told.splitlines()[-1] == "结果文件尚待 Worker 写出；之后 junhong import watch 7 可取"


@pytest.mark.parametrize(
    "changes",
    [
        {"status": ImportStatus.CANCELLED},
        {"status": ImportStatus.FAILED, "total": 3, "error": "对象存储已满"},
        {"status": ImportStatus.CANCELLED, "total": 3, "result_key": "r.csv"},
    ],
    ids=["cancelled before it began", "failed", "stored"],
)
def test_none_is_promised_that_will_not_come(
    changes: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    report(make_import(**changes), None, as_json=False)
    assert "尚待" not in capsys.readouterr().out

"""A command line that is not understood is answered in Chinese, with the name of what is wrong."""

import re

import pytest

from junhong_cmp.cli.app import COMMANDS, run
from junhong_cmp.cli.signals import StopSignals

CASES = {
    "nonsense": f"没有命令 nonsense，可用的命令：{'、'.join(COMMANDS)}",
    "up --for abc": "--for 的值无效：“abc”不是时长，写法如 8s、500ms、1h30m，不带单位时按秒计",
    "up --for": "选项 --for 缺少它的值",
    "up --json=3": "选项 --json 不带值",
    "up --cards 0": "--cards 的值无效：须为数字，1 到 1000000",
    "up --cards many": "--cards 的值无效：须为数字，1 到 1000000",
    "up --cardz 3": "没有选项 --cardz，是否应为 --cards",
    "up now": "多余的参数：now",
    "import -a demo": "缺少 FILE",
    "import cards.csv": "缺少 --account",
    "simulate-gateway --latency -1": "--latency 的值无效：须为数字，不小于 0",
    "card stop 89860000000000000000 --reason xx": (
        "--reason 的值无效：须为 none、over_plan、threshold、pool、expired、manual、violation、"
        "imei_mismatch、not_real_name、arrears、carrier、unknown 之一"
    ),
    "task cancel 1 --then xx": "--then 的值无效：须为 retry、archive、drop 之一",
    "polling now": "给出卡号，或用 --file 给出存放卡号的文件，或用 --account 给出账号",
    "simulate-gateway --seed x": "--seed 的值无效：须为数字",
}


@pytest.mark.parametrize("line", CASES)
def test_a_wrong_command_line_is_named_in_chinese(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(StopSignals(), line.split()) == 2
    told = capsys.readouterr().err
    assert told.splitlines()[0] == f"错误：{CASES[line]}"
    prose = re.sub(r"junhong [a-z ]+", "", told)
    assert not re.search(r"[A-Za-z]+ [a-z]{2,} [a-z]{2,}", prose), "no English sentence"

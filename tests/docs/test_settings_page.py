"""The page of settings lists every variable there is, in the model's order, with its real default."""

import re
from pathlib import Path

from junhong_cmp.config.loading import DEFAULT_ORIGIN, resolve
from junhong_cmp.config.settings import Settings
from junhong_cmp.config.variables import derive_variables

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "settings.md"
ROW = re.compile(r"^\| `(JUNHONG_\w+)` \|([^|]*)\| (.+) \|$", re.MULTILINE)
ROWS = ROW.findall(PAGE.read_text(encoding="utf-8"))
NEEDED = {"JUNHONG_REDIS_URL": "redis://redis", "JUNHONG_POSTGRES_DSN": "postgresql://postgres/cards"}


def test_every_variable_has_its_row() -> None:
    assert [name for name, _, _ in ROWS] == list(derive_variables(Settings))


def test_every_default_is_the_real_one(tmp_path: Path) -> None:
    told = {name: re.findall(r"`(.+)`", default) for name, default, _ in ROWS}
    resolution = resolve(environ=NEEDED, cwd=tmp_path)
    real = {
        item.variable: [item.shown] if item.origin == DEFAULT_ORIGIN and item.shown != "（未设置）" else []
        for item in resolution.values
    }
    assert told == real


def test_secrets_and_what_is_needed_are_told() -> None:
    variables = derive_variables(Settings)
    assert {name for name, default, _ in ROWS if "secret" in default} == {
        variable.name for variable in variables.values() if variable.secret
    }
    assert {name for name, default, _ in ROWS if "needed" in default} == set(NEEDED)

"""The table of cron entries in polling's README says what there is, no more and no less."""

import re
from datetime import timedelta
from pathlib import Path

import junhong_cmp.polling
from junhong_cmp.asynq.misfire import MisfirePolicy
from junhong_cmp.worker.cron import cron_entries

README = Path(junhong_cmp.polling.__file__).parent / "README.md"
ROW = re.compile(r"^\| `(\w+)` \| [^|]+ \| (skipped|once) \| [^|]+ \|$", re.MULTILINE)
WORDS = {MisfirePolicy.SKIP: "skipped", MisfirePolicy.FIRE_ONCE: "once"}


def test_every_cron_entry_stands_in_the_table_with_what_becomes_of_a_missed_run() -> None:
    section = README.read_text().partition("## Cron\n")[2].partition("\n## ")[0]
    told = ROW.findall(section)
    entries = cron_entries(redrive_every=timedelta(minutes=1))
    assert sorted(told) == sorted((entry.id, WORDS[entry.misfire]) for entry in entries)

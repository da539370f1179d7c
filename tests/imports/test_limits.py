from datetime import timedelta

from junhong_cmp.imports.limits import ImportLimits, ParserLimits


def test_a_header_is_looked_for_behind_the_longest_record() -> None:
    assert ImportLimits().preamble_lines > ImportLimits().record_lines


def test_a_large_file_gets_more_processor_time() -> None:
    limits = ParserLimits(cpu=timedelta(seconds=10), cpu_a_mebibyte=timedelta(seconds=2))
    assert limits.cpu_for(100) == timedelta(seconds=10)
    assert limits.cpu_for(50 * 1024**2 + 1) == timedelta(seconds=110)

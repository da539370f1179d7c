"""Noticing a child process that ended by itself."""

from pathlib import Path

from junhong_cmp.cli.up_watch import ChildWatch, death_error
from junhong_cmp.embedded.process import ChildProcess, ProcessSpec
from junhong_cmp.errors import ExitCode


def _child(folder: Path, name: str, *arguments: str) -> ChildProcess:
    child = ChildProcess(
        ProcessSpec(name=name, arguments=arguments, log_path=folder / f"{name}.log", working_folder=folder)
    )
    child.start()
    return child


async def test_the_first_death_is_told_with_its_last_words(tmp_path: Path) -> None:
    watch = ChildWatch()
    healthy = _child(tmp_path, "healthy", "/bin/sleep", "60")
    sick = _child(tmp_path, "sick", "/bin/sh", "-c", "echo 天哪; exit 9")
    watch.add([healthy, sick])
    dead = await watch.first_death()
    assert dead is sick
    error = death_error(dead)
    assert error.exit_code == ExitCode.CRITICAL_LOOP_DIED
    assert "子进程 sick 意外结束（退出码 9）" in str(error)
    assert str(error).endswith("天哪")
    watch.close()
    await healthy.kill()


async def test_a_process_without_a_word_is_told_too(tmp_path: Path) -> None:
    child = _child(tmp_path, "quiet", "/bin/sleep", "60")
    await child.kill()
    assert "被信号 9 终止" in str(death_error(child))
    assert str(death_error(child)).endswith("（空）")

"""The package is complete by itself, and its README tells the truth."""

import asyncio
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.asynq.serving import open_bench
from tests.waiting import wait_until

from junhong_cmp.asynq.inspector import Inspector

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "junhong_cmp" / "asynq"
EXAMPLES = re.findall(r"```python\n(.*?)```", (PACKAGE / "README.md").read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture
def copied_out(tmp_path: Path) -> Path:
    """The folder alone, under the name it is imported by, with nothing of the project around it."""
    shutil.copytree(PACKAGE, tmp_path / "junhong_cmp" / "asynq", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def run_alone(folder: Path, *arguments: str) -> "subprocess.Popen[str]":
    # -S with the packages' folder by hand: the installed project itself must not be found
    site = next(path for path in sys.path if path.endswith("site-packages"))
    return subprocess.Popen(
        [sys.executable, "-S", *arguments],
        env={**os.environ, "PYTHONPATH": f"{folder}:{site}", "PYTHONDONTWRITEBYTECODE": "1"},
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_every_module_imports_without_the_project_around_it(copied_out: Path) -> None:
    names = sorted(path.stem for path in PACKAGE.glob("*.py") if path.stem != "__init__")
    code = f"""
import importlib, sys
for name in {names!r}:
    importlib.import_module("junhong_cmp.asynq." + name)
own = [name for name in sys.modules if name.startswith("junhong_cmp.")]
foreign = [name for name in own if not name.startswith("junhong_cmp.asynq")]
assert not foreign, foreign
print(sys.modules["junhong_cmp.asynq"].__path__[0])
"""
    process = run_alone(copied_out, "-c", code)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0, output
    assert output.strip() == str(copied_out / "junhong_cmp" / "asynq")


async def test_the_examples_of_the_readme_work_together(copied_out: Path, redis_url: str) -> None:
    produce, serve, schedule, *_ = (
        example.replace("redis://localhost:6379/0", redis_url) for example in EXAMPLES
    )
    schedule = schedule.replace('"30 3 * * *"', '"@every 1s"')
    processes = [run_alone(copied_out, "-c", code) for code in (serve, schedule)]
    try:
        producer = run_alone(copied_out, "-c", produce)
        output, _ = producer.communicate(timeout=30)
        assert (producer.returncode, output.strip()) == (0, "1000")
        async with open_bench(redis_url) as bench:
            await bench.wait_size("pending", 0, timeout=30)  # the mails are taken
            await bench.wait_size("active", 0)
            assert await bench.counter("processed") == 1002
            assert await bench.size("archived") == 1  # the mail without payload

            async def reports_put_back() -> bool:
                return await bench.size("retry", "low") > 0  # fired, and of a type the server does not know

            await wait_until(reports_put_back, timeout=20, description="the schedule fires")
    finally:
        for process in processes:
            process.send_signal(signal.SIGTERM)
        outputs = [process.communicate(timeout=15)[0] for process in processes]
    assert "StopReport(completed=0, requeued=0, abandoned=0)" in outputs[0]


async def test_the_example_with_everything_ends_by_itself(copied_out: Path, redis_url: str) -> None:
    process = run_alone(copied_out, "-c", EXAMPLES[3].replace("redis://localhost:6379/0", redis_url))
    output, _ = await asyncio.to_thread(process.communicate, timeout=60)
    assert process.returncode == 0, output
    assert output.strip().splitlines()[-1] == (
        "Counter({('digest:send', <TaskOutcome.SUCCEEDED: 'succeeded'>): 1})"
    )
    async with open_bench(redis_url) as bench:
        assert await bench.keys("asynq:{default}:[tag]*") == []
        assert await bench.counter("processed") == 1


async def test_the_example_of_the_inspector_reads_and_mends(copied_out: Path, redis_url: str) -> None:
    async with open_bench(redis_url) as bench:
        await bench.enqueue("report:build", queue="low", task_id="a")
        await Inspector(bench.redis).archive_task("low", "a")
    code = EXAMPLES[4].replace("redis://localhost:6379/0", redis_url)
    output, _ = await asyncio.to_thread(run_alone(copied_out, "-c", code).communicate, timeout=60)
    assert output.splitlines() == [
        "low 0 0:00:00",
        "a ",
        "BulkReport(done=1, ghosts=0, left=0, trimmed=0)",
        "Counter()",
    ]

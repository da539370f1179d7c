import subprocess
import sys
from pathlib import Path

import pytest

from junhong_cmp import asynq

SOURCE = Path(next(iter(asynq.__path__)))


@pytest.mark.parametrize("name", ["asynq_pb2.py", "asynq_pb2.pyi"])
def test_the_committed_module_is_what_the_compiler_makes(tmp_path: Path, name: str) -> None:
    command = [sys.executable, "-m", "grpc_tools.protoc", "-I", str(SOURCE)]
    command += [f"--python_out={tmp_path}", f"--pyi_out={tmp_path}", "asynq.proto"]
    subprocess.run(command, check=True, timeout=60)
    assert (SOURCE / name).read_text() == (tmp_path / name).read_text()

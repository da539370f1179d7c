import subprocess
import sys
from pathlib import Path

import pytest

from junhong_cmp import asynq

SOURCE = Path(next(iter(asynq.__path__)))
# The compiler writes a bare Mapping, which strict type checking refuses.
ADDED = {"asynq_pb2.py": "", "asynq_pb2.pyi": '# mypy: disable-error-code="type-arg"\n'}


@pytest.mark.parametrize("name", ["asynq_pb2.py", "asynq_pb2.pyi"])
def test_the_committed_module_is_what_the_compiler_makes(tmp_path: Path, name: str) -> None:
    command = [sys.executable, "-m", "grpc_tools.protoc", "-I", str(SOURCE)]
    command += [f"--python_out={tmp_path}", f"--pyi_out={tmp_path}", "asynq.proto"]
    subprocess.run(command, check=True, timeout=60)
    assert (SOURCE / name).read_text() == ADDED[name] + (tmp_path / name).read_text()

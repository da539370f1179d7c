"""Files a user asks for: whether they can be written, said before any work is done."""

import os
import shlex
from pathlib import Path
from typing import Final

import typer

from junhong_cmp.errors import system_reason

_REFUSED: Final = 1


def refuse_unwritable(path: Path, option: str) -> None:
    """End the command unless a file can be written at ``path``; ``option`` is what named it.

    Raises:
        typer.Exit: refused, and the user has been told why and what to do.

    """
    fault = _fault_of(path)
    if fault is not None:
        typer.echo(f"错误：{option} 无法写入 {path}：{fault}", err=True)
        raise typer.Exit(_REFUSED)


def _fault_of(path: Path) -> str | None:
    folder = path.parent
    try:
        if path.is_dir():
            return "是文件夹而不是文件，请加上文件名"
        folder.stat()
    except FileNotFoundError:
        named = shlex.quote(str(folder))
        return f"文件夹 {folder} 不存在，请先建立（mkdir -p {named}）或换一个位置"
    except OSError as error:
        return f"{system_reason(error)}，请换一个位置"
    if not folder.is_dir():
        return f"{folder} 不是文件夹，请换一个位置"
    if os.access(folder, os.W_OK | os.X_OK) or os.access(path, os.W_OK):
        return None
    return f"文件夹 {folder} 没有写权限，请修改权限或换一个位置"

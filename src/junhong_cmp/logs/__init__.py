"""One log pipeline for the whole process: Chinese sentences with fields, secrets masked."""

from junhong_cmp.logs.masking import MASK, SecretMask
from junhong_cmp.logs.setup import LogFormat, LogLevel, configure

__all__ = ["MASK", "LogFormat", "LogLevel", "SecretMask", "configure"]

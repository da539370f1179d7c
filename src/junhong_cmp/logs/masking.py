"""Secrets stay out of the log: by the field's name, by the shape of the text, and by their very value."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from structlog.typing import EventDict, WrappedLogger

MASK = "***"
MIN_LITERAL_LENGTH = 4  # a shorter secret would blank out ordinary words

_NAMES = (
    r"passwd|password|pwd|secret|token|authorization|signature|sign|api[_-]?key|access[_-]?key|credential"
)
_SECRET_FIELD = re.compile(rf"(?:^|[_\-.])(?:{_NAMES})s?$", re.IGNORECASE)
_URL_PASSWORD = re.compile(r"(?P<head>[A-Za-z][A-Za-z0-9+.\-]*://[^\s/:@]*:)[^\s\"'<>]+(?=@)")
_AUTHORIZATION = re.compile(
    r"(?P<head>\bauthorization\b[\"']?\s*[:=]\s*[\"']?)(?:(?:bearer|basic|digest)\s+)?[^\s\"',;)}]+",
    re.IGNORECASE,
)
# "sign" ends ordinary words ("design"), so it must stand alone or behind a separator.
_NAME_IN_TEXT = (
    r"[A-Za-z0-9_\-]*(?:passwd|password|pwd|secret|token|credential|api[_-]?key|access[_-]?key)"
    r"|(?<![A-Za-z0-9])(?:[A-Za-z0-9]+[_\-])*sign(?:ature)?"
)
_ASSIGNMENT = re.compile(
    rf"(?P<head>(?:{_NAME_IN_TEXT})[\"']?\s*[=:]\s*[\"']?)[^\s\"'&,;)}}\]]+",
    re.IGNORECASE,
)
_BEARER = re.compile(r"(?P<head>\bbearer\s+)[A-Za-z0-9._~+/=\-]{8,}", re.IGNORECASE)
_SHAPES = (_URL_PASSWORD, _AUTHORIZATION, _BEARER, _ASSIGNMENT)


class SecretMask:
    """A secret mask blanks secrets in texts and in nested log fields.

    ``literals`` are the secrets this process knows (passwords, signing keys): they are blanked
    wherever they appear, whatever the text around them looks like.
    """

    def __init__(self, literals: Iterable[str] = ()) -> None:
        known = sorted({text for text in literals if len(text) >= MIN_LITERAL_LENGTH}, key=len, reverse=True)
        self._literals = re.compile("|".join(re.escape(text) for text in known)) if known else None

    def __call__(self, _logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
        """Mask a log record: a structlog processor."""
        return {key: self._field(key, value) for key, value in event.items()}

    def text(self, text: str) -> str:
        """Return ``text`` with everything blanked that is, or looks like, a secret."""
        if self._literals is not None:
            text = self._literals.sub(MASK, text)
        for shape in _SHAPES:
            text = shape.sub(rf"\g<head>{MASK}", text)
        return text

    def _field(self, key: str, value: Any) -> Any:
        if _SECRET_FIELD.search(key) and value not in (None, "", False, True):
            return MASK
        return self._value(value)

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, bytes):
            return self.text(value.decode("utf-8", "backslashreplace"))
        if isinstance(value, Mapping):
            return {str(key): self._field(str(key), item) for key, item in value.items()}
        if isinstance(value, list | tuple | set | frozenset):
            return [self._value(item) for item in value]
        if value is None or isinstance(value, bool | int | float):
            return value
        return self.text(str(value))

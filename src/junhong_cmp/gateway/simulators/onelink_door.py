"""At the door of the simulated OneLink: tokens, transaction ids, and the gap between changes of a card."""

import re
import secrets
from collections import OrderedDict
from collections.abc import Mapping
from datetime import datetime, timedelta
from hmac import compare_digest
from typing import Final

from junhong_cmp.gateway.drivers.onelink_transid import CARRIER_TIME
from junhong_cmp.gateway.signing import Credential

TOKEN_LIFETIME: Final = timedelta(hours=1)
CHANGE_GAP: Final = timedelta(minutes=3)

_SKEW: Final = timedelta(minutes=10)
_REMEMBERED: Final = 200_000
_TRANSID_TAIL: Final = re.compile(r"([0-9]{14})[0-9]{8}")


class TokenDesk:
    """A token desk hands out one token at a time, the same until it has run out."""

    def __init__(self, credential: Credential) -> None:
        self._credential = credential
        self._token = ""
        self._ends_at = datetime.min.replace(tzinfo=CARRIER_TIME)

    def issue(self, fields: Mapping[str, str], now: datetime) -> tuple[str, int] | None:
        """Return the token and its remaining seconds; None if appid or password is wrong."""
        appid, password = fields.get("appid", ""), fields.get("password", "")
        known = compare_digest(appid.encode(), self._credential.key_id.encode())
        if not compare_digest(password.encode(), self._credential.secret.encode()) or not known:
            return None
        if now >= self._ends_at:
            self._token, self._ends_at = secrets.token_hex(16), now + TOKEN_LIFETIME
        return self._token, int((self._ends_at - now).total_seconds())

    def accepts(self, token: str, now: datetime) -> bool:
        """Tell whether a token is the one that is good now."""
        return now < self._ends_at and compare_digest(token.encode(), self._token.encode())


class TransIdBook:
    """A book of transaction ids refuses those that are malformed, not of now, or written in it already."""

    def __init__(self, appid: str) -> None:
        self._appid = appid
        self._seen: OrderedDict[str, None] = OrderedDict()

    def enter(self, transid: str, now: datetime) -> bool:
        """Write an id down; False if it is not a good one."""
        tail = _TRANSID_TAIL.fullmatch(transid.removeprefix(self._appid))
        if tail is None or not transid.startswith(self._appid) or transid in self._seen:
            return False
        try:
            second = datetime.strptime(tail[1], "%Y%m%d%H%M%S").replace(tzinfo=CARRIER_TIME)
        except ValueError:
            return False
        if abs(second - now) > _SKEW:
            return False
        self._seen[transid] = None
        if len(self._seen) > _REMEMBERED:
            self._seen.popitem(last=False)
        return True


class ChangeGaps:
    """Change gaps keep two changes of one card three minutes apart."""

    def __init__(self) -> None:
        self._changed_at: OrderedDict[str, datetime] = OrderedDict()

    def is_open(self, iccid: str, now: datetime) -> bool:
        """Tell whether the card may be changed now."""
        changed_at = self._changed_at.get(iccid)
        return changed_at is None or now - changed_at >= CHANGE_GAP

    def note(self, iccid: str, now: datetime) -> None:
        """Remember that the card was changed."""
        self._changed_at[iccid] = now
        self._changed_at.move_to_end(iccid)
        if len(self._changed_at) > _REMEMBERED:
            self._changed_at.popitem(last=False)

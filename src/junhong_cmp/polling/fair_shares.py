"""Sharing what is scarce: nobody gets more than asked for, nobody is starved by who asks for more."""

from collections.abc import Sequence


def fair_shares(total: int, wants: Sequence[int], turn: int = 0) -> list[int]:
    """Share ``total`` among those who want something; all of it, or all that is wanted.

    Everybody gets the same, and what somebody does not want goes to the others. When there is not enough
    for one each, those from ``turn`` on are served; count it up from call to call and nobody is always last.
    """
    asking = [index for index, want in enumerate(wants) if want > 0]
    shares = [0] * len(wants)
    if not asking or total <= 0:
        return shares
    first = turn % len(asking)
    asking = asking[first:] + asking[:first]
    if total <= len(asking):
        for index in asking[:total]:
            shares[index] = 1
        return shares
    asking.sort(key=lambda index: wants[index])
    left = total
    for served, index in enumerate(asking):
        shares[index] = min(wants[index], left // (len(asking) - served))
        left -= shares[index]
    return shares

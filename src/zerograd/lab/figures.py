"""Numbers as a reader likes them."""

from __future__ import annotations


def percent(share: float) -> str:
    """Return a share as a percentage with two digits.

    >>> percent(0.439223), percent(0.00739), percent(0.0)
    ('44 %', '0.74 %', '0 %')
    """
    return f"{significant(share * 100)} %"


def significant(value: float) -> str:
    """Return a number with two digits, without an exponent where it reads well without.

    >>> significant(0.41293), significant(12345.0), significant(1.5e-8)
    ('0.41', '12345', '1.5e-08')
    """
    if value == 0:
        return "0"
    if 1e-4 <= abs(value) < 100:
        return f"{value:.2g}"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.1e}"


def mib(count: int) -> str:
    """Return a number of bytes in MiB.

    >>> mib(1579008)
    '1.51'
    """
    return f"{count / 2**20:.2f}"

"""What values of the address were called before: older links and lessons go on working."""

from __future__ import annotations

_KEYS = {"switched": "interventions"}
_VALUES = {("blocks.view", "switched"): "interventions"}


def key_today(key: str) -> str:
    """Return the name that a value of the address has now.

    >>> key_today("switched"), key_today("layer")
    ('interventions', 'layer')
    """
    return _KEYS.get(key, key)


def former_keys(key: str) -> tuple[str, ...]:
    """Return the names that a value had before."""
    return tuple(before for before, now in _KEYS.items() if now == key)


def value_today(key: str, value: str | None) -> str | None:
    """Return what the text of a value is called now.

    >>> value_today("blocks.view", "switched")
    'interventions'
    """
    return value if value is None else _VALUES.get((key, value), value)

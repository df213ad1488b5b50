"""Cases of a fault that the ordinary run leaves to ``-m campaign``."""

from collections.abc import Collection
from typing import Any

import pytest


def leave_to_campaign(cases: Collection[str], *, ordinary: Collection[str]) -> list[Any]:
    """Return the cases as parameters of a test, marked ``campaign`` unless they are ``ordinary``."""
    assert set(ordinary) <= set(cases)
    return [case if case in ordinary else pytest.param(case, marks=pytest.mark.campaign) for case in cases]

"""No argument ends the process, hangs, or yields a tensor outside of its memory; see hostile.py."""

import hostile
import pytest

PARTS = 4


@pytest.mark.parametrize("part", range(PARTS))
def test_hostile_arguments(part):
    calls, findings = hostile.run(cases=12, seed=0, part=part, parts=PARTS, timeout=240)
    assert not findings, "\n".join(findings)
    assert calls > 2000


def test_hostile_arguments_of_operators_without_a_function():
    calls, findings = hostile.run(cases=20, seed=1, timeout=240, internal=True)
    assert not findings, "\n".join(findings)
    assert calls > 2000

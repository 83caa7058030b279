"""What tests of a program's own operators share."""

import pytest

from rushlight import library


@pytest.fixture
def lib():
    made = library.Library("tests", "FRAGMENT")
    yield made
    made._destroy()

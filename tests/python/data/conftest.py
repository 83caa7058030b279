"""What tests of loaders with worker processes share."""

import gc

import pytest
from worker_processes import children, descriptors

import rushlight


@pytest.fixture
def leaves_nothing():
    before = len(descriptors())
    yield
    gc.collect()
    assert not children(), "processes were left behind"
    rushlight._C._shared_release_idle()
    # The fork server's pipe, the resource tracker's, and our own slab stay.
    assert len(descriptors()) <= before + 6, descriptors()

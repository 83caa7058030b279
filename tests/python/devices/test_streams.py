"""Streams and events of the CPU, where all work is done when a call returns."""

import pytest

import rushlight as torch


def test_streams_and_events():
    stream = torch.Stream("cpu")
    begin, end = torch.Event(enable_timing=True), torch.Event(enable_timing=True)
    with stream:
        begin.record(stream)
        torch.ones(100).exp()
        stream.record_event(end)
    stream.synchronize()
    assert stream.query() and end.query() and begin.elapsed_time(end) >= 0
    assert stream == torch.Stream("cpu") and stream.device == torch.device("cpu")
    with pytest.raises(ValueError, match="enable_timing"):
        torch.Event().elapsed_time(end)
    with pytest.raises(RuntimeError, match="not linked with support"):
        torch.Stream("cuda")

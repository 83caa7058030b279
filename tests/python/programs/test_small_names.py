"""Names that a program meets once: what they are, and what they say, is as in PyTorch."""

import io

import pytest

import rushlight as torch
from rushlight.nn.attention import SDPAParams


def test_capsules_are_made_by_the_top_name():
    x = torch.arange(3.0)
    shared = torch.from_dlpack(torch.to_dlpack(x))
    shared[0] = 5.0
    assert x[0] == 5.0


def test_channels_are_dealt_out_by_the_kernels_name():
    x = torch.arange(8.0).view(1, 4, 2)
    assert torch.native_channel_shuffle(x, 2).tolist() == torch.channel_shuffle(x, 2).tolist()
    assert torch.native_channel_shuffle(x, 2).flatten().tolist() == [0, 1, 4, 5, 2, 3, 6, 7]


def test_events_of_the_cpu_have_happened():
    event = torch.cpu.Event()
    event.record(torch.cpu.current_stream())
    event.synchronize()
    event.wait()
    assert event.query() is True


def test_arguments_of_attention_as_a_value():
    x = torch.ones(1, 1, 2, 2)
    params = SDPAParams(x, x, x, None, 0.5, True, False)
    assert params.query is x and params.attn_mask is None
    assert (params.dropout, params.is_causal, params.enable_gqa) == (0.5, True, False)
    assert torch.backends.cuda.SDPAParams is SDPAParams
    with pytest.raises(AttributeError):
        params.query = None


def test_regions_that_repeat_are_captured():
    @torch.compiler.nested_compile_region
    def block(x):
        return x.sin() + 1

    @torch.compiler.nested_compile_region(max_reuse_entries=2)
    def twice(x):
        return block(block(x))

    x = torch.linspace(0, 1, 4)
    assert torch.equal(torch.compile(twice, fullgraph=True)(x), (x.sin() + 1).sin() + 1)
    with pytest.raises(RuntimeError, match="experimental feature for testing only"):
        torch.compiler.nested_compile_region(block, options=object())


def test_what_is_missing_in_a_file_is_named():
    file = io.BytesIO()
    torch.save(torch.ones(2), file)
    reader = torch._C.PyTorchFileReader(io.BytesIO(file.getvalue()))
    with pytest.raises(RuntimeError, match="failed locating file data/7: file not found"):
        reader.get_record("data/7")


def test_refusals_show_what_they_got():
    with pytest.raises(AssertionError, match=r"Got wait=-1 \(need >= 0\), warmup=0 .*active=0 \(need > 0\)"):
        torch.profiler.schedule(wait=-1, warmup=0, active=0)
    _, pull = torch.func.vjp(lambda x: (x.sin(), x.cos()), torch.zeros(2))
    with pytest.raises(RuntimeError, match=r"cotangents: \*, primal output: \(\*, \*\)"):
        pull(torch.ones(2))

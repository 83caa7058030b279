"""What the processor can do: PyTorch's names, Linux's word."""

import pytest

import rushlight as rl
from rushlight._extension import cpu_capabilities

INTEL = """processor\t: 0
physical id\t: 0
core id\t: 0
model name\t: A Processor
flags\t\t: fpu sse sse2 pni ssse3 sse4_1 avx avx2 fma bmi1 abm avx512f avx512_vnni sha_ni

processor\t: 1
physical id\t: 0
core id\t: 0
model name\t: A Processor
flags\t\t: fpu sse
"""
ARM = "processor\t: 0\nFeatures\t: fp asimd aes pmull asimddp bf16\n"


def test_pytorchs_answer():
    torch = pytest.importorskip("torch")
    ours, theirs = rl.cpu.get_capabilities(), torch.cpu.get_capabilities()
    assert ours.keys() == theirs.keys()
    extensions = [k for k, v in theirs.items() if isinstance(v, bool)]
    assert {k: ours[k] for k in extensions} == {k: theirs[k] for k in extensions}
    assert ours["architecture"] == theirs["architecture"]
    with pytest.raises(TypeError):
        ours["avx2"] = True


def test_flags_have_other_names():
    found = cpu_capabilities.from_text(INTEL, "x86_64")
    for name in "sse3 fma3 bmi lzcnt sha avx512_f avx512_vnni avx2".split():
        assert found[name] is True
    for name in "avx512_bw f16c amx_tile sse4a".split():
        assert found[name] is False
    assert (found["num_sockets"], found["num_physical_cores"], found["num_logical_cores"]) == (1, 1, 2)
    assert found["cpu_name"] == "A Processor" and "neon" not in found


def test_other_architectures():
    found = cpu_capabilities.from_text(ARM, "aarch64")
    assert found["neon"] and found["dot"] and found["bf16"] and not found["sve"] and "avx2" not in found
    assert cpu_capabilities.from_text("", "riscv64")["num_logical_cores"] >= 1


def test_private_names_of_pytorch_are_private():
    assert not hasattr(rl, "unique_dim")
    rows = rl.tensor([[1, 2], [1, 2], [3, 4]])
    assert rl.unique(rows, dim=0).tolist() == [[1, 2], [3, 4]]

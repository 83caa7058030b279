"""Names that PyTorch keeps for older programs, and that packages still ask for."""

import sys

import pytest

import rushlight as torch
from rushlight import _utils, mps
from rushlight.utils import cpp_extension


def test_devices_that_are_not_there_say_so():
    with pytest.raises(
        RuntimeError, match=r"Cannot execute getCurrentAllocatedMemory\(\) without MPS backend"
    ):
        mps.current_allocated_memory()
    with pytest.raises(RuntimeError, match="without MTIA backend"):
        torch.mtia.synchronize()
    assert torch.has_cuda == torch.backends.cuda.is_built()


def test_groups_of_tensors():
    a, b, c = (torch.zeros(n) for n in (3, 2, 4))
    whole = torch.zeros(9, dtype=torch.int64)
    groups = list(_utils._take_tensors([a, whole, b, c], 20))
    assert [[t.numel() for t in group] for group in groups] == [[3, 2], [4], [9]]


def test_compiling():
    from rushlight._dynamo.decorators import mark_dynamic  # noqa: F401 - as packages import it

    with pytest.warns(UserWarning, match="torch.compiler.is_compiling"):
        assert not _utils.is_compiling()
    assert torch._disable_dynamo(lambda x: x + 1)(1) == 2
    assert torch._disable_dynamo(recursive=False)(lambda x: x + 1)(1) == 2


def test_norms_in_modules_of_their_names():
    from rushlight.nn.utils.spectral_norm import SpectralNorm
    from rushlight.nn.utils.weight_norm import WeightNorm

    layer = torch.nn.utils.weight_norm(torch.nn.utils.spectral_norm(torch.nn.Linear(2, 2)), "bias", None)
    kinds = {type(hook) for hook in layer._forward_pre_hooks.values()}
    assert kinds == {SpectralNorm, WeightNorm}


def test_extensions():
    assert (cpp_extension.IS_LINUX, cpp_extension.IS_WINDOWS) == (
        sys.platform == "linux",
        sys.platform == "win32",
    )
    assert cpp_extension.get_cxx_compiler() and cpp_extension.ROCM_HOME is None
    with pytest.raises(RuntimeError, match="use_ninja"):
        cpp_extension.verify_ninja_availability()

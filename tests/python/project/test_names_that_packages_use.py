"""Names of PyTorch that packages import, and what they do here."""

import gc
import warnings

import pytest

import rushlight as torch
from rushlight.multiprocessing.reductions import StorageWeakRef
from rushlight.testing import FileCheck


def test_the_kernel_of_an_operator_can_be_called():
    x = torch.randn(3, requires_grad=True)
    kernel = torch.library.get_kernel("aten::sin", "CPU")
    made = kernel.call_boxed(None, x)
    torch.testing.assert_close(made, x.detach().sin())
    assert not made.requires_grad
    for op in (torch.ops.aten.add.Tensor, "aten::add.Tensor"):
        made = torch.library.get_kernel(op, torch._C.DispatchKey.CPU).call_boxed(None, x, 1, alpha=2)
        torch.testing.assert_close(made, x.detach() + 2)


def test_the_kernel_of_a_programs_operator_is_the_one_it_gave():
    with torch.library._scoped_library("kernels_asked_for", "FRAGMENT") as library:
        library.define("twice(Tensor x) -> Tensor")
        library.impl("twice", lambda x: x * 2, "CPU")
        first = torch.library.get_kernel("kernels_asked_for::twice", "CPU")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # told once for all programs
            library.impl("twice", lambda x: first.call_boxed(None, x) + 1, "CPU")
        assert torch.ops.kernels_asked_for.twice(torch.ones(1)).item() == 3


@pytest.mark.parametrize(
    ("op", "key", "error", "says"),
    [
        ("aten::nope", "CPU", RuntimeError, "operator aten::nope does not exist"),
        ("aten::sin", "Nope", ValueError, "Invalid dispatch key: Nope"),
        (3, "CPU", ValueError, "unexpected type for op"),
    ],
)
def test_kernels_that_are_not_there(op, key, error, says):
    with pytest.raises(error, match=says):
        torch.library.get_kernel(op, key)


def test_operators_say_what_they_are():
    aten, tags = torch.ops.aten, torch.Tag
    assert tags.pointwise in aten.sin.default.tags
    assert tags.nondeterministic_seeded in aten.rand.default.tags
    assert tags.dynamic_output_shape in aten.nonzero.default.tags
    assert tags.data_dependent_output in aten._local_scalar_dense.default.tags
    assert {tags.inplace, tags.inplace_view} <= set(aten.t_.default.tags)
    assert tags.out in aten.sin.out.tags
    assert aten.mm.default.tags == [tags.pt2_compliant_tag]


def test_random_nodes_are_not_taken_for_dead():
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    graph.call_function(torch.ops.aten.bernoulli.default, (x,))
    graph.call_function(torch.ops.aten.sin.default, (x,))
    graph.output(x)
    graph.eliminate_dead_code()
    assert [n.target for n in graph.nodes if n.op == "call_function"] == [torch.ops.aten.bernoulli.default]


@pytest.mark.parametrize("size", [3, 3000])
def test_a_weak_reference_tells_when_the_memory_is_gone(size):
    x = torch.ones(size)
    view, other = x[1:], torch.ones(size)
    reference = StorageWeakRef(x.untyped_storage())
    assert reference == StorageWeakRef(view.untyped_storage()) == StorageWeakRef(x.storage())
    assert hash(reference) == hash(StorageWeakRef(view.untyped_storage()))
    assert (
        reference != StorageWeakRef(other.untyped_storage()) and reference.cdata == x.untyped_storage()._cdata
    )
    del x
    gc.collect()
    assert not reference.expired()
    del view
    gc.collect()
    assert reference.expired()
    kept = [StorageWeakRef(torch.ones(size).untyped_storage()) for _ in range(5)]
    assert all(one.expired() for one in kept) and reference not in kept


def test_awaitables_are_computed_once_when_asked_for():
    calls = []

    def compute(x, times=2):
        calls.append(x)
        return x * times

    made = torch.jit._awaitable(compute, torch.ones(2), times=3)
    assert isinstance(made, torch.jit._Await) and not made.is_nowait() and not calls
    assert made.shape == (2,) and made.fn() is compute and len(made.args()) == 1
    assert torch.jit._awaitable_wait(made) is torch.jit._awaitable_wait(made)
    assert made.wait().tolist() == [3, 3] and len(calls) == 1
    ready = torch.jit._awaitable_nowait(5)
    assert ready.is_nowait() and torch.jit._awaitable_wait(ready) == 5


def test_settings_of_the_compiler_are_those_of_its_parts():
    from rushlight._dynamo import config

    before = config.recompile_limit
    with torch.compiler.config.patch(recompile_limit=before + 1):
        assert config.recompile_limit == torch.compiler.config.recompile_limit == before + 1
    assert config.recompile_limit == before
    assert torch.compiler.config.force_disable_caches == torch._inductor.config.force_disable_caches
    torch.jit.enable_onednn_fusion(True)
    assert torch.jit.onednn_fusion_enabled()
    torch.jit.enable_onednn_fusion(False)
    assert not torch.jit.onednn_fusion_enabled()


def test_a_count_that_is_not_met_is_told():
    with pytest.raises(RuntimeError, match="From CHECK-COUNT-3: a"):
        FileCheck().check_count("a", 3).run("a b a")

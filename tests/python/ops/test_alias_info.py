"""`torch.utils._python_dispatch`: what shares memory by the schemas, and which modes are active."""

import pytest

import rushlight as torch
from rushlight import _ops
from rushlight._command.names import is_aliased
from rushlight.utils import _python_dispatch as dispatch


@pytest.fixture
def oracle():
    if is_aliased():
        pytest.skip("compares with PyTorch")
    return pytest.importorskip("torch")


# Operators whose schemas here do not mark memory: parts of sparse tensors, lists of given results, a view
# that is a composite, and two that take other operands than PyTorch's.
OTHERWISE = {
    f"aten.{name}"
    for name in (
        "_indices.default _sparse_broadcast_to.default _values.default ccol_indices.default coalesce.default "
        "col_indices.default crow_indices.default indices.default row_indices.default values.default "
        "split_copy.Tensor_out split_with_sizes_copy.out unbind_copy.int_out linalg_diagonal.default "
        "_thnn_fused_gru_cell_backward.default _thnn_fused_lstm_cell_backward.default"
    ).split()
}


def facts(info, names):
    """What shares memory and is written to, by the names of parameters; letters mean nothing."""
    args = {a.name: a for a in info.args if a.name in names}
    shared = [(info.args[i].name, j) for i, j in info.read_only_alias_match_indexes]
    written = {name: a.is_write for name, a in args.items()}
    return written, [pair for pair in shared if pair[0] in names], [out.is_write for out in info.outs]


def test_aliases_are_those_of_pytorchs_schemas(oracle):
    from torch.utils._python_dispatch import get_alias_info

    compared, different = 0, []
    for name, overloads in _ops._built_in()["aten"].items():
        packet = getattr(oracle.ops.aten, name, None)
        for overload in overloads:
            overload = overload or "default"
            if packet is None or overload not in packet.overloads():
                continue
            ours, theirs = getattr(getattr(torch.ops.aten, name), overload), getattr(packet, overload)
            names = {a.name for a in ours._schema.arguments} & {a.name for a in theirs._schema.arguments}
            try:
                wanted = facts(get_alias_info(theirs), names)
            except RuntimeError:
                continue
            compared += 1
            if facts(dispatch.get_alias_info(ours), names) != wanted:
                different.append(str(ours))
    assert compared > 1000
    assert set(different) - OTHERWISE == set()


def test_turned_in_place_and_written():
    info = dispatch.get_alias_info(torch.ops.aten.t_.default)
    assert info.is_inplace_view_op and info.outs_write_aliases == ["a"]
    assert info.args[0] == dispatch.AliasInfo({"a"}, True, "self")
    info = dispatch.get_alias_info(torch.ops.aten.split.Tensor)
    assert info.read_only_alias_match_indexes == [(0, 0)] and info.outs_write_aliases is None


def test_active_modes():
    class Ignored(dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

        @classmethod
        def ignore_compile_internals(cls):
            return True

    asked = (
        dispatch.any_torch_dispatch_mode_on_stack,
        dispatch.is_in_any_mode_without_ignore_compile_internals,
    )
    assert [ask() for ask in asked] == [False, False]
    with Ignored():
        assert [ask() for ask in asked] == [True, False]
        with dispatch.BaseTorchDispatchMode():
            assert [ask() for ask in asked] == [True, True]


def test_what_autograd_takes_apart():
    aten = torch.ops.aten
    assert dispatch.autograd_would_have_decomposed(aten.matmul.default, [])
    assert not dispatch.autograd_would_have_decomposed(aten.mm.default, [])
    assert not dispatch.autograd_would_have_decomposed(aten.linear.default, [])


def test_settings_of_symbolic_sizes_can_be_set_for_a_while():
    from rushlight.fx.experimental import _config

    before = _config.use_duck_shape
    with _config.patch(use_duck_shape=not before):
        assert _config.use_duck_shape is not before
    assert _config.use_duck_shape is before

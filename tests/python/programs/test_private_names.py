"""Names that PyTorch keeps private, or for other builds, and that packages use all the same."""

import warnings
from collections import OrderedDict, defaultdict

import pytest

import rushlight as torch


def test_distributed_before_a_process_group_is_made():
    assert issubclass(torch.distributed.QueueEmptyError, torch.distributed.DistStoreError)
    assert not torch.distributed.is_initialized()
    with pytest.raises(ValueError, match="process group has not been initialized"):
        torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2))


def test_forms_of_the_containers_of_trees():
    from rushlight.utils import _pytree

    values, keys = _pytree._dict_flatten({"a": 1, "b": 2})
    assert _pytree._dict_unflatten(values, keys) == {"a": 1, "b": 2}
    pairs, _ = _pytree._ordereddict_flatten_with_keys(OrderedDict(x=5))
    assert pairs == [(_pytree.MappingKey("x"), 5)]
    made = _pytree._defaultdict_unflatten(*_pytree._defaultdict_flatten(defaultdict(list, a=[1])))
    assert made == {"a": [1]} and made.default_factory is list


def test_tensors_grouped_by_device_and_dtype():
    a, b, c = torch.ones(1), torch.ones(2, dtype=torch.float64), torch.ones(3)
    group = torch.optim.Optimizer._group_tensors_by_device_and_dtype
    groups = group([[a, b, c], [], [None, None, c]], with_indices=True)
    lists, indices = groups[a.device, torch.float32]
    assert lists[0][0] is a and lists[0][1] is c and indices == [0, 2]
    assert lists[1] == [] and lists[2][0] is None and lists[2][1] is c
    assert groups[a.device, torch.float64][1] == [1]
    with pytest.raises(RuntimeError, match="same length"):
        group([[a], [a, c]])


def test_choice_of_optimizer_forms():
    from rushlight.optim import optimizer

    params = [torch.nn.Parameter(torch.ones(2))]
    assert optimizer._default_to_fused_or_foreach(params, False, use_fused=True) == (True, False)
    assert optimizer._default_to_fused_or_foreach(params, False) == (False, False)
    assert optimizer._default_to_fused_or_foreach(params, True, use_fused=True) == (False, False)
    with pytest.raises(RuntimeError, match="floating point Tensors of supported devices"):
        optimizer._device_dtype_check_for_fused(torch.ones(2, dtype=torch.int64))
    values = [torch.ones(2, dtype=torch.complex64)]
    optimizer._view_as_real(values)
    assert values[0].shape == (2, 2)


def test_sets_of_dispatch_keys():
    key, keys = torch._C.DispatchKey, torch._C.DispatchKeySet
    both = keys(key.CPU) | keys(key.AutocastCPU)
    assert both.has(key.CPU) and both - keys(key.CPU) == keys(key.AutocastCPU)
    assert keys.from_raw_repr(both.raw_repr()) == both
    assert str(key.CPU) == "DispatchKey.CPU" and torch._C._dispatch_key_parse("Meta") is key.Meta
    x = torch.ones(2, 2)
    with torch.autocast("cpu"):
        with torch._C._ExcludeDispatchKeyGuard(both):
            assert (x @ x).dtype == torch.float32
            assert torch._C._dispatch_tls_local_exclude_set() == both
        assert (x @ x).dtype == torch.bfloat16
    assert not list(torch._C._dispatch_tls_local_exclude_set())


def test_a_fake_rule_may_come_before_its_operator():
    @torch.library.register_fake("private_names::later")
    def later(x):
        return x.new_empty(3)

    library = torch.library.Library("private_names", "DEF")
    library.define("later(Tensor x) -> Tensor")
    assert torch.ops.private_names.later(torch.ones(2, device="meta")).shape == (3,)


def test_records_of_a_file(tmp_path):
    first, second = str(tmp_path / "first.pt"), str(tmp_path / "second.pt")
    torch.save({"a": torch.arange(5.0)}, first)
    reader = torch.PyTorchFileReader(first)
    assert {"data.pkl", "data/0", "version"} <= set(reader.get_all_records())
    assert reader.get_storage_from_record("data/0", 5, torch.float32).tolist() == [0, 1, 2, 3, 4]
    assert reader.get_storage_from_record("data/0", 20, torch.UntypedStorage).untyped_storage().nbytes() == 20
    writer = torch.PyTorchFileWriter(second)
    for name in ("data.pkl", "data/0"):
        data = reader.get_record(name)
        writer.write_record(name, data, len(data))
    writer.write_end_of_file()
    assert torch.load(second)["a"].tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(RuntimeError, match="file not found"):
        reader.get_record("data/9")


def test_former_home_of_mixed_precision():
    from rushlight.cuda import amp

    with pytest.warns(FutureWarning, match=r"torch\.cuda\.amp\.GradScaler"):
        scaler = amp.GradScaler(enabled=False)
    assert not scaler.is_enabled() and amp.amp_definitely_not_available()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with amp.autocast(enabled=False):
            assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.float32


def test_rules_for_onnx():
    from rushlight import onnx
    from rushlight.onnx import symbolic_opset11
    from rushlight.onnx.symbolic_helper import parse_args

    class Graph:
        def op(self, name, *inputs, **attributes):
            return (name, inputs, attributes)

    @parse_args("v", "i", "f", "is")
    def rule(g, x, axis, scale, sizes):
        return g.op("Custom", symbolic_opset11.unsqueeze(g, x, axis), scale_f=scale, sizes_i=sizes)

    node = rule(Graph(), "x", 1.0, 2, (3, True))
    assert node == ("Custom", (("Unsqueeze", ("x",), {"axes_i": [1]}),), {"scale_f": 2.0, "sizes_i": [3, 1]})
    with pytest.raises(AssertionError, match="mismatch between the number of arguments"):
        rule(Graph(), 1, 2, 3, 4, 5)
    onnx.register_custom_op_symbolic("private_names::rule", rule, 11)
    onnx.unregister_custom_op_symbolic("private_names::rule", 11)
    with pytest.raises(ValueError, match="must match the format"):
        onnx.register_custom_op_symbolic("rule", rule, 11)
    assert not onnx.is_in_onnx_export()


def test_stubs_of_quantisation():
    from rushlight.ao.quantization import QuantWrapper

    x, layer = torch.randn(2, 3), torch.nn.Linear(3, 3)
    assert torch.equal(QuantWrapper(layer)(x), layer(x))
    functional = torch.nn.quantized.FloatFunctional()
    seen = []
    functional.activation_post_process.register_forward_hook(lambda *args: seen.append(args[-1]))
    assert torch.equal(functional.add_relu(x, x), (x + x).relu()) and len(seen) == 1
    assert functional.cat([x, x], 1).shape == (2, 6)


def test_indexing_under_vmap():
    from rushlight._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex

    table = torch.arange(12.0).reshape(3, 4)
    with TransformGetItemToIndex():
        picked = torch.vmap(lambda i, j: table[i, j] + table[0, j])(
            torch.tensor([0, 1, 2]), torch.tensor([3, 2, 1])
        )
    assert picked.tolist() == [6.0, 8.0, 10.0]


@pytest.mark.parametrize("device", ["cpu:0", "meta:0"])
def test_the_only_device_of_its_kind_has_no_number(device):
    plain = torch.device(device[:-2])
    for x in (torch.empty(2, device=device), torch.zeros(2, 3, device=device), torch.ones(2).to(device)):
        assert x.device == plain and x.device.index is None
    assert torch.device(device) != plain


def test_infinities_of_integers():
    from rushlight.utils._sympy.numbers import int_oo
    from rushlight.utils._sympy.value_ranges import ValueRangeError, ValueRanges

    below = -int_oo
    assert below < -(10**30) < 10**30 < int_oo and -below == int_oo and not int_oo < int_oo
    assert 5 in ValueRanges(1, int_oo) and 0 not in ValueRanges(1, int_oo)
    assert ValueRanges(1, 8) & ValueRanges(3, int_oo) == ValueRanges(3, 8)
    with pytest.raises(ValueRangeError, match="Invalid ranges"):
        ValueRanges(2, 1)


def test_tensors_as_one_vector():
    from rushlight._utils import _flatten_dense_tensors, _unflatten_dense_tensors

    tensors = [torch.arange(6.0).view(2, 3).t(), torch.empty(0, 2), torch.tensor(7.0)]
    flat = _flatten_dense_tensors(tensors)
    assert flat.tolist() == [0, 3, 1, 4, 2, 5, 7] and _flatten_dense_tensors(tensors[:1]).shape == (6,)
    first, empty, last = _unflatten_dense_tensors(flat, tensors)
    assert first.tolist() == tensors[0].tolist() and empty.shape == (0,) and last.item() == 7
    first.zero_()
    assert flat.sum() == 7


def test_products_with_matrices_that_may_be_missing():
    from rushlight import _linalg_utils as utils

    x, a = torch.randn(4, 2, dtype=torch.float64), torch.randn(4, 4, dtype=torch.float64)
    a = a + a.mT
    torch.testing.assert_close(utils.qform(a, x), x.mT @ a @ x)
    torch.testing.assert_close(utils.qform(None, x), x.mT @ x)
    torch.testing.assert_close(utils.matmul(a.to_sparse(), x), a @ x)
    q = utils.basis(x)
    torch.testing.assert_close(q.mT @ q, torch.eye(2, dtype=torch.float64))
    values, vectors = utils.symeig(a, largest=True)
    assert (values.diff() <= 0).all()
    torch.testing.assert_close(a @ vectors, vectors * values)
    assert utils.get_floating_dtype(torch.ones(1, dtype=torch.int64)) == torch.float32
    with pytest.raises(RuntimeError, match="torch.linalg.solve"):
        utils.solve(a, x)
    with pytest.raises(TypeError, match="expected Tensor but got"):
        utils.is_sparse(1)


def test_the_older_door_to_vmap():
    from rushlight import _vmap_internals

    x = torch.arange(6.0).reshape(3, 2)
    torch.testing.assert_close(_vmap_internals._vmap(lambda r: r.sum())(x), x.sum(1))
    total, nothing = _vmap_internals._vmap(lambda r: (r.sum(), None), allow_none_pass_through=True)(x)
    assert nothing is None
    torch.testing.assert_close(total, x.sum(1))
    with pytest.warns(FutureWarning, match="torch.vmap"):
        torch.testing.assert_close(_vmap_internals.vmap(torch.sin)(x), x.sin())


def test_random_numbers_of_tests():
    before = torch.get_rng_state()
    first = torch.testing._utils.wrapper_set_seed(torch.rand, 3)
    with torch.testing._utils.freeze_rng_state():
        torch.rand(5)
    assert torch.equal(before, torch.get_rng_state())
    torch.manual_seed(42)
    assert torch.equal(first, torch.rand(3))


def test_distinct_elements_by_the_private_form():
    values, inverse = torch._unique(torch.tensor([2, 1, 2]), return_inverse=True)
    assert values.tolist() == [1, 2] and inverse.tolist() == [1, 0, 1]
    assert torch._unique(torch.tensor([2, 1]))[1].numel() == 0


def test_division_by_its_former_name():
    x = torch.ones(2)
    assert x.__div__(2).tolist() == [0.5, 0.5]
    assert x.__idiv__(4) is x and x.tolist() == [0.25, 0.25]


def test_operators_as_pytorchs_own_modules_call_them():
    from rushlight import _VF

    x = torch.tensor([2, 1, 2])
    assert torch._VF.unique_dim(x, 0)[0].tolist() == [1, 2] and _VF is torch._VF
    assert _VF.relu(torch.tensor([-1.0])).item() == 0
    assert "lstm" in dir(_VF) and not hasattr(_VF, "no_such_operator")


def test_volatile_is_gone():
    x = torch.ones(1)
    with pytest.warns(UserWarning, match="volatile was removed"):
        assert x.volatile is False
    with pytest.warns(UserWarning, match="no effect"):
        x.volatile = True
    assert all(hasattr(torch.ones(2, 2), name) for name in dir(torch.ones(2, 2)) if name != "imag")


def test_elements_that_share_memory():
    overlap = torch._debug_has_internal_overlap
    assert overlap(torch.ones(3, 3)) == overlap(torch.ones(3, 2).t()) == 0
    assert overlap(torch.ones(1, 3).expand(4, 3)) == 1
    assert overlap(torch.ones(10).as_strided((2, 1, 5), (1, 0, 2))) == 0
    assert overlap(torch.ones(6)[::2]) == 2
    assert torch._nnpack_available() is False


def test_whether_an_operator_writes_or_shares_memory():
    from rushlight.testing._internal.composite_compliance import is_inplace, is_inplace_view_fn, is_view_fn

    aten = torch.ops.aten
    told = {
        op: (is_inplace(op), is_inplace_view_fn(op), is_view_fn(op))
        for op in (aten.add_.Tensor, aten.unsqueeze_.default, aten.transpose.int, aten.mul.Tensor)
    }
    assert list(told.values()) == [
        (True, False, False),
        (True, True, False),
        (False, False, True),
        (False, False, False),
    ]


def test_whether_a_trace_is_recorded():
    seen = []

    def f(x):
        seen.append(torch._C._is_tracing())
        return x + 1

    torch.jit.trace(f, torch.ones(2), check_trace=False)
    assert seen == [True] and not torch._C._is_tracing()


def test_vitals_are_deprecated():
    with pytest.warns(UserWarning, match="'set_vital' is deprecated"):
        assert torch.set_vital("Dataloader", "enabled", "True") is None


def test_any_number_of_graphs_of_a_function():
    from rushlight._dynamo import config
    from rushlight._dynamo.utils import disable_cache_limit

    before = config.recompile_limit
    with pytest.raises(KeyError), disable_cache_limit():
        assert min(config.recompile_limit, config.cache_size_limit) > 10**9
        raise KeyError
    assert config.recompile_limit == before


def test_the_end_of_a_range_as_an_overload():
    with torch.profiler.profile() as profile:
        handle = torch.ops.profiler._record_function_enter("range")
        torch.ops.profiler._record_function_exit._RecordFunction(handle)
    assert "range" in {event.name for event in profile.events()}


def test_where_files_of_the_package_lie(tmp_path):
    from rushlight import _utils_internal

    assert _utils_internal.get_file_path("__init__.py") == torch.__file__
    (tmp_path / "library.so").touch()
    (tmp_path / "link.so").symlink_to(tmp_path / "library.so")
    assert _utils_internal.resolve_library_path(tmp_path / "link.so") == str(
        (tmp_path / "library.so").resolve()
    )

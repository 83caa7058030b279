"""Classes of behaviour that PyTorch's own test files look for: words of refusals, conversions, warnings."""

import warnings
import weakref

import numpy as np
import pytest

import rushlight as rl


def test_types_say_which_complex_type_their_values_have():
    assert rl.float32.to_complex() is rl.complex64
    for dtype in (rl.int8, rl.int64, rl.bool):
        with pytest.raises(RuntimeError, match="no complex type"):
            dtype.to_complex()


def test_truth_values_of_numpys_functions_are_bytes():
    compared = np.greater(rl.tensor([1, 2, 3]), 1)
    assert compared.dtype is rl.uint8
    assert compared.tolist() == [0, 1, 1]


def test_storages_take_integers_of_numpy_as_lengths():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert rl.Storage(np.array([3], dtype=np.int16)[0]).size() == 3
        assert rl.Storage([4.0, 5.0]).tolist() == [4.0, 5.0]


def test_the_default_storage_follows_the_default_type():
    before = rl.get_default_dtype()
    try:
        for dtype, storage in ((rl.float64, rl.DoubleStorage), (rl.float32, rl.FloatStorage)):
            rl.set_default_dtype(dtype)
            assert rl.Storage is storage
    finally:
        rl.set_default_dtype(before)


def test_complex_numbers_have_truth_values():
    assert rl.tensor([1e-323, 0j, 1e-323j, -1j, 0.0], dtype=rl.bool).tolist() == [
        True,
        False,
        True,
        True,
        False,
    ]
    with pytest.raises(TypeError, match="not complex"):
        rl.tensor([1j], dtype=rl.float32)


def test_lists_that_hold_themselves_are_called_that():
    held = [0]
    held += [held]
    for data in (held, [[1, 2], held]):
        for read in (rl.tensor, rl.as_tensor):
            with pytest.raises(TypeError, match="self-referential lists are incompatible"):
                read(data)


def test_factories_refuse_gradients_of_integers():
    whole = rl.ones(2, dtype=rl.int32)
    for make in (whole.new_ones, whole.new_empty, lambda n, **o: rl.zeros(n, dtype=rl.int64, **o)):
        with pytest.raises(RuntimeError, match="Only Tensors of floating point and complex dtype"):
            make(2, requires_grad=True)
        assert not make(2, requires_grad=False).requires_grad


def test_sequences_cannot_be_shared():
    for data in ([1, 2], 3):
        with pytest.raises(ValueError, match="can't alias arbitrary sequence"):
            rl.asarray(data, copy=False)
    with pytest.raises(ValueError, match="can't alias tensor with dtype 'float32' into dtype 'float64'"):
        rl.asarray(rl.ones(2), dtype=rl.float64, copy=False)


def test_spaced_numbers_name_themselves():
    for space in (rl.linspace, rl.logspace):
        with pytest.raises(RuntimeError, match=rf"torch.{space.__name__}\(\): inferred dtype"):
            space(1j, 2, 3, dtype=rl.float32)


def test_grids_lie_on_one_device():
    with pytest.raises(RuntimeError, match="expects all tensors to have the same device"):
        rl.meshgrid(rl.ones(1), rl.ones(1, device="meta"), indexing="ij")


def test_shapes_are_compared_before_types_where_values_are_put():
    numbers = rl.arange(4)
    with pytest.raises(RuntimeError, match="shape mismatch"):
        numbers[numbers > -1] = rl.tensor([])
    with pytest.raises(RuntimeError, match="source and destination dtypes match"):
        numbers[numbers > -1] = rl.ones(4)
    assert numbers.tolist() == [0, 1, 2, 3]


def test_what_is_said_once_is_said_again_where_that_is_asked():
    def warned():
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            rl.frombuffer(b"1234", dtype=rl.int8)
        return len(seen)

    warned()
    assert warned() == 0
    rl.set_warn_always(True)
    try:
        assert (warned(), warned()) == (1, 1)
    finally:
        rl.set_warn_always(False)
    assert warned() == 0


def test_fake_tensors_are_compared_with_real_ones():
    from rushlight._subclasses import CrossRefFakeMode
    from rushlight._subclasses.fake_utils import MetadataMismatchError

    x = rl.ones(3, 4, requires_grad=True)
    with CrossRefFakeMode():
        (x @ x.t()).relu().sum().backward()
        assert rl.linalg.svd(rl.ones(3, 3))[1].shape == (3,)
        assert rl.ones(3, 2).to_sparse().to_dense().shape == (3, 2)
    assert x.grad.shape == (3, 4)

    library = rl.library.Library("crossed", "DEF")
    library.define("half(Tensor x) -> Tensor")
    library.impl("half", lambda x: x[: len(x) // 2].clone(), "CPU")
    rl.library.register_fake("crossed::half", lambda x: x.new_empty(len(x)))
    with CrossRefFakeMode(only_check_ops_with_meta=False):
        with pytest.raises(MetadataMismatchError, match="shape of the result is"):
            rl.ops.crossed.half(rl.ones(4))
    with CrossRefFakeMode(ignore_op_fn=lambda op: op.namespace == "crossed", only_check_ops_with_meta=False):
        assert rl.ops.crossed.half(rl.ones(4)).shape == (2,)


def test_out_of_batch_norm_with_and_without_statistics():
    x, mean, var = rl.randn(4, 3), rl.zeros(3), rl.ones(3)
    wanted = rl._native_batch_norm_legit(x, None, None, True, 0.1, 1e-5)
    out = tuple(rl.empty(0) for _ in range(3))
    rl._native_batch_norm_legit(x, None, None, True, 0.1, 1e-5, out=out)
    assert all(rl.equal(a, b) for a, b in zip(out, wanted, strict=True))
    rl._native_batch_norm_legit(x, None, None, mean, var, True, 0.1, 1e-5)
    assert rl.allclose(mean, 0.1 * x.mean(0))


def test_chunks_are_refused_in_pytorchs_words():
    for tensors, dim, chunks, words in (
        ([rl.ones(2, 3), rl.ones(4)], -1, 3, "non-negative dim when input tensors have different ndims"),
        ([rl.ones(2, 3), rl.ones(4)], 1, 3, "dim < ndim for all input tensors"),
        ([rl.ones(2, 3), rl.ones(4, 3)], 1, 3, "same sizes of 0,...,dim-1 dimensions"),
        ([rl.ones(2)], 0, 0, "positive num_chunks"),
        ([], 0, 1, "non-empty input tensor list"),
        ([rl.ones(0)], 0, 1, "non-empty tensor"),
    ):
        with pytest.raises(RuntimeError, match=words):
            rl._chunk_cat(tensors, dim, chunks)


def test_the_older_vmap_and_warnings_of_loops():
    with pytest.warns(FutureWarning, match="torch._vmap_internals.vmap"):
        mapped = rl._vmap_internals.vmap(rl.mul, in_dims=(0, None))
    assert mapped(rl.ones(2, 3), rl.ones(3)).shape == (2, 3)
    quiet = rl._C._debug_only_are_vmap_fallback_warnings_enabled()
    assert not quiet
    looped = rl._vmap_internals._vmap(lambda x: rl.histc(x, 4, 0, 1))
    rl._C._debug_only_display_vmap_fallback_warnings(True)
    try:
        with pytest.warns(UserWarning, match="There is a performance drop.*histc"):
            assert looped(rl.rand(2, 5)).shape == (2, 4)
    finally:
        rl._C._debug_only_display_vmap_fallback_warnings(quiet)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert looped(rl.rand(2, 5)).shape == (2, 4)
    switch = rl._C._functorch
    assert switch._is_vmap_fallback_enabled()
    switch._set_vmap_fallback_enabled(False)
    try:
        with pytest.raises(RuntimeError, match="histc hit the vmap fallback which is currently disabled"):
            looped(rl.rand(2, 5))
        assert rl.vmap(rl.sin)(rl.ones(2)).shape == (2,)
    finally:
        switch._set_vmap_fallback_enabled(True)
    unused = rl._vmap_internals._vmap(lambda x: (x, None), allow_none_pass_through=True)
    assert unused(rl.ones(2))[1] is None


def test_typed_storages_are_read_as_what_they_hold():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        doubles = rl.ones(2, dtype=rl.float64).storage()
        assert rl.tensor(doubles, dtype=rl.float64).tolist() == [1, 1]
        for read in (lambda: rl.tensor(doubles, dtype=rl.float32), lambda: rl.tensor(doubles)):
            with pytest.raises(RuntimeError, match="Expected a Storage of type Float"):
                read()


def test_complex_derivatives_keep_the_precision_of_their_coordinates():
    values, places = rl.tensor([1j, 2.0, 5 + 1j]), rl.tensor([0.0, 0.1, 0.3], dtype=rl.float64)
    assert rl.gradient(values, spacing=[places])[0].dtype is rl.complex128


def test_the_older_vmap_says_what_it_takes():
    x = rl.ones(2, 3)
    for call, words in (
        (lambda: rl._vmap_internals._vmap(lambda r: r, in_dims=(-1,)), "dimensionality 2 so expected in_dim"),
        (lambda: rl._vmap_internals._vmap(lambda r: [r]), "only return Tensors, got type <class 'list'>"),
        (lambda: rl._vmap_internals._vmap(lambda r: (r, 1)), "got type <class 'int'> for return 1"),
        (lambda: rl._vmap_internals._vmap(lambda r: r, out_dims=None), "an int or a tuple of int"),
        (lambda: rl._vmap_internals._vmap(lambda r: (r, r), out_dims=(0,)), "one dim per output"),
    ):
        with pytest.raises(ValueError, match=words):
            call()(x)
    assert rl._vmap_internals._vmap(lambda r: (r, r), out_dims=(0, 1))(x)[1].shape == (3, 2)


def test_operators_that_take_a_number_have_an_overload_for_it():
    aten, x = rl.ops.aten, rl.arange(4.0)
    assert str(aten.masked_fill.Scalar._schema).startswith(
        "aten::masked_fill.Scalar(Tensor self, Tensor mask, S"
    )
    assert aten.masked_fill.Scalar(x, x > 1, 7).tolist() == [0, 1, 7, 7]
    assert aten.remainder.Scalar(x, 2).tolist() == [0, 1, 0, 1]
    assert aten.mul_.Scalar(x.clone(), 2).tolist() == [0, 2, 4, 6]
    assert aten.sub.Scalar(x, 1).tolist() == [-1, 0, 1, 2]
    assert aten.mul.Scalar is not aten.mul.Tensor
    assert aten.mul.overloads()[0] == "Tensor"
    assert not hasattr(aten.relu, "Scalar")


def test_functions_of_the_extension_have_pytorchs_names():
    scores, classes = rl.zeros(1, 3, 2, 2), rl.zeros(1, 2, 2, dtype=rl.int64)
    assert rl._C._nn.nll_loss2d(scores, classes).item() == 0
    assert rl._C._nn.nll_loss_nd(scores, classes).item() == 0
    assert rl._C._nn.log_sigmoid is rl._C._nn.logsigmoid
    assert rl._C._special.special_erf is rl._C._special.erf
    assert rl._C._linalg.linalg_inv(rl.eye(2)).sum().item() == 2
    assert not hasattr(rl._C._nn, "nothing_of_this_name")


def test_losses_of_classes_have_a_form_with_the_total_weight():
    aten, scores, classes = rl.ops.aten, rl.zeros(2, 3), rl.tensor([0, 2])
    loss, total = aten.nll_loss_forward(scores, classes, rl.tensor([1.0, 2.0, 3.0]), 1, -100)
    assert (loss.item(), total.item()) == (0, 4)
    assert aten.nll_loss(scores, classes).shape == ()


def test_uncounted_writes():
    x = rl.ones(2, requires_grad=True).clone()
    x.add_(1)
    with rl.autograd._unsafe_preserve_version_counter(x):
        x.mul_(2)
    assert x._version == 1
    rl._C._autograd._unsafe_set_version_counter((x,), (0,))
    assert x._version == 0
    with pytest.raises(RuntimeError, match="Cannot set"):
        rl._C._autograd._unsafe_set_version_counter((x,), (-1,))


def test_generators_have_weak_references():
    generator = rl.Generator()
    reference = weakref.ref(generator)
    assert reference() is generator
    del generator
    assert reference() is None


def test_the_base_of_tensors_is_no_base_for_programs():
    with pytest.raises(RuntimeError, match="Cannot subclass"):
        type("Mine", (rl._C.TensorBase,), {})


def test_shapes_are_broadcast_by_a_name_of_the_extension():
    assert rl._C._infer_size((2, 1), rl.Size([3])) == rl.Size([2, 3])
    with pytest.raises(RuntimeError, match="broadcast"):
        rl._C._infer_size((2,), (3,))


@pytest.mark.parametrize("transposed", [False, True])
def test_second_gradients_of_convolutions(transposed):
    rl.manual_seed(0)
    double = {"dtype": rl.float64}
    x, weight, bias = rl.randn(2, 4, 7, **double), rl.randn(4, 2, 3, **double), rl.randn(4, **double)
    how = ([2], [1], [1], transposed, [0], 2)
    x, weight, bias = (t.requires_grad_() for t in (x, weight, bias))
    out = rl.convolution(x, weight, bias, *how)
    grad = rl.randn_like(out).requires_grad_()
    first = rl.autograd.grad(out, (x, weight, bias), grad, create_graph=True)
    seeds = [rl.randn_like(g) for g in first]
    wanted = rl.autograd.grad(first, (grad, x, weight), seeds)
    found = rl.ops.aten._convolution_double_backward(*seeds, grad, weight, x, *how, [True, True, True])
    for a, b in zip(found, wanted, strict=True):
        rl.testing.assert_close(a, b)


def test_kernels_larger_than_pictures_are_named_with_all_their_sizes():
    with pytest.raises(RuntimeError, match=r"per channel: \(1 x 2\). Kernel size: \(10 x 5\)"):
        rl.nn.Conv2d(1, 1, (10, 5))(rl.ones(1, 1, 1, 2))


def test_the_older_vmap_refuses_in_its_own_words():
    x = rl.ones(2, 3, requires_grad=True)
    for function, words in (
        (lambda r: r + rl.rand(3), "We do not yet support calling random operations inside of vmap"),
        (lambda r: r.sum().backward() or r, r"backward\(\) called inside torch.vmap"),
    ):
        with pytest.raises(RuntimeError, match=words):
            rl._vmap_internals._vmap(function)(x)
    with pytest.raises(RuntimeError, match="in randomness error mode"):
        rl.vmap(lambda r: r + rl.rand(3))(x)

"""Functions that are written in Python against PyTorch's, with gradients; initialization; utilities."""

import warnings

import pytest

import rushlight

torch = pytest.importorskip("torch")

from nn_helpers import assert_close, integers, tensors_in, wave  # noqa: E402


def compare(program):
    """program(lib) in both libraries: a structure of tensors; the gradients of its leaves come last."""
    results = []
    for lib in (rushlight, torch):
        lib.manual_seed(6)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = program(lib)
        results.append([t.tolist() for t in tensors_in(value, lib)])
    assert len(results[0]) == len(results[1])
    for ours, theirs in zip(*results):
        assert_close(ours, theirs)


def with_gradient(function, *inputs):
    def program(t):
        args = [i(t) for i in inputs]
        args = [a.requires_grad_() if a.is_floating_point() else a for a in args]
        out = function(t, *args)
        (out * wave(*out.shape)(t)).sum().backward()
        return [out, *(a.grad for a in args if a.grad is not None)]

    return program


IMAGE = wave(2, 3, 5, 4)

FUNCTIONS = {
    "normalize": lambda t, x: t.nn.functional.normalize(x, 3.0, 2),
    "gumbel_softmax": lambda t, x: t.nn.functional.gumbel_softmax(x, 0.7, dim=1),
    "gumbel_softmax hard": lambda t, x: t.nn.functional.gumbel_softmax(x, 0.7, hard=True, dim=1),
    "softmin": lambda t, x: t.nn.functional.softmin(x, 1),
    "local_response_norm": lambda t, x: t.nn.functional.local_response_norm(x, 2),
    "instance_norm": lambda t, x: t.nn.functional.instance_norm(x),
    "rms_norm": lambda t, x: t.nn.functional.rms_norm(x, (5, 4), eps=1e-3),
    "pixel_unshuffle": lambda t, x: t.nn.functional.pixel_unshuffle(x[:, :, :4], 2),
    "unfold": lambda t, x: t.nn.functional.unfold(x, (2, 3), dilation=(2, 1), padding=1, stride=2),
    "fold": lambda t, x: t.nn.functional.fold(x.reshape(2, 12, 5), (6, 2), 2),
    "area": lambda t, x: t.nn.functional.interpolate(x, (3, 3), mode="area"),
    "nearest": lambda t, x: t.nn.functional.interpolate(x, scale_factor=1.7),
    "nearest-exact": lambda t, x: t.nn.functional.interpolate(x, (7, 2), mode="nearest-exact"),
    "bilinear": lambda t, x: t.nn.functional.interpolate(x, (7, 3), mode="bilinear"),
    "bilinear factor": lambda t, x: t.nn.functional.interpolate(x, scale_factor=(1.3, 0.6), mode="bilinear"),
    "bicubic": lambda t, x: t.nn.functional.interpolate(x, (9, 3), mode="bicubic", align_corners=True),
    "antialias": lambda t, x: t.nn.functional.interpolate(x, (2, 3), mode="bilinear", antialias=True),
    "antialias cubic": lambda t, x: t.nn.functional.interpolate(x, (2, 3), mode="bicubic", antialias=True),
    "linear": lambda t, x: t.nn.functional.interpolate(x[0], 9, mode="linear"),
    "trilinear": lambda t, x: t.nn.functional.interpolate(x[None], (2, 6, 3), mode="trilinear"),
    "pdist": lambda t, x: t.nn.functional.pdist(x.reshape(6, 20)),
    "lp_pool": lambda t, x: t.nn.functional.lp_pool2d(x, 2.0, 2),
    "dropout2d": lambda t, x: t.nn.functional.dropout2d(x, 0.4),
    "alpha_dropout": lambda t, x: t.nn.functional.alpha_dropout(x, 0.4, training=True),
    "conv_tbc": lambda t, x: t.nn.functional.conv_tbc(x[0], wave(2, 4, 3)(t), wave(3)(t), 1),
}


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_function_and_gradient(function):
    compare(with_gradient(function, IMAGE))


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align_corners", [False, True])
def test_grid_sample(mode, padding_mode, align_corners):
    def function(t, x, theta):
        if mode == "nearest":  # does not change with the grid: its gradient is zero, or none at all
            theta = theta.detach()
        grid = t.nn.functional.affine_grid(theta, (2, 3, 6, 7), align_corners)
        return t.nn.functional.grid_sample(x, grid, mode, padding_mode, align_corners)

    compare(with_gradient(function, IMAGE, lambda t: wave(2, 2, 3)(t) * 1.4))


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("joined", [False, True])
def test_ctc_loss(reduction, joined):
    def function(t, x):
        targets = integers(2, 3, high=4)(t) + 1
        if joined:
            targets = targets.reshape(-1)[:5]
        lengths = t.tensor([3, 2])
        log_probs = x.log_softmax(2)
        loss = t.nn.functional.ctc_loss(log_probs, targets, t.tensor([7, 6]), lengths, reduction=reduction)
        return loss.reshape(-1)

    compare(with_gradient(function, wave(7, 2, 6)))


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("include_last_offset", [False, True])
def test_embedding_bag_offsets(mode, include_last_offset):
    def function(t, weight):
        offsets = t.tensor([0, 3, 3, 8])
        weights = wave(8)(t) if mode == "sum" else None
        return t.nn.functional.embedding_bag(
            integers(8, high=5)(t),
            weight,
            offsets,
            mode=mode,
            per_sample_weights=weights,
            include_last_offset=include_last_offset,
            padding_idx=1,
        )

    compare(with_gradient(function, wave(5, 3)))


def test_fractional_pool_and_unpool():
    def program(t):
        samples = wave(2, 3, 2)(t).abs()
        pool = t.nn.functional.fractional_max_pool2d
        values, indices = pool(IMAGE(t), 2, (3, 2), return_indices=True, _random_samples=samples)
        return [values, indices, t.nn.functional.max_unpool2d(values, indices, 2, output_size=(5, 4))]

    compare(program)


@pytest.mark.parametrize("dims", [2, 3])
def test_fractional_pool_of_what_is_equal_or_no_number(dims):
    def program(t):
        x = (wave(2, 3, *[9] * dims)(t) * 2).round()
        x[0, 0, 0] = float("nan")
        x[1, 2] = -float("inf")
        x.requires_grad_()
        pool = getattr(t.nn.functional, f"fractional_max_pool{dims}d")
        samples = wave(2, 3, dims)(t).abs().clamp(max=0.99)
        values, indices = pool(x, 3, 4, return_indices=True, _random_samples=samples)
        return [
            values.nan_to_num(),
            indices,
            t.autograd.grad(values.nan_to_num().square().sum(), x)[0].nan_to_num(),
        ]

    compare(program)


INITS = {
    "uniform_": (), "normal_": (), "trunc_normal_": (0.1, 0.5), "constant_": (0.3,), "ones_": (), "zeros_":
    (), "xavier_uniform_": (), "xavier_normal_": (), "kaiming_uniform_": (), "kaiming_normal_": (0.1,
    "fan_out"), "orthogonal_": (2,), "eye_": (), "sparse_": (0.4,),
}  # fmt: skip


@pytest.mark.parametrize("name", INITS)
def test_initialization_draws_as_pytorchs(name):
    for shape in ((5, 7), (7, 3)):
        compare(lambda t, shape=shape: getattr(t.nn.init, name)(t.zeros(shape), *INITS[name]))


@pytest.mark.parametrize("bounds", [(0, 1, -2, 2), (0.1, 0.5, 0, 0.3), (0, 1, 3, 5), (-3, 0.1, -2, 9)])
def test_truncated_normal(bounds):
    compare(lambda t: t.nn.init.trunc_normal_(t.zeros(200), *bounds))


def test_initialization_of_convolutions():
    for groups in (1, 2):
        compare(lambda t, groups=groups: t.nn.init.dirac_(t.ones(4, 2, 3, 3), groups))
    compare(lambda t: t.nn.init.kaiming_uniform_(t.zeros(4, 2, 3), mode="fan_out", nonlinearity="relu"))
    assert rushlight.nn.init.calculate_gain("leaky_relu", 0.3) == torch.nn.init.calculate_gain(
        "leaky_relu", 0.3
    )
    for refused in (("elu",), ("leaky_relu", "x")):
        with pytest.raises(ValueError) as theirs:
            torch.nn.init.calculate_gain(*refused)
        with pytest.raises(ValueError) as ours:
            rushlight.nn.init.calculate_gain(*refused)
        assert str(ours.value) == str(theirs.value)


@pytest.mark.parametrize("norm_type", [1.0, 2.0, float("inf")])
def test_gradient_clipping(norm_type):
    def program(t):
        t.manual_seed(0)
        net = t.nn.Linear(3, 2)
        (net(wave(4, 3)(t)) * 5).sum().backward()
        norm = t.nn.utils.clip_grad_norm_(net.parameters(), 1.5, norm_type)
        clipped = [p.grad.clone() for p in net.parameters()]
        t.nn.utils.clip_grad_value_(net.parameters(), 0.1)
        return [norm, *clipped, *(p.grad for p in net.parameters())]

    compare(program)


def test_an_empty_generator_of_parameters_warns_and_an_empty_list_does_not():
    with pytest.warns(UserWarning, match="is an empty generator, no gradient clipping will occur"):
        assert rushlight.nn.utils.clip_grad_norm_((p for p in ()), 1.0).item() == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert rushlight.nn.utils.clip_grad_norm_([], 1.0).item() == 0


def test_gradient_clipping_refuses_infinite_norms():
    net = rushlight.nn.Linear(1, 1)
    net.weight.grad = rushlight.full((1, 1), float("inf"))
    with pytest.raises(RuntimeError, match="non-finite"):
        rushlight.nn.utils.clip_grad_norm_(net.parameters(), 1.0, error_if_nonfinite=True)


def test_parameters_as_a_vector():
    net = rushlight.nn.Linear(2, 3)
    vector = rushlight.nn.utils.parameters_to_vector(net.parameters())
    assert tuple(vector.shape) == (9,)
    rushlight.nn.utils.vector_to_parameters(rushlight.arange(9.0), net.parameters())
    assert net.weight.tolist() == [[0, 1], [2, 3], [4, 5]] and net.bias.tolist() == [6, 7, 8]


def test_sequences_are_padded_and_packed():
    def program(t):
        rnn = t.nn.utils.rnn
        sequences = [wave(n, 2)(t) for n in (4, 2, 3)]
        packed = rnn.pack_sequence(sequences, enforce_sorted=False)
        padded, lengths = rnn.pad_packed_sequence(packed, padding_value=-1.0)
        left = rnn.pad_sequence(sequences, batch_first=True, padding_side="left")
        back = rnn.unpack_sequence(packed)
        indices = [packed.sorted_indices, packed.unsorted_indices]
        unpadded = rnn.unpad_sequence(padded.clone(), lengths)
        return [packed.data, packed.batch_sizes, *indices, padded, lengths, left, *back, *unpadded]

    compare(program)


def test_packing_refuses_unsorted_and_empty_sequences():
    with pytest.raises(AssertionError, match="a list or tuple of length 2"):
        rushlight.nn.utils.rnn.PackedSequence(rushlight.ones(3))
    pack = rushlight.nn.utils.rnn.pack_padded_sequence
    for lengths, text in (
        ([1, 2], "sorted"),
        ([2, 0], "greater than 0"),
        ([2], "batch_size"),
        ([9, 1], "at most"),
    ):
        with pytest.raises(RuntimeError, match=text):
            pack(rushlight.zeros(3, 2, 1), lengths)


def test_parametrizations():
    def program(t):
        class Symmetric(t.nn.Module):
            def forward(self, x):
                return x.triu() + x.triu(1).t()

        class Double(t.nn.Module):
            def forward(self, x):
                return x * 2

            def right_inverse(self, x):
                return x / 2

        utils = t.nn.utils.parametrize
        t.manual_seed(0)
        layer = t.nn.Linear(3, 3)
        utils.register_parametrization(layer, "weight", Double())
        before = layer.weight
        layer.weight = t.ones(3, 3)
        utils.register_parametrization(layer, "weight", Symmetric())
        layer(wave(2, 3)(t)).sum().backward()
        grad = layer.parametrizations.weight.original.grad
        names = list(layer.state_dict())
        text = repr(layer)
        utils.remove_parametrizations(layer, "weight")
        assert type(layer) is t.nn.Linear and isinstance(layer.weight, t.nn.Parameter)
        assert names == ["bias", "parametrizations.weight.original"] and text.startswith("ParametrizedLinear")
        return [before, grad, layer.weight]

    compare(program)


@pytest.mark.parametrize("name", ["weight_norm", "spectral_norm"])
@pytest.mark.parametrize("where", ["utils", "parametrizations"])
def test_weight_and_spectral_norm(name, where):
    def program(t):
        namespace = t.nn.utils if where == "utils" else t.nn.utils.parametrizations
        t.manual_seed(0)
        layer = getattr(namespace, name)(t.nn.Linear(3, 4))
        for _ in range(2):
            layer(wave(2, 3)(t)).sum().backward()
        gradients = [p.grad for _, p in sorted(layer.named_parameters())]
        return [layer.weight, *layer.state_dict().values(), *gradients]

    compare(program)


def test_functional_call():
    net = rushlight.nn.Sequential(rushlight.nn.Linear(2, 2), rushlight.nn.Linear(2, 2))
    call = rushlight.nn.utils.stateless._functional_call
    kept = net[0].weight
    x = rushlight.ones(1, 2)
    given = {"0.weight": rushlight.zeros(2, 2), "0.bias": rushlight.ones(2)}
    assert call(net, given, (x,)).tolist() == net[1](rushlight.ones(1, 2)).tolist()
    assert net[0].weight is kept
    with pytest.raises(RuntimeError, match="Missing key"):
        call(net, given, (x,), strict=True)


def test_batchnorm_folds_into_the_layer_before_it():
    nn = rushlight.nn
    conv, bn = nn.Conv2d(2, 3, 3, bias=False), nn.BatchNorm2d(3)
    x = wave(2, 2, 5, 5)(rushlight)
    bn(conv(x))
    conv.eval(), bn.eval()
    fused = nn.utils.fuse_conv_bn_eval(conv, bn)
    assert_close(fused(x).tolist(), bn(conv(x)).tolist())


def test_functions_can_be_pickled():
    import pickle

    for function in (rushlight.nn.functional.relu, rushlight.relu, rushlight.nn.functional.interpolate):
        assert pickle.loads(pickle.dumps(function)) is function


@pytest.mark.parametrize("shape", [(3, 5), (2, 5, 70)])
def test_log_softmax_far_from_zero_is_exact(shape):
    x = rushlight.randn(shape, dtype=rushlight.float64) * 3 + 1e4
    x = x.float().double()
    result = rushlight.log_softmax(x.float(), 1).double()
    assert ((result - rushlight.log_softmax(x, 1)).abs() < 2e-6).all()


def test_losses_refuse_what_pytorchs_refuse():
    for build, text in [
        (lambda lib: lib.nn.LinearCrossEntropyLoss(3, 2, weight=lib.ones(3)), "expected weight shape"),
        (lambda lib: lib.nn.LinearCrossEntropyLoss(3, 2, label_smoothing=2.0), "label_smoothing"),
        (
            lambda lib: lib.nn.functional.cross_entropy(lib.ones(4, 3), lib.ones(4, 3) / 3, ignore_index=1),
            "ignore_index is not supported for floating point target",
        ),
    ]:
        for lib in (rushlight, torch):
            with pytest.raises(RuntimeError, match=text):
                build(lib)


@pytest.mark.parametrize("p", [0, 0.5, 1, 1.5, 2, 3, float("inf")])
@pytest.mark.parametrize("shape", [(6, 4), (30, 37), (1, 3), (0, 3), (4, 0)], ids=str)
def test_distances_of_all_pairs(p, shape):
    rushlight.manual_seed(0)
    points = rushlight.randn(shape, dtype=rushlight.float64)
    if shape[0] > 3:
        points[3] = points[2]  # the derivative at distance 0 is taken to be 0
    found, wanted = [], []
    for library, results in ((rushlight, found), (torch, wanted)):
        x = library.tensor(points.tolist(), dtype=library.float64).reshape(shape).requires_grad_()
        y = library.nn.functional.pdist(x, p)
        results.append(y.detach().numpy())
        if y.numel() and x.numel():  # elsewhere PyTorch 2.13 crashes
            (y * library.arange(y.numel())).sum().backward()
            results.append(x.grad.numpy())
    for ours, theirs in zip(found, wanted):
        assert_close(ours, theirs)


def test_gradients_of_gradients_of_distances():
    x = rushlight.randn(4, 3, dtype=rushlight.float64, requires_grad=True)
    for p in (1.5, 2, 3):
        assert rushlight.autograd.gradgradcheck(lambda x, p=p: rushlight.pdist(x, p), x)
    half = x.detach().bfloat16()
    assert rushlight.pdist(half).dtype == rushlight.bfloat16
    for wrong, message in ((rushlight.ones(3), "2D"), (rushlight.ones(2, 2).int(), "floating")):
        with pytest.raises(RuntimeError, match=message):
            rushlight.pdist(wrong)


F = rushlight.nn.functional


def test_any_number_says_inplace():
    x = rushlight.tensor([-1.0, 2.0])
    assert F.relu(x, 1) is x and x.tolist() == [0, 2]
    y = rushlight.tensor([-1.0, 2.0])
    assert F.hardtanh(y, 0, 1, 0).tolist() == [0, 1] and y.tolist() == [-1, 2]
    assert F.relu(y, "yes") is y and y.tolist() == [0, 2]


def test_functions_take_attributes():
    try:
        F.relu.default_init = "kaiming"
        assert F.relu.default_init == "kaiming" and F.relu(rushlight.tensor(-1.0)).item() == 0
        assert not hasattr(F.gelu, "default_init") and F.relu.__name__ == "relu"
    finally:
        del F.relu.default_init
    assert not hasattr(F.relu, "default_init")


def test_functional_calls_of_names_that_a_module_lacks():
    module = rushlight.nn.Linear(1, 1)
    seen = []
    module.register_forward_pre_hook(lambda m, args: seen.append(list(dict(m.named_parameters()))))
    extra = rushlight.nn.Parameter(rushlight.ones(1))
    rushlight.func.functional_call(module, {"extra": extra}, rushlight.ones(1, 1))
    rushlight.func.functional_call(module, {"extra": rushlight.ones(1)}, rushlight.ones(1, 1))
    assert seen == [["weight", "bias", "extra"], ["weight", "bias"]]  # a parameter is one, a tensor is not
    assert not hasattr(module, "extra")
    with pytest.raises(RuntimeError, match="can't be used with Jitted modules"):
        rushlight.func.functional_call(
            rushlight.jit.trace(module, rushlight.ones(1, 1)), {}, rushlight.ones(1, 1)
        )


def test_lazy_modules_are_not_scripted():
    with pytest.raises(RuntimeError, match="Did you forget to run a forward pass"):
        rushlight.jit.script(rushlight.nn.LazyLinear(2))


@pytest.mark.parametrize("boolean", [True, False])
def test_attention_that_is_causal_under_a_mask(boolean):
    def program(t, folded=False, **options):
        t.manual_seed(0)
        q, k, v = (t.randn(2, 2, 5, 4, requires_grad=True) for _ in range(3))
        mask, past = t.randn(5, 5), t.ones(5, 5).tril() > 0
        mask = mask > -0.5 if boolean else mask
        if folded:
            mask = mask & past if boolean else mask.masked_fill(~past, -float("inf"))
        attend = t.nn.functional.scaled_dot_product_attention
        out = attend(q, k, v, mask, is_causal=not folded, **options)
        return [x.tolist() for x in (out, *t.autograd.grad(out.sin().sum(), [q, k, v]))]

    expected = program(rushlight, folded=True)
    assert_close(program(rushlight), expected)
    assert_close(program(torch), expected)
    # by way of all scores at once, which PyTorch refuses
    assert_close(program(rushlight, dropout_p=1e-30), expected)


_WRITING = {
    **dict.fromkeys(
        "relu relu6 leaky_relu elu selu celu silu mish hardtanh hardswish hardsigmoid rrelu "
        "dropout dropout2d dropout3d".split(),
        (),
    ),
    "threshold": (0.1, 0.2),
}


@pytest.mark.parametrize("name", _WRITING)
def test_inplace_is_any_truth(name):
    for inplace in (None, 0, 1, "", "yes", [], [0], object()):
        kept = []
        for m in (rushlight, torch):
            x = m.ones(2, 3, 4, 4)
            kept.append(getattr(m.nn.functional, name)(x, *_WRITING[name], inplace=inplace) is x)
        assert kept == [bool(inplace)] * 2, inplace

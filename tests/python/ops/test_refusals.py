"""What PyTorch refuses is refused, by the same kind of exception."""

import itertools

import pytest

import rushlight

torch = pytest.importorskip("torch")

NARROW = ("float16", "bfloat16", "int64", "uint8", "bool")
MATRICES = {
    "linalg.cholesky": "a",
    "linalg.cholesky_ex": "a",
    "cholesky_inverse": "a",
    "linalg.inv": "a",
    "linalg.inv_ex": "a",
    "linalg.det": "a",
    "linalg.slogdet": "a",
    "logdet": "a",
    "linalg.eig": "a",
    "linalg.eigvals": "a",
    "linalg.eigh": "a",
    "linalg.eigvalsh": "a",
    "linalg.svd": "a",
    "linalg.svdvals": "a",
    "linalg.qr": "a",
    "geqrf": "a",
    "linalg.lu": "a",
    "linalg.lu_factor": "a",
    "linalg.ldl_factor": "a",
    "linalg.pinv": "a",
    "linalg.matrix_rank": "a",
    "linalg.cond": "a",
    "linalg.matrix_norm": "a",
    "linalg.vector_norm": "a",
    "linalg.solve": "ab",
    "linalg.lstsq": "ab",
    "cholesky_solve": "ab",
    "linalg.lu_solve": "apb",
    "linalg.ldl_solve": "apb",
    "linalg.householder_product": "at",
    "ormqr": "atb",
}


def found(module, name):
    for part in name.split("."):
        module = getattr(module, part)
    return module


def outcome(function, *args):
    """The kind of error, or the dtype of the result."""
    try:
        result = function(*args)
    except Exception as error:
        return type(error).__name__
    while isinstance(result, tuple):
        result = result[0]
    return str(result.dtype).rpartition(".")[2]


@pytest.mark.parametrize("name", MATRICES)
def test_types_without_lapack(name):
    def call(module, dtype):
        given = {
            "a": module.eye(2).to(dtype),
            "b": module.ones(2, 2).to(dtype),
            "t": module.ones(2).to(dtype),
            "p": module.tensor([1, 2], dtype=module.int32),
        }
        return found(module, name)(*(given[letter] for letter in MATRICES[name]))

    for dtype in NARROW:
        ours = outcome(call, rushlight, getattr(rushlight, dtype))
        theirs = outcome(call, torch, getattr(torch, dtype))
        assert ours == theirs, dtype


ORDERINGS = {
    "clamp": lambda m, z: z.clamp(min=0),
    "clamp bound": lambda m, z: m.ones(2).clamp(min=1j),
    "clamp tensor": lambda m, z: m.clamp(m.ones(2), z, z),
    "maximum": lambda m, z: m.maximum(z, z),
    "minimum": lambda m, z: m.minimum(m.ones(2), z),
    "fmax": lambda m, z: m.fmax(z, z),
    "fmin": lambda m, z: m.fmin(z, z),
    "max": lambda m, z: z.max(0),
    "min": lambda m, z: z.min(0),
    "argmax": lambda m, z: z.argmax(0),
    "aminmax": lambda m, z: z.aminmax(),
    "topk": lambda m, z: z.topk(1),
    "sort": lambda m, z: z.sort(),
    "sign": lambda m, z: z.sign(),
    "signbit": lambda m, z: z.signbit(),
    "frexp": lambda m, z: z.frexp(),
    "deg2rad": lambda m, z: z.deg2rad(),
    "rad2deg": lambda m, z: z.rad2deg(),
    "arange": lambda m, z: m.arange(2, dtype=m.complex64),
}


@pytest.mark.parametrize("name", ORDERINGS)
def test_complex_numbers_without_order(name):
    ours = outcome(ORDERINGS[name], rushlight, rushlight.tensor([1j, 2]))
    assert ours == outcome(ORDERINGS[name], torch, torch.tensor([1j, 2]))
    assert ours.endswith("Error")


def normalisation(module, kind, input, weight, bias, running):
    functional = module.nn.functional

    def vector(dtype):
        return None if dtype is None else module.ones(4, dtype=getattr(module, dtype))

    x = module.ones(2, 4, 4, dtype=getattr(module, input))
    if kind == "layer_norm":
        return functional.layer_norm(x, (4,), vector(weight), vector(bias))
    if kind == "group_norm":
        return functional.group_norm(x, 2, vector(weight), vector(bias))
    call = functional.instance_norm if kind == "instance_norm" else functional.batch_norm
    return call(x, vector(running), vector(running), vector(weight), vector(bias), True)


@pytest.mark.parametrize("kind", ["layer_norm", "group_norm", "batch_norm", "instance_norm"])
def test_parameters_of_another_dtype(kind):
    types = ("float32", "float64", "float16", "int64", None)
    statistics = (None,) if kind[0] in "lg" else ("float32", "float64", None)
    for case in itertools.product(types[:4], types, types[:3], statistics):
        if kind == "instance_norm" and case[:2] == ("float16", None) and case[2]:
            continue  # PyTorch refuses even a bias of the input's dtype
        ours = outcome(normalisation, rushlight, kind, *case)
        theirs = outcome(normalisation, torch, kind, *case)
        assert ours == theirs, case


def test_parameters_are_named():
    x = rushlight.ones(2, 4)
    with pytest.raises(RuntimeError, match=r"layer_norm got bias float64\[4\]"):
        rushlight.nn.functional.layer_norm(x, (4,), x[0], x[0].double())


LAYERS = {
    "linear bias": lambda m: m.nn.functional.linear(m.ones(2, 3), m.ones(4, 3), m.ones(4).double()),
    "linear bias of a row": lambda m: m.nn.functional.linear(m.ones(3), m.ones(4, 3), m.ones(4).double()),
    "linear weight": lambda m: m.nn.functional.linear(m.ones(2, 3), m.ones(4, 3).double()),
    "bilinear input": lambda m: m.nn.functional.bilinear(m.ones(3), m.ones(4).double(), m.ones(5, 3, 4)),
    "bilinear bias": lambda m: m.nn.functional.bilinear(
        m.ones(3), m.ones(4), m.ones(5, 3, 4), m.ones(5).double()
    ),
    "bilinear bias size": lambda m: m.nn.functional.bilinear(
        m.ones(3), m.ones(4), m.ones(5, 3, 4), m.ones(4)
    ),
    "conv without pixels": lambda m: m.nn.functional.conv2d(
        m.ones(1, 3, 4, 0), m.ones(3, 3, 3, 3), padding=2
    ),
    "transposed without pixels": lambda m: m.nn.functional.conv_transpose2d(
        m.ones(1, 3, 4, 0), m.ones(3, 3, 3, 3)
    ),
    "transposed without weights": lambda m: m.nn.functional.conv_transpose1d(m.ones(0, 4), m.ones(0, 2, 3)),
    "bytes": lambda m: m.nn.functional.conv2d(m.ones(1, 3, 4, 4, dtype=m.uint8), m.ones(3, 3, 3, 3)),
    "bytes transposed": lambda m: m.nn.functional.conv_transpose2d(
        m.ones(1, 3, 4, 4, dtype=m.uint8), m.ones(3, 3, 3, 3)
    ),
    "bytes dilated": lambda m: m.nn.functional.conv2d(
        m.ones(1, 3, 5, 5, dtype=m.uint8), m.ones(3, 3, 3, 3), dilation=2
    ),
    "running mean alone": lambda m: m.nn.functional.batch_norm(m.ones(3, 4), m.ones(4), None, training=True),
    "small image": lambda m: m.nn.functional.avg_pool3d(m.ones(1, 2, 2, 2), 3, padding=1),
    "reflect": lambda m: m.nn.functional.pad(m.ones(3), (1, 1), mode="reflect"),
    "circular": lambda m: m.nn.functional.pad(m.ones(3, 3, 3, 3), (1, 1), mode="circular"),
    "odd": lambda m: m.nn.functional.pad(m.ones(3, 3), (1,), mode="reflect"),
    "hardtanh": lambda m: m.nn.functional.hardtanh(m.ones(2), 1, -1),
    "similarity": lambda m: m.nn.functional.cosine_similarity(m.ones(2, 2), m.ones(2, 2), eps=-1.0),
    "step": lambda m: m.arange(0, 3, 0),
    "trapezoid of truth": lambda m: m.trapezoid(m.ones(3) > 0, m.ones(3)),
    "trapezoid points": lambda m: m.trapezoid(m.ones(2, 3), m.ones(2)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_refuse(name):
    ours = outcome(LAYERS[name], rushlight)
    assert ours == outcome(LAYERS[name], torch)
    assert ours.endswith("Error")


PAIRS = (
    "cosine_similarity",
    "pairwise_distance",
    "poisson_nll_loss",
    "hinge_embedding_loss",
    "soft_margin_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
)


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("other", [1.5, None])
def test_numbers_are_no_tensors(name, other):
    with pytest.raises(TypeError, match=f"{name}.*must be Tensor, not {type(other).__name__}"):
        getattr(rushlight.nn.functional, name)(rushlight.ones(2, 2), other)


LOSSES = (
    "mse_loss",
    "l1_loss",
    "smooth_l1_loss",
    "huber_loss",
    "kl_div",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "soft_margin_loss",
)
TYPES = ("float32", "int64", "complex64", "bfloat16", "bool", "float64", "uint8")


@pytest.mark.parametrize("name", LOSSES)
def test_losses_between_dtypes(name):
    def call(module, first, second):
        x = module.tensor([[0.2, 0.7, 0.5]]).to(getattr(module, first))
        y = module.tensor([[0.3, 0.1, 0.9]]).to(getattr(module, second))
        return getattr(module.nn.functional, name)(x, y, reduction="none")

    for pair in itertools.product(TYPES, TYPES):
        if name == "huber_loss" and pair in (("bool", "int64"), ("bool", "uint8")):
            continue  # NotImplementedError, where PyTorch tells of the output
        assert outcome(call, rushlight, *pair) == outcome(call, torch, *pair), pair


def test_probabilities_lie_between_0_and_1():
    for value in (2.0, -1.0, 1.0001, float("nan"), 0.0, 1.0):
        for name in "input", "target":

            def call(module, name=name, value=value):
                given = {"input": module.tensor([0.5, 0.5]), "target": module.tensor([0.0, 1.0])}
                given[name] = module.tensor([value, 0.5])
                return module.nn.functional.binary_cross_entropy(**given, reduction="none")

            assert outcome(call, rushlight) == outcome(call, torch), (name, value)


FILLS = {
    "full": lambda m, v: m.full((2,), v, dtype=m.uint8),
    "full_like": lambda m, v: m.full_like(m.zeros(2, dtype=m.uint8), v),
    "fill_": lambda m, v: m.zeros(2, dtype=m.uint8).fill_(v),
    "masked_fill": lambda m, v: m.zeros(2, dtype=m.uint8).masked_fill(m.tensor([True, False]), v),
    "index_fill": lambda m, v: m.zeros(2, dtype=m.uint8).index_fill(0, m.tensor([0]), v),
    "scatter": lambda m, v: m.zeros(2, dtype=m.uint8).scatter(0, m.tensor([0]), v),
    "pad": lambda m, v: m.nn.functional.pad(m.zeros(2, dtype=m.uint8), (1, 1), value=v),
    "threshold": lambda m, v: m.nn.functional.threshold(m.zeros(2, dtype=m.uint8), 1, v),
    "tensor": lambda m, v: m.tensor([v], dtype=m.uint8),
}


@pytest.mark.parametrize("name", FILLS)
def test_numbers_that_do_not_fit(name):
    for value in (-3.5, -0.5, 300, -3, -300, 1.5, 255.0, 1e20, float("inf"), float("nan")):
        if name == "tensor" and value in (300, -300):
            continue
        ours = outcome(FILLS[name], rushlight, value)
        assert ours == outcome(FILLS[name], torch, value), value


INDICES = {
    "int64": lambda m: m.tensor([0, 1]),
    "int32": lambda m: m.tensor([0, 1], dtype=m.int32),
    "uint8": lambda m: m.tensor([0, 1], dtype=m.uint8),
    "float": lambda m: m.tensor([0.0, 1.0]),
    "matrix": lambda m: m.tensor([[0, 1]]),
    "beyond": lambda m: m.tensor([0, 9]),
    "number": lambda m: 0,
    "none": lambda m: None,
}
INDEXING = {
    "index_copy": lambda m, x, i: x.index_copy(0, i, m.ones(2, 4)),
    "index_add": lambda m, x, i: x.index_add(0, i, m.ones(2, 4)),
    "index_fill": lambda m, x, i: x.index_fill(0, i, 2.0),
    "index_select": lambda m, x, i: x.index_select(0, i),
    "index_reduce": lambda m, x, i: x.index_reduce(0, i, m.ones(2, 4), "prod"),
    "gather": lambda m, x, i: x.gather(0, i),
    "scatter": lambda m, x, i: x.scatter(0, i, 1.0),
    "take": lambda m, x, i: x.take(i),
    "put": lambda m, x, i: x.put(i, m.ones(2)),
    "masked_fill": lambda m, x, i: x.masked_fill(i, 1),
    "where": lambda m, x, i: m.where(i, m.ones(2), m.ones(2)),
    "lerp": lambda m, x, i: m.lerp(m.ones(2), i, 0.5),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", INDEXING)
def test_indices_of_other_kinds(name):
    for kind, index in INDICES.items():
        ours = outcome(INDEXING[name], rushlight, rushlight.zeros(3, 4), index(rushlight))
        theirs = outcome(INDEXING[name], torch, torch.zeros(3, 4), index(torch))
        assert ours == theirs, kind


OPERANDS = {
    "solve": lambda m: m.linalg.solve(m.eye(2).half(), m.ones(2, 2)),
    "lu_solve": lambda m: m.linalg.lu_solve(m.eye(2).half(), m.tensor([1, 2], dtype=m.int32), m.ones(2, 2)),
    "cholesky_solve": lambda m: m.cholesky_solve(m.ones(2, 2), m.eye(2).long()),
    "bmm": lambda m: m.bmm(m.ones(1, 2, 2) > 0, m.ones(1, 2, 2)),
    "addr": lambda m: m.addr(m.ones(1, 2, 2), m.ones(2), m.ones(2)),
    "cross": lambda m: m.linalg.cross(m.ones(2, 3), m.ones(2, 3).double()),
    "cross of truth": lambda m: m.linalg.cross(m.ones(2, 3) > 0, m.ones(2, 3) > 0),
    "cdist": lambda m: m.cdist(m.ones(2, 3), m.ones(2, 3).double()),
    "grid": lambda m: m.nn.functional.grid_sample(
        m.ones(1, 1, 2, 2, dtype=m.uint8), m.ones(1, 2, 2, 2), align_corners=False
    ),
    "bias before weight": lambda m: m.nn.functional.conv2d(
        m.ones(1, 3, 4, 4, dtype=m.bool), m.ones(3, 3, 3, 3), m.ones(3)
    ),
    "evaluation": lambda m: m.nn.functional.batch_norm(m.ones(3, 4), m.ones(4), None),
    "rms_norm": lambda m: m.nn.functional.rms_norm(m.ones(3), (2, 3)),
    "rot90": lambda m: m.rot90(m.ones(2, 2), 1, (0, 2)),
    "slice of a number": lambda m: m.slice_scatter(m.ones(()), m.ones(())),
    "repeats": lambda m: m.repeat_interleave(m.ones(2), m.ones(2)),
    "unique": lambda m: m.unique(m.ones(()), dim=0),
    "bincount": lambda m: m.bincount(m.ones(2)),
    "bincount of a matrix": lambda m: m.bincount(m.ones(2, 2).long()),
    "classes of pixels": lambda m: m.nn.functional.nll_loss(
        m.ones(1, 2, 2, 2), m.zeros(1, 2, 2, dtype=m.int32)
    ),
    "nuclear": lambda m: m.norm(m.ones(1, 2, 2), "nuc"),
    "tensordot": lambda m: m.tensordot(m.ones(2), m.ones(2), dims=1.5),
    "scatter_reduce": lambda m: m.ones(2, dtype=m.complex64).scatter_reduce(
        0, m.tensor([0]), m.ones(1), "amax"
    ),
    "pad beyond": lambda m: m.nn.functional.pad(m.ones(3, 0), (-1, 1)),
}


@pytest.mark.parametrize("name", OPERANDS)
def test_operands_that_do_not_fit(name):
    ours = outcome(OPERANDS[name], rushlight)
    assert ours == outcome(OPERANDS[name], torch)
    assert ours.endswith("Error")


SOURCES = {
    "copied vector": lambda m, x, i: x.index_copy(0, i, m.ones(2)),
    "copied rows": lambda m, x, i: x.index_copy(0, i, m.ones(2, 5)),
    "reduced column": lambda m, x, i: x.index_reduce(0, i, m.ones(2, 1), "prod"),
    "reduced rows": lambda m, x, i: x.index_reduce(0, i, m.ones(3, 4), "prod"),
    "put": lambda m, x, i: x.put(i, m.ones(3)),
    "put dtype": lambda m, x, i: x.put(i, m.ones(2).double()),
}


@pytest.mark.parametrize("name", SOURCES)
def test_sources_that_do_not_fit(name):
    ours = outcome(SOURCES[name], rushlight, rushlight.zeros(3, 4), rushlight.tensor([0, 1]))
    assert ours == outcome(SOURCES[name], torch, torch.zeros(3, 4), torch.tensor([0, 1]))
    assert ours.endswith("Error")


def test_one_sample_may_have_one_target_in_a_list():
    def loss(module, targets):
        x = module.tensor([0.5, -1.0, 2.0])
        return module.nn.functional.cross_entropy(x, module.tensor(targets))

    assert loss(rushlight, [1]).item() == pytest.approx(loss(torch, [1]).item())
    with pytest.raises(ValueError, match="1D target must have size 1, but got target size: 2"):
        loss(rushlight, [1, 2])


# out= of another dtype: a factorisation rounded on the way out is none any more.
EXACT = {
    "linalg.cholesky": lambda m: (m.linalg.cholesky, [m.eye(3)]),
    "linalg.cholesky_ex": lambda m: (m.linalg.cholesky_ex, [m.eye(3)]),
    "linalg.det": lambda m: (m.linalg.det, [m.eye(3)]),
    "linalg.eigh": lambda m: (m.linalg.eigh, [m.eye(3)]),
    "linalg.eigvalsh": lambda m: (m.linalg.eigvalsh, [m.eye(3)]),
    "linalg.inv": lambda m: (m.linalg.inv, [m.eye(3)]),
    "linalg.inv_ex": lambda m: (m.linalg.inv_ex, [m.eye(3)]),
    "linalg.lu": lambda m: (m.linalg.lu, [m.eye(3)]),
    "linalg.lu_factor": lambda m: (m.linalg.lu_factor, [m.eye(3)]),
    "linalg.qr": lambda m: (m.linalg.qr, [m.eye(3)]),
    "linalg.slogdet": lambda m: (m.linalg.slogdet, [m.eye(3)]),
    "linalg.solve": lambda m: (m.linalg.solve, [m.eye(3), m.ones(3)]),
    "linalg.svd": lambda m: (m.linalg.svd, [m.eye(3)]),
    "linalg.svdvals": lambda m: (m.linalg.svdvals, [m.eye(3)]),
    "linalg.vector_norm": lambda m: (m.linalg.vector_norm, [m.ones(3)]),
    "linalg.matrix_norm": lambda m: (m.linalg.matrix_norm, [m.eye(3)]),
    "linalg.norm": lambda m: (m.linalg.norm, [m.eye(3)]),
    "linalg.vecdot": lambda m: (m.linalg.vecdot, [m.ones(3), m.ones(3)]),
    "frexp": lambda m: (m.frexp, [m.ones(3)]),
    "gelu": lambda m: (m._C._nn.gelu, [m.ones(3)]),
    "softplus": lambda m: (m._C._nn.softplus, [m.ones(3)]),
    "avg_pool2d": lambda m: (m._C._nn.avg_pool2d, [m.ones(1, 1, 4, 4), 2]),
}


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("dtype", ["float16", "float64", "complex64"])
def test_results_are_not_rounded_into_out(name, dtype):
    for m in (rushlight, torch):
        f, operands = EXACT[name](m)
        results = f(*operands)
        many = isinstance(results, tuple)
        out = [m.zeros(tuple(t.shape), dtype=getattr(m, dtype)) for t in (results if many else [results])]
        with pytest.raises(RuntimeError, match="dtype|scalar type|cast"):
            f(*operands, out=tuple(out) if many else out[0])


OUT_THAT_REQUIRES_GRAD = {
    "zeros": lambda m, out: m.zeros(2, out=out),
    "arange": lambda m, out: m.arange(2, out=out),
    "linspace": lambda m, out: m.linspace(0, 1, 2, out=out),
    "heaviside": lambda m, out: m.heaviside(m.ones(2), m.ones(2), out=out),
    "floor_divide": lambda m, out: m.floor_divide(m.ones(2), m.ones(2), out=out),
    "exp": lambda m, out: m.exp(m.ones(2), out=out),
}


@pytest.mark.parametrize("name", OUT_THAT_REQUIRES_GRAD)
def test_out_that_requires_grad(name):
    for m in (rushlight, torch):
        out = m.zeros(2, requires_grad=True)
        with pytest.raises(RuntimeError, match="automatic differentiation"):
            OUT_THAT_REQUIRES_GRAD[name](m, out)
        with m.no_grad():
            assert OUT_THAT_REQUIRES_GRAD[name](m, out) is out


def test_out_on_another_device_or_of_another_kind():
    for m in (rushlight, torch):
        for f in (
            lambda out, m=m: m.tensordot(m.eye(2), m.eye(2), 1, out=out),
            lambda out, m=m: m.norm(m.eye(2), out=out),
        ):
            with pytest.raises(RuntimeError, match="device"):
                f(m.zeros(2, 2, device="meta"))
            with pytest.raises(TypeError, match="out"):
                f([m.zeros(2, 2)])


def test_different_dtypes_and_shapes_are_told_first():
    for m in (rushlight, torch):
        x = m.ones(2, 2, 2)
        for f in (m.baddbmm, lambda a, b, c, m=m: m.addbmm(a[0], b, c)):
            with pytest.raises(RuntimeError) as caught:
                f(x, x > 0, x > 0)
            assert not isinstance(caught.value, NotImplementedError)
        with pytest.raises(RuntimeError, match="shape"):
            m.ones(2, 1).gt_(m.ones(2, dtype=m.complex64))


def test_linear_algebra_errors_have_pytorchs_name():
    assert rushlight.linalg.LinAlgError.__name__ == torch.linalg.LinAlgError.__name__
    with pytest.raises(rushlight.linalg.LinAlgError):
        rushlight.linalg.inv(rushlight.zeros(2, 2))


@pytest.mark.skipif(rushlight.accelerator.is_available(), reason="a number names a device of the accelerator")
@pytest.mark.parametrize(
    "use",
    [lambda: rushlight.device(3), lambda: rushlight.zeros(2, device=0), lambda: rushlight.zeros(2).to(1)],
)
def test_numbers_of_devices_without_an_accelerator(use):
    with pytest.raises(RuntimeError, match="Cannot access accelerator device when none is available"):
        use()


def test_negative_numbers_of_devices():
    with pytest.raises(RuntimeError, match="Device index must not be negative$"):
        rushlight.device(-1)

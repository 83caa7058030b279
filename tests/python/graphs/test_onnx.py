"""Models and functions as ONNX files, run by onnxruntime beside us."""

import io

import pytest
from function_module import FunctionModule

import rushlight as torch
from rushlight import nn
from rushlight.nn import functional as F

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
import rushlight.onnx  # noqa: E402

torch.manual_seed(0)
X = torch.randn(2, 3, 4)
IMAGE = torch.randn(2, 4, 8, 8)
INTS = torch.randint(0, 3, (2, 3, 4))
POSITIVE = X.abs() + 1.1


def export(model, *args, **options):
    model = model if isinstance(model, nn.Module) else FunctionModule(model)
    return torch.onnx.export(model.eval(), args, verify=True, **options)


UNARY = """
    abs neg exp sin cos tan atan sinh cosh tanh asinh erf floor ceil sigmoid relu sign square expm1 exp2 erfc
    trunc frac round isnan isinf isfinite isposinf isneginf logical_not positive
""".split()


@pytest.mark.parametrize("name", UNARY)
def test_of_one_number(name):
    export(getattr(torch, name), X * 2)


@pytest.mark.parametrize("name", "sqrt rsqrt reciprocal log log2 log10 log1p acosh".split())
def test_of_a_positive_number(name):
    export(getattr(torch, name), POSITIVE)


@pytest.mark.parametrize(
    "name",
    """
    gelu silu mish softplus leaky_relu elu selu celu hardtanh hardswish hardsigmoid relu6 logsigmoid
    softshrink hardshrink tanhshrink softsign glu
    """.split(),
)
def test_activations(name):
    for opset in (18, 20):
        export(getattr(F, name), X, opset_version=opset)


def test_a_bound_on_both_sides_is_one_step():
    """Which engines, and tools that quantise, take into the layer before it."""
    graph = export(torch.nn.ReLU6(), X).model_proto.graph
    assert [node.op_type for node in graph.node if node.op_type != "Identity"] == ["Clip"]


BINARY = "add sub mul div pow fmod remainder floor_divide eq ne lt le gt ge".split()


@pytest.mark.parametrize("name", [*BINARY, "maximum", "minimum", "atan2", "hypot"])
def test_of_two_tensors(name):
    export(getattr(torch, name), POSITIVE if name == "pow" else X, torch.randn(3, 1))


@pytest.mark.parametrize("name", BINARY)
def test_of_a_tensor_and_a_number(name):
    export(lambda a: getattr(torch, name)(a, 2), POSITIVE)


FUNCTIONS = {
    "gelu tanh": (lambda x: F.gelu(x, approximate="tanh"), X),
    "threshold": (lambda x: F.threshold(x, 0.1, 20.0), X),
    "celu2": (lambda x: F.celu(x, 0.5), X),
    "int floor_divide": (lambda a: a // 3, torch.arange(-9, 9)),
    "int remainder": (lambda a: a % 4, torch.arange(-9, 9)),
    "int div": (lambda a: a / 4, torch.arange(-9, 9)),
    "trunc div": (lambda a: torch.div(a, 4, rounding_mode="trunc"), torch.arange(-9, 9)),
    "mix": (lambda a, b: a + b, X, INTS),
    "add alpha": (lambda a: torch.add(a, a, alpha=3), X),
    "rsub": (lambda a: 1 - a, X),
    "where": (lambda a: torch.where(a > 0, a, 0.0), X),
    "masked_fill": (lambda a: a.masked_fill(a > 0, float("-inf")), X),
    "clamp": (lambda a: a.clamp(-0.5, 0.5), X),
    "bitwise": (lambda a: (a & 3) | (a ^ 1), INTS),
    "bool": (lambda a: (a > 0) & (a < 1) | ~(a > 2), X),
    "lerp": (lambda a: torch.lerp(a, a * 2, 0.3), X),
    "addcmul": (lambda a: torch.addcmul(a, a, a, value=0.5), X),
    "addcdiv": (lambda a: torch.addcdiv(a, a, a.abs() + 1, value=0.5), X),
    "to": (lambda a: a.to(torch.int32), X * 5),
    "nan_to_num": (lambda a: torch.nan_to_num(a.log()), X),
    "prelu": (nn.PReLU(3), X),
    "reshape": (lambda a: a.reshape(2, -1), X),
    "permute": (lambda a: a.permute(2, 0, 1), X),
    "expand": (lambda a: a[:, :1].expand(-1, 5, -1), X),
    "squeeze": (lambda a: a[:, :1].squeeze(1).unsqueeze(-1), X),
    "slices": (lambda a: a[:, 1:, ::2], X),
    "neg slice": (lambda a: a[..., -2:], X),
    "select": (lambda a: a[:, -1], X),
    "split": (lambda a: a.split(3, -1), X),
    "split sizes": (lambda a: a.split([1, 3], -1), X),
    "chunk": (lambda a: a.chunk(2, -1), X),
    "unbind": (lambda a: a.unbind(1), X),
    "cat": (lambda a: torch.cat([a, a * 2], 1), X),
    "stack": (lambda a: torch.stack([a, a], -1), X),
    "flip": (lambda a: a.flip(0, 2), X),
    "roll": (lambda a: a.roll(1, 1), X),
    "roll2": (lambda a: a.roll((1, -2), (0, 2)), X),
    "roll flat": (lambda a: a.roll(3), X),
    "repeat": (lambda a: a.repeat(2, 1, 3, 1), X),
    "tril": (lambda a: a.tril(), X),
    "triu bool": (lambda a: (a > 0).triu(1), X),
    "diagonal": (lambda a: a.diagonal(), torch.randn(3, 3)),
    "pad": (lambda a: F.pad(a, (1, 2, 0, 1), value=3.0), X),
    "pad neg": (lambda a: F.pad(a, (-1, 2)), X),
    "reflect": (lambda a: F.pad(a, (1, 2), mode="reflect"), X),
    "replicate": (lambda a: F.pad(a, (1, 1, 2, 0), mode="replicate"), IMAGE),
    "circular": (lambda a: F.pad(a, (1, 2, 0, -1), mode="circular"), IMAGE),
    "factories": (
        lambda a: (
            torch.zeros(2, 3)
            + torch.ones(3)
            + torch.full((1,), 2.0)
            + torch.arange(3)
            + torch.eye(2, 3)
            + torch.zeros_like(a[0, :2, :3]),
            a.new_ones(3),
        ),
        X,
    ),
    "tensor const": (lambda a: a + torch.tensor([1.0, 2.0, 3.0, 4.0]), X),
    "sum int": (lambda a: a.sum(), INTS),
    "sum bool": (lambda a: (a > 0).sum(1), X),
    "max": (lambda a: (a.max(), *a.max(1), *a.min(-1, keepdim=True)), X),
    "argmax": (lambda a: (a.argmax(), a.argmax(1), a.argmin(-1, True)), X),
    "any": (lambda a: ((a > 1).any(), (a > 0).all(1)), X),
    "count": (lambda a: (a > 0).count_nonzero(), X),
    "norm": (
        lambda a: (
            a.norm(),
            a.norm(1, dim=1),
            torch.linalg.vector_norm(a, 3, dim=(0, 1)),
            a.norm(float("inf")),
        ),
        X,
    ),
    "logsumexp": (lambda a: a.logsumexp(1), X),
    "cumsum": (lambda a: a.cumsum(1), X),
    "softmax": (lambda a: (a.softmax(1), a.log_softmax(-1)), X),
    "topk": (lambda a: a.topk(2), X),
    "sort": (lambda a: a.sort(descending=True), X),
    "argsort": (lambda a: a.argsort(1), X),
    "var_mean": (lambda a: torch.var_mean(a, 1, correction=0), X),
    "normalize": (lambda a: F.normalize(a), X),
    "cosine": (lambda a: F.cosine_similarity(a, a * 2 + 1), X),
    "index_select": (lambda a: a.index_select(1, torch.tensor([2, 0])), X),
    "gather": (lambda a, i: a.gather(1, i), X, INTS.clamp(max=2)),
    "index1": (lambda a: a[:, torch.tensor([2, 0])], X),
    "index2": (lambda a: a[torch.tensor([1, 0]), torch.tensor([2, 0])], X),
    "index mid": (lambda a: a[:, torch.tensor([[1], [0]]), torch.tensor([2, 0])], X),
    "index apart": (lambda a: a[torch.tensor([1, 0]), :, torch.tensor([2, 0])], X),
    "mask": (lambda a: (a > 0).sum(), X),
    "scatter": (lambda a, i: a.scatter(1, i, 0.0), X, INTS.clamp(max=2)),
    "scatter_add": (lambda a, i: a.scatter_add(1, i, a), X, INTS.clamp(max=2)),
    "one_hot": (lambda i: F.one_hot(i, 5), INTS),
    "take": (lambda a: a.take(torch.tensor([5, 1])), X),
    "index_put": (lambda a: torch.index_put(a, (torch.tensor([0, 1]),), torch.ones(3, 4)), X),
    "setitem": (lambda a: (lambda b: (b.__setitem__((slice(None), 1), 0.0), b)[1])(a.clone()), X),
    "matmul": (lambda a: a @ a.mT, X),
    "matmul 3x2": (lambda a: a @ torch.ones(4, 2), X),
    "addmm": (lambda a: torch.addmm(torch.ones(3), a[0], a[1].t(), beta=0.5, alpha=2), X),
    "baddbmm": (lambda a: torch.baddbmm(torch.ones(3), a, a.mT, beta=0.5, alpha=2), X),
    "einsum": (lambda a: torch.einsum("bij,bkj->bik", a, a), X),
    "mv": (lambda a: a[0] @ a[0, 0], X),
    "dot": (lambda a: a[0, 0] @ a[0, 0], X),
    "sdpa causal": (lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True), X),
    "sdpa mask": (
        lambda q: F.scaled_dot_product_attention(
            q, q, q, attn_mask=torch.ones(3, 3, dtype=torch.bool).tril()
        ),
        X,
    ),
    "grid": (
        lambda a: F.grid_sample(
            a, torch.linspace(-1, 1, 18).reshape(1, 3, 3, 2).expand(2, -1, -1, -1), align_corners=False
        ),
        IMAGE,
    ),
    "mse": (lambda a: F.mse_loss(a, a * 2), X),
    "ce": (lambda a: F.cross_entropy(a, torch.tensor([[0, 1, 2, 1], [1, 1, 0, 0]])), X),
    "embedding": (lambda i: F.embedding(i, torch.eye(5, 3)), INTS),
    "slice set": (
        lambda a: (
            lambda b: (b.__setitem__((slice(None), slice(1, None), slice(0, None, 2)), 0.0), b.mul_(2), b)[-1]
        )(a.clone()),
        X,
    ),
    "sub_": (lambda a: F.relu(a - 1, inplace=True).add_(a), X),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function(name):
    export(*FUNCTIONS[name])


LAYERS = {
    "linear": (nn.Linear(4, 5), X),
    "conv1d": (nn.Conv1d(3, 5, 2, stride=2, padding=1), X),
    "conv same": (nn.Conv2d(4, 4, 3, padding="same"), IMAGE),
    "convT": (nn.ConvTranspose2d(4, 2, 3, 2, 1, 1), IMAGE),
    "conv3d": (nn.Conv3d(1, 2, 2), torch.randn(1, 1, 4, 4, 4)),
    "conv unbatched": (nn.Conv2d(4, 2, 3), IMAGE[0]),
    "bn1": (nn.BatchNorm1d(3), X),
    "bn no affine": (nn.BatchNorm2d(4, affine=False), IMAGE),
    "ln": (nn.LayerNorm(4), X),
    "ln2": (nn.LayerNorm((3, 4), elementwise_affine=False), X),
    "gn": (nn.GroupNorm(2, 4), IMAGE),
    "in": (nn.InstanceNorm2d(4, affine=True), IMAGE),
    "rms": (nn.RMSNorm(4), X),
    "maxpool": (nn.MaxPool2d(3, 2, 1, ceil_mode=True), IMAGE),
    "maxpool idx": (nn.MaxPool2d(2, return_indices=True), IMAGE),
    "maxpool1": (nn.MaxPool1d(2), X),
    "avgpool": (nn.AvgPool2d(3, 2, 1), IMAGE),
    "avgpool excl": (nn.AvgPool2d(3, 2, 1, count_include_pad=False), IMAGE),
    "adaptive": (nn.AdaptiveAvgPool2d((2, 4)), IMAGE),
    "adaptive after pooling": (nn.Sequential(nn.MaxPool2d(2), nn.AdaptiveAvgPool2d((1, 2))), IMAGE),
    "adaptive max": (nn.AdaptiveMaxPool2d(1), IMAGE),
    "adaptive1": (nn.AdaptiveAvgPool1d(2), X),
    "up nearest": (nn.Upsample(scale_factor=2), IMAGE),
    "up bilinear": (nn.Upsample(scale_factor=1.5, mode="bilinear"), IMAGE),
    "up align": (nn.Upsample(size=(5, 7), mode="bilinear", align_corners=True), IMAGE),
    "up bicubic": (nn.Upsample(scale_factor=2, mode="bicubic"), IMAGE),
    "pixelshuffle": (nn.PixelShuffle(2), IMAGE),
    "lstm": (nn.LSTM(4, 5, 2), X),
    "gru": (nn.GRU(4, 5, batch_first=True, bidirectional=True), X),
    "rnn": (nn.RNN(4, 5), X),
    "lstm cell": (nn.LSTMCell(4, 5), X[0]),
    "gru cell": (nn.GRUCell(4, 5), X[0]),
    "mha": (nn.MultiheadAttention(4, 2), X, X, X),
    "dec": (nn.TransformerDecoderLayer(4, 2, 8), X, X),
    "dropout": (nn.Dropout(), X),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layer(name):
    export(*LAYERS[name])


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 6)
        self.attention = nn.MultiheadAttention(6, 2, batch_first=True)

    def forward(self, x):
        y = self.linear(x)
        y, _ = self.attention(y, y, y, need_weights=False)
        return y.reshape(x.shape[0], -1).sum(1), y[:, 1:].mean((1, 2)), torch.arange(x.shape[1])


class LanguageModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(17, 8)
        self.position = nn.Embedding(16, 8)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True)
        self.head = nn.Linear(8, 17)

    def forward(self, x):
        n = x.shape[1]
        y = self.embedding(x) + self.position(torch.arange(n))
        mask = torch.full((n, n), float("-inf")).triu(1)
        return self.head(self.layer(y, src_mask=mask))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 5, 2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(10, 2)

    def forward(self, x):
        return self.head(self.lstm(x)[0][:, -1])


def make_cnn():
    return nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(4, 2),
    )


BATCH, TIME = torch.export.Dim("batch"), torch.export.Dim("time")


@pytest.mark.parametrize(
    ("model", "make", "shapes"),
    [
        (Attention, lambda b, t: torch.randn(b, t, 4), {"x": {0: BATCH, 1: TIME}}),
        (LanguageModel, lambda b, t: torch.randint(0, 17, (b, t)), {"x": {0: BATCH, 1: TIME}}),
        (Recurrent, lambda b, t: torch.randn(b, t, 4), {"x": {0: BATCH, 1: TIME}}),
        (make_cnn, lambda b, t: torch.randn(b, 3, 2 * t, 8), ({0: BATCH, 2: 2 * TIME},)),
    ],
)
def test_dynamic_sizes(model, make, shapes):
    model = model().eval()
    program = export(model, make(3, 5), dynamic_shapes=shapes)
    for batch, time in ((1, 4), (5, 9), (2, 2)):
        x = make(batch, time)
        wanted = model(x)
        wanted = list(wanted) if isinstance(wanted, tuple) else [wanted]
        torch.testing.assert_close(program(x), wanted, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("external", [False, True])
def test_file(tmp_path, external):
    import onnxruntime

    model = make_cnn().eval()
    path = tmp_path / "model.onnx"
    program = torch.onnx.export(
        model,
        (torch.randn(1, 3, 8, 8),),
        path,
        input_names=["image"],
        output_names=["scores"],
        dynamic_axes={"image": {0: "batch"}},
        external_data=external,
    )
    session = onnxruntime.InferenceSession(path)
    assert [i.name for i in session.get_inputs()] == ["image"]
    assert [i.shape for i in session.get_inputs()] == [["batch", 3, 8, 8]]
    x = torch.randn(4, 3, 8, 8)
    (scores,) = session.run(["scores"], {"image": x.numpy()})
    torch.testing.assert_close(torch.from_numpy(scores), model(x).detach(), rtol=1e-3, atol=1e-4)
    assert "0.weight" in [i.name for i in program.model_proto.graph.initializer]


def test_what_cannot_be_exported():
    with pytest.raises(
        NotImplementedError, match=r"no rule for aten\.polygamma\.default, aten\.special_zeta\.default"
    ):
        export(lambda a: a.polygamma(1) + torch.special.zeta(a, a), POSITIVE)
    with pytest.raises(NotImplementedError, match=r"call model\.eval\(\) before exporting"):
        torch.onnx.export(make_cnn().train(), (torch.randn(2, 3, 8, 8),))
    with pytest.raises(NotImplementedError, match=r"no rule for aten\.poisson\.default"):
        export(torch.poisson, POSITIVE)
    with pytest.raises(ValueError, match="opset_version must be at most 25"):
        export(torch.sin, X, opset_version=26)


def test_older_opsets_are_converted_where_that_can_be_done():
    older = export(make_cnn(), torch.randn(2, 3, 8, 8), opset_version=17)
    assert older.model_proto.opset_import[0].version == 17
    with pytest.warns(UserWarning, match="convert the graph to opset 11, the file keeps opset 18") as told:
        kept = export(make_cnn(), torch.randn(2, 3, 8, 8), opset_version=11)
    assert told[0].filename == __file__
    assert kept.model_proto.opset_import[0].version == 18


def test_custom_rules():
    def lgamma(graph, x):
        return graph.op("Log", graph.op("Abs", x))

    program = torch.onnx.export(
        FunctionModule(torch.lgamma), (X,), custom_translation_table={torch.ops.aten.lgamma.default: lgamma}
    )
    torch.testing.assert_close(program(X)[0], X.abs().log())


def test_wrong_results_are_found():
    table = {torch.ops.aten.sin.default: lambda graph, x: graph.op("Cos", x)}
    with pytest.raises(torch.onnx.OnnxExporterError, match="differ"):
        export(torch.sin, X, custom_translation_table=table)


def test_models_see_that_they_are_exported():
    seen = []

    def look(x):
        seen.append(torch.onnx.is_in_onnx_export())
        return x + 1

    export(look, X)
    assert True in seen and not torch.onnx.is_in_onnx_export()


def test_a_program_is_written_to_an_open_file():
    written = io.BytesIO()
    program = torch.onnx.export(torch.nn.ReLU(), (X,), written)
    assert written.getvalue() == program.model_proto.SerializeToString()
    with pytest.raises(ValueError, match="needs a path"):
        program.save(io.BytesIO(), external_data=True)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("options", [{}, {"padding_idx": 2}, {"include_last_offset": True}])
def test_bags_of_embeddings(mode, options):
    bags = nn.EmbeddingBag(7, 3, mode=mode, **options)
    indices = torch.tensor([1, 2, 2, 6, 0, 2])
    export(
        bags, indices, torch.tensor([0, 1, 1, 4, 6] if options.get("include_last_offset") else [0, 1, 1, 4])
    )
    if not options.get("include_last_offset"):
        export(bags, indices.reshape(2, 3))
    if mode == "sum" and not options:
        weights = torch.rand(6)
        export(lambda w, i, f: F.embedding_bag(i, w, torch.tensor([0, 2]), mode="sum", per_sample_weights=f),
               bags.weight.detach(), indices, weights)  # fmt: skip


@pytest.mark.parametrize("image", [IMAGE, IMAGE[0]])
def test_windows_taken_apart_and_put_together(image):
    apart = {"kernel_size": (3, 2), "dilation": (2, 1), "padding": (1, 2), "stride": (1, 2)}
    export(lambda x: F.unfold(x, **apart), image)
    export(lambda x: F.fold(F.unfold(x, **apart), (8, 8), **apart), image)


@pytest.mark.parametrize("size", [3, (5, 3), (None, 7)])
def test_adaptive_pools_whose_windows_differ(size):
    export(nn.AdaptiveAvgPool2d(size), IMAGE)
    export(nn.AdaptiveMaxPool2d(size), IMAGE)


FACTORS = torch.randint(1, 4, (3, 4))
LESS_USUAL = {
    "running products": (lambda a: a.cumprod(1), (X,)),
    "running products of integers": (lambda a: a.cumprod(-1), (FACTORS,)),
    "running maxima": (lambda a: a.cummax(0), (X,)),
    "running minima": (lambda a: a.cummin(2), (INTS,)),
    "running sums of exponentials": (lambda a: a.logcumsumexp(1), (X,)),
    "ranks in rows": (lambda a: torch.searchsorted(a.sort()[0], a + 0.1, right=True), (X,)),
    "buckets": (lambda a: torch.bucketize(a, torch.tensor([-1.0, 0.0, 1.0])), (X,)),
    "membership": (lambda a: torch.isin(a, torch.tensor([0, 2]), invert=True), (INTS,)),
    "k-th value": (lambda a: a.kthvalue(2, 1, keepdim=True), (X,)),
    "median": (lambda a: (a.median(1), a.median()), (X,)),
    "unique": (lambda a: torch.unique(a, return_inverse=True, return_counts=True), (INTS,)),
    "distances": (lambda a: [torch.cdist(a, a + 1, p) for p in (0.0, 1.0, 2.0, 3.0, float("inf"))], (X,)),
    "fill by index": (lambda a: a.index_fill(1, torch.tensor([0, 2]), 1.5), (X,)),
    "add by index": (lambda a: a.index_add(0, torch.tensor([1, 0]), a), (X,)),
    "reduce by index": (lambda a, i: a.scatter_reduce(1, i, a * 2, "amax"), (X, INTS)),
    "windows": (lambda a: a.unfold(1, 2, 1), (X,)),
    "diagonals": (torch.diag_embed, (X,)),
    "determinants": (torch.linalg.det, (torch.randn(2, 3, 3),)),
    "signs": (torch.copysign, (X, torch.tensor([0.0, -0.0, 1.0, -1.0]))),
    "shifts": (lambda a: (a << 2, (a - 2) >> 1), (INTS,)),
    "losses": (lambda a: F.huber_loss(a, -a) + F.binary_cross_entropy_with_logits(a, a.sigmoid()), (X,)),
    "exact neighbours": (lambda a: F.interpolate(a, size=(5, 3), mode="nearest-exact"), (IMAGE,)),
    "smooth linear": (lambda a: F.interpolate(a, size=(5, 3), mode="bilinear", antialias=True), (IMAGE,)),
    "smooth cubic": (lambda a: F.interpolate(a, size=(5, 3), mode="bicubic", antialias=True), (IMAGE,)),
}


@pytest.mark.parametrize("name", LESS_USUAL)
def test_less_usual_operators(name):
    function, args = LESS_USUAL[name]
    export(function, *args)


@pytest.mark.parametrize("function", [lambda a: a.cumprod(0), lambda a: a.cummax(0), lambda a: a.median(0)])
def test_sizes_of_scans_and_ranks_may_change(function):
    program = export(function, torch.randn(3, 4), dynamic_shapes=({0: torch.export.Dim("n", min=2)},))
    for rows in (2, 7):
        x = torch.randn(rows, 4)
        expected = function(x)
        torch.testing.assert_close(program(x), list(expected) if isinstance(expected, tuple) else [expected])


def test_random_numbers_are_drawn_at_each_run():
    def noisy(a):
        return a + torch.randn_like(a), torch.rand(2000), torch.bernoulli(torch.full((2000,), 0.25))

    program = torch.onnx.export(FunctionModule(noisy), (X,))
    first, second = program(X), program(X)
    assert not torch.equal(first[0], second[0]) and not torch.equal(first[1], second[1])
    assert 0 <= first[1].min() and first[1].max() < 1 and abs(first[1].mean() - 0.5) < 0.05
    assert set(first[2].tolist()) == {0.0, 1.0} and abs(first[2].mean() - 0.25) < 0.06


CHANGING = {
    "windows": lambda x: x.unfold(1, 3, 2),
    "windows of a short-time transform": lambda x: torch.stft(
        x, 4, 2, window=torch.ones(4), return_complex=True
    ).abs(),
    "halves": lambda x: [half * 2 for half in torch.cat([x, x]).chunk(2)],
    "pieces": lambda x: torch.cat([x, x, x]).split(x.shape[0]),
    "largest": lambda x: F.adaptive_max_pool1d(x, 1),
    "one result twice": lambda x: (x.relu() + 1, x.relu() + 1, *([x.exp()] * 2)),
    "results that others read": lambda x: (y := nn.functional.relu(x), z := y @ y.mT, z.relu(), y),
}


@pytest.mark.parametrize("name", CHANGING)
def test_sizes_that_change_are_read_when_the_file_runs(name):
    dynamic = torch.export.Dim.DYNAMIC
    model = FunctionModule(CHANGING[name]).eval()
    program = torch.onnx.export(model, (torch.randn(4, 9),), dynamic_shapes=[[{0: dynamic, 1: dynamic}]])
    for shape in ((4, 9), (2, 12), (1, 7)):
        x = torch.randn(shape)
        expected = model(x)
        expected = [expected] if isinstance(expected, torch.Tensor) else list(expected)
        torch.testing.assert_close(program(x), expected, rtol=1e-4, atol=1e-4)


def test_rules_for_fixed_sizes_refuse_those_that_change():
    dynamic = {0: torch.export.Dim.DYNAMIC, 3: torch.export.Dim.DYNAMIC}
    for function in (lambda x: F.unfold(x, 2), lambda x: F.adaptive_avg_pool2d(x, 2)):
        with pytest.raises(NotImplementedError, match="a dimension whose size changes"):
            torch.onnx.export(
                FunctionModule(function), (torch.randn(2, 3, 4, 4),), dynamic_shapes=[[dynamic]]
            )


@pytest.mark.parametrize(
    "layer",
    [
        nn.GRU(4, 5),
        nn.GRU(4, 5, 2, bidirectional=True, batch_first=True),
        nn.RNN(4, 3, nonlinearity="relu", bias=False),
    ],
    ids=str,
)
def test_recurrent_layers_of_any_length_are_one_operator_each(layer):
    dynamic = torch.export.Dim.DYNAMIC
    example = torch.randn(5, 2, 4)
    program = torch.onnx.export(layer.eval(), (example,), dynamic_shapes={"input": {0: dynamic, 1: dynamic}})
    kinds = [node.op_type for node in program.model_proto.graph.node]
    assert sum(kind in ("GRU", "RNN") for kind in kinds) == layer.num_layers
    for sizes in ((5, 2), (1, 1), (11, 3)):
        x = torch.randn(*sizes, 4)
        for found, wanted in zip(program(x), layer(x), strict=True):
            torch.testing.assert_close(found, wanted.detach(), rtol=1e-4, atol=1e-5)

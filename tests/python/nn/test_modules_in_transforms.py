"""Every kind of layer under function transforms: each result is also computed in another, plainer way."""

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.func import functional_call, grad, jacfwd, jacrev, jvp, stack_module_state, vmap

parametrizations = nn.utils.parametrizations
INDICES, BAGS = "indices", "bags of indices"

# How a layer is made, and the shape of what it takes (several: a tuple of shapes).
LAYERS = {
    "linear": (lambda: nn.Linear(4, 3), (4,)),
    "bilinear": (lambda: nn.Bilinear(4, 4, 3), ((4,), (4,))),
    "conv1d": (lambda: nn.Conv1d(3, 4, 3, padding=1), (3, 8)),
    "conv2d": (lambda: nn.Conv2d(3, 4, 3, stride=2), (3, 8, 8)),
    "conv3d": (lambda: nn.Conv3d(2, 2, 2), (2, 4, 4, 4)),
    "depthwise": (lambda: nn.Conv2d(4, 4, 3, groups=4, padding="same"), (4, 6, 6)),
    "circular": (lambda: nn.Conv2d(3, 4, 3, padding=1, padding_mode="circular"), (3, 8, 8)),
    "transposed 1d": (lambda: nn.ConvTranspose1d(3, 4, 3), (3, 8)),
    "transposed 2d": (lambda: nn.ConvTranspose2d(3, 2, 3, stride=2, output_padding=1), (3, 5, 5)),
    "transposed 3d": (lambda: nn.ConvTranspose3d(2, 2, 2), (2, 3, 3, 3)),
    "layer norm": (lambda: nn.LayerNorm(6), (5, 6)),
    "group norm": (lambda: nn.GroupNorm(2, 4), (1, 4, 5)),
    "rms norm": (lambda: nn.RMSNorm(6), (5, 6)),
    "instance norm": (lambda: nn.InstanceNorm2d(3, affine=True), (1, 3, 5, 5)),
    "batch norm, eval": (lambda: nn.BatchNorm1d(4).eval(), (3, 4)),
    "batch norm, no statistics": (lambda: nn.BatchNorm2d(4, track_running_stats=False), (3, 4, 2, 2)),
    "embedding": (lambda: nn.Embedding(7, 3, padding_idx=1), INDICES),
    "bag of means": (lambda: nn.EmbeddingBag(7, 3), BAGS),
    "bag of sums": (lambda: nn.EmbeddingBag(7, 3, mode="sum", padding_idx=1), BAGS),
    "bag of maxima": (lambda: nn.EmbeddingBag(7, 3, mode="max"), BAGS),
    "rnn": (lambda: nn.RNN(4, 3, batch_first=True), (2, 5, 4)),
    "lstm": (lambda: nn.LSTM(4, 3, 2), (5, 2, 4)),
    "gru": (lambda: nn.GRU(4, 3, bidirectional=True), (5, 2, 4)),
    "lstm, projected": (lambda: nn.LSTM(4, 3, proj_size=2), (5, 2, 4)),
    "lstm cell": (lambda: nn.LSTMCell(4, 3), (2, 4)),
    "gru cell": (lambda: nn.GRUCell(4, 3), (2, 4)),
    "rnn cell": (lambda: nn.RNNCell(4, 3), (2, 4)),
    "attention": (lambda: nn.MultiheadAttention(4, 2), ((5, 2, 4),) * 3),
    "encoder": (lambda: nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0), (5, 2, 4)),
    "decoder": (lambda: nn.TransformerDecoderLayer(4, 2, 8, dropout=0.0), ((5, 2, 4), (3, 2, 4))),
    "transformer": (lambda: nn.Transformer(4, 2, 1, 1, 8, dropout=0.0), ((5, 2, 4), (3, 2, 4))),
    "prelu": (lambda: nn.PReLU(3), (2, 3)),
    "gated": (lambda: nn.Sequential(nn.Linear(4, 8), nn.GLU(), nn.Softplus(2, 3), nn.Softmax(-1)), (4,)),
    "max pool": (lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.MaxPool2d(2), nn.ReLU(True)), (3, 8, 8)),
    "average pool": (lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.AvgPool2d(3, 2, 1)), (3, 8, 8)),
    "adaptive pools": (
        lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d(3), nn.AdaptiveMaxPool2d(2)),
        (3, 8, 8),
    ),
    "power pool": (lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.LPPool2d(2, 2)), (3, 8, 8)),
    "pixel shuffle": (
        lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.Hardswish(), nn.PixelShuffle(2)),
        (3, 8, 8),
    ),
    "unfold": (lambda: nn.Sequential(nn.Unfold(2), nn.Linear(49, 3)), (1, 2, 8, 8)),
    "fold": (lambda: nn.Sequential(nn.Linear(9, 9), nn.Fold((4, 4), 2)), (4, 9)),
    "bilinear resize": (
        lambda: nn.Sequential(nn.Conv2d(3, 2, 3), nn.Upsample(scale_factor=2, mode="bilinear")),
        (1, 3, 6, 6),
    ),
    "bicubic resize": (
        lambda: nn.Sequential(nn.Conv2d(3, 2, 3), nn.Upsample(scale_factor=2, mode="bicubic")),
        (1, 3, 6, 6),
    ),
    "pads": (
        lambda: nn.Sequential(
            nn.ReflectionPad1d(2), nn.Conv1d(3, 2, 3), nn.ReplicationPad1d(1), nn.CircularPad1d(1)
        ),
        (3, 8),
    ),
    "weight norm": (lambda: parametrizations.weight_norm(nn.Linear(4, 3)), (4,)),
    "spectral norm": (lambda: parametrizations.spectral_norm(nn.Linear(4, 3)).eval(), (4,)),
    "orthogonal": (lambda: parametrizations.orthogonal(nn.Linear(4, 4)), (4,)),
    "activations": (
        lambda: nn.Sequential(
            nn.Linear(4, 8), nn.Hardtanh(), nn.CELU(), nn.SELU(), nn.Mish(), nn.SiLU(), nn.GELU("tanh")
        ),
        (4,),
    ),
    "shrinking activations": (
        lambda: nn.Sequential(nn.Linear(4, 8), nn.Softshrink(0.1), nn.Tanhshrink(), nn.RReLU()).eval(),
        (4,),
    ),
}
PARAMETRIZED = ("weight norm", "spectral norm", "orthogonal")  # each has a class of its own
EXAMPLES = 3


def close(found, expected):
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-7)


def first(result):
    while isinstance(result, tuple):
        result = result[0]
    return result


class Case:
    """A layer in double precision, its inputs for three examples, and a loss of its parameters."""

    def __init__(self, name):
        torch.manual_seed(0)
        self.make, takes = LAYERS[name]
        self.layer = self.make().double()
        self.parameters = {k: v.detach() for k, v in self.layer.named_parameters()}
        self.buffers = dict(self.layer.named_buffers())
        if takes in (INDICES, BAGS):
            shape = (EXAMPLES, 5) if takes == INDICES else (EXAMPLES, 2, 5)
            self.inputs = [torch.randint(0, 7, shape)]
        else:
            shapes = takes if isinstance(takes[0], tuple) else (takes,)
            self.inputs = [torch.randn(EXAMPLES, *s, dtype=torch.float64) for s in shapes]

    def example(self, i):
        return [x[i] for x in self.inputs]

    def call(self, parameters, *inputs):
        return first(functional_call(self.layer, (parameters, self.buffers), inputs))

    def loss(self, parameters, *inputs):
        return (self.call(parameters, *inputs) ** 2).sum()

    def gradients(self, i):
        leaves = {k: v.clone().requires_grad_() for k, v in self.parameters.items()}
        found = torch.autograd.grad(self.loss(leaves, *self.example(i)), list(leaves.values()))
        return dict(zip(leaves, found))


@pytest.fixture
def case(request):
    return Case(request.param)


every = pytest.mark.parametrize("case", LAYERS, indirect=True)


@every
def test_gradients_of_examples_are_those_of_a_loop(case):
    found = vmap(grad(case.loss), (None, *(0 for _ in case.inputs)))(case.parameters, *case.inputs)
    each = [case.gradients(i) for i in range(EXAMPLES)]
    close(found, {k: torch.stack([g[k] for g in each]) for k in found})


@pytest.mark.parametrize("case", [n for n in LAYERS if n not in PARAMETRIZED], indirect=True)
def test_an_ensemble_gives_what_its_members_give(case):
    members = [case.make().double() for _ in range(EXAMPLES)]
    for member in members:
        member.train(case.layer.training)
    parameters, buffers = stack_module_state(members)

    def call(parameters, buffers, *inputs):
        return first(functional_call(case.layer, (parameters, buffers), inputs))

    same = vmap(call, (0, 0, *(None for _ in case.inputs)))(parameters, buffers, *case.example(0))
    close(same, torch.stack([first(m(*case.example(0))) for m in members]))
    own = vmap(call)(parameters, buffers, *case.inputs)
    close(own, torch.stack([first(m(*case.example(i))) for i, m in enumerate(members)]))


@every
def test_directional_derivatives_are_those_of_the_gradient(case):
    direction = {k: torch.randn_like(v) for k, v in case.parameters.items()}

    def along(*inputs):
        return jvp(lambda p: case.loss(p, *inputs), (case.parameters,), (direction,))[1]

    expected = [sum((g * direction[k]).sum() for k, g in case.gradients(i).items()) for i in range(EXAMPLES)]
    close(along(*case.example(0)), expected[0])
    close(vmap(along)(*case.inputs), torch.stack(expected))


@every
def test_products_with_the_hessian_are_differences_of_gradients(case):
    direction = {k: torch.randn_like(v) for k, v in case.parameters.items()}
    inputs, h = case.example(0), 1e-5
    found = jvp(lambda p: grad(case.loss)(p, *inputs), (case.parameters,), (direction,))[1]
    ahead, behind = (
        grad(case.loss)({k: v + step * direction[k] for k, v in case.parameters.items()}, *inputs)
        for step in (h, -h)
    )
    for k, value in found.items():
        torch.testing.assert_close(value, (ahead[k] - behind[k]) / (2 * h), rtol=1e-4, atol=1e-4)


@every
def test_examples_may_lie_along_any_dimension(case):
    if not case.inputs[0].is_floating_point():
        pytest.skip("derivatives by the input need real numbers")
    expected = torch.stack([case.call(case.parameters, *case.example(i)) for i in range(EXAMPLES)])

    def call(*inputs):
        return case.call(case.parameters, *inputs)

    close(vmap(call)(*case.inputs), expected)
    close(
        vmap(call, in_dims=1, out_dims=-1)(*(x.transpose(0, 1) for x in case.inputs)), expected.movedim(0, -1)
    )
    close(jacfwd(call)(*case.example(0)), jacrev(call)(*case.example(0)))

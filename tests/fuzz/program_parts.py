"""Random programs over tensors, as text, for random_programs.py.

A program is a list of statements over named tensors. Each is filled in from a template and tried with
PyTorch: a statement that it refuses, or whose result is not finite, large or long, is dropped. What remains
runs anywhere.
"""

import random
import re
import warnings

import program_kinds as kinds

POINTWISE = """
torch.sin({x})
torch.cos({x} * 2)
{x}.tanh()
torch.sigmoid({x})
F.relu({x})
F.gelu({x})
F.gelu({x}, approximate='tanh')
F.silu({x})
F.softplus({x})
F.elu({x}, alpha={p})
F.leaky_relu({x}, {p})
F.hardswish({x})
F.logsigmoid({x})
{x}.abs()
-{x}
{x}.abs().sqrt()
({x}.abs() + {p}).rsqrt()
{x}.square()
torch.log1p({x}.abs())
torch.expm1({x}.clamp(max=2))
torch.erf({x})
({x}.abs() + {p}).reciprocal()
{x}.clamp({f}, 2.5)
torch.clamp({x}, min={y})
torch.nan_to_num({x}, nan={f})
{x} + {y}
{x} - {f}
{f} - {x}
{x} * {y}
{x} / ({y}.abs() + {p})
{f} / ({x}.abs() + {p})
torch.add({x}, {y}, alpha={n})
torch.rsub({x}, {y})
torch.lerp({x}, {y}, {p})
torch.addcmul({x}, {y}, {z}, value={p})
torch.addcdiv({x}, {y}, {z}.abs() + {p}, value={p})
{x} ** 2
{x} ** 3
({x}.abs() + {p}) ** {p}
torch.atan2({x}, {y}.abs() + {p})
torch.hypot({x}, {y})
torch.maximum({x}, {y})
torch.fmin({x}, {y})
torch.where({m}, {x}, {y})
torch.where({m}, {x}, {f})
torch.logaddexp({x}, {y})
torch.xlogy({x}, {y}.abs() + {p})
torch.copysign({x}, {y})
F.threshold({x}, {p}, {f})
F.hardtanh({x}, -1, {p})
F.glu({x}, {d})
torch.sinc({x})
torch.remainder({x}, {p})
torch.heaviside({x}, {y})
torch.special.i0e({x})
torch.special.erfcx({x}.abs())
torch.lgamma({x}.abs() + {p})
torch.digamma({x}.abs() + 1)
"""

VIEWS = """
{x}.transpose({d}, {e})
{x}.permute({perm})
{x}.mT if {x}.dim() > 1 else {x}[:]
{x}.movedim({d}, {e})
{x}.unsqueeze({d})
{x}.squeeze()
{x}.squeeze({d})
{x}.flatten()
{x}.flatten({d}, -1)
{x}.reshape(-1)
{x}.reshape({x}.shape[0], -1)
{x}.reshape(-1, {x}.shape[-1])
{x}.view({x}.shape)
{x}.view(-1, 2)
{x}.unflatten({d}, (2, -1))
{x}.narrow({d}, {k}, {n})
{x}.select({d}, {k})
{x}[{k}]
{x}[..., {k}:]
{x}[..., ::{n}]
{x}[{k}:, ..., None]
{x}[None]
{x}[:, {k}]
{x}.expand({n}, *{x}.shape)
{x}.unsqueeze({d}).expand_as({y})
torch.broadcast_to({x}, {y}.shape)
{x}.diagonal()
torch.diagonal({x}, {k}, 0, -1)
{x}.unfold({d}, {n}, {n})
{x}.detach()
{x}.view_as({y})
{x}.swapaxes({d}, {e})
{x}.reshape(-1).as_strided(({x}.numel() // 2, 2), (2, 1))
{x}.real
{x}.chunk(2, {d})[-1]
{x}.split({n}, {d})[0]
{x}.tensor_split(3, {d})[1]
{x}.unbind({d})[-1]
torch.atleast_2d({x})
{x}.T if {x}.dim() == 2 else {x}.flatten(0)
"""

WRITES = """
{x}.add_({y})
{x}.mul_({f})
{x}.sub_({y}, alpha={p})
{x}.div_({p} + 1)
{x}.tanh_()
{x}.sin_()
{x}.relu_()
F.relu({x}, inplace=True)
{x}.clamp_(-1, {p})
{x}.zero_()
{x}.fill_({f})
{x}.copy_({y})
{x}.masked_fill_({m}, {f})
{x}.addcmul_({y}, {z}, value={p})
{x}.lerp_({y}, {p})
{x}.neg_()
{x}.t_()
{x}.transpose_({d}, {e})
{x}.unsqueeze_({d})
{x}.squeeze_()
{x} += {y}
{x} *= {f}
{x} -= 1
{x}[{k}] = {f}
{x}[{k}] += 1
{x}[..., {k}] = {y}
{x}[..., {k}:] *= {f}
{x}[:, {k}] = {y}.sum()
{x}[::2] = {f}
{x}[{m}] = {f}
{x}[{m}] += {p}
{x}[{i}] = {y}
{x}[..., {j}] = {f}
{x}.diagonal().fill_({f})
{x}.index_add_({d}, {i0}, {x}.detach().index_select({d}, {i0}), alpha={p})
{x}.index_fill_({d}, {i0}, {f})
{x}.index_copy_({d}, {i0}, {x}.detach().index_select({d}, {i0}) * {f})
{x}.scatter_add_({d}, torch.zeros_like({x}, dtype=torch.int64), {x}.detach() * {p})
{x}.scatter_({d}, torch.zeros_like({x}, dtype=torch.int64).narrow({d}, 0, 1), {f})
{x}.index_put_(({i},), torch.tensor({f}, dtype={x}.dtype), accumulate=True)
{x}.tril_()
{x}.cumsum_({d})
{x}.exp_().mul_(0.1)
torch.add({y}, {f}, out={x})
torch.mul({y}, {z}, out={x})
{x}.view(-1)[0] = {f}
{x}.detach().zero_()
{x}.swapdims_({d}, {e})
"""

REDUCTIONS = """
{x}.sum()
{x}.sum({d})
{x}.sum({d}, keepdim=True)
{x}.sum(({d}, {e}))
{x}.mean({d})
{x}.mean()
{x}.amax({d})
{x}.amin({d}, keepdim=True)
{x}.max({d}).values
{x}.max({d})[1]
{x}.min()
{x}.var({d})
{x}.std({d}, correction=0, keepdim=True)
{x}.norm()
torch.linalg.vector_norm({x}, {n}, dim={d})
({x} * 0.5).prod({d})
{x}.logsumexp({d})
{x}.cumsum({d})
torch.cumprod({x} * 0.5, {d})
torch.logcumsumexp({x}, {d})
{x}.cummax({d})[0]
{x}.argmax({d})
{x}.argsort({d}, stable=True)
{x}.sort({d}, descending=True).values
{x}.topk({n}, {d}).values
{x}.kthvalue(1, {d})[0]
{x}.median({d})[0]
torch.quantile({x}.float(), 0.25, dim={d})
torch.any({m}, {d})
{m}.sum({d})
torch.count_nonzero({x}, dim={d})
{x}.nanmean({d})
torch.diff({x}, dim={d})
torch.trapezoid({x}, dim={d})
torch.var_mean({x}, {d})[1]
torch.aminmax({x}, dim={d}).max
torch.histc({x}.detach(), 4, -2.03, 1.97)
torch.bincount({i}, minlength={n})
torch.renorm({x}, 2, {d}, {p})
F.normalize({x}, dim={d})
torch.dist({x}, {y} + 1)
"""

LAYERS = """
{x} @ {y}
{x} @ {x}.mT
{x}.mT @ {y}
torch.einsum('...i,...i->...', {x}, {y})
torch.einsum('...ij,...kj->...ik', {x}, {x})
torch.outer({x}.flatten()[:4], {y}.flatten()[:4])
torch.addmm({z}, {x}, {y}, beta={p})
torch.baddbmm({z}, {x}, {y}, alpha={p})
torch.tensordot({x}, {y}, dims=1)
torch.kron({x}[:2], {y}[:2])
F.linear({x}, {y})
F.linear({x}, torch.full((3, {x}.shape[-1]), {p}, dtype={x}.dtype), torch.ones(3, dtype={x}.dtype))
F.conv1d({x}[None, None].flatten(2), torch.full((2, 1, 2), {p}, dtype={x}.dtype), stride={n})
F.conv2d({x}.reshape(1, 1, -1, {x}.shape[-1]), torch.ones(2, 1, 1, 2, dtype={x}.dtype), padding=1)
F.conv_transpose1d({x}.reshape(1, 1, -1), torch.full((1, 2, 2), {p}, dtype={x}.dtype), stride=2)
F.avg_pool1d({x}.reshape(1, 1, -1), 2)
F.max_pool1d({x}.reshape(1, 1, -1), 2, stride=1)
F.max_pool2d({x}.reshape(1, -1, {x}.shape[-1]), 2, padding=1)
F.adaptive_avg_pool2d({x}.reshape(1, -1, {x}.shape[-1]), 2)
F.interpolate({x}.reshape(1, 1, -1), scale_factor=2, mode='linear')
F.interpolate({x}.reshape(1, 1, -1, {x}.shape[-1]), size=({n}, 3), mode='bilinear')
F.interpolate({x}.reshape(1, 1, -1, {x}.shape[-1]), size=({n}, 3))
F.layer_norm({x}, {x}.shape[-1:])
F.group_norm({x}.reshape(1, 2, -1), 2)
F.batch_norm({x}.reshape(-1, {x}.shape[-1]), None, None, training=True)
F.rms_norm({x}, {x}.shape[-1:])
F.softmax({x}, {d})
F.log_softmax({x}, {d})
F.softmin({x}, {d})
F.mse_loss({x}, {y})
F.smooth_l1_loss({x}, {y}, beta={p})
F.huber_loss({x}, {y}, delta={p}, reduction='sum')
F.cross_entropy({x}.reshape(-1, {x}.shape[-1]), {x}.detach().reshape(-1, {x}.shape[-1]).argmax(-1))
F.nll_loss(F.log_softmax({x}, -1), {i})
F.binary_cross_entropy_with_logits({x}, torch.sigmoid({y}))
F.kl_div(F.log_softmax({x}, -1), F.softmax({y}, -1), reduction='sum')
F.cosine_similarity({x}, {y} + {p}, dim={d})
F.embedding({i}, {x})
F.scaled_dot_product_attention({x}[None].flatten(2), {x}[None].flatten(2), {x}[None].flatten(2))
F.pad({x}, (1, {n}), value={f})
F.pad({x}, (-1, 1))
F.pad({x}.reshape(1, 1, -1), (1, 1), mode='reflect')
F.pad({x}.reshape(1, 1, -1), (1, {n}), mode='circular')
F.pixel_shuffle({x}.reshape(1, 4, 1, -1), 2)
F.dropout({x}, 0.0)
F.one_hot({i}).to({x}.dtype)
F.pairwise_distance({x}, {y})
torch.cdist({x}, {x} + {p})
F.unfold({x}.reshape(1, 1, -1, {x}.shape[-1]), (1, 2))
torch.linalg.inv({x} @ {x}.mT + torch.eye({x}.shape[-2], dtype={x}.dtype) * 3)
torch.linalg.cholesky({x} @ {x}.mT + torch.eye({x}.shape[-2], dtype={x}.dtype) * 3)
torch.linalg.solve({x} @ {x}.mT + torch.eye({x}.shape[-2], dtype={x}.dtype) * 5, {x})
torch.linalg.det({x}[..., :2, :2])
torch.fft.rfft({x}, dim={d}).abs()
torch.fft.irfft({x}, n=4, dim={d})
torch.view_as_real(torch.fft.fft({x}, dim={d}))
torch.complex({x}, {x}.flip(0)).abs()
"""

GATHERS = """
torch.cat([{x}, {y}], {d})
torch.cat([{x}, {x} * {f}], {d})
torch.stack([{x}, {x}.flip(0)], {d})
torch.hstack([{x}, {y}])
{x}.flip({d})
{x}.flip({d}, {e})
{x}.roll({n}, {d})
torch.rot90({x})
{x}.repeat({n}, *[1] * {x}.dim())
{x}.repeat_interleave(2, {d})
{x}.tile(2)
{x}.tril({k})
{x}.triu()
torch.diag_embed({x})
torch.block_diag({x}[:2], {y}[:2])
{x}.gather({d}, torch.zeros_like({x}, dtype=torch.int64))
{x}.gather({d}, {x}.argsort({d}, stable=True))
{x}.take_along_dim({x}.argmin({d}, keepdim=True), {d})
{x}.index_select({d}, {i0})
{x}[{i}]
{x}[..., {j}]
{x}[{i}, ..., None]
{x}[:, {k}, None]
{x}.take(torch.arange(3) % {x}.numel())
{x}.masked_fill({m}, {f})
{x}.masked_select({m})
{x}[{m}]
{x}.scatter({d}, torch.zeros_like({x}, dtype=torch.int64).narrow({d}, 0, 1), {f})
{x}.scatter_reduce({d}, torch.zeros_like({x}, dtype=torch.int64), {x} * {p}, 'amax')
{x}.scatter_add({d}, torch.zeros_like({x}, dtype=torch.int64), {x})
{x}.index_add({d}, {i0}, {x}.index_select({d}, {i0}))
{x}.select_scatter({x}.select({d}, 0) * {f}, {d}, {k})
{x}.slice_scatter({x}[:1] * {f}, 0, 0, 1)
{x}.diagonal_scatter({x}.diagonal() * {f})
torch.meshgrid({x}.flatten()[:3], {y}.flatten()[:2], indexing='ij')[0]
torch.cartesian_prod({x}.flatten()[:2], {y}.flatten()[:3])
torch.unique({x}.detach().round())
torch.searchsorted(({x}.detach() * 8).round().flatten().sort().values, ({y}.detach() * 8 + 0.5).contiguous())
torch.bucketize({x}.detach(), torch.tensor([-1.0, 0.0, 1.0], dtype={x}.dtype))
torch.nonzero({m})
torch.full_like({x}, {f})
torch.ones_like({x}) * {x}
{x}.new_full(({n}, 2), {f}) + {x}.mean()
torch.combinations({x}.flatten()[:4])
torch.cross({x}[..., :3], {y}[..., :3], dim=-1)
torch.vander({x}.flatten()[:4], 3)
torch.tensor({x}.shape) + 0.5
torch.linspace({f}, {p}, {n}, dtype=torch.float64)
"""

KINDS = """
{x}.double()
{x}.float()
{x}.to(torch.float64)
{x}.to({y}.dtype)
{x}.type_as({y})
{x}.half()
{x}.bfloat16()
({x} * 3).round().to(torch.int64)
({x} * 3).to(torch.int32) + {i}.sum()
{m}.to({x}.dtype)
{m}.float() * {x}
{x}.clone()
{x}.contiguous()
{x}.clone(memory_format=torch.contiguous_format)
{x}.reshape(1, 1, -1, {x}.shape[-1]).contiguous(memory_format=torch.channels_last)
{x}.detach().clone().requires_grad_()
{x}.item() if {x}.numel() == 1 else {x} * 1
"""

WRAPPED = """
with torch.no_grad():\n    {statement}
with torch.autocast('cpu', torch.bfloat16):\n    {statement}
{out} = torch.vmap(lambda a: {inner})({x})
{out} = torch.vmap(lambda a: {inner}, in_dims={d}, out_dims=-1)({x})
{out} = torch.vmap(lambda a, b: {inner} + b)({x}, {y})
{out} = torch.func.grad(lambda a: ({inner}).double().sum())({x})
{out} = torch.func.vjp(lambda a: {inner}, {x})[0]
{out} = torch.func.jvp(lambda a: {inner}, ({x},), (torch.ones_like({x}),))[1]
{out} = torch.vmap(torch.func.grad(lambda a: ({inner}).double().sum()))({x})
{out} = torch.func.hessian(lambda a: ({inner}).double().sum())({x}.flatten()[:3])
{out} = torch.utils.checkpoint.checkpoint(lambda a: {inner}, {x}, use_reentrant=False)
{out} = torch.autograd.grad(({x} * {x}).sum() + {y}.sum() * 0, {x}, create_graph=True)[0]
"""


def templates(text):
    return [line.replace("\\n", "\n").replace("V(", "W({x}.dtype, ") for line in text.strip().splitlines()]


# What computes a value, and how often it is drawn; the first TAKE_FLOATS need no tensor of another kind.
PURE = [
    templates(text)
    for text in (POINTWISE, VIEWS, REDUCTIONS, LAYERS, GATHERS, kinds.STEPS, kinds.WEIGHTED)
    + (KINDS, kinds.COMPLEX, kinds.INTEGERS, kinds.TRUTH)
]
TAKE_FLOATS = 7
WEIGHTS = 5, 5, 3, 3, 3, 4, 3, 1, 3, 3, 2
WRITING = [
    templates(text)
    for text in (WRITES, kinds.OUT_WRITES, kinds.COMPLEX_WRITES, kinds.INTEGER_WRITES, kinds.TRUTH_WRITES)
]
WRITING_WEIGHTS = 4, 4, 1, 1, 1
AROUND = templates(WRAPPED)
# A layer's weights, of any shape.
HELPER = """def W(dtype, shape):
    count = 1
    for size in shape:
        count *= size
    return torch.linspace(-0.7, 0.9, count, dtype=torch.float64).to(dtype).reshape(shape)
"""
HEAD = "import torch\nimport torch.nn.functional as F\nimport torch.utils.checkpoint\n" + HELPER
SHAPES = [
    (),
    (1,),
    (4,),
    (6,),
    (17,),
    (2, 3),
    (3, 3),
    (4, 6),
    (1, 5),
    (2, 35),
    (0, 3),
    (2, 4, 3),
    (3, 1, 2),
    (2, 2, 4, 4),
]
DTYPES = [
    *(["float64"], ["float64"], ["float32"], ["float32", "float64"], ["float32", "bfloat16"]),
    *(
        ["float64", "complex128"],
        ["float32", "complex64"],
        ["float64", "int64"],
        ["float32", "int32", "bool"],
    ),
    *(["float16", "float32"], ["float64", "uint8", "bool"]),
]


# How PyTorch refuses a statement.
REFUSALS = (
    RuntimeError,
    TypeError,
    ValueError,
    IndexError,
    ArithmeticError,
    AttributeError,
    AssertionError,
    SyntaxError,
    LookupError,
    NameError,
    Warning,
)
# Where PyTorch writes to several elements that lie at one place, what it gives depends on the order.
AMBIGUOUS = "Use of .* on expanded tensors is deprecated|.*which does not own its memory|.*have overlapping"


class Writer:
    """Makes one program; `module` is PyTorch, which tries each statement."""

    def __init__(self, module, seed, length):
        self.rng, self.module = random.Random(seed), module
        self.kinds = self.rng.choice(DTYPES)
        self.inputs, self.lines, self.count = [], [], 0
        for name in "abc"[: self.rng.randint(1, 3)]:
            shape = self.rng.choice(SHAPES)
            kind = self.rng.choice(self.kinds) if self.inputs else self.kinds[0]
            grad = re.match("float|bfloat|complex", kind) is not None and self.rng.random() < 0.7
            self.inputs.append((name, shape, kind, grad))
        self.restart()
        tries = 0
        while len(self.lines) < length and tries < 12 * length:
            tries += 1
            self.attempt()

    def restart(self):
        self.space = run(self.module, self.inputs, self.lines)[1]

    def tensors(self):
        """The names of the tensors of each kind, in order."""
        held = {"x": [], "c": [], "w": [], "q": []}
        for name, value in self.space.items():
            if isinstance(value, self.module.Tensor) and not name.endswith("_in"):
                held[kind_of(self.module, value)].append(name)
        return held

    def fill(self, template):
        """The template with names and numbers; the last tensors are preferred, so that chains grow."""
        rng, held = self.rng, self.tensors()
        first = found[1] if (found := re.search(r"\{([xcwq])2?\}", template)) else "x"
        recent = held[first][-3:] if rng.random() < 0.6 else held[first]
        if not recent:
            raise LookupError(first)
        main = rng.choice(recent)
        shape = self.space[main].shape

        def another(kind):
            alike = [k for k in held[kind] if self.space[k].shape == shape]
            others = alike if rng.random() < 0.7 and alike else held[kind]
            return rng.choice(others) if others else "missing"

        names = {kind: main if kind == first else another(kind) for kind in "xcwq"}
        x = names["x"]
        dims = range(-len(shape), len(shape)) if len(shape) else [0, -1]
        size = shape[0] if len(shape) else 1
        values = {
            **names,
            **{kind + "2": another(kind) for kind in "cwq"},
            "y": another("x"),
            "z": another("x"),
            "d": rng.choice(dims),
            "e": rng.choice(dims),
            "k": rng.choice([0, 1, -1]),
            "n": rng.randint(1, 3),
            "f": round(rng.uniform(-2, 2), 2),
            "p": round(rng.uniform(0.1, 1.5), 2),
            "perm": ", ".join(map(str, rng.sample(range(len(shape)), len(shape)))),
            "m": f"({x} > {round(rng.uniform(-1, 1), 3)})",
            "i": f"torch.tensor({[rng.randrange(size) for _ in range(min(size, 3))]}, dtype=torch.int64)",
            "i0": "torch.tensor([0])",
            "j": f"torch.tensor({[rng.choice([0, -1]) for _ in range(2)]})",
        }
        if "{inner}" in template:
            inner = rng.choice(rng.choices(PURE[:TAKE_FLOATS], WEIGHTS[:TAKE_FLOATS])[0])
            values["inner"] = inner.format(**{**values, "x": "a"})
        if "{statement}" in template:
            values["statement"] = self.statement(wrapped=False)
        if "{out}" in template:
            self.count += 1
            values["out"] = f"v{self.count}"
        return template.format(**values)

    def statement(self, wrapped=True):
        kind = self.rng.random()
        if kind < 0.22:
            return self.fill(self.rng.choice(self.rng.choices(WRITING, WRITING_WEIGHTS)[0]))
        if kind < 0.3 and wrapped:
            return self.fill(self.rng.choice(AROUND))
        text = self.fill(self.rng.choice(self.rng.choices(PURE, WEIGHTS)[0]))
        self.count += 1
        return f"v{self.count} = {text}"

    def attempt(self):
        try:
            line = self.statement()
        except LookupError:
            return
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                warnings.filterwarnings("error", message=AMBIGUOUS)
                exec(line, self.space)
            new = [v for v in self.space.values() if isinstance(v, self.module.Tensor)]
            kept = all(self.tame(v) for v in new)
        except REFUSALS:
            kept = False
        if kept:
            self.lines.append(line)
        else:
            self.restart()

    def tame(self, value):
        if value.numel() > 600 or value.dim() > 5:
            return False
        plain = value.detach().resolve_conj()
        plain = (self.module.view_as_real(plain) if plain.is_complex() else plain).double()
        return bool(self.module.isfinite(plain).all()) and (
            not plain.numel() or float(plain.abs().max()) < 300
        )


def kind_of(module, value):
    """The letter of its kind in a template."""
    if value.is_floating_point():
        return "x"
    return "c" if value.is_complex() else "q" if value.dtype == module.bool else "w"


def run(module, inputs, lines):
    """(the leaves, the names) after the statements."""
    space, leaves = {"torch": module, "F": module.nn.functional}, []
    exec(HELPER, space)
    for name, tensor in leaf_tensors(module, inputs):
        leaves.append(tensor)
        space[name + "_in"] = tensor
        space[name] = tensor.clone()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for line in lines:
            exec(line, space)
    return leaves, space


def leaf_tensors(module, inputs, batch=()):
    module.manual_seed(len(inputs))
    for name, shape, kind, grad in inputs:
        yield name, eval(leaf_text([*batch, *shape], kind, grad), {"torch": module})


def leaf_text(shape, kind, grad):
    """How a tensor of inputs is made."""
    drawn = f"torch.randn({tuple(shape)}, dtype=torch.float64)"
    if kind.startswith("complex"):
        drawn = f"torch.randn({tuple(shape)}, dtype=torch.complex128)"
    elif kind == "bool":
        return f"({drawn} > 0)"
    elif "int" in kind:
        return f"({drawn} * 3){'.abs()' if kind[0] == 'u' else ''}.to(torch.{kind})"
    return f"{drawn}.to(torch.{kind}).requires_grad_({grad})"


def source(inputs, lines):
    """The program as a function of its inputs, with what it returns: every name, in order."""
    names = [name for name, *_ in inputs]
    body = [f"{name} = {name}_in.clone()" for name in names] + [
        part for line in lines for part in line.split("\n")
    ]
    made = {int(found[1]) for line in body if (found := re.match(r" *v(\d+) = ", line))}
    returned = [*names, *(f"v{number}" for number in sorted(made))]
    text = [f"def f({', '.join(name + '_in' for name in names)}):", *("    " + line for line in body)]
    return "\n".join([*text, f"    return {', '.join(returned)},"])

"""Random programs over tensors, as text, for random_programs.py.

A program is a list of statements over named tensors. Each is filled in from a template and tried with
PyTorch: a statement that it refuses, or whose result is not finite, large or long, is dropped. What remains
runs anywhere.
"""

import random
import re
import warnings
from pathlib import Path


def templates():
    """{section: its templates} of the text beside this file."""
    found = {}
    for section in Path(__file__).with_suffix(".txt").read_text().split("\n=== ")[1:]:
        title, _, body = section.partition("\n")
        lines = body.strip().replace("V(", "W({x}.dtype, ").splitlines()
        found[title] = [line.replace("\\n", "\n") for line in lines]
    return found


TEMPLATES = templates()
# What computes a value, and how often it is drawn; the first TAKE_FLOATS need no tensor of another kind.
WEIGHTS = {
    **{"pointwise": 5, "views": 5, "reductions": 3, "layers": 3, "gathers": 3, "steps": 4, "weighted": 3},
    **{"rarer": 6, "kinds": 1, "complex": 3, "integers": 3, "truth": 2, "layouts": 3, "lists": 1},
}
TAKE_FLOATS = 8
WRITING_WEIGHTS = {
    **{"writes": 4, "out_writes": 4, "rarer_writes": 4, "list_writes": 1},
    **{"complex_writes": 2, "integer_writes": 1, "truth_writes": 1},
}
PURE = [TEMPLATES[name] for name in WEIGHTS]
WRITING = [TEMPLATES[name] for name in WRITING_WEIGHTS]
AROUND = ("wrapped", "nested_transforms", "gradients")
# A layer's weights, of any shape, and operators with derivatives of their own: one that autocasting leaves in
# float32, one that transforms may enter.
HELPER = """def W(dtype, shape):
    count = 1
    for size in shape:
        count *= size
    return torch.linspace(-0.7, 0.9, count, dtype=torch.float64).to(dtype).reshape(shape)


class Product(torch.autograd.Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b

    @staticmethod
    @torch.amp.custom_bwd(device_type="cpu")
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        return (grad * b).sum_to_size(a.shape).to(a.dtype), (grad * a).sum_to_size(b.shape).to(b.dtype)


class Cubed(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(a):
        return a * a * a

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, grad):
        (a,) = ctx.saved_tensors
        return 3 * a * a * grad

    @staticmethod
    def jvp(ctx, tangent):
        (a,) = ctx.saved_tensors
        return 3 * a * a * tangent


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
    *(["float16", "float32"], ["float64", "uint8", "bool"], ["bfloat16", "float16", "int8"]),
    *(["complex128", "complex64"], ["complex64", "float16", "int16"]),
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

    def __init__(self, module, seed, length, left_out=()):
        self.weights = [0 if name in left_out else weight for name, weight in WEIGHTS.items()]
        self.around = [TEMPLATES[name] for name in AROUND if name not in left_out]
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
        self.others = self.space.keys() - self.named().keys()

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
            inner = rng.choice(rng.choices(PURE[:TAKE_FLOATS], [*WEIGHTS.values()][:TAKE_FLOATS])[0])
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
            self.writes = True
            return self.fill(self.rng.choice(self.rng.choices(WRITING, WRITING_WEIGHTS.values())[0]))
        if kind < 0.34 and wrapped:
            self.writes = True
            return self.fill(self.rng.choice(self.rng.choice(self.around)))
        text = self.fill(self.rng.choice(self.rng.choices(PURE, self.weights)[0]))
        self.count += 1
        return f"v{self.count} = {text}"

    def attempt(self):
        self.writes = False
        try:
            line = self.statement()
        except LookupError:
            return
        before = {name: self.state(v) for name, v in self.named().items()}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                warnings.filterwarnings("error", message=AMBIGUOUS)
                exec(line, self.space)
            unlike = lambda name, v: self.writes or before.get(name) != self.state(v)
            kept = all(self.tame(v) for name, v in self.named().items() if unlike(name, v))
        except REFUSALS:
            kept = False
        if kept:
            self.lines.append(line)
        elif self.writes:  # what it wrote to is gone
            self.restart()
        else:
            for name in self.space.keys() - before.keys() - self.others:
                del self.space[name]

    @staticmethod
    def state(value):
        """What is another one where a tensor, or what it holds, is."""
        return id(value), None if value.is_inference() else value._version

    def named(self):
        return {name: v for name, v in self.space.items() if isinstance(v, self.module.Tensor)}

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
    module.default_generator.manual_seed(len(inputs))  # that of GPUs keeps a stack of each call
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

"""Chains of pointwise operators become one node, which passes over memory once."""

import math
import operator

import rushlight as torch
from rushlight import _C
from rushlight._operators.traits import argument
from rushlight.fx import Node
from rushlight.fx.node import map_arg

from ._layouts import laid_out, memory_order, permuted
from ._passes import has_effects, remove_dead
from ._rows import RowStep, emit_rows, row_shape, row_step
from ._siblings import join_siblings

__all__ = ["fuse_pointwise", "is_costly", "pointwise_nodes"]

aten = torch.ops.aten  # type: ignore[attr-defined]
_CHOOSE = -1
_MAX_STEPS = 32
_MAX_LATE = 1
_DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)

# Operators that are a formula of their tensors, without parameters.
_PLAIN = {
    "add.Tensor": "Add", "sub.Tensor": "Sub", "mul.Tensor": "Mul", "div.Tensor": "Div", "neg": "Neg",
    "maximum": "Maximum", "minimum": "Minimum", "abs": "Abs", "square": "Square", "sqrt": "Sqrt",
    "rsqrt": "Rsqrt", "reciprocal": "Reciprocal", "exp": "Exp", "expm1": "Expm1", "log": "Log",
    "log1p": "Log1p", "sin": "Sin", "cos": "Cos", "erf": "Erf", "tanh": "Tanh", "sigmoid": "Sigmoid",
    "log_sigmoid": "LogSigmoid", "relu": "Relu", "silu": "Silu", "mish": "Mish", "hardswish": "Hardswish",
    "hardsigmoid": "Hardsigmoid", "sigmoid_backward": "SigmoidBackward", "tanh_backward": "TanhBackward",
    "silu_backward": "SiluBackward", "mish_backward": "MishBackward",
    "hardsigmoid_backward": "HardsigmoidBackward", "hardswish_backward": "HardswishBackward",
    "exp2": "Exp2", "log2": "Log2", "log10": "Log10", "tan": "Tan", "sinh": "Sinh", "cosh": "Cosh",
    "asin": "Asin", "acos": "Acos", "atan": "Atan", "asinh": "Asinh", "acosh": "Acosh", "atanh": "Atanh",
    "erfc": "Erfc", "floor": "Floor", "ceil": "Ceil", "trunc": "Trunc", "sign": "Sign", "atan2": "Atan2",
    "hypot": "Hypot", "fmax": "Fmax", "fmin": "Fmin",
    "lt.Tensor": "Lt", "le.Tensor": "Le", "eq.Tensor": "Eq", "ne.Tensor": "Ne",
}  # fmt: skip
# Formulas of the first parameters, tensors, with the numbers that follow as theirs.
_WITH_NUMBERS = {
    "leaky_relu": "LeakyRelu", "leaky_relu_backward": "LeakyReluBackward",
    "threshold": "Threshold", "threshold_backward": "ThresholdBackward",
    "softplus": "Softplus", "softplus_backward": "SoftplusBackward",
    "hardtanh": "Clamp", "hardtanh_backward": "HardtanhBackward",
}  # fmt: skip
_POWERS = {2: "Square", 3: "Cube", 0.5: "Sqrt", -0.5: "Rsqrt", -1: "Reciprocal"}
_TURNED = {"gt.Tensor": "Lt", "ge.Tensor": "Le"}


def _formula(name):
    """The number of a formula, or None where there is none of that name."""
    return _formula_numbers().get(name)


_numbers: dict = {}


def is_costly(step):
    """Whether a step takes so long that reading its result is faster."""
    return step.formula == _formula("Pow")


def _formula_numbers():
    if not _numbers:
        _numbers.update((name, i) for i, name in enumerate(_C._formula_names()))
    return _numbers


class _Step:
    """A node as a formula: operands are nodes or numbers."""

    def __init__(self, formula, operands, parameters=()):
        self.formula, self.operands, self.parameters = formula, operands, parameters


def _step(node):
    """How a node is computed, or None if it is no formula."""
    target = node.target
    if node.op != "call_function" or getattr(target, "namespace", None) != "aten" or target._entry.form != 0:
        return None
    name, args, kwargs = target._opname, list(node.args), dict(node.kwargs)
    overload = target._entry.second_name or target._overloadname
    full = name if overload == "default" else f"{name}.{overload}"
    if full in _PLAIN:
        if kwargs.pop("alpha", 1) != 1 or kwargs or len(args) > 2:
            return None
        return _Step(_formula(_PLAIN[full]), args)
    if full in _TURNED and len(args) == 2 and not kwargs:
        return _Step(_formula(_TURNED[full]), args[::-1])
    if name == "pow" and len(args) == 2 and not kwargs and isinstance(args[0], Node):
        return _power(*args)
    if name == "gelu" and len(args) == 1:
        form = {"none": "GeluErf", "tanh": "GeluTanh"}.get(kwargs.get("approximate", "none"))
        return _Step(_formula(form), args) if form else None
    if name == "gelu_backward" and len(args) == 2:
        form = {"none": "GeluErfBackward", "tanh": "GeluTanhBackward"}.get(kwargs.get("approximate", "none"))
        return _Step(_formula(form), args) if form else None
    if full in _WITH_NUMBERS:
        parameters = target._schema.arguments
        values = [argument(target, i, args, kwargs) for i in range(len(parameters))]
        tensors = sum(str(parameter.type) == "Tensor" for parameter in parameters)
        return _Step(_formula(_WITH_NUMBERS[full]), values[:tensors], values[tensors:])
    if name == "clamp" and target._overloadname == "default":
        return _clamp(args, kwargs)
    if full == "where.self" and len(args) == 3:
        return _Step(_CHOOSE, args)
    if name == "masked_fill" and len(args) == 3 and not isinstance(args[2], Node):
        return _Step(_CHOOSE, [args[1], args[2], args[0]])
    return None


def _power(base, exponent):
    special = _POWERS.get(exponent) if type(exponent) in (int, float) else None
    if special is not None:
        return _Step(_formula(special), [base])
    wide = _value(base).dtype in (torch.float32, torch.float64)  # halves have the number itself as exponent
    return _Step(_formula("Pow"), [base, exponent]) if wide and exponent != 1 else None


def _clamp(args, kwargs):
    low = args[1] if len(args) > 1 else kwargs.get("min")
    high = args[2] if len(args) > 2 else kwargs.get("max")
    if low is None and high is None:
        return None
    form = "Clamp" if low is not None and high is not None else "ClampMin" if high is None else "ClampMax"
    return _Step(_formula(form), args[:1], [v for v in (low, high) if v is not None])


def _value(node):
    return node.meta.get("val")


def _is_number(value):
    return type(value) in (int, float) and (type(value) is float or abs(value) < 1 << 24)


def _factors_fit(step, dtype):
    """Chains round numbers to their dtype, but halves are multiplied and divided by the number itself."""
    if dtype not in (torch.bfloat16, torch.float16) or step.formula not in (_formula("Mul"), _formula("Div")):
        return True
    numbers = [a for a in step.operands if not isinstance(a, Node)]
    return all(torch.tensor(a, dtype=dtype).item() == a for a in numbers)


def _has_images(graph):
    """Whether there may be images, which have layouts of their own."""
    return any("conv" in getattr(n.target, "_opname", "") for n in graph.nodes)


def _accepted(node, images, device):
    """The step of a node that may be part of a chain."""
    value = _value(node)
    if not isinstance(value, torch.Tensor) or (images and value.dim() == 4):
        return None
    if value.device.type != device:  # such as a number on the CPU in a graph of another device
        return None
    found = row_step(node, device)
    if found is not None and _value(found.operands[0]).dtype in _DTYPES:
        return None if images and _value(found.operands[0]).dim() == 4 else found
    step = _step(node)
    if step is None or step.formula is None or not all(map(_is_number, step.parameters)):
        return None
    choosing = step.formula == _CHOOSE
    tensors = [a for a in step.operands if isinstance(a, Node)]
    if not tensors or any(not isinstance(a, Node) and not _is_number(a) for a in step.operands):
        return None
    dtypes = {_value(a).dtype for a in (tensors[1:] if choosing else tensors)}
    if choosing and (not isinstance(step.operands[0], Node) or _value(step.operands[0]).dtype != torch.bool):
        return None
    if len(dtypes) != 1 or not dtypes <= set(_DTYPES) or value.dtype not in (torch.bool, *dtypes):
        return None
    return step if _factors_fit(step, dtypes.pop()) else None


def pointwise_nodes(graph, device):
    """Nodes of a graph that may be steps of a chain over elements, with these."""
    images = _has_images(graph)
    calls = (n for n in graph.nodes if n.op == "call_function" and not has_effects(n))
    steps = {node: _accepted(node, images, device) for node in calls}
    found = {node: step for node, step in steps.items() if step is not None}
    return {node: step for node, step in found.items() if not isinstance(step, RowStep)}


class _Chain:
    def __init__(self, dtype, shape):
        self.dtype, self.shape = dtype, shape
        self.nodes: dict = {}  # node -> its step, in order
        self.by_row: set = set()  # those with one element for each row
        self.closed: set = set()  # those of them that lack the dimension: for others only
        self.walks_rows = False  # some step is of rows

    def add(self, node, step):
        self.nodes[node] = step
        if isinstance(step, RowStep):
            self.walks_rows = True
            if step.reduces:
                self.by_row.add(node)
            if not step.keeps:
                self.closed.add(node)

    def absorb(self, other):
        self.nodes = {**other.nodes, **self.nodes}
        self.by_row |= other.by_row
        self.closed |= other.closed
        self.walks_rows |= other.walks_rows

    def fits(self, other, node, operand):
        """Whether the node, alone or with chains before it, may join another chain that makes its operand."""
        if operand in other.closed or self.dtype != other.dtype:
            return False
        if any(a in other.closed for a in self.nodes[node].operands if isinstance(a, Node)):
            return False
        if self.shape == other.shape:  # numbers are repeated along rows, truth values are not
            operands = [a for a in self.nodes[node].operands if isinstance(a, Node)]
            return not any(a in other.by_row and _value(a).dtype == torch.bool for a in operands)
        alone = len(self.nodes) == 1 and not self.walks_rows and operand in other.by_row
        return alone and self.shape == row_shape(other.shape)


def _computes_in(node, step):
    operand = next(a for a in step.operands[step.formula == _CHOOSE :] if isinstance(a, Node))
    return _value(operand).dtype


def _find_chains(graph, position, device):
    chain_of: dict = {}
    chains: list = []
    epoch = 0  # writes separate chains: what reads before must not move behind
    epochs: dict = {}
    images = _has_images(graph)
    for node in graph.nodes:
        epochs[node] = epoch
        if node.op == "call_function" and has_effects(node):
            epoch += 1
            continue
        step = _accepted(node, images, device)
        if step is None:
            continue
        whole = step.operands[0] if isinstance(step, RowStep) else node
        made = _Chain(_computes_in(node, step), tuple(_value(whole).shape))
        made.add(node, step)
        for operand in dict.fromkeys(a for a in step.operands if isinstance(a, Node)):
            other = chain_of.get(operand)
            if (
                other is not None
                and other is not made
                and made.fits(other, node, operand)
                and _may_join(other, made, node, epochs, position, chain_of)
            ):
                if made.shape != other.shape:
                    made.shape = other.shape
                    made.by_row.add(node)
                made.absorb(other)
                chain_of.update(dict.fromkeys(other.nodes, made))
                chains.remove(other)
        chains.append(made)
        for member in made.nodes:
            chain_of[member] = made
    position.update(join_siblings(graph, chains, chain_of, epochs, _MAX_STEPS))
    return [chain for chain in chains if len(chain.nodes) > 1]


def _may_join(chain, made, node, epochs, position, chain_of):
    """Whether a chain may be computed where the node stands, together with it."""
    if len(chain.nodes) + len(made.nodes) > _MAX_STEPS:
        return False
    if any(epochs[member] != epochs[node] for member in chain.nodes):
        return False
    first = min(position[member] for member in chain.nodes)
    steps = (*chain.nodes.values(), *made.nodes.values())
    operands = {a for step in steps for a in step.operands if isinstance(a, Node)}
    late = [a for a in operands if position[a] > first and a is not node and a not in chain_of]
    if len(late) > _MAX_LATE:  # all of them would be kept until the last one is there
        return False
    users = (user for member in chain.nodes for user in member.users if user not in chain.nodes)
    return all(position[user] >= position[node] or user in made.nodes for user in users)


def _emit(graph, chain, position, replaced):
    """One node in place of a chain's; `replaced` tells what stands for the results of chains before it."""
    for step in chain.nodes.values():
        step.operands = [replaced.get(a, a) if isinstance(a, Node) else a for a in step.operands]
    members = sorted(chain.nodes, key=position.__getitem__)
    outputs = [m for m in members if any(user not in chain.nodes for user in m.users)]
    if chain.walks_rows:
        fused, parts = emit_rows(graph, chain, members, outputs)
    else:
        fused, parts = _emit_elements(graph, chain, members, outputs)
    for member, part in zip(outputs, parts):
        replaced[member] = part
        member.replace_all_uses_with(part, lambda user: user not in chain.nodes and user is not fused)
    for member in reversed(members):
        graph.erase_node(member)


def _emit_elements(graph, chain, members, outputs):
    """The node of a chain of pointwise operators, and what stands for its outputs."""
    inputs: list = []
    numbers: list = []
    for member in members:
        step = chain.nodes[member]
        for operand in step.operands:
            if isinstance(operand, Node) and operand not in chain.nodes and operand not in inputs:
                inputs.append(operand)
        numbers += [float(v) for v in (*step.operands, *step.parameters) if not isinstance(v, Node)]
    table = _distinct(numbers)
    registers = {node: i for i, node in enumerate(inputs)}
    first_step = len(inputs) + len(table)

    def number(value):
        return next(i for i, known in enumerate(table) if _same(known, float(value)))

    code = [len(members)]
    for i, member in enumerate(members):
        step = chain.nodes[member]
        code.append(step.formula)
        code += [registers[a] if isinstance(a, Node) else len(inputs) + number(a) for a in step.operands]
        code += [number(p) for p in step.parameters]
        registers[member] = first_step + i
    code += [len(outputs), *(registers[m] for m in outputs)]
    order = memory_order(_value(outputs[0]))
    with graph.inserting_after(members[-1]):
        fused = graph.call_function(aten._fused_pointwise.default, (inputs, code, table, chain.dtype))
    if order is not None:
        with graph.inserting_before(fused):
            fused.args = ([permuted(graph, a, order) for a in inputs], *fused.args[1:])
    fused.meta["val"] = [_value(m) if order is None else _value(m).permute(order) for m in outputs]
    parts, before = [], fused
    for i, member in enumerate(outputs):
        with graph.inserting_after(before):
            before = graph.call_function(operator.getitem, (fused, i))
        before.meta["val"] = fused.meta["val"][i].contiguous()
        before = laid_out(graph, before, order, _value(member))
        parts.append(before)
    return fused, parts


def _same(a, b):
    return a == b and math.copysign(1, a) == math.copysign(1, b) or (a != a and b != b)


def _distinct(numbers):
    table: list = []
    for value in numbers:
        if not any(_same(known, value) for known in table):
            table.append(value)
    return table


def _read_unexpanded(graph, device):
    """Let steps read what is repeated to their shape where it lies: they repeat it themselves."""
    steps = pointwise_nodes(graph, device)
    for node in [n for n in graph.nodes if n in steps]:
        for operand in [n for n in node.all_input_nodes if n.target is aten.expand.default]:
            source, operands = operand.args[0], node.all_input_nodes
            if operands == [operand]:
                _expand_behind(graph, node, operand)
                continue
            others = [_value(source if n is operand else n).shape for n in operands]
            if tuple(torch.broadcast_shapes(*others)) == tuple(_value(node).shape):
                node.replace_input_with(operand, source)
    remove_dead(graph)


def _expand_behind(graph, node, expanded):
    """f(expand(x)) becomes expand(f(x))."""
    node.replace_input_with(expanded, expanded.args[0])
    shape = list(_value(node).shape)
    arguments, named = map_arg((node.args, node.kwargs), _value)
    node.meta["val"] = node.target(*arguments, **named)
    with graph.inserting_after(node):
        made = graph.call_function(aten.expand.default, (node, shape))
    made.meta["val"] = _value(node).expand(shape)
    node.replace_all_uses_with(made, lambda user: user is not made)


def fuse_pointwise(graph, device="cpu"):
    """Fuse what can be fused on a type of device; returns how many chains there were."""
    _read_unexpanded(graph, device)
    position = {node: i for i, node in enumerate(graph.nodes)}
    chains = _find_chains(graph, position, device)
    replaced: dict = {}
    for chain in sorted(chains, key=lambda chain: max(position[member] for member in chain.nodes)):
        _emit(graph, chain, position, replaced)
    return len(chains)

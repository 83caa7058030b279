"""``FlopCounterMode``: floating-point operations of a program, by module and operator.

A multiplication with the addition that follows counts as two. Counted are products, convolutions and
attention: what dominates in practice.
"""

import warnings
from collections import defaultdict
from functools import wraps
from math import prod
from typing import Any

import rushlight as torch
from rushlight.utils._python_dispatch import TorchDispatchMode

__all__ = ["FlopCounterMode", "register_flop_formula"]

aten = torch.ops.aten  # type: ignore[attr-defined]
flop_registry: dict = {}


def shape_wrapper(f):
    @wraps(f)
    def counted(*args, out_val=None, **kwargs):
        args, kwargs, out = _shapes((args, kwargs, out_val))
        return f(*args, out_shape=out, **kwargs)

    return counted


def _shapes(value):
    if isinstance(value, torch.Tensor):
        return value.shape
    if isinstance(value, (tuple, list)):
        return (
            type(value)(map(_shapes, value)) if type(value) in (tuple, list) else tuple(map(_shapes, value))
        )
    return {k: _shapes(v) for k, v in value.items()} if isinstance(value, dict) else value


def register_flop_formula(targets, get_raw=False):
    """Count operators by ``formula(*shapes, out_shape=...)``; with ``get_raw`` by the arguments."""

    def register(formula):
        formula = formula if get_raw else shape_wrapper(formula)
        for target in targets if isinstance(targets, (list, tuple)) else [targets]:
            if not isinstance(target, torch._ops.OpOverloadPacket):
                raise ValueError(
                    f"register_flop_formula(targets): expected each target to be OpOverloadPacket (i.e. "
                    f"torch.ops.mylib.foo), got {target} which is of type {type(target)}"
                )
            if target in flop_registry:
                raise RuntimeError(f"duplicate registrations for {target}")
            flop_registry[target] = formula
        return formula

    return register


def _packets(*names):
    return [getattr(aten, name) for name in names]


@register_flop_formula(_packets("mm"))
def mm_flop(a_shape, b_shape, *args, out_shape=None, **kwargs):
    """(m, k) times (k, n)."""
    m, k = a_shape
    k2, n = b_shape
    if k != k2:
        raise AssertionError(f"matmul: inner dimensions must match (k == k2), got {k} and {k2}")
    return m * n * 2 * k


@register_flop_formula(_packets("addmm"))
def addmm_flop(self_shape, a_shape, b_shape, out_shape=None, **kwargs):
    return mm_flop.__wrapped__(a_shape, b_shape)


@register_flop_formula(_packets("bmm"))
def bmm_flop(a_shape, b_shape, out_shape=None, **kwargs):
    b, m, k = a_shape
    _, _, n = b_shape
    return b * m * n * 2 * k


@register_flop_formula(_packets("baddbmm"))
def baddbmm_flop(self_shape, a_shape, b_shape, out_shape=None, **kwargs):
    return bmm_flop.__wrapped__(a_shape, b_shape)


@register_flop_formula(_packets("mv"))
def mv_flop(a_shape, b_shape, out_shape=None, **kwargs):
    return 2 * prod(a_shape)


def conv_flop_count(x_shape, w_shape, out_shape, transposed=False):
    """Every element of the output (of the input when transposed) meets a whole filter."""
    batch = x_shape[0]
    positions = (x_shape if transposed else out_shape)[2:]
    c_out, c_in, *filter_size = w_shape
    return prod(positions) * prod(filter_size) * batch * c_out * c_in * 2


@register_flop_formula(_packets("convolution", "_convolution"))
def conv_flop(
    x_shape, w_shape, _bias, _stride, _padding, _dilation, transposed, *args, out_shape=None, **kwargs
):
    return conv_flop_count(x_shape, w_shape, out_shape, transposed=transposed)


@register_flop_formula(_packets("_conv_input_gradient"))
def conv_input_gradient_flop(grad_shape, w_shape, *args, out_shape=None, **kwargs):
    transposed = _transposed(args)
    return conv_flop_count(out_shape, w_shape, grad_shape, transposed)


@register_flop_formula(_packets("_conv_weight_gradient"))
def conv_weight_gradient_flop(grad_shape, x_shape, *args, out_shape=None, **kwargs):
    return conv_flop_count(x_shape, out_shape, grad_shape, _transposed(args))


def _transposed(args):
    return next((a for a in args if isinstance(a, bool)), False)


def sdpa_flop_count(query_shape, key_shape, value_shape):
    """Two products: queries with keys, and scores with values."""
    b, h, s_q, d_q = query_shape
    _, _, s_k, _ = key_shape
    _, _, _, d_v = value_shape
    return bmm_flop.__wrapped__((b * h, s_q, d_q), (b * h, d_q, s_k)) + bmm_flop.__wrapped__(
        (b * h, s_q, s_k), (b * h, s_k, d_v)
    )


@register_flop_formula(
    _packets(
        "_scaled_dot_product_flash_attention_for_cpu",
        "_scaled_dot_product_efficient_attention",
    )
)
def sdpa_flop(query_shape, key_shape, value_shape, *args, out_shape=None, **kwargs):
    return sdpa_flop_count(query_shape, key_shape, value_shape)


class _ModuleNames:
    """Which modules are running their forward or backward pass, by name."""

    def __init__(self):
        self._known = {}
        self.parents = ["Global"]
        self._handles = []

    def _name(self, module):
        if module not in self._known:
            self._known[module] = type(module).__name__
            for name, child in module.named_modules(prefix=self._known[module]):
                self._known.setdefault(child, name)
        return self._known[module]

    def _push(self, name):
        self.parents.append(name)

    def _pop(self, name):
        for i in range(len(self.parents) - 1, 0, -1):  # hooks of one tensor run in any order
            if self.parents[i] == name:
                del self.parents[i]
                return

    def _before(self, module, inputs):
        name = self._name(module)
        self._push(name)
        tensors = [t for t in _tensors(inputs) if t.requires_grad]
        if tensors and torch.is_grad_enabled():
            torch.autograd.graph.register_multi_grad_hook(tensors, lambda grads: self._pop(name))

    def _after(self, module, inputs, output):
        name = self._name(module)
        self._pop(name)
        for t in _tensors(output)[:1]:
            if t.requires_grad:
                t.register_hook(lambda grad: self._push(name))

    def __enter__(self):
        from rushlight.nn.modules.module import (
            register_module_forward_hook,
            register_module_forward_pre_hook,
        )

        self.parents = ["Global"]
        self._handles = [
            register_module_forward_pre_hook(self._before),
            register_module_forward_hook(self._after, always_call=True),
        ]
        return self

    def __exit__(self, *exc):
        for handle in self._handles:
            handle.remove()


def _tensors(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [t for item in value for t in _tensors(item)] if isinstance(value, (tuple, list)) else []


class FlopCounterMode:
    """``with FlopCounterMode() as counter: model(x)``, then ``counter.get_total_flops()``."""

    def __init__(self, mods=None, depth=2, display=True, custom_mapping=None):
        if mods is not None:
            warnings.warn("mods argument is not needed anymore, you can stop passing it", stacklevel=2)
        self.flop_counts = defaultdict(lambda: defaultdict(int))
        self.depth, self.display = depth, display
        self.mode: Any = None
        custom = custom_mapping or {}
        self.flop_registry = {
            **flop_registry,
            **{k: v if getattr(v, "_get_raw", False) else shape_wrapper(v) for k, v in custom.items()},
        }
        self.mod_tracker = _ModuleNames()

    def get_total_flops(self):
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self):
        """By module, then by operator."""
        return {module: dict(counts) for module, counts in self.flop_counts.items()}

    def get_table(self, depth=None):
        depth = self.depth if depth is None else depth
        total = max(self.get_total_flops(), 1)
        rows = []
        for module in sorted(self.flop_counts):
            level = module.count(".") + 1
            if module == "Global" or level > depth:
                continue
            rows += self._rows(module, "  " * level, total)
        if self.get_total_flops() or not rows:
            rows = self._rows("Global", "", total) + rows
        header = ("Module", "FLOP", "% Total")
        widths = [max(len(row[i]) for row in [header, *rows]) for i in range(3)]
        line = lambda row: "  ".join(cell.ljust(w) for cell, w in zip(row, widths)).rstrip()
        return "\n".join([line(header), "  ".join("-" * w for w in widths), *map(line, rows)])

    def _rows(self, module, indent, total):
        counts = self.flop_counts[module]
        rows = [(indent + module, _short(sum(counts.values())), f"{sum(counts.values()) / total:.2%}")]
        return rows + [(f"{indent} - {op}", _short(n), f"{n / total:.2%}") for op, n in counts.items()]

    def __enter__(self):
        self.flop_counts.clear()
        self.mod_tracker.__enter__()
        self.mode = _FlopCounterMode(self)
        self.mode.__enter__()
        return self

    def __exit__(self, *args):
        self.mode.__exit__(*args)
        self.mode = None
        self.mod_tracker.__exit__()
        if self.display:
            print(self.get_table(self.depth))

    def _count_flops(self, func_packet, out, args, kwargs):
        if func_packet in self.flop_registry:
            count = self.flop_registry[func_packet](*args, **kwargs, out_val=out)
            for parent in set(self.mod_tracker.parents):
                self.flop_counts[parent][func_packet] += count
        return out


def _short(number):
    for power, suffix in ((12, "T"), (9, "B"), (6, "M"), (3, "K")):
        if number >= 10**power:
            return f"{number / 10**power:.3f}{suffix}"
    return str(number)


class _FlopCounterMode(TorchDispatchMode):
    def __init__(self, counter):
        super().__init__()
        self.counter = counter

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        return self.counter._count_flops(func._overloadpacket, out, args, kwargs)

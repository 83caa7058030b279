"""What a program does on fake tensors, written down: its operators become the nodes of a graph."""

import functools
import operator
import re
import weakref

import rushlight as torch
from rushlight._operators.traits import argument, names_of
from rushlight._subclasses._fake_history import with_gradient
from rushlight._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
    UnsupportedFakeTensorException,
)
from rushlight.fx import Graph
from rushlight.overrides import TorchFunctionMode
from rushlight.utils._python_dispatch import TorchDispatchMode
from rushlight.utils._pytree import tree_leaves

from ._calls import Calls
from ._reachable import Reachable

__all__ = ["Recorder", "Whole", "identifier"]

__capture__ = "skip"  # Note [Capture marks]


class Recorder(TorchDispatchMode):
    """Runs operators on fake tensors, and writes them down."""

    def __init__(self, reachable, observer, shapes):
        super().__init__()
        self.reachable, self.observer = reachable, observer
        self.shapes = shapes  # id of a real tensor -> the shape that it is traced at, if it is another
        self.fakes = FakeTensorMode(allow_non_fake_inputs=True)
        self.graph = Graph()
        self.nodes = {}  # id of a fake tensor -> (it, its node)
        self.leaves = []  # (node, fake)
        self.held = {}  # id of a real tensor -> (it, label, fake, node)
        self.constants = {}  # id of a real tensor -> (it, fake)
        self.versions = []  # of real tensors, which writes to them would count up
        self.records = torch.is_grad_enabled()  # whether what is not under `no_grad` is recorded
        self.program_records = True  # whether the operator that runs is not under it
        self.calls = Calls(self)
        self.cut = {}  # id of a fake tensor -> (it, a fake without its history)
        self.muted = False  # what runs now is part of an operator that is kept whole
        self.node_of = None  # while a backward pass is traced: where its values come from
        self.anchor = self.graph.create_node("placeholder", "anchor", (), {}, name="anchor")

    def add_input(self, name, tensor):
        """A placeholder before all nodes that compute."""
        with self.graph.inserting_before(self.anchor):
            node = self.graph.placeholder(name)
        fake = self._resized(tensor) if id(tensor) in self.shapes else self.fakes.from_tensor(tensor)
        node.meta["val"] = fake
        self.nodes[id(fake)] = fake, node
        return fake, node

    def _resized(self, tensor):
        """A fake tensor of another shape than that of the one it stands for."""
        shape = self.shapes[id(tensor)]
        with torch.no_grad():
            if tensor.is_contiguous():
                like = torch.empty(shape, dtype=tensor.dtype, device="meta")
            else:
                like = torch.empty_strided(shape, tensor.stride(), dtype=tensor.dtype, device="meta")
        fake = self.fakes.from_meta(like, tensor.device)
        if tensor.requires_grad:
            fake = with_gradient(fake, tensor.is_leaf)
        self.fakes.fake_tensor_converter.tensor_memo[id(tensor)] = weakref.ref(tensor), fake
        return fake

    def fake_of(self, tensor):
        """The fake tensor that stands for a tensor the program uses."""
        if isinstance(tensor, FakeTensor):
            return tensor
        known = self.held.get(id(tensor))
        if known is not None:
            return known[2]
        found = self.reachable.tensors.get(id(tensor))
        if found is None:
            return self._constant(tensor)
        fake, node = self.add_input(identifier(found[1]), tensor)
        self.held[id(tensor)] = tensor, found[1], fake, node
        if not tensor.is_inference():
            self.versions.append((tensor, tensor._version))
        return fake

    def _constant(self, tensor):
        """A tensor that the program made of numbers: every run gets one of its own."""
        if tensor.requires_grad:  # it was computed, past this recorder
            self.observer.interrupt("the program uses a tensor with a history that no operator here made")
        known = self.constants.get(id(tensor))
        if known is None:
            fake, node = self.add_input(f"constant_{len(self.constants)}", tensor)
            copy = self.fakes.dispatch(torch.ops.aten.clone.default, (), (fake,), {})
            self._write(torch.ops.aten.clone.default, (fake,), {}, copy, apart=True)
            self.constants[id(tensor)] = known = tensor, copy, node
        return known[1]

    def forget(self):
        """Let go of arguments and of Python's state; backward passes may still be traced."""
        self.held = {key: entry for key, entry in self.held.items() if entry[1] != "argument"}
        self.versions, self.reachable = [], Reachable()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.observer.paused = True
        try:
            return self._run(func, args, kwargs or {})
        finally:
            self.observer.paused = False

    def _run(self, func, args, kwargs):
        func = func.of_record
        if func.traits.reads_values:
            self.observer.interrupt(f"the program asks for the value of a tensor ({func._opname})")
        foreign = func.namespace != "aten" and not _is_described(func._schema)
        if foreign or func.traits.reshaping == "storage":
            self.observer.interrupt(f"the operator {func} cannot be part of a graph")
        try:
            args, kwargs = _map(self.fake_of, args), _map(self.fake_of, kwargs)
            result = self.fakes.dispatch(func, (), args, kwargs)
        except DynamicOutputShapeException:
            self.observer.interrupt(f"the shape of what {func} returns depends on values")
        except (DataDependentOutputException, UnsupportedFakeTensorException) as error:
            self.observer.interrupt(f"{func}: {error}")
        self._write(func, args, kwargs, result)
        return result

    def _write(self, func, args, kwargs, result, apart=False):
        """Add a node; if `apart`, not as a part of the call that runs."""
        if self.muted:
            return
        if self.records and self.node_of is None and not self.program_records:
            args, kwargs = self._without_history(func, args, kwargs)
        node = self.graph.create_node("call_function", func, self._as_nodes(args), self._as_nodes(kwargs))
        node.meta["val"] = result
        self._track(result, node)
        if not apart:
            self.calls.note(node)

    def _without_history(self, func, args, kwargs):
        """Arguments of an operator that autograd does not record, for a graph that it records."""
        for i, parameter in enumerate(func._schema.arguments if func._schema.is_mutable else ()):
            written = argument(func, i, args, kwargs) if parameter.is_write else None
            if any(t.requires_grad for t in tree_leaves(written) if isinstance(t, torch.Tensor)):
                self.observer.interrupt("under no_grad the program writes to a tensor with a gradient")
        return _map(self._cut_off, args), _map(self._cut_off, kwargs)

    def _cut_off(self, fake):
        if not fake.requires_grad:
            return fake
        known = self.cut.get(id(fake))
        if known is None:
            detach = torch.ops.aten.detach.default
            with torch.no_grad():
                made = self.fakes.dispatch(detach, (), (fake,), {})
            node = self.graph.create_node("call_function", detach, (self._own_node(fake),), {})
            node.meta["val"] = made
            self._track(made, node)
            known = self.cut[id(fake)] = fake, made
        return known[1]

    def _as_nodes(self, value):
        return _map(self.node_of or self._own_node, value)

    def _own_node(self, tensor):
        return self.nodes[id(tensor)][1]

    def node_for(self, tensor):
        """The node of a tensor, which may be one that the program reads."""
        return self._own_node(self.fake_of(tensor))

    def _track(self, result, node):
        if isinstance(result, torch.Tensor):
            self.nodes[id(result)] = result, node
        elif isinstance(result, (tuple, list)):
            for i, item in enumerate(result):
                if isinstance(item, (torch.Tensor, tuple, list)):
                    part = self.graph.create_node("call_function", operator.getitem, (node, i), {})
                    part.meta["val"] = item
                    self._track(item, part)


@functools.cache
def _kept_whole():
    return names_of(operator.attrgetter("kept_whole"))


class Whole(TorchFunctionMode):
    """Keeps compositions whole that have a kernel of their own: within a trace they would fall into parts.

    Where gradients are recorded, parts are what a backward pass can be traced through: of linear layers all
    of them, of attention the kernel that it runs in tiles.
    """

    def __init__(self, recorder):
        super().__init__()
        self.recorder = recorder

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs, recorder = kwargs or {}, self.recorder
        name = getattr(func, "__name__", None)
        if recorder.muted or name not in _kept_whole():
            return func(*args, **kwargs)
        if torch.is_grad_enabled():
            if name == "linear":
                return func(*args, **kwargs)
            if name == "scaled_dot_product_attention":
                tiles = _attention_in_tiles(*args, **kwargs)
                return tiles if tiles is not None else func(*args, **kwargs)
        recorder.muted = True
        try:
            result = func(*args, **kwargs)
        finally:
            recorder.muted = False
        recorder.observer.paused = True
        try:
            overload = getattr(torch.ops.aten, str(name)).default
            recorder._write(overload, _map(recorder.fake_of, args), _map(recorder.fake_of, kwargs), result)
        finally:
            recorder.observer.paused = False
        return result


def _attention_in_tiles(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False
):
    """Attention as the operator that the core's composition calls, or None where it calls others."""
    dtype, dims = query.dtype, query.dim()
    device = query.device.type
    casts = torch.is_autocast_enabled(device) and torch.get_autocast_dtype(device) != dtype
    if dropout_p or casts or not dtype.is_floating_point or dtype.itemsize == 1 or not query.numel():
        return None
    if attn_mask is not None and (is_causal or attn_mask.requires_grad):
        return None
    for other in (key, value):
        if other.dim() != dims or other.dtype != dtype or not other.numel():
            return None
        for i, (mine, theirs) in enumerate(zip(query.shape[:-2], other.shape[:-2])):
            grouped = enable_gqa and i == dims - 3 and mine % theirs == 0
            if mine != theirs and not grouped:
                return None
    if dims >= 3 and key.shape[-3] != value.shape[-3]:
        return None
    if key.shape[-1] != query.shape[-1] or key.shape[-2] != value.shape[-2]:
        return None
    attention = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default
    return attention(query, key, value, 0.0, is_causal, attn_mask=attn_mask, scale=scale)[0]


def _map(function, value):
    """Apply to the tensors of arguments; containers are made anew."""
    if isinstance(value, torch.Tensor):
        return function(value)
    if isinstance(value, (list, tuple)) and type(value) is not torch.Size:
        items = [_map(function, item) for item in value]
        if isinstance(value, tuple):
            return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
        return items
    if isinstance(value, dict):
        return {k: _map(function, v) for k, v in value.items()}
    return value


def identifier(label):
    return re.sub(r"\W", "_", label).strip("_") or "tensor"


def _is_described(schema):
    """Whether all that a custom operator does is in its schema: it gives results, or writes to arguments."""
    return bool(schema.returns) or schema.is_mutable

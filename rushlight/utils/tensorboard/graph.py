"""A model as a graph: one node a call of a function on tensors, below the modules that it ran in, and an edge
where one call's result is another's argument."""

import inspect

from tensorboard.compat.proto.attr_value_pb2 import AttrValue
from tensorboard.compat.proto.config_pb2 import RunMetadata
from tensorboard.compat.proto.graph_pb2 import GraphDef
from tensorboard.compat.proto.node_def_pb2 import NodeDef
from tensorboard.compat.proto.step_stats_pb2 import DeviceStepStats, StepStats
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.compat.proto.versions_pb2 import VersionDef

import rushlight
from rushlight.overrides import TorchFunctionMode


def _tensors(value):
    if isinstance(value, rushlight.Tensor):
        yield value
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)


def _has_tensors(value):
    return next(_tensors(value), None) is not None


def _node(name, op, inputs=(), outputs=None, text="{}"):
    attributes = {"attr": AttrValue(s=text.encode())}
    if outputs is not None:
        shapes = [
            TensorShapeProto(dim=[TensorShapeProto.Dim(size=n) for n in t.shape]) for t in _tensors(outputs)
        ]
        attributes["_output_shapes"] = AttrValue(list=AttrValue.ListValue(shape=shapes))
    return NodeDef(name=name, op=op, input=inputs, attr=attributes)


def _name(func):
    """The operator's name; of an attribute's reader the attribute's."""
    if func.__name__ == "__get__":
        return getattr(func.__self__, "__name__", "attribute")
    return func.__name__.strip("_") if func.__name__.startswith("__") else func.__name__


def _constants(func, args, kwargs):
    """The arguments that are no tensors, as TensorBoard shows them."""
    try:
        names = list(inspect.signature(func).parameters)
    except (TypeError, ValueError):
        names = []
    given = dict(zip(names, args)) if len(names) >= len(args) else dict(enumerate(args))
    rest = {k: v for k, v in (given | kwargs).items() if v is not None and not _has_tensors(v)}
    return "{" + ", ".join(f" {name} : {value} " for name, value in rest.items()) + "}"


class _Recorder(TorchFunctionMode):
    """Watches the functions that a model calls, and in which of its modules."""

    def __init__(self, root):
        self.scopes = [type(root).__name__]
        self.nodes, self.names = [], set()
        self.producers, self.kept = {}, []
        self.known = {}  # parameters and buffers: id -> (the module's scope, the name)
        self.handles = []
        self._enter_modules(root, self.scopes[0])

    def _enter_modules(self, module, scope):
        named = [*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)]
        for name, tensor in named:
            self.known.setdefault(id(tensor), (scope, name))
        for name, child in module.named_children():
            part = f"{type(child).__name__}[{name}]"
            self.handles.append(child.register_forward_pre_hook(lambda *_, part=part: self._begin(part)))
            self.handles.append(child.register_forward_hook(lambda *_: self._end(), always_call=True))
            self._enter_modules(child, f"{scope}/{part}")

    def _begin(self, part):
        self.scopes.append(part)

    def _end(self):
        self.scopes.pop()

    def _unique(self, name):
        found, count = name, 0
        while found in self.names:
            count += 1
            found = f"{name}_{count}"
        self.names.add(found)
        return found

    def source(self, t):
        """The node that a tensor comes from, or None."""
        if id(t) not in self.producers and id(t) in self.known:
            scope, name = self.known[id(t)]
            self.give(self._unique(f"{scope}/{name}/{name}"), t)
            text = f"{{ name :  {name} }}"
            self.nodes.append(_node(self.producers[id(t)], "prim::GetAttr", text=text))
        return self.producers.get(id(t))

    def give(self, name, results):
        for t in _tensors(results):
            self.producers[id(t)] = name
            self.kept.append(t)  # so that no other tensor gets its id

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if _has_tensors(result):
            sources = [self.source(t) for t in _tensors([args, kwargs])]
            name = self._unique("/".join([*self.scopes, _name(func)]))
            text = _constants(func, args, kwargs)
            inputs = [s for s in sources if s is not None]
            self.nodes.append(_node(name, f"aten::{_name(func)}", inputs, result, text))
            self.give(name, result)
        return result


def _inputs(model, args, recorder):
    """A node for each tensor that the model is given, named by the parameter."""
    try:
        names = [p.name for p in inspect.signature(model.forward).parameters.values()]
    except (TypeError, ValueError):
        names = []
    for i, value in enumerate(args):
        found = list(_tensors(value))
        for k, t in enumerate(found):
            name = names[i] if i < len(names) else f"input_{i}"
            name = f"input/{name}" + (f"_{k}" if len(found) > 1 else "")
            recorder.give(name, t)
            yield _node(name, "IO Node", (), t, "")


def graph(model, args, verbose=False, use_strict_trace=True):
    """The graph of one call of `model`, run in evaluation mode without gradients."""
    from rushlight.jit._trace import _strict_result

    args = args if isinstance(args, (tuple, list)) else (args,)
    recorder = _Recorder(model)
    nodes = list(_inputs(model, args, recorder))
    training = model.training
    try:
        model.eval()
        with rushlight.no_grad(), recorder:
            outputs = model(*args)
    finally:
        model.train(training)
        for handle in recorder.handles:
            handle.remove()
    _strict_result(outputs, use_strict_trace)
    for i, t in enumerate(_tensors(outputs), 1):
        source = recorder.source(t)
        nodes.append(_node(f"output/output.{i}", "IO Node", [source] if source else (), t, ""))
    definition = GraphDef(node=nodes + recorder.nodes, versions=VersionDef(producer=22))
    if verbose:
        print(definition)
    return definition, RunMetadata(step_stats=StepStats(dev_stats=[DeviceStepStats(device="/device:CPU:0")]))

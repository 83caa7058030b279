"""A model's modules as a graph: one node a call, an edge where one call's result is another's argument."""

from tensorboard.compat.proto.attr_value_pb2 import AttrValue
from tensorboard.compat.proto.config_pb2 import RunMetadata
from tensorboard.compat.proto.graph_pb2 import GraphDef
from tensorboard.compat.proto.node_def_pb2 import NodeDef
from tensorboard.compat.proto.step_stats_pb2 import DeviceStepStats, StepStats
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.compat.proto.versions_pb2 import VersionDef

import rushlight


def _tensors(value):
    if isinstance(value, rushlight.Tensor):
        yield value
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)


def _node(name, op, inputs, outputs):
    shapes = [
        TensorShapeProto(dim=[TensorShapeProto.Dim(size=n) for n in t.shape]) for t in _tensors(outputs)
    ]
    shape = AttrValue(list=AttrValue.ListValue(shape=shapes))
    return NodeDef(name=name, op=op, input=inputs, attr={"_output_shapes": shape})


class _Recorder:
    """Watches the calls of modules without children."""

    def __init__(self, root):
        self.root, self.nodes = type(root).__name__, []
        self.producers, self.kept, self.calls = {}, [], {}

    def add(self, name, op, arguments, results):
        inputs = dict.fromkeys(self.producers[id(t)] for t in _tensors(arguments) if id(t) in self.producers)
        self.nodes.append(_node(name, op, list(inputs), results))
        for t in _tensors(results):
            self.producers[id(t)] = name
            self.kept.append(t)  # so that no other tensor gets its id

    def hook(self, path):
        def record(module, arguments, results):
            count = self.calls[path] = self.calls.get(path, -1) + 1
            name = f"{self.root}/{path.replace('.', '/')}" + (f"_{count}" if count else "")
            self.add(name, type(module).__name__, arguments, results)

        return record


def graph(model, args, verbose=False, use_strict_trace=True):
    """The graph of one call of `model`, run in evaluation mode without gradients."""
    from rushlight.jit._trace import _strict_result

    args = args if isinstance(args, (tuple, list)) else (args,)
    recorder = _Recorder(model)
    for i, t in enumerate(_tensors(args)):
        recorder.add(f"input/input_{i}", "IO Node", (), t)
    leaves = [(path, m) for path, m in model.named_modules() if path and not any(m.children())]
    handles = [m.register_forward_hook(recorder.hook(path)) for path, m in leaves]
    training = model.training
    try:
        model.eval()
        with rushlight.no_grad():
            outputs = model(*args)
    finally:
        model.train(training)
        for handle in handles:
            handle.remove()
    _strict_result(outputs, use_strict_trace)
    for i, t in enumerate(_tensors(outputs)):
        recorder.add(f"output/output_{i}", "IO Node", t, ())
    definition = GraphDef(node=recorder.nodes, versions=VersionDef(producer=22))
    if verbose:
        print(definition)
    return definition, RunMetadata(step_stats=StepStats(dev_stats=[DeviceStepStats(device="/device:CPU:0")]))

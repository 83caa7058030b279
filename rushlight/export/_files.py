"""Exported programs as files: a zip of the graph as JSON and of tensors; reading runs no code of the file."""

import io
import json
import math
import operator
import os
import zipfile

import rushlight as torch
from rushlight import fx
from rushlight._ops import OpOverload
from rushlight._subclasses.fake_tensor import FakeTensorMode
from rushlight.utils import _pytree as pytree

from ._one_file import SUFFIX, save_file
from .dynamic_shapes import Place, Symbol, ValueRanges
from .exported_program import CallSpec, ExportedProgram, InputGuard, ModuleCallEntry, ModuleCallSignature
from .graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    TensorArgument,
)

_GRAPH, _TENSORS = "rushlight_program.json", "tensors.pt"
_VERSION = 1
_OPERATORS = {
    f.__name__: f for f in (operator.getitem, operator.add, operator.sub, operator.mul, operator.floordiv)
}
_METHODS = ("size",)
_NAMED = {
    "dtype": torch.dtype,
    "layout": torch.layout,
    "memory_format": torch.memory_format,
}


# --- values -----------------------------------------------------------------------------------------


def _encode(value):
    """A value as JSON: plain ones as they are, others as {kind: content}."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, complex):
        return {"complex": [_encode(value.real), _encode(value.imag)]}
    if isinstance(value, fx.Node):
        return {"node": value.name}
    for kind, cls in _NAMED.items():
        if isinstance(value, cls):
            return {kind: str(value).removeprefix("torch.")}
    if isinstance(value, torch.device):
        return {"device": str(value)}
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return {"tuple" if isinstance(value, tuple) else "list": [_encode(v) for v in value]}
    if isinstance(value, dict):
        return {"dict": [[_encode(k), _encode(v)] for k, v in value.items()]}
    if value is ...:
        return {"ellipsis": None}
    raise ValueError(f"torch.export.save: cannot write a value of type {type(value).__name__}: {value!r}")


def _decode(value, nodes):
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "node":
        return nodes[content]
    if kind in _NAMED:
        found = getattr(torch, content, None)
        if not isinstance(found, _NAMED[kind]):
            raise ValueError(f"{content!r} is no {kind}")
        return found
    if kind in ("list", "tuple"):
        return (list if kind == "list" else tuple)(_decode(v, nodes) for v in content)
    if kind == "dict":
        return {_decode(k, nodes): _decode(v, nodes) for k, v in content}
    if kind == "complex":
        return complex(*(_decode(v, nodes) for v in content))
    simple = {"float": float, "device": torch.device, "ellipsis": lambda _: ...}
    return simple[kind](content)


# --- the graph --------------------------------------------------------------------------------------


def _encode_target(node):
    if isinstance(node.target, OpOverload):
        return {"operator": [node.target.namespace, node.target._opname, node.target._overloadname]}
    if node.op == "call_function" and _OPERATORS.get(getattr(node.target, "__name__", "")) is node.target:
        return {"function": node.target.__name__}
    if node.op == "call_method" and node.target in _METHODS or node.op in ("placeholder", "output"):
        return {"name": node.target}
    raise ValueError(f"torch.export.save: cannot write `{node.format_node()}`")


def _decode_target(op, target):
    ((kind, content),) = target.items()
    if kind == "operator":
        namespace, name, overload = content
        return getattr(getattr(getattr(torch.ops, namespace), name), overload)
    if kind == "function":
        return _OPERATORS[content]
    if op == "call_method" and content not in _METHODS:
        raise ValueError(f"a method that exported programs do not call: {content!r}")
    return content


def _encode_meta(value):
    if isinstance(value, torch.Tensor):
        return {
            "tensor": [list(value.shape), list(value.stride()), _encode(value.dtype), value.requires_grad]
        }
    if isinstance(value, (list, tuple)):
        return {"list": [_encode_meta(v) for v in value]}
    return {"value": _encode(value)}


def _decode_meta(meta, fakes):
    ((kind, content),) = meta.items()
    if kind == "list":
        return [_decode_meta(v, fakes) for v in content]
    if kind == "value":
        return _decode(content, {})
    shape, stride, dtype, requires_grad = content
    with fakes, torch.no_grad():
        made = torch.empty_strided(shape, stride, dtype=_decode(dtype, {}))
    return made.requires_grad_(requires_grad)


def _encode_graph(graph):
    return [
        {
            "op": n.op,
            "name": n.name,
            "target": _encode_target(n),
            "args": [_encode(a) for a in n.args],
            "kwargs": {k: _encode(v) for k, v in n.kwargs.items()},
            "meta": _encode_meta(n.meta.get("val")),
            "stack": n.stack_trace,
        }
        for n in graph.nodes
    ]


def _decode_graph(records):
    graph, nodes, fakes = fx.Graph(), {}, FakeTensorMode(allow_non_fake_inputs=True)
    for record in records:
        args = tuple(_decode(a, nodes) for a in record["args"])
        kwargs = {k: _decode(v, nodes) for k, v in record["kwargs"].items()}
        target = _decode_target(record["op"], record["target"])
        node = graph.create_node(record["op"], target, args, kwargs, record["name"])
        nodes[record["name"]] = node
        if record["op"] != "output":
            node.meta["val"] = _decode_meta(record["meta"], fakes)
        if record["stack"]:
            node.stack_trace = record["stack"]
    graph.lint()
    return graph


# --- signature and sizes ----------------------------------------------------------------------------


def _encode_argument(argument):
    if isinstance(argument, TensorArgument):
        return {"tensor": argument.name}
    return {"constant": [argument.name, _encode(argument.value)]}


def _decode_argument(argument):
    ((kind, content),) = argument.items()
    if kind == "tensor":
        return TensorArgument(content)
    return ConstantArgument(content[0], _decode(content[1], {}))


def _encode_size(size):
    return size if isinstance(size, int) else vars(size)


def _encode_program(program):
    signature = program.graph_signature
    return {
        "version": _VERSION,
        "graph": _encode_graph(program.graph),
        "inputs": [
            [s.kind.name, _encode_argument(s.arg), s.target, s.persistent] for s in signature.input_specs
        ],
        "outputs": [[s.kind.name, _encode_argument(s.arg), s.target] for s in signature.output_specs],
        "in_spec": pytree.treespec_dumps(program.call_spec.in_spec),
        "out_spec": pytree.treespec_dumps(program.call_spec.out_spec),
        "argument_names": program.argument_names,
        "guards": [
            [g.text, None if g.sizes is None else [_encode_size(s) for s in g.sizes], _encode(g.value)]
            for g in program.guards
        ],
        "symbols": [
            {**vars(s), "upper": None if s.upper == math.inf else s.upper} for s in program.symbols.values()
        ],
        "modules": [entry.fqn for entry in program.module_call_graph],
    }


def _decode_program(record, state, constants):
    inputs = [InputSpec(InputKind[k], _decode_argument(a), t, p) for k, a, t, p in record["inputs"]]
    outputs = [OutputSpec(OutputKind[k], _decode_argument(a), t) for k, a, t in record["outputs"]]
    in_spec, out_spec = (pytree.treespec_loads(record[name]) for name in ("in_spec", "out_spec"))
    symbols = {
        s["name"]: Symbol(**{**s, "upper": math.inf if s["upper"] is None else s["upper"]})
        for s in record["symbols"]
    }
    names = record["argument_names"]
    signature = ModuleCallSignature([], [], in_spec, out_spec, names)
    return ExportedProgram(
        graph_module=fx.GraphModule(torch.nn.Module(), _decode_graph(record["graph"])),
        graph_signature=ExportGraphSignature(inputs, outputs),
        state_dict=state,
        constants=constants,
        call_spec=CallSpec(in_spec, out_spec),
        argument_names=names,
        guards=[
            InputGuard(
                text, sizes and [s if isinstance(s, int) else Place(**s) for s in sizes], _decode(value, {})
            )
            for text, sizes, value in record["guards"]
        ],
        symbols=symbols,
        range_constraints={name: ValueRanges(s.lower, s.upper) for name, s in symbols.items()},
        example_inputs=None,
        module_call_graph=[ModuleCallEntry(p, None if p else signature) for p in record["modules"]],
    )


# --- files ------------------------------------------------------------------------------------------


def save(ep, f, *, extra_files=None, opset_version=None, pickle_protocol=2):
    """Write an exported program to a path or file; ``extra_files`` are names and texts to keep with it.

    A path that ends in ``.rl`` becomes a model that runs without Python, as `save_file` writes it.
    """
    if not isinstance(ep, ExportedProgram):
        raise TypeError(
            f"The 'ep' parameter must be an instance of 'ExportedProgram', got '{type(ep).__name__}' instead."
        )
    if isinstance(f, (str, os.PathLike)) and os.fspath(f).endswith(SUFFIX):
        if extra_files:
            raise ValueError("torch.export.save: a file that runs without Python holds no extra_files")
        return save_file(ep, f)
    tensors = io.BytesIO()
    torch.save({"state_dict": dict(ep.state_dict), "constants": dict(ep.constants)}, tensors)
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr(_GRAPH, json.dumps(_encode_program(ep)))
        archive.writestr(_TENSORS, tensors.getvalue())
        for name, text in (extra_files or {}).items():
            archive.writestr(f"extra_files/{name}", text)
    if hasattr(f, "write"):
        f.write(content.getvalue())
        return
    partial = f"{os.fspath(f)}.{os.getpid()}.partial"
    try:
        with open(partial, "wb") as file:
            file.write(content.getvalue())
        os.replace(partial, f)  # a file is there as a whole or not at all
    except BaseException:
        if os.path.exists(partial):
            os.remove(partial)
        raise


def load(f, *, extra_files=None, expected_opset_version=None):
    """Read what `save` wrote. ``extra_files`` is a dict whose values are set to the texts of those names."""
    if isinstance(f, (str, os.PathLike)) and os.fspath(f).endswith(SUFFIX):
        raise RuntimeError(
            "torch.export.load: a file that runs without Python holds no exported program; use load_file"
        )
    try:
        with zipfile.ZipFile(f) as archive:
            if _GRAPH not in archive.namelist():
                raise RuntimeError(
                    "torch.export.load: the file is not one that this version's torch.export.save wrote; "
                    "programs that PyTorch saved must be exported again"
                )
            record = json.loads(archive.read(_GRAPH))
            if record.get("version") != _VERSION:
                raise RuntimeError(
                    f"torch.export.load: version {record.get('version')} of the format, expected {_VERSION}"
                )
            tensors = torch.load(io.BytesIO(archive.read(_TENSORS)), weights_only=True)
            for name in extra_files or {}:
                extra_files[name] = archive.read(f"extra_files/{name}").decode()
    except (zipfile.BadZipFile, json.JSONDecodeError, UnicodeDecodeError) as error:
        raise RuntimeError(f"torch.export.load: the file is damaged: {error}") from error
    try:
        return _decode_program(record, tensors["state_dict"], tensors["constants"])
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise RuntimeError(f"torch.export.load: the program in the file is not valid: {error}") from error

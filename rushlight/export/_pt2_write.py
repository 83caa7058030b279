"""Exported programs as the JSON of PyTorch's archives, which PyTorch 2.13 loads and runs."""

import math
import operator

import rushlight as torch
from rushlight import fx
from rushlight._higher_order_ops._recording import RegionOperator
from rushlight._higher_order_ops._regions import all_nodes, module_of
from rushlight._higher_order_ops.operator import HigherOrderOperator
from rushlight._ops import OpOverload
from rushlight.utils import _pytree as pytree

from . import _pt2_values as values
from ._grad_regions import enclose
from ._pt2_operators import ForeignOperator, Unknown, named_arguments, written
from ._pt2_sizes import SizeWriter, symbol_name
from .graph_signature import ConstantArgument, ExportGraphSignature, InputKind, SymIntArgument

_SCHEMA_VERSION = {"major": 8, "minor": 20}
_OPSET = {"aten": 10}
_NUMBERS = (
    "add",
    "sub",
    "mul",
    "floordiv",
    "eq",
    "ne",
    "le",
    "ge",
    "lt",
    "gt",
    "neg",
    "mod",
    "pow",
    "truediv",
)
_INPUTS = {
    InputKind.PARAMETER: "parameter",
    InputKind.BUFFER: "buffer",
    InputKind.CONSTANT_TENSOR: "tensor_constant",
}
_OF_NUMBERS = {
    torch.sym_max: ("torch.sym_max", ["a", "b"]),
    torch.sym_min: ("torch.sym_min", ["a", "b"]),
    torch.sym_float: ("torch.sym_float", ["a"]),
    torch._sym_sqrt: ("torch.sym_sqrt", ["a"]),  # type: ignore[attr-defined]
}
_SYMBOLIC = {bool: "as_sym_bool", int: "as_sym_int", float: "as_sym_float"}  # numbers that nodes compute


# --- the graph --------------------------------------------------------------------------------------


class _Part:
    """A function of an operator, as a program of which nothing is known but its graph."""

    graph_signature = ExportGraphSignature([], [])

    def __init__(self, graph):
        self.graph = graph


class _GraphWriter:
    def __init__(self, program, sizes):
        self.program, self.sizes = program, sizes
        self.tensors, self.numbers, self.nodes = {}, {}, []
        self.truths, self.fractions = {}, {}
        self.same = {}  # a node that names a result again -> the name that stands in the file

    def name(self, node):
        return self.same.get(node, node.name)

    def run(self):
        inputs = []
        for node in self.program.graph.nodes:
            if node.op == "placeholder":
                inputs.append(self._result(node))
            elif node.op == "output":
                single = isinstance(node.args[0], fx.Node)
                outputs = [self.argument(v) for v in (node.args if single else node.args[0])]
            elif node.target is not operator.getitem and "region" not in node.meta:
                self._call(node)
        return {
            "inputs": inputs,
            "outputs": outputs,
            "nodes": self.nodes,
            "tensor_values": self.tensors,
            "sym_int_values": self.numbers,
            "sym_bool_values": self.truths,
            "is_single_tensor_return": single,
            "custom_obj_values": {},
            "sym_float_values": self.fractions,
        }

    def _refuse(self, node, what):
        from ._lower import place_of

        place = place_of(node)
        where = f" ({place[0]}, line {place[1]})" if place else ""
        raise ValueError(f"torch.export.save: node {node.name!r}{where} {what}")

    def _call(self, node):
        if isinstance(node.target, HigherOrderOperator):
            target, given = str(node.target), [("", value, True) for value in node.args]
            target = f"torch.ops.higher_order.{target}"
        else:
            target, names = self._target(node)
            given = named_arguments(node.target, names, node.args, node.kwargs)
        inputs = [
            {"name": name, "arg": self.argument(v), "kind": 1 if first else 2} for name, v, first in given
        ]
        trace = node.stack_trace
        self.nodes.append(
            {
                "target": target,
                "inputs": inputs,
                "outputs": self._results(node),
                "metadata": {"stack_trace": trace} if trace else {},
                "is_hop_single_tensor_return": None,
                "name": node.name,
            }
        )

    def _target(self, node):
        """(name, parameters) of what a node calls."""
        if node.target in _OF_NUMBERS:
            return _OF_NUMBERS[node.target]
        name = getattr(node.target, "__name__", "")
        if name in _NUMBERS and getattr(operator, name) is node.target:
            return f"_operator.{name}", ["a", "b"]
        if isinstance(node.target, (OpOverload, ForeignOperator)):
            try:
                return written(node.target, node.args)
            except Unknown:
                self._refuse(
                    node,
                    f"calls {node.target}, which cannot be written: take the program apart "
                    "with run_decompositions, or export it without dynamic sizes",
                )
        return self._refuse(node, f"calls {node.target!r}, which archives cannot hold")

    # --- results ---

    def _result(self, node):
        """The name of a node's value, as an argument."""
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor):
            self.tensors[node.name] = values.tensor_record(value, self.sizes)
            return {"as_tensor": {"name": node.name}}
        if isinstance(value, int) and not isinstance(value, bool) and not self._is_constant(node):
            self.numbers[node.name] = self.sizes.record(value)
            return {"as_sym_int": {"as_name": node.name}}
        if type(value) in (bool, float) and node.op == "call_function":
            table, kind = (self.truths, "bool") if type(value) is bool else (self.fractions, "float")
            table[node.name] = {f"as_{kind}": value}
            return {f"as_sym_{kind}": {"as_name": node.name}}
        return self.argument(value)

    def _is_constant(self, node):
        specs = self.program.graph_signature.input_specs
        return any(s.arg.name == node.name and isinstance(s.arg, ConstantArgument) for s in specs)

    def _results(self, node):
        value = node.meta.get("val")
        if isinstance(node.target, OpOverload) and not node.target._schema.returns:
            return []  # called for what it checks or writes
        if not isinstance(value, (list, tuple)):
            return [] if value is None else [self._result(node)]
        names = [f"{node.name}_unused_{i}" for i in range(len(value))]
        for user in reversed(node.users):
            if user.target is not operator.getitem:
                self._refuse(node, "gives several results that are passed on as one")
            names[user.args[1]] = user.name
        for user in node.users:
            self.same[user] = names[user.args[1]]
        for name, part in zip(names, value):
            self.tensors[name] = values.tensor_record(part, self.sizes)
        if isinstance(node.target, OpOverload) and str(node.target._schema.returns[0].type).endswith("[]"):
            return [{"as_tensors": [{"name": name} for name in names]}]
        return [{"as_tensor": {"name": name}} for name in names]

    # --- arguments ---

    def argument(self, value):
        if value is None:
            return {"as_none": True}
        if isinstance(value, fx.Node) and "region" in value.meta:
            part = _Part(value.meta["region"].graph)
            return {"as_graph": {"name": value.target, "graph": _GraphWriter(part, self.sizes).run()}}
        if isinstance(value, fx.Node):
            return self._reference(value)
        if isinstance(value, (list, tuple)):
            return self._list(list(value))
        for cls, kind, write in _KINDS:
            if isinstance(value, cls):
                return {kind: write(value)}
        raise ValueError(f"torch.export.save: cannot write a value of type {type(value).__name__}: {value!r}")

    def _reference(self, node):
        if isinstance(node.meta.get("val"), torch.Tensor):
            return {"as_tensor": {"name": self.name(node)}}
        if self._is_constant(node):
            return self.argument(node.meta["val"])
        kind = _SYMBOLIC.get(type(node.meta.get("val")), "as_sym_int")
        return {kind: {"as_name": self.name(node)}}

    def _list(self, items):
        nodes = [v for v in items if isinstance(v, fx.Node)]
        if nodes and all(isinstance(n.meta.get("val"), torch.Tensor) for n in nodes):
            if len(nodes) == len(items):
                return {"as_tensors": [{"name": self.name(n)} for n in items]}
            return {"as_optional_tensors": [self.argument(v) for v in items]}
        if nodes:
            named = {n: {"as_name": self.name(n)} for n in nodes}
            return {"as_sym_ints": [named[v] if isinstance(v, fx.Node) else {"as_int": v} for v in items]}
        if any(v is None for v in items):
            return {"as_optional_tensors": [{"as_none": True} for _ in items]}
        for cls, kind, write in _LISTS:
            if all(isinstance(v, cls) for v in items):
                return {kind: [write(v) for v in items]}
        raise ValueError(f"torch.export.save: cannot write the list {items!r}")


_KINDS = [
    (bool, "as_bool", bool),
    (int, "as_int", int),
    (float, "as_float", values.float_record),
    (
        complex,
        "as_complex",
        lambda v: {"real": values.float_record(v.real), "imag": values.float_record(v.imag)},
    ),
    (str, "as_string", str),
    (torch.dtype, "as_scalar_type", values.number_of),
    (torch.layout, "as_layout", values.number_of),
    (torch.memory_format, "as_memory_format", values.number_of),
    (torch.device, "as_device", values.device_record),
]
_LISTS = [
    (bool, "as_bools", bool),
    (int, "as_ints", int),
    ((int, float), "as_floats", lambda v: values.float_record(float(v))),
    (str, "as_strings", str),
    ((list, tuple), "as_int_lists", list),
]


# --- the program ------------------------------------------------------------------------------------


def _input_record(spec):
    argument = spec.arg
    if isinstance(argument, ConstantArgument):
        kinds = {type(None): "as_none", bool: "as_bool", int: "as_int", float: "as_float", str: "as_string"}
        kind = kinds.get(type(argument.value))
        if kind is None:
            raise ValueError(f"torch.export.save: the input {argument.name} is {argument.value!r}")
        value = {kind: True if argument.value is None else argument.value}
        return {"constant_input": {"name": argument.name, "value": value}}
    if spec.kind == InputKind.USER_INPUT:
        if isinstance(argument, SymIntArgument):
            return {"user_input": {"arg": {"as_sym_int": {"as_name": argument.name}}}}
        return {"user_input": {"arg": {"as_tensor": {"name": argument.name}}}}
    kind = _INPUTS[spec.kind]
    record = {"arg": {"name": argument.name}, f"{kind}_name": spec.target}
    if kind == "buffer":
        record["persistent"] = spec.persistent
    return {kind: record}


def _signature_record(program):
    in_spec, out_spec = program.call_spec
    return {
        "inputs": [],
        "outputs": [],
        "in_spec": pytree.treespec_dumps(in_spec),
        "out_spec": pytree.treespec_dumps(out_spec),
        "forward_arg_names": list(program.argument_names),
    }


def program_record(program):
    """The JSON of a program, without its tensors."""
    from ._decompose import with_writes
    from ._spread import spread

    program = with_writes(program)
    if any(_takes_numbers(node) for node in all_nodes(program.graph)):
        program = spread(program)
        enclose(program.graph)
        program.graph_module = module_of(program.graph)
    program = _with_shared_operators(program)
    names = {name: symbol_name(name) for name, symbol in program.symbols.items() if not symbol.data}
    graph = _GraphWriter(program, SizeWriter(names)).run()
    signature = _signature_record(program)
    return {
        "graph_module": {
            "graph": graph,
            "signature": {
                "input_specs": [_input_record(s) for s in program.graph_signature.input_specs],
                "output_specs": [{"user_output": {"arg": argument}} for argument in graph["outputs"]],
            },
            "module_call_graph": [
                {"fqn": entry.fqn, "signature": None if entry.fqn else signature}
                for entry in program.module_call_graph
            ],
            "metadata": {},
            "treespec_namedtuple_fields": {},
        },
        "opset_version": _OPSET,
        "range_constraints": {
            names.get(name, name): {"min_val": _end(ends.lower), "max_val": _end(ends.upper)}
            for name, ends in program.range_constraints.items()
        },
        "schema_version": _SCHEMA_VERSION,
        "verifiers": ["TRAINING"],
        "torch_version": "2.13.0",
        "guards_code": [],
    }


def _end(number):
    return int(number) if math.isfinite(number) else None


def _takes_numbers(node):
    """Whether functions of an operator take sizes beside tensors, for which archives have no kind of list."""
    if not isinstance(node.target, RegionOperator):
        return False
    given = [n for some in node.args if isinstance(some, (list, tuple)) for n in some]
    return not all(isinstance(n, fx.Node) and isinstance(n.meta.get("val"), torch.Tensor) for n in given)


def _with_shared_operators(program):
    """The program with operators that only this package has expressed by others, where that is known."""
    from ._decompose import decompose
    from ._pt2_decompositions import table

    found = {n.target for n in all_nodes(program.graph)} & set(table())
    if not found:
        return program
    return decompose(program, {target: table()[target] for target in found}, functional=False)

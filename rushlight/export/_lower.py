"""Exported programs as text of the graph that runs without Python (`src/jit/text.h` has the grammar)."""

import math
import operator
import os
import re

import rushlight as torch
from rushlight import _C, fx
from rushlight._command.names import is_own_file
from rushlight._higher_order_ops._choice_operator import choice_operator
from rushlight._higher_order_ops._loop_operator import loop_operator
from rushlight._higher_order_ops._map_operator import map_operator
from rushlight._higher_order_ops._scan_operator import scan_operator
from rushlight._operators.entries import _INPLACE, _OUT
from rushlight._ops import OpOverload, _defined
from rushlight.utils import _pytree as pytree

from ._file_numbers import number_tensors, with_number_tensors
from ._pending import compute_pending, without_pending
from ._sizes import SIZE
from .graph_signature import InputKind

_ARITHMETIC = {
    operator.add: "sym::add",
    operator.sub: "sym::sub",
    operator.mul: "sym::mul",
    operator.floordiv: "sym::floordiv",
    torch.sym_max: "sym::max",
    torch.sym_min: "sym::min",
}
# Operators that take functions, which are graphs of their own, as the file's operators.
_FUNCTIONS = {
    choice_operator: "jit::choose_graph",
    loop_operator: "jit::loop_graph",
    map_operator: "jit::scan_graph",
    scan_operator: "jit::scan_graph",
}


class UnsupportedError(RuntimeError):
    """The program does what files cannot hold; the text says where, and what to do."""


def own_frame(frames):
    """The innermost frame of the user's code: (file, line)."""
    found = [(f[0], f[1]) for f in frames]
    own = [frame for frame in found if not is_own_file(frame[0]) and not frame[0].startswith("<")] or found
    return own[-1] if own else None


def place_of(node):
    """`file, line` of the user's code that made a node."""
    return own_frame(re.findall(r'File "(.*)", line (\d+)', node.stack_trace or ""))


def _refuse(node, what):
    place = place_of(node)
    where = f"{place[0]}, line {place[1]}: " if place else ""
    raise UnsupportedError(f"rushlight.export.save: {where}{what}")


class _Lowering:
    def __init__(self, program):
        self.program, self.lines = program, []
        self.names = {}  # node -> name of its value
        self.constants = {}
        self.records = _C._operator_records()

    def run(self):
        inputs = self._placeholders()
        self._steps(self.program.graph)
        return self._text(inputs, self._outputs()), self.constants

    def _steps(self, graph):
        for node in graph.nodes:
            if node.op == "call_function":
                self._call(node)
            elif "region" in node.meta:
                continue  # a part of the call that takes it
            elif node.op not in ("placeholder", "output"):
                _refuse(node, f"`{node.format_node()}` cannot be part of a file")

    def _text(self, inputs, outputs):
        head = ["rushlight graph 1", *self._symbols(), f"graph({', '.join(inputs)}) {{"]
        return "\n".join([*head, *self.lines, f"  return ({', '.join(outputs)})", "}", ""])

    # --- inputs and outputs ---

    def _symbols(self):
        for symbol in self.program.symbols.values():
            upper = "inf" if symbol.upper == math.inf else int(symbol.upper)
            yield f"symbol {symbol.name} = {symbol.value} in [{symbol.lower}, {upper}]"

    def _placeholders(self):
        program, inputs = self.program, []
        guards, taken = iter(program.guards), {n.name for n in program.graph.nodes}
        placeholders = [n for n in program.graph.nodes if n.op == "placeholder"]
        for node, spec in zip(placeholders, program.graph_signature.input_specs):
            self.names[node] = node.name
            if spec.kind != InputKind.USER_INPUT:
                self._constant(node, spec.target)
                continue
            guard = next(guards)
            if guard.places().get(None) is not None:  # a number, which is a tensor in files
                inputs.append(f"%{node.name}: int64[]")
                continue
            if guard.sizes is None:  # a plain value, which the trace holds
                continue
            if None in guard.sizes:
                _refuse(node, f"the sizes of {guard.text} hang together in a way that files cannot hold")
            sizes = ", ".join(_size_text(size) for size in guard.sizes)
            if guard.text not in taken:  # nodes avoid names of Python's, such as `input`
                self.names[node] = guard.text
            inputs.append(f"%{self.names[node]}: {_dtype_name(node.meta['val'].dtype)}[{sizes}]")
        return inputs

    def _constant(self, node, target):
        if not node.users:
            return
        held = self.program.state_dict.get(target)
        held = self.program.constants.get(target) if held is None else held
        tensor = held.detach().resolve_conj().resolve_neg()
        self.constants[target] = tensor
        sizes = ", ".join(map(str, tensor.shape))
        self.lines.append(
            f"  %{node.name}: {_dtype_name(tensor.dtype)}[{sizes}] = constant({_quoted(target)})"
        )

    def _outputs(self):
        node = self.program.graph.output_node()
        values = node.args[0]
        positions = pytree.tree_unflatten(list(range(len(values))), self.program.call_spec.out_spec)
        paths = pytree.tree_leaves_with_path(positions)
        for path, i in paths:
            value = values[i]
            if value is None:
                continue
            if not isinstance(value, fx.Node) or not isinstance(
                value.meta.get("val"), (torch.Tensor, type(None))
            ):
                _refuse(
                    node,
                    f"the model returns {value!r}, but files return tensors: return a tensor or a number",
                )
            yield f"{_output_name(path, i, len(values))}: {self._value(value)}"

    # --- nodes ---

    def _call(self, node):
        if node.target is operator.getitem:
            return  # names a result of the node before
        if node.target is SIZE:
            self._line(node, f"%{node.name}: int", f"sym::size({self._value(node.args[0])}, {node.args[1]})")
        elif node.target in _ARITHMETIC:
            a, b = (self._value(v) for v in node.args)
            self._line(node, f"%{node.name}: int", f"{_ARITHMETIC[node.target]}({a}, {b})")
        elif node.target in _FUNCTIONS:
            self._call_functions(node)
        elif isinstance(node.target, OpOverload):
            arguments = [self._value(v) for v in node.args]
            arguments += [f"{name}={self._value(v)}" for name, v in node.kwargs.items()]
            self._line(node, self._results(node), f"{self._record(node)}({', '.join(arguments)})")
        else:
            _refuse(node, f"`{node.target}` is no operator that files can hold")

    def _call_functions(self, node):
        """A loop, a map or a choice: an operator that takes the text of its functions' graphs."""
        arguments = [
            _quoted(_FunctionLowering(a.meta["region"], node).run())
            if isinstance(a, fx.Node) and "region" in a.meta
            else self._value(a)
            for a in node.args
        ]
        if node.target is map_operator:
            arguments.insert(1, "[]")  # a scan that carries nothing
        results = self._list_results(node, node.meta["val"], node.name)
        self._line(node, results, f"{_FUNCTIONS[node.target]}({', '.join(arguments)})")

    def _line(self, node, results, call):
        self.names[node] = node.name
        place = place_of(node)
        comment = f"  # {os.path.basename(place[0])}, line {place[1]}" if place else ""
        self.lines.append(f"  {results} = {call}{comment}" if results else f"  {call}{comment}")

    def _record(self, node):
        """The operator's name in the table of records."""
        entry = node.target._entry
        if _defined.get(entry.namespace, {}).get(entry.name, {}).get(entry.overload) is entry:
            _refuse(
                node,
                f"the operator {node.target.name()} was defined in Python and cannot run without it: "
                "write it with built-in operators",
            )
        if entry.form == _OUT:
            _refuse(node, f"{node.target.name()} writes to out=, which files cannot hold: use its result")
        record = self.records[entry.index]
        name = f"{record['space']}::{record['name']}" if record["space"] else record["name"]
        name += "_" * (entry.form == _INPLACE)
        return f"{name}.{record['overload']}" if record["overload"] else name

    def _results(self, node):
        value = node.meta.get("val")
        if not node.target._schema.returns:
            return ""  # called for what it checks or writes
        if not isinstance(value, (list, tuple)):
            kind = next((k for k in (bool, int, float) if isinstance(value, k)), None)
            if kind is not None:
                return f"%{node.name}: {kind.__name__}"
            return f"%{node.name}"
        return self._list_results(node, value, node.target.name())

    def _list_results(self, node, value, called):
        names = ["_"] * len(value)
        for user in node.users:
            if user.target is not operator.getitem:
                _refuse(node, f"{called} gives a list that is passed on as a whole")
            names[user.args[1]] = f"%{user.name}"
            self.names[user] = user.name
        return ", ".join(self._unique(names, node))

    def _unique(self, names, node):
        """Several users may take the same result; the last one's name stands for all."""
        for user in node.users:
            self.names[user] = names[user.args[1]][1:]
        return names

    # --- values ---

    def _value(self, value):
        if isinstance(value, fx.Node):
            return f"%{self.names[value]}"
        if value is None or isinstance(value, (bool, int)):
            return str(value)
        if isinstance(value, float):
            return repr(value)
        if isinstance(value, complex):
            return f"({value.real!r}{value.imag:+}j)"
        if isinstance(value, str):
            return _quoted(value)
        if isinstance(value, torch.device):
            return _quoted(str(value))
        if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
            return _dtype_name(value)
        if isinstance(value, (list, tuple)):
            return f"[{', '.join(map(self._value, value))}]"
        raise UnsupportedError(
            f"rushlight.export.save: a value of type {type(value).__name__} in the program"
        )


class _FunctionLowering(_Lowering):
    """The graph of a function: it takes tensors of any sizes, and has no constants of its own."""

    def __init__(self, region, call):
        super().__init__(None)
        self.graph, self.call = number_tensors(region.graph), call
        compute_pending(self.graph)

    def run(self):
        inputs = []
        for node in (n for n in self.graph.nodes if n.op == "placeholder"):
            self.names[node] = node.name
            value = node.meta["val"]
            inputs.append(f"%{node.name}: {_dtype_name(value.dtype)}[{', '.join('?' * value.dim())}]")
        self._steps(self.graph)
        return self._text(inputs, self._outputs())

    def _symbols(self):
        return ()

    def _outputs(self):
        results = self.graph.output_node().args[0]
        for i, value in enumerate(results if isinstance(results, (list, tuple)) else (results,)):
            if not isinstance(value, fx.Node) or not isinstance(value.meta.get("val"), torch.Tensor):
                _refuse(self.call, f"a function in it gives {value!r}, but functions in files give tensors")
            yield f"output_{i}: {self._value(value)}"


def _dtype_name(dtype):
    return str(dtype).removeprefix("torch.")


def _size_text(size):
    if isinstance(size, int):
        return str(size)
    text = size.symbol if size.factor == 1 else f"{size.factor}*{size.symbol}"
    return text if size.offset == 0 else f"{text}{size.offset:+}"


def _quoted(text):
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _output_name(path, i, count):
    parts = [str(getattr(key, "idx", getattr(key, "key", getattr(key, "name", "")))) for key in path]
    name = "_".join(re.sub("[^0-9a-zA-Z_]", "_", part) for part in parts)
    if not name:
        return "output" if count == 1 else f"output_{i}"
    return name if name[0].isalpha() or name[0] == "_" else f"output_{name}"


def lower(program):
    """(text, constants by name) of an exported program."""
    from ._decompose import with_writes
    from ._spread import spread

    return _Lowering(with_number_tensors(with_writes(without_pending(spread(program))))).run()

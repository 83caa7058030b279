"""Programs that PyTorch wrote, from the JSON of its archives: the same graph, on the operators here."""

import math
import operator

import rushlight as torch
from rushlight import fx
from rushlight._higher_order_ops._regions import module_of
from rushlight._subclasses.fake_tensor import FakeTensorMode
from rushlight.utils import _pytree as pytree

from . import _pt2_values as values
from ._pt2_operators import LEVEL_CALLS, ForeignOperator, Unknown, find
from ._pt2_sizes import SizeReader, UnknownSize, expression_of, own_name, size_of
from .dynamic_shapes import Place, Symbol, ValueRanges
from .exported_program import CallSpec, ExportedProgram, InputGuard, ModuleCallEntry, ModuleCallSignature
from .graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymIntArgument,
    TensorArgument,
)

_INPUTS = {
    "parameter": InputKind.PARAMETER,
    "buffer": InputKind.BUFFER,
    "tensor_constant": InputKind.CONSTANT_TENSOR,
}
_ORDERED = "torch.ops.higher_order.with_effects"
_CHECKED = ("info", "api_name", "is_matrix")  # of the one operator that is called so
_WRITES = ("buffer_mutation", "parameter_mutation", "user_input_mutation")
_LISTS = {"as_tensors", "as_ints", "as_floats", "as_strings", "as_bools", "as_int_lists", "as_nested_tensors"}
_PLAIN = {
    "as_int",
    "as_string",
    "as_bool",
    "as_operator",
    "as_ints",
    "as_strings",
    "as_bools",
    "as_int_lists",
}


class UnsupportedProgram(RuntimeError):
    """A program of PyTorch's that cannot run here; the text names the node."""


def _only(record):
    """(kind, content) of a record that is one of several kinds."""
    ((kind, content),) = record.items()
    return kind, content


class _GraphReader:
    """One graph of the file."""

    def __init__(self, record, sizes):
        self.record, self.sizes, self.graph, self.nodes = record, sizes, fx.Graph(), {}
        self.fakes = FakeTensorMode(allow_non_fake_inputs=True)

    # --- nodes ---

    def _keep(self, name, node):
        self.nodes[name] = node
        meta = self.record["tensor_values"].get(name)
        if meta is not None:
            node.meta["val"] = self._described(self._tensor_like, meta)
        elif name in self.record["sym_int_values"]:
            node.meta["val"] = self._described(self.sizes.size, self.record["sym_int_values"][name])
        elif name in self.record.get("sym_bool_values", {}):
            node.meta["val"] = bool(self.record["sym_bool_values"][name].get("as_bool", True))
        elif name in self.record.get("sym_float_values", {}):
            node.meta["val"] = values.float_of(self.record["sym_float_values"][name].get("as_float", 1.0))

    @staticmethod
    def _described(read, record):
        try:
            return read(record)
        except UnknownSize:
            return None

    def _tensor_like(self, record):
        with self.fakes, torch.no_grad():
            made = values.empty_like_record(record, self.sizes.size)
        self.sizes.shape(made, record["sizes"])
        return made

    def placeholder(self, name):
        node = self.graph.placeholder(name)
        self._keep(name, node)
        return node

    def add_node(self, record):
        if record["target"] == _ORDERED:
            record = self._without_order(record)
        try:
            function = find(record["target"])
        except Unknown:
            raise UnsupportedProgram(
                f"torch.export.load: node {record.get('name') or _first_output(record)!r} calls "
                f"{record['target']}, which is not here: export the model without it, or load its state_dict "
                "into a model of this program"
            ) from None
        args, kwargs = self._arguments(record["inputs"], function)
        name = record.get("name") or _first_output(record) or "node"
        node = self.graph.create_node("call_function", function, args, kwargs, name)
        if trace := record["metadata"].get("stack_trace"):
            node.stack_trace = trace
        self._name_results(record, node)

    def _without_order(self, record):
        """The call that a token keeps in its place: the order of nodes does here."""
        token, *outputs = record["outputs"]
        self.nodes[token["as_tensor"]["name"]] = None
        _, called, *given = record["inputs"]
        inputs = [{**g, "name": g["name"] or name} for g, name in zip(given, _CHECKED, strict=False)]
        outputs = [output for output in outputs if "as_none" not in output]
        return {**record, "target": called["arg"]["as_operator"], "inputs": inputs, "outputs": outputs}

    def _arguments(self, inputs, function):
        args, kwargs = [], {}
        for given in inputs:
            value = self.value(given["arg"])
            if isinstance(value, fx.GraphModule):
                args.append(self._region(given["arg"]["as_graph"]["name"], value))
            elif given.get("kind") == 2:
                kwargs[given["name"]] = value
            else:
                args.append(value)
        return tuple(args), kwargs

    def _region(self, name, module):
        node = self.graph.create_node("get_attr", name, (), {}, name)
        node.meta["region"] = module
        return node

    def _name_results(self, record, node):
        outputs = record["outputs"]
        if isinstance(node.target, ForeignOperator):
            node.target.parameters = [given["name"] for given in record["inputs"]]
        if len(outputs) == 1 and not record["target"].startswith("torch.ops.higher_order."):
            kind, content = _only(outputs[0])
            if kind != "as_tensors":
                name = content.get("name", content.get("as_name")) if isinstance(content, dict) else None
                return self._keep(name, node) if name else None
            outputs = [{"as_tensor": c} for c in content]
        node.meta["val"] = tuple(self._part(node, i, *_only(output)) for i, output in enumerate(outputs))
        return None

    def _part(self, node, i, kind, content):
        """One of several results, which others call by a name of its own."""
        name = _name_of(content) if kind in _NAMED else None
        if name is None:
            return None
        part = self.graph.create_node("call_function", operator.getitem, (node, i), {}, name)
        self._keep(name, part)
        return part.meta.get("val")

    # --- values ---

    def value(self, argument):
        kind, content = _only(argument)
        if kind in _PLAIN:
            return content
        if kind == "as_none":
            return None
        read = getattr(self, f"_{kind}", None)
        if read is None:
            raise UnsupportedProgram(f"torch.export.load: an argument of the kind {kind} is not covered")
        return read(content)

    def _as_tensor(self, content):
        return self.nodes[content["name"]]

    def _as_tensors(self, content):
        return [self.nodes[c["name"]] for c in content]

    def _as_nested_tensors(self, content):
        return [self._as_tensors(c) for c in content]

    def _as_optional_tensor(self, content):
        return self.value(content)

    def _as_optional_tensors(self, content):
        return [self.value(c) for c in content]

    def _symbolic(self, content):
        kind, known = _only(content)
        return self.nodes[known] if kind == "as_name" else known

    def _symbolics(self, content):
        return [self._symbolic(c) for c in content]

    _as_sym_int = _as_sym_float = _as_sym_bool = _symbolic
    _as_sym_ints = _as_sym_floats = _as_sym_bools = _symbolics
    _as_float = staticmethod(values.float_of)
    _as_scalar_type = staticmethod(values.dtype_of)
    _as_layout = staticmethod(values.layout_of)
    _as_memory_format = staticmethod(values.format_of)
    _as_device = staticmethod(values.device_of)

    def _as_floats(self, content):
        return [values.float_of(v) for v in content]

    def _as_float_lists(self, content):
        return [self._as_floats(v) for v in content]

    def _as_complex(self, content):
        return complex(values.float_of(content["real"]), values.float_of(content["imag"]))

    def _as_graph(self, content):
        """A part of the program that another operator runs."""
        inner = _GraphReader(content["graph"], self.sizes)
        for given in content["graph"]["inputs"]:
            inner.placeholder(_name_of(_only(given)[1]))
        for record in content["graph"]["nodes"]:
            inner.add_node(record)
        outputs = tuple(inner.value(v) for v in content["graph"]["outputs"])
        inner.graph.output(outputs[0] if content["graph"].get("is_single_tensor_return") else outputs)
        return module_of(inner.graph)


_NAMED = "as_tensor", "as_sym_int", "as_sym_bool", "as_sym_float"


def _name_of(content):
    """What a value is called; a number that is known has no name."""
    return content.get("name", content.get("as_name"))


def _first_output(record):
    for output in record["outputs"]:
        kind, content = _only(output)
        if kind in _NAMED:
            return _name_of(content)
    return None


# --- the program ------------------------------------------------------------------------------------


def _range(ends):
    low, high = ends.get("min_val"), ends.get("max_val")
    return ValueRanges(-math.inf if low is None else low, math.inf if high is None else high)


class _ProgramReader:
    def __init__(self, record, state, constants, examples):
        self.record, self.state, self.constants, self.examples = record, state, constants, examples
        self.module = record["graph_module"]
        self.reader = _GraphReader(self.module["graph"], SizeReader())
        self.inputs, self.outputs, self.guards, self.symbols = [], [], [], {}
        self.ranges = {own_name(name): _range(ends) for name, ends in record["range_constraints"].items()}

    def read(self):
        for given, spec in zip(
            self.module["graph"]["inputs"], self.module["signature"]["input_specs"], strict=True
        ):
            self._input(given, *_only(spec))
        for record in self.module["graph"]["nodes"]:
            self.reader.add_node(record)
        self._outputs()
        self.reader.graph.lint()
        return self._program()

    def _input(self, given, kind, spec):
        if kind in _INPUTS:
            name = spec["arg"]["name"]
            self.reader.placeholder(name)
            target = spec[f"{kind}_name"]
            self.inputs.append(InputSpec(_INPUTS[kind], TensorArgument(name), target, spec.get("persistent")))
        elif kind == "token":
            self.reader.nodes[spec["arg"]["name"]] = None
        elif kind == "constant_input":
            self._constant_input(spec["name"], spec["value"])
        elif kind == "user_input" and "as_tensor" in spec["arg"]:
            self._tensor_input(spec["arg"]["as_tensor"]["name"])
        elif kind == "user_input" and "as_sym_int" in spec["arg"]:
            self._size_input(spec["arg"]["as_sym_int"]["as_name"])
        elif kind == "user_input":
            self._constant_input(f"input_{len(self.inputs)}", spec["arg"])
        else:
            raise UnsupportedProgram(f"torch.export.load: inputs of the kind {kind} are not covered: {given}")

    def _constant_input(self, name, value):
        kind, content = _only(value)
        content = None if kind == "as_none" else values.float_of(content) if kind == "as_float" else content
        self.reader.graph.placeholder(name).meta["val"] = content
        self.inputs.append(InputSpec(InputKind.USER_INPUT, ConstantArgument(name, content), None))
        self.guards.append(InputGuard(name, value=content))

    def _tensor_input(self, name):
        self.reader.placeholder(name)
        self.inputs.append(InputSpec(InputKind.USER_INPUT, TensorArgument(name), None))
        sizes = []
        for d, size in enumerate(self.module["graph"]["tensor_values"][name]["sizes"]):
            sizes.append(size["as_int"] if "as_int" in size else self._symbolic_size(size, d))
        self.guards.append(InputGuard(name, sizes))

    def _symbolic_size(self, size, dim):
        place = self._place(size, dim)
        if place is not None and place.symbol not in self.symbols:
            ends = self.ranges.get(place.symbol, ValueRanges(0, math.inf))
            example = (size_of(size) - place.offset) // place.factor
            self.symbols[place.symbol] = Symbol(place.symbol, example, max(ends.lower, 0), ends.upper, True)
        return place

    def _place(self, size, dim):
        """A size as factor * symbol + offset; None if it is another function of symbols."""
        try:
            terms = expression_of(size).linear()
        except UnknownSize:
            return None
        offset = (terms or {}).pop(None, 0)
        if not terms or len(terms) != 1:
            return None
        ((symbol, factor),) = terms.items()
        return Place(len(self.guards), dim, symbol, factor, offset) if factor > 0 else None

    def _size_input(self, name):
        self.reader.placeholder(name)
        self.inputs.append(InputSpec(InputKind.USER_INPUT, SymIntArgument(name), None))
        self.guards.append(InputGuard(name, anything=True))

    def _outputs(self):
        returned = []
        graph = self.module["graph"]
        for given, record in zip(graph["outputs"], self.module["signature"]["output_specs"], strict=True):
            kind, spec = _only(record)
            value = self.reader.value(given)
            if kind == "user_output":
                returned.append(value)
                argument = (
                    TensorArgument(value.name) if isinstance(value, fx.Node) else ConstantArgument("", value)
                )
                self.outputs.append(OutputSpec(OutputKind.USER_OUTPUT, argument, None))
            elif kind == "token":
                continue
            elif kind in _WRITES:
                self._write(kind, spec, value)
            else:
                raise UnsupportedProgram(
                    f"torch.export.load: outputs of the kind {kind} are not covered: {spec}"
                )
        self.reader.graph.output(tuple(returned))

    def _write(self, kind, spec, value):
        """What PyTorch hands out to be written is written here by the program itself."""
        from ._decompose import write_of

        key = "user_input_name" if kind == "user_input_mutation" else kind.replace("mutation", "name")
        target = spec[key]
        for made in self.inputs:
            if target in (made.target, made.arg.name if kind == "user_input_mutation" else None):
                holder = self.reader.nodes[made.arg.name]
                write_of(self.reader.graph, OutputKind[kind.upper()], holder, value)
                return
        raise ValueError(f"the program writes to {target!r}, which it does not have")

    def _program(self):
        calls = self.module["module_call_graph"]
        root = next(c["signature"] for c in calls if c["fqn"] == "")
        in_spec, out_spec = (pytree.treespec_loads(root[name]) for name in ("in_spec", "out_spec"))
        users = [s.arg.name for s in self.inputs if s.kind == InputKind.USER_INPUT]
        names = root.get("forward_arg_names") or users
        signature = ModuleCallSignature([], [], in_spec, out_spec, names)
        return ExportedProgram(
            graph_module=module_of(self.reader.graph),
            graph_signature=ExportGraphSignature(self.inputs, self.outputs),
            state_dict=self.state,
            constants=self.constants,
            call_spec=CallSpec(in_spec, out_spec),
            argument_names=names,
            guards=self.guards,
            symbols=self.symbols,
            range_constraints=self.ranges,
            example_inputs=self.examples,
            module_call_graph=[ModuleCallEntry(c["fqn"], None if c["fqn"] else signature) for c in calls],
            dialect=(self.record.get("verifiers") or ["TRAINING"])[0],
        )


def read_program(record, state, constants, examples=None):
    """An `ExportedProgram` of the JSON of one model in an archive and its tensors."""
    program = _ProgramReader(record, state, constants, examples).read()
    levels = set(LEVEL_CALLS.values())
    if all(node.target not in levels for node in program.graph.nodes):
        return program
    from ._decompose import decompose

    return decompose(program, {}, functional=False)  # what is computed at levels of vmap becomes plain steps

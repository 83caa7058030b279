"""`torch.onnx.export`: a model as an ONNX file, by way of `torch.export`."""

import functools
import operator
import os
import warnings
from dataclasses import replace
from typing import Any

import rushlight as torch
from rushlight._command.names import program_level
from rushlight._higher_order_ops._regions import all_nodes
from rushlight.export._fixed_numbers import with_fixed_numbers
from rushlight.export._grad_regions import without_regions
from rushlight.export._lower import UnsupportedError
from rushlight.export._sizes import SIZE
from rushlight.export._spread import spread
from rushlight.export.graph_signature import InputKind, OutputKind
from rushlight.onnx._bodies import OPERATORS, write
from rushlight.onnx._graph import DTYPES, Complex, Graph, Value, element_type, with_bodies
from rushlight.onnx._rules.complex_numbers import is_complex, on_pairs
from rushlight.onnx._rules.quantized import INTEGER_RULES, on_numbers
from rushlight.utils import _pytree as pytree

__all__ = ["ONNXProgram", "OnnxExporterError", "export", "producer_name", "producer_version"]

# What files say of who wrote them.
producer_name, producer_version = "rushlight", str(torch.__version__)

_OPSETS = range(18, 26)
_DEFAULT_OPSET = 18


def _of_shapes(results, like):
    """Results with the example's shapes: rules name those that they need only."""
    if isinstance(results, (list, tuple)) and isinstance(like, (list, tuple)):
        return tuple(map(_of_shapes, results, like))
    if isinstance(results, Complex) and isinstance(like, torch.Tensor):
        return Complex(*(replace(part, shape=tuple(like.shape)) for part in (results.real, results.imag)))
    if isinstance(results, Value) and isinstance(like, torch.Tensor):
        quantizer = (like.q_scale(), like.q_zero_point()) if like.is_quantized else None
        return Value(results.name, results.dtype, tuple(like.shape), quantizer)
    return results


class OnnxExporterError(RuntimeError):
    """What keeps a model from being exported."""


def _need_onnx():
    try:
        import onnx
    except ImportError:
        raise ModuleNotFoundError(
            "onnx.export needs the package onnx: pip install onnx (and onnxruntime to run what it writes)",
            name="onnx",
        ) from None
    return onnx


class ONNXProgram:
    """An exported model: ``model_proto`` is ONNX's own object, `save` writes it, calling runs it."""

    def __init__(self, model_proto, exported_program):
        self.model_proto = model_proto
        self.exported_program = exported_program
        self._session: Any = None

    def save(self, destination, *, external_data=None, **_):
        """Writes the file.

        Args:
            destination: a path, or a file opened for writing bytes.
            external_data: keep the weights in a file of their own beside it, named ``destination + ".data"``;
                by default from 2 GB on, which one ONNX file cannot hold.
        """
        onnx = _need_onnx()
        if hasattr(destination, "write"):
            if external_data:
                raise ValueError("external_data needs a path, beside which the weights are written")
            destination.write(self.model_proto.SerializeToString())
            return
        if external_data is None:
            external_data = self.model_proto.ByteSize() >= 2**31 - 1
        path = os.fspath(destination)
        if external_data:
            name = os.path.basename(path) + ".data"
            if os.path.exists(f"{path}.data"):
                os.remove(f"{path}.data")  # which onnx would append to
            copy = type(self.model_proto)()
            copy.CopyFrom(self.model_proto)  # saving moves the weights out of it
            onnx.save_model(copy, path, save_as_external_data=True, location=name, size_threshold=1024)
        else:
            onnx.save_model(self.model_proto, path)

    def optimize(self):
        """Nothing is left to do: constants are shared and dead code is gone."""

    def initialize_inference_session(self, initializer=None):
        """Makes the session of onnxruntime that calls use."""
        if initializer is None:
            import onnxruntime

            self._session = onnxruntime.InferenceSession(self.model_proto.SerializeToString())
        else:
            self._session = initializer(self.model_proto.SerializeToString())

    def release(self):
        """Drops the session."""
        self._session = None

    def __call__(self, *args, **kwargs):
        """Runs the model with onnxruntime on tensors and numbers that may change; gives a list of tensors."""
        if self._session is None:
            self.initialize_inference_session()
        leaves, guards = pytree.tree_leaves((args, kwargs)), self.exported_program.guards
        numbers = [i for i, guard in enumerate(guards) if None in guard.places()]
        kept = [t for i, t in enumerate(leaves) if isinstance(t, torch.Tensor) or i in numbers]
        given = [torch.as_tensor(t) for t in kept]
        names = [i.name for i in self._session.get_inputs()]
        results = self._session.run(None, {n: t.detach().numpy() for n, t in zip(names, given, strict=True)})
        return [torch.from_numpy(r) for r in results]

    def __repr__(self):
        from onnx import printer

        return printer.to_text(self.model_proto)


def export(
    model,
    args=(),
    f=None,
    *,
    kwargs=None,
    verbose=None,
    input_names=None,
    output_names=None,
    opset_version=None,
    dynamo=True,
    external_data=None,
    dynamic_shapes=None,
    custom_translation_table=None,
    report=False,
    optimize=True,
    verify=False,
    profile=False,
    dump_exported_program=False,
    artifacts_dir=".",
    export_params=True,
    keep_initializers_as_inputs=False,
    dynamic_axes=None,
    training=None,
    operator_export_type=None,
    do_constant_folding=True,
    custom_opsets=None,
    export_modules_as_functions=False,
    autograd_inlining=True,
):
    """Writes a model as ONNX.

    The model is traced by `torch.export`, so programs whose course depends on values are refused there.

    Args:
        model: a module, which is exported as it is (call ``eval()`` first), or an ``ExportedProgram``.
        args, kwargs: an example of its arguments.
        f: where to write the file; None gives the program only.
        input_names, output_names: names in the file, of tensors in order.
        opset_version: up to 25; 18 if not given. Below 18 the graph of 18 is converted by `onnx`; where that
            fails the file keeps 18, and a warning says why.
        dynamic_shapes: which sizes may change, as `torch.export.export` takes them.
        dynamic_axes: the same in the older form, ``{"input": {0: "batch"}}``.
        custom_translation_table: {an operator of ``torch.ops``: a rule ``(graph, *arguments)``} for operators
            without a rule here; rules call ``graph.op("Name", *values, **attributes)``.
        external_data: see `ONNXProgram.save`.
        verify: run the file with onnxruntime and compare its results with the model's.
        verbose: print the graph.
        export_params, keep_initializers_as_inputs, training, and what follows: accepted; the file holds the
            weights, and constants are shared in any case.

    Returns:
        An `ONNXProgram`.

    Raises:
        NotImplementedError: operators without a rule, all of them listed.
        OnnxExporterError: the results of ``verify`` differ.
        ModuleNotFoundError: the package onnx is missing.
    """
    onnx = _need_onnx()
    opset = _DEFAULT_OPSET if opset_version is None else opset_version
    if not 1 <= opset <= _OPSETS[-1]:
        raise ValueError(f"onnx.export: opset_version must be at most {_OPSETS[-1]}, but it is {opset}")
    if isinstance(args, torch.Tensor):
        args = (args,)
    if (
        args
        and isinstance(args[-1], dict)
        and not kwargs
        and not isinstance(model, torch.export.ExportedProgram)
    ):
        *args, kwargs = args  # the older way to pass them
    program = model
    if not isinstance(model, torch.export.ExportedProgram):
        if dynamic_shapes is None and dynamic_axes:
            dynamic_shapes = _from_axes(model, args, kwargs or {}, dynamic_axes, input_names or [])
        with _exporting():
            program = _captured(model, tuple(args), kwargs, dynamic_shapes)
    program = _with_rules(_without_functions(program), custom_translation_table or {})
    translator = _Translator(program, max(opset, _OPSETS[0]), custom_translation_table or {})
    proto = translator.model(onnx, input_names, output_names)
    if opset < _OPSETS[0]:
        proto = _in_older_opset(onnx, proto, opset)
    onnx.checker.check_model(proto) if proto.ByteSize() < 2**31 - 1 else None
    result = ONNXProgram(proto, program)
    if verbose:
        print(result)
    if f is not None:
        result.save(f, external_data=external_data)
    if verify:
        _verify(result, model, tuple(args), kwargs or {})
    return result


def _without_functions(program):
    """The program with choices that are computed whole, and short maps row by row, as far as that helps."""
    try:
        return spread(program, "onnx.export")
    except UnsupportedError as error:
        raise NotImplementedError(str(error)) from None


def _with_rules(program, custom):
    """The program with operators that have no rule taken apart, as far as decompositions are known."""
    from rushlight._decomp import decomposition_table

    while True:
        nodes = all_nodes(program.graph)
        targets = {node.target for node in nodes if node.op == "call_function" and not _is_constant(node)}
        unknown = {t for t in targets if t in decomposition_table and _rule_of(t, custom) is None}
        if not unknown:
            return program
        program = program.run_decompositions({target: decomposition_table[target] for target in unknown})


def _rule_of(target, custom):
    from rushlight.onnx._rules import RULES

    if target in custom:
        return custom[target]
    if target in _ON_SIZES or target in _FRACTIONS or target in (SIZE, operator.getitem, *OPERATORS):
        return target
    name = _operator_name(target)
    return RULES.get(f"{name}.{getattr(target, '_overloadname', '')}", RULES.get(name))


def _in_older_opset(onnx, proto, opset):
    """The graph in an opset without rules here, if `onnx` can convert it; else as it is."""
    from onnx import version_converter

    stays = f"the file keeps opset {_OPSETS[0]}"
    try:
        older = version_converter.convert_version(proto, opset)
        onnx.checker.check_model(older, full_check=True)
    except Exception as error:  # the converter raises RuntimeError, the checker its own
        text = f"onnx.export: onnx cannot convert the graph to opset {opset}, {stays}: {error}"
        warnings.warn(text, stacklevel=program_level())
        return proto
    return older


def _captured(model, args, kwargs, dynamic_shapes):
    """The exported program, without operators that write to their arguments."""
    program = torch.export.export(model, args, kwargs, dynamic_shapes=dynamic_shapes)
    program = without_regions(program)
    fixed = with_fixed_numbers(program)
    if fixed is not program:  # scales that were read are known now, and so are those of results
        model = fixed.module()
        program = torch.export.export(model, args, kwargs, dynamic_shapes=dynamic_shapes)
    if not any(_writes(node.target) for node in program.graph.nodes):
        return program
    run = model.forward
    model.forward = functools.wraps(run)(torch.func.functionalize(run))
    try:
        return torch.export.export(model, args, kwargs, dynamic_shapes=dynamic_shapes)
    finally:
        del model.forward


def _writes(target):
    schema = getattr(target, "_schema", None)
    return schema is not None and schema.is_mutable


_depth = 0


class _exporting:
    """While it lasts, `is_in_onnx_export` is true."""

    def __enter__(self):
        global _depth
        _depth += 1

    def __exit__(self, *exc):
        global _depth
        _depth -= 1


def is_in_onnx_export() -> bool:
    """Whether a model is being exported right now."""
    return _depth > 0


def _from_axes(model, args, kwargs, axes, names):
    """`dynamic_shapes` for the older `dynamic_axes`, whose names are those of the file's inputs."""
    import inspect

    parameters = list(inspect.signature(getattr(model, "forward", model)).parameters)
    given = dict(zip(parameters, args, strict=False)) | kwargs
    dims = {}
    shapes = {}
    for place, name in enumerate(given):
        shown = names[place] if place < len(names) else name
        wanted = axes.get(shown, axes.get(name, {}))
        if not isinstance(wanted, dict):
            wanted = {axis: f"{shown}_dynamic_axes_{i + 1}" for i, axis in enumerate(wanted)}
        shapes[name] = {
            axis: dims.setdefault(label, torch.export.Dim(label, min=1)) for axis, label in wanted.items()
        } or None
    return shapes


def _verify(program, model, args, kwargs):
    run = model.module() if isinstance(model, torch.export.ExportedProgram) else model
    with torch.no_grad():
        wanted = [t for t in pytree.tree_leaves(run(*args, **kwargs)) if isinstance(t, torch.Tensor)]
    try:
        torch.testing.assert_close(program(*args, **kwargs), wanted, rtol=1e-3, atol=1e-4)
    except AssertionError as error:
        raise OnnxExporterError(
            f"onnx.export: the file's results differ from the model's: {error}"
        ) from error


class _Translator:
    """Goes through the exported graph and writes each node by its rule."""

    def __init__(self, program, opset, custom):
        self._program = program
        self._graph = Graph(opset)
        self._custom = custom
        self._values = {}
        self._inputs = []

    def model(self, onnx, input_names, output_names):
        graph = self._program.graph_module.graph
        needed = _needed(graph)
        self._check_rules(graph, needed)
        self._add_inputs(graph, needed, iter(input_names or ()))
        for node in graph.nodes:
            if node in needed and _is_step(node):
                self._values[node] = self._translate(node)
        outputs = self._outputs(graph, output_names or ())
        helper, g = onnx.helper, self._graph
        nodes, read = _live(onnx, g, {o.name for o in outputs})
        kept = [t for t in g.initializers if t.name in read]
        made = helper.make_graph(nodes, "main_graph", self._inputs, outputs, initializer=kept)
        return helper.make_model(
            made,
            opset_imports=[helper.make_opsetid("", g.opset)],
            producer_name=producer_name,
            producer_version=producer_version,
            ir_version=10,
        )

    def _check_rules(self, graph, needed):
        missing = {}
        for node in graph.nodes:
            if node not in needed or node.op != "call_function" or _is_constant(node):
                if node in needed and "region" in node.meta:
                    inner = node.meta["region"].graph
                    self._check_rules(inner, _needed(inner))
                continue
            if _rule_of(node.target, self._custom) is None:
                missing.setdefault(str(node.target), node)
        if missing:
            raise NotImplementedError(
                f"onnx.export: no rule for {', '.join(sorted(missing))}; pass custom_translation_table="
                "{torch.ops...: rule} with rules for them"
            )

    def _add_inputs(self, graph, needed, names):
        program = self._program
        guards = iter(program.guards)
        placeholders = [node for node in graph.nodes if node.op == "placeholder"]
        for node, spec in zip(placeholders, program.graph_signature.input_specs, strict=True):
            if spec.kind == InputKind.USER_INPUT:
                self._values[node] = self._user_input(node, next(guards), names)
            elif node in needed:
                tensor = program.state_dict.get(spec.target, program.constants.get(spec.target))
                self._values[node] = self._graph.initializer(spec.target, tensor)

    def _user_input(self, node, guard, names):
        example = node.meta.get("val")
        if guard.places().get(None) is not None:  # a number, which is a tensor in the file
            name = self._graph.name(next(names, str(node.target)))
            self._inputs.append(self._graph._helper.make_tensor_value_info(name, DTYPES[torch.int64], []))
            return Value(name, torch.int64, ())
        if not isinstance(example, torch.Tensor):
            return guard.value
        sizes = [
            n if isinstance(n, int) else n.symbol if (n.factor, n.offset) == (1, 0) else None
            for n in guard.sizes
        ]
        name = self._graph.name(next(names, str(node.target)))
        self._inputs.append(self._describe(name, example, sizes))
        return Value(name, example.dtype, tuple(example.shape))

    def _describe(self, name, example, sizes):
        return self._graph._helper.make_tensor_value_info(name, element_type(example.dtype), sizes)

    def _translate(self, node):
        if node.op == "get_attr":
            return self._graph.constant(getattr(self._program.graph_module, node.target))
        args, kwargs = pytree.tree_map(self._value_of, (tuple(node.args), dict(node.kwargs)))
        if node.target is SIZE:
            return self._graph.size(*args)
        if node.target is operator.getitem:
            return args[0][args[1]]
        if node.target in OPERATORS:
            return write(self._graph, self._steps, node, args)
        if _is_constant(node):
            return self._graph.constant(node.target(*args, **kwargs))
        self._graph.out = node.meta.get("val")
        self._graph.operands = [getattr(a, "meta", {}).get("val") for a in node.args]
        rule = _rule_of(node.target, self._custom)
        if node.target in _ON_SIZES or node.target in _FRACTIONS:
            return _on_sizes(self._graph, node.target, *args)
        try:
            if _on_numbers(node.target, args):
                rule = on_numbers(rule)
            out = self._graph.out  # which rules may replace by that of a part
            if any(map(is_complex, pytree.tree_leaves((args, kwargs, out)))):
                rule = on_pairs(node.target, _operator_name(node.target), rule)
            return _of_shapes(rule(self._graph, *args, **kwargs), out)
        except NotImplementedError:
            raise
        except Exception as error:
            raise OnnxExporterError(f"onnx.export: {node.target} of {node.format_node()}: {error}") from error

    def _steps(self, region, values):
        """The results of a function's graph, whose nodes are written where the graph is now."""
        graph = region.graph
        needed, inputs = _needed(graph), [n for n in graph.nodes if n.op == "placeholder"]
        self._values.update(zip(inputs, values, strict=True))
        around, self._graph.in_function = self._graph.in_function, bool(self._program.symbols)
        for node in graph.nodes:
            if node in needed and _is_step(node):
                self._values[node] = self._translate(node)
        self._graph.in_function = around
        results = graph.output_node().args[0]
        results = results if isinstance(results, (list, tuple)) else (results,)
        return [self._graph.constant(self._value_of(r)) for r in results]

    def _value_of(self, leaf):
        if isinstance(leaf, torch.fx.Node) and "region" in leaf.meta:
            return leaf.meta["region"]
        return self._values[leaf] if isinstance(leaf, torch.fx.Node) else leaf

    def _outputs(self, graph, names):
        specs = self._program.graph_signature.output_specs
        results = zip(pytree.tree_leaves(graph.output_node().args[0]), specs, strict=True)
        own = [leaf for leaf, spec in results if spec.kind == OutputKind.USER_OUTPUT and leaf is not None]
        described = []
        for i, leaf in enumerate(own):
            if isinstance(leaf, str):
                raise NotImplementedError(f"onnx.export: the model returns {leaf!r}, which is no tensor")
            value = self._graph.constant(self._value_of(leaf))
            if isinstance(value, Complex):
                raise NotImplementedError(
                    "onnx.export: ONNX has no complex tensors; return torch.view_as_real of the result"
                )
            name = self._graph.name(names[i] if i < len(names) else f"output_{i}" if i else "output")
            self._graph.give(value, name)
            sizes = [None] * value.dim  # worked out by whoever reads the file
            described.append(
                self._graph._helper.make_tensor_value_info(name, element_type(value.dtype), sizes)
            )
        return described


def _live(onnx, graph, outputs):
    """The nodes that the outputs depend on, and what is read."""
    read, kept = set(outputs), []
    for node in reversed(graph.nodes):
        if not read & set(node.output):
            continue
        # Results at the end that nobody reads, such as a pool's positions; other operators want all theirs.
        while node.output[-1] not in read and _may_leave_out(onnx, node, graph.opset):
            del node.output[-1]
        for inner in with_bodies([node]):
            read.update(inner.input)
        kept.append(node)
    return kept[::-1], read


def _may_leave_out(onnx, node, opset):
    """Whether ONNX lets a node do without its last result."""
    if not onnx.defs.has(node.op_type, domain=node.domain):
        return False
    results = onnx.defs.get_schema(node.op_type, opset, node.domain).outputs
    at = len(node.output) - 1
    return at < len(results) and results[at].option == onnx.defs.OpSchema.FormalParameterOption.Optional


def _is_step(node):
    return node.op == "call_function" or (node.op == "get_attr" and "region" not in node.meta)


def _on_numbers(target, args):
    """Whether an operator computes with the numbers that integers among its operands stand for."""
    given = [a for a in pytree.tree_leaves(args) if isinstance(a, Value) and a.quantizer]
    own = _operator_name(target) in INTEGER_RULES or target.traits.on_quantized == "integers"
    return bool(given) and not own


def _operator_name(target):
    return getattr(getattr(target, "_schema", None), "name", "").removeprefix("aten::")


def _is_constant(node):
    """Whether a node of no inputs gives the same tensor every time, which is then kept in the file."""
    made = isinstance(node.meta.get("val"), torch.Tensor) and not node.all_input_nodes
    return made and node.op == "call_function" and "Generator?" not in str(node.target._schema)


_ON_SIZES = {
    operator.add: "Add",
    operator.sub: "Sub",
    operator.mul: "Mul",
    operator.floordiv: "Div",
    operator.mod: "Mod",
    operator.neg: "Neg",
    torch.sym_max: "Max",
    torch.sym_min: "Min",
}
_FRACTIONS = {
    operator.truediv: "Div",
    operator.pow: "Pow",
    torch._sym_sqrt: "Sqrt",  # type: ignore[attr-defined]
    torch.sym_float: "Identity",
}


def _on_sizes(g, target, *args):
    """Arithmetic of sizes; they are not negative, so that division rounds down. Fractions are of float64."""
    if all(isinstance(a, (int, float)) for a in args):
        return target(*args)
    whole = target not in _FRACTIONS and not any(
        a.is_floating_point if isinstance(a, Value) else isinstance(a, float) for a in args
    )
    values = [g.cast(a, torch.int64 if whole else torch.float64) for a in args]
    if whole or target not in (operator.floordiv, operator.mod):
        made = g.op(_ON_SIZES.get(target) or _FRACTIONS[target], *values, shape=())
    else:
        made = g.op("Floor", g.op("Div", *values, shape=()))
        if target is operator.mod:
            made = g.op("Sub", values[0], g.op("Mul", made, values[1]))
    return replace(made, is_number=not whole)


def _needed(graph):
    """The nodes that the results depend on."""
    needed, waiting = set(), list(graph.output_node().all_input_nodes)
    while waiting:
        node = waiting.pop()
        if node not in needed:
            needed.add(node)
            waiting += node.all_input_nodes
    return needed

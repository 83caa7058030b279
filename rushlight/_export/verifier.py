"""Whether an exported program is what its signature says, and its graph one of its dialect's operators."""

import math
import operator
import types

import rushlight as torch
from rushlight._higher_order_ops.operator import HigherOrderOperator
from rushlight._ops import OpOverload
from rushlight.export.graph_signature import ConstantArgument, InputKind, OutputKind

__all__ = ["SpecViolationError", "TrainingIRVerifier", "Verifier", "verifier_for"]


class SpecViolationError(Exception):
    """A program breaks a rule of its dialect; says which, and where."""


_HELD_IN = {
    InputKind.PARAMETER: ("parameter", "state_dict"),
    InputKind.BUFFER: ("buffer", "state_dict"),
    InputKind.CONSTANT_TENSOR: ("constant", "constants"),
}
_WRITTEN = {
    OutputKind.BUFFER_MUTATION: "buffers",
    OutputKind.PARAMETER_MUTATION: "parameters",
    OutputKind.USER_INPUT_MUTATION: "user_inputs",
}


class Verifier:
    """The rules of the dialect ATEN: operators alone, none of which writes to what it is given."""

    dialect = "ATEN"
    functional = True

    def allowed_op_types(self):
        return (OpOverload, HigherOrderOperator)

    def allowed_builtin_ops(self):
        """Functions of numbers, which sizes are computed with."""
        names = (getattr(operator, name) for name in operator.__all__)
        plain = (value for value in vars(math).values() if isinstance(value, types.BuiltinFunctionType))
        return [*names, *plain, torch.sym_max, torch.sym_min, torch.sym_not, torch.sym_float, torch.sym_ite]

    def allowed_getattr_types(self):
        return (torch.fx.GraphModule,)

    def check_valid_op(self, op):
        """For subclasses: raises for an operator that they do not take."""

    def check_additional(self, gm):
        """For subclasses: raises for a graph that breaks further rules."""

    def check(self, ep):
        self._check_graph_module(ep.graph_module)
        _check_inputs(ep)
        _check_outputs(ep)

    __call__ = check

    def _check_graph_module(self, gm):
        for module in gm.modules():
            if isinstance(module, torch.fx.GraphModule):
                module.graph.lint()
                for node in module.graph.nodes:
                    self._check_node(module, node)
        self.check_additional(gm)

    def _check_node(self, module, node):
        if node.op == "get_attr":
            self._check_attribute(module, node)
        elif node.op == "call_function":
            self._check_operator(node)
        elif node.op in ("call_module", "call_method"):
            raise SpecViolationError(f"{node.format_node()}: {node.op} in a graph of operators")

    def _check_attribute(self, module, node):
        value = operator.attrgetter(node.target)(module)
        if not isinstance(value, self.allowed_getattr_types()):
            raise SpecViolationError(
                f"{node.name}: the attribute {node.target} is a {type(value).__name__}, not an input"
            )

    def _check_operator(self, node):
        op = node.target
        if op not in self.allowed_builtin_ops() and not isinstance(op, self.allowed_op_types()):
            raise SpecViolationError(
                f"{node.format_node()}: {op!r} is no operator of the dialect {self.dialect}"
            )
        if isinstance(op, OpOverload):
            if self.functional and op._schema.is_mutable:
                raise SpecViolationError(f"{node.name}: the operator {op} is not functional")
            if "val" not in node.meta:
                raise SpecViolationError(f"{node.name}: nothing is known of the result (meta['val'])")
            self.check_valid_op(op)


class TrainingIRVerifier(Verifier):
    """The rules of a program as `torch.export` makes it: operators may write to what they are given."""

    dialect = "TRAINING"
    functional = False

    def allowed_builtin_ops(self):
        return [*super().allowed_builtin_ops(), torch._C._set_grad_enabled]


def verifier_for(dialect):
    return Verifier() if dialect == Verifier.dialect else TrainingIRVerifier()


def _check_inputs(ep):
    specs = ep.graph_signature.input_specs
    placeholders = [node.name for node in ep.graph.nodes if node.op == "placeholder"]
    if len(specs) != len(placeholders):
        raise SpecViolationError(
            f"the graph has {len(placeholders)} inputs ({placeholders}), its signature {len(specs)}"
        )
    for spec, name in zip(specs, placeholders):
        if spec.arg.name != name:
            raise SpecViolationError(f"the input {name} is called {spec.arg.name} in the signature")
        if spec.kind in _HELD_IN:
            _check_held(ep, spec)


def _check_held(ep, spec):
    kind, where = _HELD_IN[spec.kind]
    if spec.kind == InputKind.BUFFER and spec.persistent is False:
        where = "constants"
    held = getattr(ep, where)
    if spec.target not in held:
        raise SpecViolationError(f"the {kind} {spec.target} is not in the {where.replace('_', ' ')}")
    if spec.kind == InputKind.PARAMETER and not isinstance(held[spec.target], torch.nn.Parameter):
        raise SpecViolationError(
            f"the state dict has {spec.target}, which is not an instance of torch.nn.Parameter"
        )


def _check_outputs(ep):
    signature, values = ep.graph_signature, ep.graph.output_node().args[0]
    specs = signature.output_specs
    if len(values) != len(specs):
        raise SpecViolationError(
            f"Number of output nodes: the graph returns {len(values)} values, its signature has {len(specs)}"
        )
    for spec, value in zip(specs, values):
        if isinstance(value, torch.fx.Node) == isinstance(spec.arg, ConstantArgument):
            raise SpecViolationError(f"the output {value} is {spec.arg} in the signature")
        if isinstance(value, torch.fx.Node) and value.name != spec.arg.name:
            raise SpecViolationError(f"the output {value.name} is called {spec.arg.name} in the signature")
        if spec.kind in _WRITTEN and spec.target not in getattr(signature, _WRITTEN[spec.kind]):
            raise SpecViolationError(f"{spec.target}, which the program writes to, is none of its inputs")

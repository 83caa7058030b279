"""What the inputs and outputs of an exported graph are: parameters, buffers, constants, or the user's."""

import dataclasses
from enum import Enum, auto
from typing import Any

__all__ = [
    "ConstantArgument",
    "CustomObjArgument",
    "ExportBackwardSignature",
    "ExportGraphSignature",
    "InputKind",
    "InputSpec",
    "OutputKind",
    "OutputSpec",
    "SymBoolArgument",
    "SymFloatArgument",
    "SymIntArgument",
    "TensorArgument",
]


@dataclasses.dataclass
class TensorArgument:
    """A tensor, by the name of its node."""

    name: str


@dataclasses.dataclass
class SymIntArgument:
    name: str


@dataclasses.dataclass
class SymFloatArgument:
    name: str


@dataclasses.dataclass
class SymBoolArgument:
    name: str


@dataclasses.dataclass
class CustomObjArgument:
    name: str
    class_fqn: str
    fake_val: Any = None


@dataclasses.dataclass
class ConstantArgument:
    """A value that is no tensor, and the same in every call."""

    name: str
    value: Any


class InputKind(Enum):
    """Where an input of the graph comes from."""

    USER_INPUT = auto()
    PARAMETER = auto()
    BUFFER = auto()
    CONSTANT_TENSOR = auto()
    CUSTOM_OBJ = auto()
    TOKEN = auto()


class OutputKind(Enum):
    """What an output of the graph is for."""

    USER_OUTPUT = auto()
    LOSS_OUTPUT = auto()
    BUFFER_MUTATION = auto()
    PARAMETER_MUTATION = auto()
    GRADIENT_TO_PARAMETER = auto()
    GRADIENT_TO_USER_INPUT = auto()
    USER_INPUT_MUTATION = auto()
    TOKEN = auto()


@dataclasses.dataclass
class InputSpec:
    """One input; ``target`` is its name in the module."""

    kind: InputKind
    arg: Any
    target: str | None
    persistent: bool | None = None

    def __post_init__(self):
        if self.kind == InputKind.BUFFER and self.persistent is None:
            raise AssertionError("Failed to specify persistent flag on BUFFER.")

    def __str__(self):
        target = "" if self.target is None else f" target='{self.target}'"
        persistent = "" if self.persistent is None else f" persistent={self.persistent}"
        return f"{self.arg.name}: {self.kind.name}{target}{persistent}"


@dataclasses.dataclass
class OutputSpec:
    """One output."""

    kind: OutputKind
    arg: Any
    target: str | None

    def __str__(self):
        target = "" if self.target is None else f" target='{self.target}'"
        return f"{self.arg.name}: {self.kind.name}{target}"


@dataclasses.dataclass
class ExportBackwardSignature:
    gradients_to_parameters: dict
    gradients_to_user_inputs: dict
    loss_output: str


@dataclasses.dataclass
class ExportGraphSignature:
    """All inputs and outputs of the graph, in order."""

    input_specs: list
    output_specs: list

    def _inputs(self, kind):
        return [spec for spec in self.input_specs if spec.kind == kind]

    def _targets(self, kind):
        return tuple(spec.target for spec in self._inputs(kind))

    def _by_name(self, kind):
        return {spec.arg.name: spec.target for spec in self._inputs(kind)}

    @property
    def parameters(self):
        """The qualified names of the parameters that the graph takes."""
        return self._targets(InputKind.PARAMETER)

    @property
    def buffers(self):
        return self._targets(InputKind.BUFFER)

    @property
    def non_persistent_buffers(self):
        return tuple(s.target for s in self._inputs(InputKind.BUFFER) if s.persistent is False)

    @property
    def lifted_tensor_constants(self):
        return self._targets(InputKind.CONSTANT_TENSOR)

    @property
    def lifted_custom_objs(self):
        return self._targets(InputKind.CUSTOM_OBJ)

    @property
    def user_inputs(self):
        """Names of the user's tensors; values of the user's constants."""
        return tuple(_shown(spec.arg) for spec in self._inputs(InputKind.USER_INPUT))

    @property
    def user_outputs(self):
        return tuple(_shown(s.arg) for s in self.output_specs if s.kind == OutputKind.USER_OUTPUT)

    @property
    def inputs_to_parameters(self):
        """Name of the placeholder -> qualified name of the parameter."""
        return self._by_name(InputKind.PARAMETER)

    @property
    def inputs_to_buffers(self):
        return self._by_name(InputKind.BUFFER)

    @property
    def inputs_to_lifted_tensor_constants(self):
        return self._by_name(InputKind.CONSTANT_TENSOR)

    @property
    def inputs_to_lifted_custom_objs(self):
        return self._by_name(InputKind.CUSTOM_OBJ)

    def _mutated(self, kind):
        return {s.arg.name: s.target for s in self.output_specs if s.kind == kind}

    @property
    def buffers_to_mutate(self):
        return self._mutated(OutputKind.BUFFER_MUTATION)

    @property
    def parameters_to_mutate(self):
        return self._mutated(OutputKind.PARAMETER_MUTATION)

    @property
    def user_inputs_to_mutate(self):
        return self._mutated(OutputKind.USER_INPUT_MUTATION)

    @property
    def backward_signature(self):
        return None

    @property
    def assertion_dep_token(self):
        return None

    def replace_all_uses(self, old, new):
        """A node has another name now."""
        for spec in (*self.input_specs, *self.output_specs):
            if spec.arg.name == old:
                spec.arg.name = new

    def get_replace_hook(self, replace_inputs=False):
        """A hook of graphs by which the signature follows names of results, and of inputs if asked to."""

        def replaced(old, new, user):
            if user.op == "output" or (replace_inputs and old.op == "placeholder"):
                self.replace_all_uses(old.name, new)

        return replaced

    def __str__(self):
        inputs = "\n".join(str(spec) for spec in self.input_specs)
        outputs = "\n".join(str(spec) for spec in self.output_specs)
        return f"\n# inputs\n{inputs}\n\n# outputs\n{outputs}\n"


def _shown(argument):
    return argument.value if isinstance(argument, ConstantArgument) else argument.name

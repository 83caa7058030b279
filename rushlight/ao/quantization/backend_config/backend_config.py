"""The words in which an engine says what it computes with integers."""

import enum
from dataclasses import dataclass, field

from ..utils import Pattern as Pattern

__all__ = ["BackendConfig", "BackendPatternConfig", "DTypeConfig", "DTypeWithConstraints", "ObservationType"]


class ObservationType(enum.Enum):
    """Whose scale the results of a pattern have."""

    OUTPUT_USE_DIFFERENT_OBSERVER_AS_INPUT = 0
    OUTPUT_SHARE_OBSERVER_WITH_INPUT = 1
    INPUT_OUTPUT_NOT_OBSERVED = 2


@dataclass
class DTypeWithConstraints:
    """A dtype, and what range and scales of it the engine takes."""

    dtype: object = None
    quant_min_lower_bound: object = None
    quant_max_upper_bound: object = None
    scale_min_lower_bound: object = None
    scale_max_upper_bound: object = None
    scale_exact_match: object = None
    zero_point_exact_match: object = None


_PARTS = ("input", "output", "weight", "bias")


@dataclass
class DTypeConfig:
    """One combination of dtypes; ``is_dynamic`` where operands get their scale at each call."""

    input_dtype_with_constraints: DTypeWithConstraints
    output_dtype_with_constraints: DTypeWithConstraints
    weight_dtype_with_constraints: DTypeWithConstraints
    bias_dtype: object
    is_dynamic: object

    def __init__(
        self, input_dtype=None, output_dtype=None, weight_dtype=None, bias_dtype=None, is_dynamic=None
    ):
        for part, value in zip(_PARTS, (input_dtype, output_dtype, weight_dtype)):
            wrapped = value if isinstance(value, DTypeWithConstraints) else DTypeWithConstraints(dtype=value)
            setattr(self, f"{part}_dtype_with_constraints", wrapped)
        self.bias_dtype = bias_dtype
        self.is_dynamic = is_dynamic

    @property
    def input_dtype(self):
        return self.input_dtype_with_constraints.dtype

    @property
    def output_dtype(self):
        return self.output_dtype_with_constraints.dtype

    @property
    def weight_dtype(self):
        return self.weight_dtype_with_constraints.dtype

    @classmethod
    def from_dict(cls, dtype_config_dict):
        names = ("input_dtype", "output_dtype", "weight_dtype", "bias_dtype", "is_dynamic")
        return cls(**{name: dtype_config_dict.get(name) for name in names})

    def to_dict(self):
        found = {}
        for part in ("input", "output", "weight"):
            value = getattr(self, f"{part}_dtype_with_constraints")
            if value.dtype is not None:
                found[f"{part}_dtype"] = value
        if self.bias_dtype is not None:
            found["bias_dtype"] = self.bias_dtype
        if self.is_dynamic is not None:
            found["is_dynamic"] = self.is_dynamic
        return found


class BackendConfig:
    """The patterns that an engine knows. Calls can be chained."""

    def __init__(self, name=""):
        self.name = name
        self._pattern_complex_format_to_config = {}

    def __repr__(self):
        return f"BackendConfig({self.__dict__})"

    def set_name(self, name):
        self.name = name
        return self

    def set_backend_pattern_config(self, config):
        """One more pattern; one that is known is replaced."""
        from .utils import _get_pattern_in_reversed_nested_tuple_format

        self._pattern_complex_format_to_config[_get_pattern_in_reversed_nested_tuple_format(config)] = config
        return self

    def set_backend_pattern_configs(self, configs):
        for config in configs:
            self.set_backend_pattern_config(config)
        return self

    @property
    def configs(self):
        return list(self._pattern_complex_format_to_config.values())

    @classmethod
    def from_dict(cls, backend_config_dict):
        made = cls(backend_config_dict.get("name", ""))
        for one in backend_config_dict.get("configs", []):
            if isinstance(one, BackendPatternConfig):
                made.set_backend_pattern_config(one)
            elif isinstance(one, dict):
                made.set_backend_pattern_config(BackendPatternConfig.from_dict(one))
            else:
                raise ValueError(f"Expected backend_config_dict['configs'] to be a dictionary, got {one}")
        return made

    def to_dict(self):
        return {"name": self.name, "configs": [config.to_dict() for config in self.configs]}


# Attribute, its key in a dictionary, and the method that sets it.
_FIELDS = (
    ("pattern", "pattern", "set_pattern"),
    ("dtype_configs", "dtype_configs", "set_dtype_configs"),
    ("root_module", "root_module", "set_root_module"),
    ("qat_module", "qat_module", "set_qat_module"),
    ("reference_quantized_module", "reference_quantized_module_for_root", "set_reference_quantized_module"),
    ("fused_module", "fused_module", "set_fused_module"),
    ("fuser_method", "fuser_method", "set_fuser_method"),
    ("_root_node_getter", "root_node_getter", "_set_root_node_getter"),
    ("_extra_inputs_getter", "extra_inputs_getter", "_set_extra_inputs_getter"),
    (
        "_num_tensor_args_to_observation_type",
        "num_tensor_args_to_observation_type",
        "_set_num_tensor_args_to_observation_type",
    ),
    ("_input_type_to_index", "input_type_to_index", "_set_input_type_to_index"),
    ("_pattern_complex_format", "pattern_complex_format", "_set_pattern_complex_format"),
)


@dataclass(eq=False)
class BackendPatternConfig:
    """A pattern: an operator, or several in the order of their calls, and what becomes of it."""

    pattern: object = None
    observation_type: ObservationType = ObservationType.OUTPUT_USE_DIFFERENT_OBSERVER_AS_INPUT
    dtype_configs: list = field(default_factory=list)
    root_module: object = None
    qat_module: object = None
    reference_quantized_module: object = None
    fused_module: object = None
    fuser_method: object = None
    _root_node_getter: object = None
    _extra_inputs_getter: object = None
    _num_tensor_args_to_observation_type: dict = field(default_factory=dict)
    _input_type_to_index: dict = field(default_factory=dict)
    _pattern_complex_format: object = None

    def __repr__(self):
        shown = {name: value for name, value in self.__dict__.items() if value not in (None, [], {})}
        return f"BackendPatternConfig({shown})"

    def set_observation_type(self, observation_type):
        self.observation_type = observation_type
        return self

    def add_dtype_config(self, dtype_config):
        self.dtype_configs.append(dtype_config)
        return self

    @classmethod
    def from_dict(cls, backend_pattern_config_dict):
        given = backend_pattern_config_dict
        made = cls()
        if "observation_type" in given:
            made.set_observation_type(given["observation_type"])
        for _, key, setter in _FIELDS:
            if key in given and key != "dtype_configs":
                getattr(made, setter)(given[key])
        for one in given.get("dtype_configs", []):
            made.add_dtype_config(one if isinstance(one, DTypeConfig) else DTypeConfig.from_dict(one))
        return made

    def to_dict(self):
        found = {"observation_type": self.observation_type}
        found["dtype_configs"] = [config.to_dict() for config in self.dtype_configs]
        for name, key, _ in _FIELDS:
            value = getattr(self, name)
            if key != "dtype_configs" and value not in (None, {}):
                found[key] = value
        return found


def _setter(name, method):
    def set_value(self, value):
        setattr(self, name, value)
        return self

    set_value.__name__ = method
    set_value.__doc__ = f"Set ``{name.lstrip('_')}``; returns the configuration."
    return set_value


def _set_pattern(self, pattern):
    """Set the pattern, in the order of calls."""
    if self._pattern_complex_format is not None:
        raise ValueError("Only one of 'pattern' or 'pattern_complex_format' can be set")
    self.pattern = pattern
    return self


def _set_pattern_complex_format(self, pattern):
    """Set the pattern as nested pairs from its last operator on."""
    if self.pattern is not None:
        raise ValueError("Only one of 'pattern' or 'pattern_complex_format' can be set")
    self._pattern_complex_format = pattern
    return self


for _name, _, _method in _FIELDS:
    setattr(BackendPatternConfig, _method, _setter(_name, _method))
BackendPatternConfig.set_pattern = _set_pattern
BackendPatternConfig._set_pattern_complex_format = _set_pattern_complex_format


def _init_with_pattern(self, pattern=None, _plain=BackendPatternConfig.__init__):
    _plain(self, pattern)


BackendPatternConfig.__init__ = _init_with_pattern

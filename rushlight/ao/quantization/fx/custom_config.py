"""What a program says of its own modules, of its graph's inputs and outputs, and of attributes to keep."""

from dataclasses import dataclass

from ..backend_config import BackendConfig
from ..qconfig_mapping import QConfigMapping
from ..quant_type import QuantType, _quant_type_from_str, quant_type_to_str

# Keys of the dictionaries that older programs pass.
STANDALONE_MODULE_NAME_DICT_KEY = "standalone_module_name"
STANDALONE_MODULE_CLASS_DICT_KEY = "standalone_module_class"
FLOAT_TO_OBSERVED_DICT_KEY = "float_to_observed_custom_module_class"
OBSERVED_TO_QUANTIZED_DICT_KEY = "observed_to_quantized_custom_module_class"
NON_TRACEABLE_MODULE_NAME_DICT_KEY = "non_traceable_module_name"
NON_TRACEABLE_MODULE_CLASS_DICT_KEY = "non_traceable_module_class"
INPUT_QUANTIZED_INDEXES_DICT_KEY = "input_quantized_idxs"
OUTPUT_QUANTIZED_INDEXES_DICT_KEY = "output_quantized_idxs"
PRESERVED_ATTRIBUTES_DICT_KEY = "preserved_attributes"

__all__ = ["ConvertCustomConfig", "FuseCustomConfig", "PrepareCustomConfig", "StandaloneModuleConfigEntry"]


@dataclass
class StandaloneModuleConfigEntry:
    """How a module that is traced apart is prepared."""

    qconfig_mapping: object
    example_inputs: tuple
    prepare_custom_config: object
    backend_config: object


def _taken(kind, value, key):
    """A configuration, also given as its dictionary."""
    if value is None or isinstance(value, kind):
        return value
    if isinstance(value, dict):
        return kind.from_dict(value)
    raise ValueError(f"Expected {kind.__name__} in {key}, got '{type(value)}'")


def _mapping_from(given, key):
    found = {}
    for kind, classes in given.get(key, {}).items():
        found[_quant_type_from_str(kind) if isinstance(kind, str) else QuantType(kind)] = dict(classes)
    return found


def _mapping_to(mapping):
    return {quant_type_to_str(kind): dict(classes) for kind, classes in mapping.items()}


class PrepareCustomConfig:
    """Custom settings of `prepare_fx`. Calls can be chained."""

    def __init__(self):
        self.standalone_module_names = {}
        self.standalone_module_classes = {}
        self.float_to_observed_mapping = {}
        self.non_traceable_module_names = []
        self.non_traceable_module_classes = []
        self.input_quantized_indexes = []
        self.output_quantized_indexes = []
        self.preserved_attributes = []

    def __repr__(self):
        shown = {name: value for name, value in self.__dict__.items() if len(value) > 0}
        return f"PrepareCustomConfig({shown})"

    def set_standalone_module_name(
        self, module_name, qconfig_mapping, example_inputs, prepare_custom_config, backend_config
    ):
        """The module at a path is traced apart."""
        self.standalone_module_names[module_name] = StandaloneModuleConfigEntry(
            qconfig_mapping, example_inputs, prepare_custom_config, backend_config
        )
        return self

    def set_standalone_module_class(
        self, module_class, qconfig_mapping, example_inputs, prepare_custom_config, backend_config
    ):
        """Modules of a class are traced apart."""
        self.standalone_module_classes[module_class] = StandaloneModuleConfigEntry(
            qconfig_mapping, example_inputs, prepare_custom_config, backend_config
        )
        return self

    def set_float_to_observed_mapping(self, float_class, observed_class, quant_type=QuantType.STATIC):
        """What a class of the program's becomes before it is watched."""
        if quant_type != QuantType.STATIC:
            raise ValueError(
                "set_float_to_observed_mapping is currently only supported for static quantization"
            )
        self.float_to_observed_mapping.setdefault(quant_type, {})[float_class] = observed_class
        return self

    def set_non_traceable_module_names(self, module_names):
        """Modules that stay one node each."""
        self.non_traceable_module_names = module_names
        return self

    def set_non_traceable_module_classes(self, module_classes):
        """Modules of classes that stay one node each."""
        self.non_traceable_module_classes = module_classes
        return self

    def set_input_quantized_indexes(self, indexes):
        """Which inputs come as integers."""
        self.input_quantized_indexes = indexes
        return self

    def set_output_quantized_indexes(self, indexes):
        """Which outputs go as integers."""
        self.output_quantized_indexes = indexes
        return self

    def set_preserved_attributes(self, attributes):
        """Attributes of the model that the graph keeps."""
        self.preserved_attributes = attributes
        return self

    @classmethod
    def from_dict(cls, prepare_custom_config_dict):
        given = prepare_custom_config_dict
        made = cls()
        for key, setter in (
            (STANDALONE_MODULE_NAME_DICT_KEY, made.set_standalone_module_name),
            (STANDALONE_MODULE_CLASS_DICT_KEY, made.set_standalone_module_class),
        ):
            for what, mapping, inputs, custom, backend in given.get(key, []):
                setter(
                    what,
                    _taken(QConfigMapping, mapping, key),
                    inputs,
                    _taken(PrepareCustomConfig, custom, key),
                    _taken(BackendConfig, backend, key),
                )
        made.float_to_observed_mapping = _mapping_from(given, FLOAT_TO_OBSERVED_DICT_KEY)
        made.set_non_traceable_module_names(given.get(NON_TRACEABLE_MODULE_NAME_DICT_KEY, []))
        made.set_non_traceable_module_classes(given.get(NON_TRACEABLE_MODULE_CLASS_DICT_KEY, []))
        made.set_input_quantized_indexes(given.get(INPUT_QUANTIZED_INDEXES_DICT_KEY, []))
        made.set_output_quantized_indexes(given.get(OUTPUT_QUANTIZED_INDEXES_DICT_KEY, []))
        made.set_preserved_attributes(given.get(PRESERVED_ATTRIBUTES_DICT_KEY, []))
        return made

    def to_dict(self):
        def row(what, entry):
            parts = (entry.qconfig_mapping, entry.prepare_custom_config)
            mapping, custom = (None if part is None else part.to_dict() for part in parts)
            return (what, mapping, entry.example_inputs, custom, entry.backend_config)

        found = {
            STANDALONE_MODULE_NAME_DICT_KEY: [row(*item) for item in self.standalone_module_names.items()],
            STANDALONE_MODULE_CLASS_DICT_KEY: [row(*item) for item in self.standalone_module_classes.items()],
            FLOAT_TO_OBSERVED_DICT_KEY: _mapping_to(self.float_to_observed_mapping),
            NON_TRACEABLE_MODULE_NAME_DICT_KEY: self.non_traceable_module_names,
            NON_TRACEABLE_MODULE_CLASS_DICT_KEY: self.non_traceable_module_classes,
            INPUT_QUANTIZED_INDEXES_DICT_KEY: self.input_quantized_indexes,
            OUTPUT_QUANTIZED_INDEXES_DICT_KEY: self.output_quantized_indexes,
            PRESERVED_ATTRIBUTES_DICT_KEY: self.preserved_attributes,
        }
        return {key: value for key, value in found.items() if value}


class ConvertCustomConfig:
    """Custom settings of `convert_fx`. Calls can be chained."""

    def __init__(self):
        self.observed_to_quantized_mapping = {}
        self.preserved_attributes = []

    def __repr__(self):
        shown = {name: value for name, value in self.__dict__.items() if len(value) > 0}
        return f"ConvertCustomConfig({shown})"

    def set_observed_to_quantized_mapping(self, observed_class, quantized_class, quant_type=QuantType.STATIC):
        """What a watched class of the program's becomes."""
        self.observed_to_quantized_mapping.setdefault(quant_type, {})[observed_class] = quantized_class
        return self

    def set_preserved_attributes(self, attributes):
        """Attributes of the model that the graph keeps."""
        self.preserved_attributes = attributes
        return self

    @classmethod
    def from_dict(cls, convert_custom_config_dict):
        made = cls()
        made.observed_to_quantized_mapping = _mapping_from(
            convert_custom_config_dict, OBSERVED_TO_QUANTIZED_DICT_KEY
        )
        return made.set_preserved_attributes(
            convert_custom_config_dict.get(PRESERVED_ATTRIBUTES_DICT_KEY, [])
        )

    def to_dict(self):
        found = {
            OBSERVED_TO_QUANTIZED_DICT_KEY: _mapping_to(self.observed_to_quantized_mapping),
            PRESERVED_ATTRIBUTES_DICT_KEY: self.preserved_attributes,
        }
        return {key: value for key, value in found.items() if value}


class FuseCustomConfig:
    """Custom settings of `fuse_fx`. Calls can be chained."""

    def __init__(self):
        self.preserved_attributes = []

    def __repr__(self):
        shown = {name: value for name, value in self.__dict__.items() if len(value) > 0}
        return f"FuseCustomConfig({shown})"

    def set_preserved_attributes(self, attributes):
        """Attributes of the model that the graph keeps."""
        self.preserved_attributes = attributes
        return self

    @classmethod
    def from_dict(cls, fuse_custom_config_dict):
        return cls().set_preserved_attributes(fuse_custom_config_dict.get(PRESERVED_ATTRIBUTES_DICT_KEY, []))

    def to_dict(self):
        return {PRESERVED_ATTRIBUTES_DICT_KEY: self.preserved_attributes} if self.preserved_attributes else {}

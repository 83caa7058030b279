"""Which configuration each operation of a model gets: for all, by type, by name, by pattern of names."""

from collections import OrderedDict

import rushlight
from rushlight import nn
from rushlight.nn import functional as F

from . import fake_quantize as _fq
from . import observer as _ob
from . import qconfig as _qc
from .qconfig import QConfig

__all__ = ["QConfigMapping", "get_default_qat_qconfig_mapping", "get_default_qconfig_mapping"]

_GLOBAL_DICT_KEY = ""
_OBJECT_TYPE_DICT_KEY = "object_type"
_MODULE_NAME_REGEX_DICT_KEY = "module_name_regex"
_MODULE_NAME_DICT_KEY = "module_name"
_MODULE_NAME_OBJECT_TYPE_ORDER_DICT_KEY = "module_name_object_type_order"

# From the least to the most special: a later one holds before an earlier one.
_QCONFIG_STYLE_ORDER = [
    "global_qconfig",
    "object_type_qconfigs",
    "module_name_regex_qconfigs",
    "module_name_qconfigs",
    "module_name_object_type_order_qconfigs",
]

_FIXED_QPARAMS_OP_TO_OBSERVER = {
    **dict.fromkeys(
        [nn.Hardsigmoid, F.hardsigmoid, "hardsigmoid", "hardsigmoid_"],
        _ob.default_fixed_qparams_range_0to1_observer,
    ),
    **dict.fromkeys(
        [nn.Sigmoid, rushlight.sigmoid, "sigmoid", "sigmoid_", nn.Softmax],
        _ob.default_fixed_qparams_range_0to1_observer,
    ),
    **dict.fromkeys(
        [nn.Tanh, rushlight.tanh, "tanh", "tanh_"], _ob.default_fixed_qparams_range_neg1to1_observer
    ),
}

_TRANSPOSED = (
    nn.ConvTranspose1d,
    nn.ConvTranspose2d,
    nn.ConvTranspose3d,
    F.conv_transpose1d,
    F.conv_transpose2d,
    F.conv_transpose3d,
)


class QConfigMapping:
    """Configurations for all of a model, for types, names, and patterns of names. Calls can be chained."""

    def __init__(self):
        self.global_qconfig = None
        self.object_type_qconfigs = OrderedDict()
        self.module_name_regex_qconfigs = OrderedDict()
        self.module_name_qconfigs = OrderedDict()
        self.module_name_object_type_order_qconfigs = OrderedDict()

    def set_global(self, global_qconfig):
        """For whatever nothing else names."""
        self.global_qconfig = global_qconfig
        return self

    def set_object_type(self, object_type, qconfig):
        """For a class of modules, a function, or a method by its name."""
        self.object_type_qconfigs[object_type] = qconfig
        return self

    def set_module_name_regex(self, module_name_regex, qconfig):
        """For modules whose path matches a regular expression; the first that matches holds."""
        self.module_name_regex_qconfigs[module_name_regex] = qconfig
        return self

    def set_module_name(self, module_name, qconfig):
        """For the module at a path and what is in it."""
        self.module_name_qconfigs[module_name] = qconfig
        return self

    def set_module_name_object_type_order(self, module_name, object_type, index, qconfig):
        """For the use number ``index`` of a type in the module at a path."""
        self.module_name_object_type_order_qconfigs[(module_name, object_type, index)] = qconfig
        return self

    def __repr__(self):
        lines = [f"{type(self).__name__} ("]
        for style in _QCONFIG_STYLE_ORDER:
            value = getattr(self, style)
            lines.append(f" {style}")
            if isinstance(value, OrderedDict) and value:
                lines += [f"  {key}: {qconfig}" for key, qconfig in value.items()]
            else:
                lines.append(f"  {value}")
        return "\n".join([*lines, ")"])

    def to_dict(self):
        """As the dictionary that older programs pass."""
        return {
            _GLOBAL_DICT_KEY: self.global_qconfig,
            _OBJECT_TYPE_DICT_KEY: list(self.object_type_qconfigs.items()),
            _MODULE_NAME_REGEX_DICT_KEY: list(self.module_name_regex_qconfigs.items()),
            _MODULE_NAME_DICT_KEY: list(self.module_name_qconfigs.items()),
            _MODULE_NAME_OBJECT_TYPE_ORDER_DICT_KEY: [
                (*key, qconfig) for key, qconfig in self.module_name_object_type_order_qconfigs.items()
            ],
        }

    @classmethod
    def from_dict(cls, qconfig_dict):
        """From the dictionary that older programs pass; other keys are passed over."""
        made = cls()
        if _GLOBAL_DICT_KEY in qconfig_dict:
            made.set_global(qconfig_dict[_GLOBAL_DICT_KEY])
        for key, setter in (
            (_OBJECT_TYPE_DICT_KEY, made.set_object_type),
            (_MODULE_NAME_REGEX_DICT_KEY, made.set_module_name_regex),
            (_MODULE_NAME_DICT_KEY, made.set_module_name),
        ):
            for pattern, qconfig in qconfig_dict.get(key, []):
                setter(pattern, qconfig)
        for name, kind, index, qconfig in qconfig_dict.get(_MODULE_NAME_OBJECT_TYPE_ORDER_DICT_KEY, []):
            made.set_module_name_object_type_order(name, kind, index, qconfig)
        return made


def _get_default_qconfig_mapping(is_qat, backend, version):
    """The configuration of an engine for all, and what differs for some operations."""
    general = (_qc.get_default_qat_qconfig if is_qat else _qc.get_default_qconfig)(backend, version)
    fixed_weight = _fq.default_weight_fake_quant if is_qat else _ob.default_weight_observer
    # Transposed convolutions of these engines know one scale of weights only.
    transposed_weight = fixed_weight if backend in ("fbgemm", "x86") else general.weight
    transposed = QConfig(activation=general.activation, weight=transposed_weight)
    normalised = QConfig(activation=general.activation, weight=_ob.default_placeholder_observer)
    made = QConfigMapping().set_global(general).set_object_type("reshape", _qc.default_reuse_input_qconfig)
    for kind in _TRANSPOSED:
        made.set_object_type(kind, transposed)
    made.set_object_type(F.layer_norm, normalised).set_object_type(nn.LayerNorm, normalised)
    made.set_object_type(nn.PReLU, _qc.default_quint8_weight_qconfig)
    for kind, observer in _FIXED_QPARAMS_OP_TO_OBSERVER.items():
        made.set_object_type(kind, _fixed(observer, is_qat, fixed_weight))
    return made


def _fixed(observer, is_qat, weight):
    activation = _fq.FixedQParamsFakeQuantize.with_args(observer=observer) if is_qat else observer
    return QConfig(activation=activation, weight=weight)


def get_default_qconfig_mapping(backend="x86", version=0):
    """What calibration for an engine starts from."""
    return _get_default_qconfig_mapping(False, backend, version)


def get_default_qat_qconfig_mapping(backend="x86", version=1):
    """What training for an engine starts from."""
    return _get_default_qconfig_mapping(True, backend, version)


def _get_default_qconfig_mapping_with_default_qconfig(is_qat, backend, qconfig):
    """An engine's mapping in which this configuration stands for all but operations of known range."""
    made = (get_default_qat_qconfig_mapping if is_qat else get_default_qconfig_mapping)(backend)
    made.set_global(qconfig)
    for kind in made.object_type_qconfigs:
        if kind not in _FIXED_QPARAMS_OP_TO_OBSERVER:
            made.set_object_type(kind, qconfig)
    return made


def _get_symmetric_qnnpack_qconfig_mapping():
    return _get_default_qconfig_mapping_with_default_qconfig(
        False, "qnnpack", _qc.default_symmetric_qnnpack_qconfig
    )


def _get_symmetric_qnnpack_qat_qconfig_mapping():
    return _get_default_qconfig_mapping_with_default_qconfig(
        True, "qnnpack", _qc.default_symmetric_qnnpack_qat_qconfig
    )

"""Which class a layer becomes: of integers, of training, of a reference model."""

import copy

import rushlight
from rushlight import nn
from rushlight.ao.nn import intrinsic as nni
from rushlight.ao.nn import qat as nnqat
from rushlight.ao.nn import quantizable as nnqa
from rushlight.ao.nn import quantized as nnq
from rushlight.ao.nn.intrinsic import qat as nniqat
from rushlight.ao.nn.intrinsic import quantized as nniq
from rushlight.ao.nn.intrinsic.quantized import dynamic as nniqd
from rushlight.ao.nn.qat import dynamic as nnqatd
from rushlight.ao.nn.quantized import dynamic as nnqd
from rushlight.ao.nn.quantized import reference as nnqr
from rushlight.ao.nn.sparse import quantized as nnsq
from rushlight.nn import functional as F

from .fake_quantize import (
    default_fixed_qparams_range_0to1_fake_quant,
    default_fixed_qparams_range_neg1to1_fake_quant,
)
from .stubs import DeQuantStub, QuantStub
from .utils import get_combined_dict

__all__ = [
    "DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS",
    "DEFAULT_FLOAT_TO_QUANTIZED_OPERATOR_MAPPINGS",
    "DEFAULT_MODULE_TO_ACT_POST_PROCESS",
    "DEFAULT_QAT_MODULE_MAPPINGS",
    "DEFAULT_REFERENCE_STATIC_QUANT_MODULE_MAPPINGS",
    "DEFAULT_STATIC_QUANT_MODULE_MAPPINGS",
    "get_default_compare_output_module_list",
    "get_default_dynamic_quant_module_mappings",
    "get_default_dynamic_sparse_quant_module_mappings",
    "get_default_float_to_quantized_operator_mappings",
    "get_default_qat_module_mappings",
    "get_default_qconfig_propagation_list",
    "get_default_static_quant_module_mappings",
    "get_default_static_quant_reference_module_mappings",
    "get_default_static_sparse_quant_module_mappings",
    "get_dynamic_quant_module_class",
    "get_embedding_qat_module_mappings",
    "get_embedding_static_quant_module_mappings",
    "get_quantized_operator",
    "get_static_quant_module_class",
    "no_observer_set",
]

_NonDynamic = nn.modules.linear.NonDynamicallyQuantizableLinear


def _same_name(names, source, target):
    """The class of one module for the class of that name of another one."""
    return {getattr(source, name): getattr(target, name) for name in names.split()}


DEFAULT_REFERENCE_STATIC_QUANT_MODULE_MAPPINGS = {
    QuantStub: nnq.Quantize,
    DeQuantStub: nnq.DeQuantize,
    **_same_name(
        "Linear Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d Embedding EmbeddingBag "
        "GRUCell LSTMCell RNNCell LSTM",
        nn,
        nnqr,
    ),
}

DEFAULT_STATIC_QUANT_MODULE_MAPPINGS = {
    QuantStub: nnq.Quantize,
    DeQuantStub: nnq.DeQuantize,
    **_same_name(
        "BatchNorm2d BatchNorm3d Dropout Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d "
        "ConvTranspose3d ELU "
        "Embedding EmbeddingBag GroupNorm Hardswish InstanceNorm1d InstanceNorm2d InstanceNorm3d "
        "LayerNorm LeakyReLU",
        nn,
        nnq,
    ),
    _NonDynamic: nnq.Linear,
    **_same_name("Linear ReLU6 PReLU", nn, nnq),
    nnq.FloatFunctional: nnq.QFunctional,
    **_same_name(
        "BNReLU2d BNReLU3d ConvReLU1d ConvReLU2d ConvReLU3d ConvAdd2d ConvAddReLU2d LinearReLU "
        "LinearLeakyReLU "
        "LinearTanh",
        nni,
        nniq,
    ),
    nniqat.ConvBn1d: nnq.Conv1d,
    nniqat.ConvBn2d: nnq.Conv2d,
    nniqat.ConvBn3d: nnq.Conv3d,
    nniqat.ConvBnReLU1d: nniq.ConvReLU1d,
    nniqat.ConvBnReLU2d: nniq.ConvReLU2d,
    nniqat.ConvBnReLU3d: nniq.ConvReLU3d,
    **_same_name("ConvReLU2d ConvReLU3d LinearReLU", nniqat, nniq),
    nniqat.LinearBn1d: nnq.Linear,
    **_same_name("Linear Conv2d Conv3d", nnqat, nnq),
}

DEFAULT_QAT_MODULE_MAPPINGS = {
    **_same_name("Conv2d Conv3d Linear", nn, nnqat),
    _NonDynamic: nnqat.Linear,
    **_same_name(
        "ConvBn1d ConvBn2d ConvBn3d ConvBnReLU1d ConvBnReLU2d ConvBnReLU3d ConvReLU2d ConvReLU3d "
        "LinearReLU LinearBn1d",
        nni,
        nniqat,
    ),
}

DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS = {
    nn.GRUCell: nnqd.GRUCell,
    nn.Linear: nnqd.Linear,
    nnqatd.Linear: nnqd.Linear,
    _NonDynamic: nnqd.Linear,
    **_same_name("LSTM GRU LSTMCell RNNCell", nn, nnqd),
    nni.LinearReLU: nniqd.LinearReLU,
    **_same_name("EmbeddingBag Embedding", nn, nnq),
}

_INCLUDE_QCONFIG_PROPAGATE_LIST = {nn.Sequential}


def _quantized_operators():
    """Functions of integers for functions of numbers; looked up when first asked for."""
    found = rushlight.ops.quantized
    names = {
        F.elu: "elu",
        F.hardswish: "hardswish",
        F.instance_norm: "instance_norm",
        F.layer_norm: "layer_norm",
        F.leaky_relu: "leaky_relu",
        F.dropout: "dropout",
    }
    return {plain: getattr(found, name) for plain, name in names.items() if hasattr(found, name)}


DEFAULT_FLOAT_TO_QUANTIZED_OPERATOR_MAPPINGS = _quantized_operators()

DEFAULT_MODULE_TO_ACT_POST_PROCESS = {
    nn.Hardsigmoid: default_fixed_qparams_range_0to1_fake_quant,
    nn.Sigmoid: default_fixed_qparams_range_0to1_fake_quant,
    nn.Softmax: default_fixed_qparams_range_0to1_fake_quant,
    nn.Tanh: default_fixed_qparams_range_neg1to1_fake_quant,
}


def no_observer_set():
    """Layers that are watched inside, not behind."""
    return {nnqa.LSTM, nnqa.MultiheadAttention}


def get_default_static_quant_module_mappings():
    return copy.deepcopy(DEFAULT_STATIC_QUANT_MODULE_MAPPINGS)


def get_default_static_quant_reference_module_mappings():
    return copy.deepcopy(DEFAULT_REFERENCE_STATIC_QUANT_MODULE_MAPPINGS)


def get_default_static_sparse_quant_module_mappings():
    return {nn.Linear: nnsq.Linear}


def get_default_dynamic_sparse_quant_module_mappings():
    return {nn.Linear: nnsq.dynamic.Linear}


def get_embedding_static_quant_module_mappings():
    mapping = get_default_static_quant_module_mappings()
    mapping[nnqat.EmbeddingBag] = nnq.EmbeddingBag
    mapping[nnqat.Embedding] = nnq.Embedding
    return mapping


def get_default_qat_module_mappings():
    return copy.deepcopy(DEFAULT_QAT_MODULE_MAPPINGS)


def get_embedding_qat_module_mappings():
    mapping = get_default_qat_module_mappings()
    mapping[nn.EmbeddingBag] = nnqat.EmbeddingBag
    mapping[nn.Embedding] = nnqat.Embedding
    return mapping


def get_default_dynamic_quant_module_mappings():
    return DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS


def _class_for(float_module_class, mapping):
    found = mapping.get(float_module_class)
    if found is None:
        raise AssertionError(
            f"Floating point module class {float_module_class} does not have a corresponding "
            f"quantized module class"
        )
    return copy.deepcopy(found)


def get_static_quant_module_class(
    float_module_class, additional_static_quant_mapping=None, is_reference=False
):
    mapping = (
        DEFAULT_REFERENCE_STATIC_QUANT_MODULE_MAPPINGS
        if is_reference
        else DEFAULT_STATIC_QUANT_MODULE_MAPPINGS
    )
    return _class_for(float_module_class, get_combined_dict(mapping, additional_static_quant_mapping or {}))


def get_dynamic_quant_module_class(float_module_class, additional_dynamic_quant_mapping=None):
    mapping = get_combined_dict(DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS, additional_dynamic_quant_mapping or {})
    return _class_for(float_module_class, mapping)


def get_default_qconfig_propagation_list():
    """Layers that get a configuration from what holds them."""
    return copy.deepcopy(
        set(DEFAULT_STATIC_QUANT_MODULE_MAPPINGS)
        | set(DEFAULT_QAT_MODULE_MAPPINGS)
        | set(DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS)
        | _INCLUDE_QCONFIG_PROPAGATE_LIST
    )


def get_default_compare_output_module_list():
    """Layers whose results are compared before and after."""
    tables = (
        DEFAULT_STATIC_QUANT_MODULE_MAPPINGS,
        DEFAULT_QAT_MODULE_MAPPINGS,
        DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS,
    )
    both = {kind for table in tables for pair in table.items() for kind in pair}
    return copy.deepcopy(both | _INCLUDE_QCONFIG_PROPAGATE_LIST)


def get_default_float_to_quantized_operator_mappings():
    return dict(DEFAULT_FLOAT_TO_QUANTIZED_OPERATOR_MAPPINGS)


def get_quantized_operator(float_op):
    found = DEFAULT_FLOAT_TO_QUANTIZED_OPERATOR_MAPPINGS.get(float_op)
    if found is None:
        raise AssertionError(f"Operator {float_op} does not have corresponding quantized op")
    return found


def _get_special_act_post_process(module):
    """The fake quantiser of a layer whose range is known."""
    from rushlight.nn.utils.parametrize import type_before_parametrizations

    return DEFAULT_MODULE_TO_ACT_POST_PROCESS.get(type_before_parametrizations(module))


def _has_special_act_post_process(module):
    return module.training and type(module) in DEFAULT_MODULE_TO_ACT_POST_PROCESS

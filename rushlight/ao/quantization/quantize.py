"""Quantisation of models as they are written: observers beside layers, then layers of integers in their
place."""

import copy
import inspect

import rushlight
from rushlight import nn
from rushlight.ao.nn import intrinsic as nni
from rushlight.ao.nn import quantizable as nnqa
from rushlight.ao.nn import quantized as nnq
from rushlight.nn.utils.parametrize import type_before_parametrizations

from .observer import _is_activation_post_process
from .qconfig import (
    _activation_is_memoryless,
    _add_module_to_qconfig_obs_ctr,
    _assert_valid_qconfig,
    default_dynamic_qconfig,
    float16_dynamic_qconfig,
    float_qparams_weight_only_qconfig,
    float_qparams_weight_only_qconfig_4bit,
)
from .quantization_mappings import (
    _get_special_act_post_process,
    _has_special_act_post_process,
    get_default_dynamic_quant_module_mappings,
    get_default_qat_module_mappings,
    get_default_qconfig_propagation_list,
    get_default_static_quant_module_mappings,
    get_default_static_quant_reference_module_mappings,
    no_observer_set,
)
from .stubs import DeQuantStub, QuantWrapper
from .utils import has_no_children_ignoring_parametrizations

__all__ = [
    "add_quant_dequant",
    "convert",
    "get_default_custom_config_dict",
    "prepare",
    "prepare_qat",
    "propagate_qconfig_",
    "quantize",
    "quantize_dynamic",
    "quantize_qat",
    "swap_module",
]

_DEFAULT_CUSTOM_CONFIG_DICT = {
    "float_to_observed_custom_module_class": {
        nn.LSTM: nnqa.LSTM,
        nn.MultiheadAttention: nnqa.MultiheadAttention,
    },
    "observed_to_quantized_custom_module_class": {
        nnqa.LSTM: nnq.LSTM,
        nnqa.MultiheadAttention: nnq.MultiheadAttention,
    },
}


def get_default_custom_config_dict():
    """Layers that become something else before they are watched, and what that becomes after."""
    return _DEFAULT_CUSTOM_CONFIG_DICT


# ---- configurations ----


def _propagate_qconfig_helper(module, qconfig_dict, qconfig_parent=None, prefix="", custom=None):
    """A layer's own configuration, or its path's, or its class's, or that of what holds it; then its
    children's."""
    found = qconfig_dict.get(type_before_parametrizations(module), qconfig_parent)
    found = qconfig_dict.get(prefix, found)
    found = getattr(module, "qconfig", found)
    _assert_valid_qconfig(found, module)
    placed = _add_module_to_qconfig_obs_ctr(found, module)
    module.qconfig = placed
    skipped_names = (custom or {}).get("non_traceable_module_name", [])
    skipped_classes = (custom or {}).get("non_traceable_module_class", [])
    for name, child in module.named_children():
        path = f"{prefix}.{name}" if prefix else name
        if path in skipped_names or type(child) in skipped_classes:
            continue
        _propagate_qconfig_helper(child, qconfig_dict, placed, path, custom)


def propagate_qconfig_(module, qconfig_dict=None, prepare_custom_config_dict=None):
    """Give every layer a ``qconfig``: from the dictionary of paths and classes, or from what holds it."""
    _propagate_qconfig_helper(module, qconfig_dict or {}, custom=prepare_custom_config_dict or {})


# ---- observers ----


def _observer_forward_hook(self, input, output):
    return self.activation_post_process(output)


def _observer_forward_pre_hook(self, input):
    return self.activation_post_process(input[0])


def _register_activation_post_process_hook(module, pre_hook=False):
    """Let the observer see results, or operands; it may also change them."""
    if not hasattr(module, "activation_post_process"):
        raise AssertionError("Expect activation_post_process attribute already attached to the module")
    if pre_hook:
        module.register_forward_pre_hook(_observer_forward_pre_hook, prepend=True)
    else:
        module.register_forward_hook(_observer_forward_hook, prepend=True)


class _Watching:
    """One walk of ``prepare``: what gets an observer, and where."""

    def __init__(self, propagation_list, non_leaf, custom_classes, device=None):
        self.propagated = (
            get_default_qconfig_propagation_list() if propagation_list is None else propagation_list
        )
        self.non_leaf = non_leaf or []
        self.custom = custom_classes or {}
        self.device = device

    def observer(self, qconfig, special=None):
        made = qconfig.activation() if special is None else special()
        return made.to(self.device) if self.device is not None else made

    def insert(self, module, special=None):
        """An observer behind a layer, if its configuration has one and it is not one already."""
        qconfig = getattr(module, "qconfig", None)
        if qconfig is None or isinstance(module, DeQuantStub) or type(module) in self.skip:
            return
        module.add_module("activation_post_process", self.observer(qconfig, special))
        memoryless = _activation_is_memoryless(qconfig)
        _register_activation_post_process_hook(module, pre_hook=memoryless)

    skip: frozenset = frozenset({nn.Identity})

    def walk(self, module):
        if self.device is None:
            devices = {p.device for p in module.parameters()} | {b.device for b in module.buffers()}
            if len(devices) > 1:
                raise AssertionError(
                    "_add_observer_ only works with cpu or single-device CUDA modules, "
                    f"but got devices {sorted(map(str, devices))}"
                )
            self.device = next(iter(devices)) if devices else None
        for name, child in module.named_children():
            self.child(module, name, child)
        # A leaf on its own, like the second layer of a Sequential, or a model that is one layer.
        if (
            has_no_children_ignoring_parametrizations(module)
            and not isinstance(module, nn.Sequential)
            and type_before_parametrizations(module) in self.propagated
        ):
            self.insert(module)

    def child(self, parent, name, child):
        kind = type_before_parametrizations(child)
        if kind is nn.Dropout:
            return
        if issubclass(kind, (nnq.FloatFunctional, nnq.QFunctional)):
            if getattr(child, "qconfig", None) is not None:
                child.activation_post_process = self.observer(child.qconfig)
            return
        if isinstance(child, nni._FusedModule):
            if getattr(child, "qconfig", None) is not None:
                self.insert(child)
            return
        if self.non_leaf and kind in self.non_leaf:
            if getattr(child, "qconfig", None) is not None:
                self.insert(child)
            return
        if _has_special_act_post_process(child):
            self.insert(child, _get_special_act_post_process(child))
            return
        if getattr(child, "qconfig", None) is not None and kind in self.custom:
            made = self.custom[kind].from_float(child)
            setattr(parent, name, made)
            if not issubclass(self.custom[kind], tuple(no_observer_set())):
                self.insert(made)
            else:
                self.walk(made)
            return
        self.walk(child)


def _add_observer_(
    module,
    qconfig_propagation_list=None,
    non_leaf_module_list=None,
    device=None,
    custom_module_class_mapping=None,
):
    """Observers behind the layers of a model that have a configuration."""
    _Watching(qconfig_propagation_list, non_leaf_module_list, custom_module_class_mapping, device).walk(
        module
    )


def add_quant_dequant(module):
    """The model with stubs around each leaf that has a configuration; a leaf alone is wrapped and
    returned."""
    if has_no_children_ignoring_parametrizations(module) and getattr(module, "qconfig", None):
        return QuantWrapper(module)
    for name, child in module.named_children():
        module._modules[name] = add_quant_dequant(child)
    return module


def prepare(
    model,
    inplace=False,
    allow_list=None,
    observer_non_leaf_module_list=None,
    prepare_custom_config_dict=None,
):
    """The model with observers, ready to be calibrated. Layers need a ``qconfig``, their own or from
    what holds them."""
    custom = (
        get_default_custom_config_dict() if prepare_custom_config_dict is None else prepare_custom_config_dict
    )
    classes = custom.get("float_to_observed_custom_module_class", {})
    if not inplace:
        model = copy.deepcopy(model)
    propagation = get_default_qconfig_propagation_list() if allow_list is None else allow_list
    propagate_qconfig_(model, qconfig_dict=None)
    if not any(getattr(m, "qconfig", None) for m in model.modules()):
        import warnings

        warnings.warn(
            "None of the submodule got qconfig applied. Make sure you passed correct configuration through "
            "`qconfig_dict` or by assigning the `.qconfig` attribute directly on submodules",
            stacklevel=2,
        )
    _add_observer_(model, propagation, observer_non_leaf_module_list, custom_module_class_mapping=classes)
    return model


def _remove_activation_post_process(module):
    """No observer any more, and no hook that called it."""
    if hasattr(module, "activation_post_process") and _is_activation_post_process(
        module.activation_post_process
    ):
        delattr(module, "activation_post_process")
    for hooks, ours in (
        (module._forward_pre_hooks, _observer_forward_pre_hook),
        (module._forward_hooks, _observer_forward_hook),
    ):
        for key in [key for key, hook in hooks.items() if hook is ours]:
            hooks.pop(key)


def _remove_qconfig(module):
    """A model without configurations and observers."""
    for child in module.children():
        _remove_qconfig(child)
    if hasattr(module, "qconfig"):
        del module.qconfig
    _remove_activation_post_process(module)


# ---- whole ways ----


def quantize(model, run_fn, run_args, mapping=None, inplace=False):
    """Watch, run ``run_fn(model, *run_args)``, convert."""
    mapping = get_default_static_quant_module_mappings() if mapping is None else mapping
    if not inplace:
        model = copy.deepcopy(model)
    model.eval()
    prepare(model, inplace=True)
    run_fn(model, *run_args)
    convert(model, mapping, inplace=True)
    return model


def _dynamic_spec(qconfig_spec, dtype):
    """The configuration of each class that becomes dynamic."""
    if qconfig_spec is None:
        if dtype == rushlight.qint8:
            kinds = (nn.Linear, nn.LSTM, nn.GRU, nn.LSTMCell, nn.RNNCell, nn.GRUCell)
            return dict.fromkeys(kinds, default_dynamic_qconfig)
        if dtype == rushlight.float16:
            kinds = (nn.Linear, nn.LSTM, nn.GRU, nn.LSTMCell, nn.RNNCell, nn.GRUCell)
            return dict.fromkeys(kinds, float16_dynamic_qconfig)
        if dtype == rushlight.quint8:
            return dict.fromkeys((nn.EmbeddingBag, nn.Embedding), float_qparams_weight_only_qconfig)
        if dtype == rushlight.quint4x2:
            return {nn.EmbeddingBag: float_qparams_weight_only_qconfig_4bit}
        raise ValueError(
            f"Don't know how to quantize with default settings for {dtype}. Provide full qconfig please"
        )
    if isinstance(qconfig_spec, set):
        by_dtype = {
            rushlight.qint8: default_dynamic_qconfig,
            rushlight.float16: float16_dynamic_qconfig,
            rushlight.quint8: float_qparams_weight_only_qconfig,
            rushlight.quint4x2: float_qparams_weight_only_qconfig_4bit,
        }
        if dtype not in by_dtype:
            raise RuntimeError("Unknown dtype specified for quantize_dynamic: ", str(dtype))
        return dict.fromkeys(qconfig_spec, by_dtype[dtype])
    return qconfig_spec


def quantize_dynamic(model, qconfig_spec=None, dtype=rushlight.qint8, mapping=None, inplace=False):
    """Integer weights for linear and recurrent layers; their operands get a scale at each call."""
    spec = _dynamic_spec(qconfig_spec, dtype)
    mapping = get_default_dynamic_quant_module_mappings() if mapping is None else mapping
    if not inplace:
        model = copy.deepcopy(model)
    model.eval()
    propagate_qconfig_(model, spec)
    convert(model, mapping, inplace=True)
    return model


def prepare_qat(model, mapping=None, inplace=False):
    """The model with layers that round their weights, and with fake quantisers, ready to be trained."""
    if not model.training:
        raise AssertionError("prepare_qat only works on models in training mode")
    mapping = get_default_qat_module_mappings() if mapping is None else mapping
    if not inplace:
        model = copy.deepcopy(model)
    propagate_qconfig_(model, qconfig_dict=None)
    convert(model, mapping=mapping, inplace=True, remove_qconfig=False)
    prepare(model, observer_non_leaf_module_list=set(mapping.values()), inplace=True)
    return model


def quantize_qat(model, run_fn, run_args, inplace=False):
    """Prepare for training, run ``run_fn(model, *run_args)``, convert."""
    if not inplace:
        model = copy.deepcopy(model)
    model.train()
    prepare_qat(model, inplace=True)
    run_fn(model, *run_args)
    convert(model, inplace=True)
    return model


# ---- layers of integers ----


def convert(
    module,
    mapping=None,
    inplace=False,
    remove_qconfig=True,
    is_reference=False,
    convert_custom_config_dict=None,
    use_precomputed_fake_quant=False,
):
    """The model with layers of the classes that the mapping names, by their ``from_float``."""
    custom = (
        get_default_custom_config_dict() if convert_custom_config_dict is None else convert_custom_config_dict
    )
    classes = custom.get("observed_to_quantized_custom_module_class", {})
    if mapping is None:
        make = (
            get_default_static_quant_reference_module_mappings
            if is_reference
            else get_default_static_quant_module_mappings
        )
        mapping = make()
    if not inplace:
        module = copy.deepcopy(module)
    _convert(module, mapping, classes, is_reference, use_precomputed_fake_quant)
    if remove_qconfig:
        _remove_qconfig(module)
    return module


def _convert(module, mapping, classes, is_reference, use_precomputed_fake_quant):
    swapped = {}
    for name, child in module.named_children():
        # Fused layers and those of programs are swapped whole.
        if not isinstance(child, nni._FusedModule) and type_before_parametrizations(child) not in classes:
            _convert(child, mapping, classes, is_reference, use_precomputed_fake_quant)
        swapped[name] = swap_module(child, mapping, classes, use_precomputed_fake_quant)
    for name, made in swapped.items():
        module._modules[name] = made
    return module


def _weight_scale(mod):
    """What a reference layer is told of its weight: the scheme, dtype, scale and zero point."""
    observer = mod.qconfig.weight()
    observer(mod.weight)
    scale, zero_point = observer.calculate_qparams()
    scheme = observer.qscheme
    if scheme in (rushlight.per_tensor_symmetric, rushlight.per_tensor_affine):
        scheme = rushlight.per_tensor_affine
    elif scheme == rushlight.per_channel_symmetric:
        scheme = rushlight.per_channel_affine
    found = {"qscheme": scheme, "dtype": observer.dtype, "scale": scale, "zero_point": zero_point}
    if hasattr(observer, "ch_axis"):
        found["axis"] = observer.ch_axis
    return found


def swap_module(mod, mapping, custom_module_class_mapping, use_precomputed_fake_quant=False):
    """What a layer becomes, with its hooks; the layer itself where nothing is known of its class."""
    if getattr(mod, "qconfig", None) is None:
        return mod
    kind = type_before_parametrizations(mod)
    if kind in custom_module_class_mapping:
        made = custom_module_class_mapping[kind].from_observed(mod)
    elif kind in mapping:
        target = mapping[kind]
        if getattr(target, "_IS_REFERENCE", False):
            made = target.from_float(mod, _weight_scale(mod))
        elif "use_precomputed_fake_quant" in inspect.signature(target.from_float).parameters:
            made = target.from_float(mod, use_precomputed_fake_quant=use_precomputed_fake_quant)
        else:
            made = target.from_float(mod)
    else:
        return mod
    for hook in mod._forward_pre_hooks.values():
        made.register_forward_pre_hook(hook)
    for hook in mod._forward_hooks.values():
        if hook is not _observer_forward_hook:
            made.register_forward_hook(hook)
    devices = {p.device for p in mod.parameters()} | {b.device for b in mod.buffers()}
    if len(devices) > 1:
        raise AssertionError(
            f"swap_module only works with cpu or single-device CUDA modules, but got devices {devices}"
        )
    if devices:
        made.to(next(iter(devices)))
    return made


def _get_observer_dict(mod, target_dict, prefix=""):
    """Observers of a model by the path of what they watch."""
    ahead = prefix + "." if prefix else ""
    if hasattr(mod, "activation_post_process"):
        target_dict[ahead + "activation_post_process"] = mod.activation_post_process
    for name, child in mod.named_children():
        _get_observer_dict(child, target_dict, ahead + name if ahead else name)

"""The configuration of each node of a graph, from a mapping."""

import re
import warnings
from collections import defaultdict

from rushlight.ao.nn.intrinsic import _FusedModule

from ..backend_config.utils import get_module_to_qat_module
from ..qconfig import _add_module_to_qconfig_obs_ctr, _assert_valid_qconfig, qconfig_equals
from ..qconfig_mapping import _QCONFIG_STYLE_ORDER
from ..utils import _parent_name, get_qconfig_dtypes

__all__: list = []


def _update_qconfig_for_fusion(model, qconfig_mapping):
    """Fused layers get the configuration of their first part; parts with different ones are refused."""
    kinds = qconfig_mapping.object_type_qconfigs
    if not kinds:
        return
    modules = dict(model.named_modules())
    for node in model.graph.nodes:
        fused = modules.get(str(node.target)) if node.op == "call_module" else None
        if not isinstance(fused, _FusedModule):
            continue
        parts = list(fused._modules.values())
        first = kinds.get(type(parts[0]))
        for part in parts[1:]:
            if not qconfig_equals(kinds.get(type(part)), first):
                raise LookupError(
                    "During fusion, we need to specify the same qconfigs for all module types in "
                    f"{type(fused)} offending type: {type(part)}"
                )
        if first is not None:
            kinds[type(fused)] = first


def _update_qconfig_for_qat(qconfig_mapping, backend_config):
    """Layers of training get the configuration of the plain layers."""
    trained = get_module_to_qat_module(backend_config)
    for kind, qconfig in list(qconfig_mapping.object_type_qconfigs.items()):
        if kind in trained:
            qconfig_mapping.object_type_qconfigs[trained[kind]] = qconfig


def _get_module_name_regex_qconfig(mapping, path, default):
    for pattern, qconfig in mapping.module_name_regex_qconfigs.items():
        if re.match(pattern, path):
            return qconfig
    return default


def _get_module_name_qconfig(mapping, path, default):
    """The configuration of the nearest module on a path that has one by name."""
    while path:
        if path in mapping.module_name_qconfigs:
            return mapping.module_name_qconfigs[path]
        path = _parent_name(path)[0]
    return mapping.module_name_qconfigs.get("", default)


def _get_flattened_qconfig_dict(mapping):
    """The entries that `propagate_qconfig_` knows: the global one (""), those of types and of paths."""
    return {"": mapping.global_qconfig, **mapping.object_type_qconfigs, **mapping.module_name_qconfigs}


def _get_object_type_qconfig(mapping, object_type, default):
    return mapping.object_type_qconfigs.get(object_type, default)


def _maybe_adjust_qconfig_for_module_name_object_type_order(mapping, parent, kind, use, default):
    """The configuration of a type's n-th use in a module, where it has one."""
    return mapping.module_name_object_type_order_qconfigs.get((parent, kind, use), default)


def _qconfig_of(mapping, kind, path, parent, use):
    """The configuration of one use of a type in a module: the most special entry holds."""
    found = _get_object_type_qconfig(mapping, kind, mapping.global_qconfig)
    found = _get_module_name_regex_qconfig(mapping, path, found)
    found = _get_module_name_qconfig(mapping, path, found)
    return _maybe_adjust_qconfig_for_module_name_object_type_order(mapping, parent, kind, use, found)


def _generate_node_name_to_qconfig(
    root, modules, input_graph, qconfig_mapping, node_name_to_scope, of_modules=True
):
    """The configuration of each node. Modules keep theirs as an attribute too, but for equalisation."""
    found = {}
    uses = defaultdict(lambda: defaultdict(int))
    for node in input_graph.nodes:
        qconfig = None
        if node.op == "get_attr":
            qconfig = _qconfig_of(qconfig_mapping, None, _parent_name(node.target)[0], "", 0)
            module = modules.get(node.target) if of_modules else None
            found[node.name] = _add_module_to_qconfig_obs_ctr(qconfig, module)
            continue
        if node.op in ("call_function", "call_method"):
            path = node_name_to_scope.get(node.name, ("", None))[0]
            kind = node.target
            qconfig = _qconfig_of(qconfig_mapping, kind, path, path, uses[path][kind])
            uses[path][kind] += 1
            module = modules.get(path) if of_modules else None
            found[node.name] = _add_module_to_qconfig_obs_ctr(qconfig, module)
        elif node.op == "call_module":
            path = str(node.target)
            module = modules[path]
            if type(module).__name__.endswith(("Observer", "FakeQuantize")):
                continue
            kind, parent = type(module), _parent_name(path)[0]
            qconfig = _qconfig_of(qconfig_mapping, kind, path, parent, uses[parent][kind])
            uses[parent][kind] += 1
            if not of_modules:
                found[node.name] = qconfig
                continue
            qconfig = _add_module_to_qconfig_obs_ctr(qconfig, module)
            _assert_valid_qconfig(qconfig, module)
            module.qconfig = qconfig
            found[node.name] = qconfig
        else:
            found[node.name] = None
    return found


def _is_qconfig_supported_by_dtype_configs(qconfig, dtype_configs):
    """Whether a pattern takes the dtypes that a configuration asks for."""
    import rushlight

    for config in dtype_configs:
        dynamic = bool(config.is_dynamic)
        wanted = (
            config.input_dtype or rushlight.float,
            config.weight_dtype or rushlight.float,
            config.output_dtype or rushlight.float,
            dynamic,
        )
        activation, weight, is_dynamic = get_qconfig_dtypes(qconfig)
        if dynamic:
            matches = is_dynamic and (wanted[0], wanted[1]) == (activation, weight)
        else:
            without_weight = config.weight_dtype is None or config.weight_dtype == rushlight.float
            weight_fits = without_weight or weight == wanted[1]
            matches = not is_dynamic and activation == wanted[0] == activation and weight_fits
            matches = matches and (activation == wanted[2] or wanted[0] == rushlight.float)
        if matches and _fits_bounds(qconfig, config):
            return True
    return False


def _fits_bounds(qconfig, dtype_config):
    """Whether ranges and scales of a configuration are those that an engine takes."""
    return all(
        _observer_fits(make, bounds, what)
        for make, bounds, what in (
            (qconfig.activation, dtype_config.input_dtype_with_constraints, "activation"),
            (qconfig.weight, dtype_config.weight_dtype_with_constraints, "weight"),
            (qconfig.activation, dtype_config.output_dtype_with_constraints, "activation"),
        )
        if make is not None and bounds.dtype is not None
    )


def _observer_fits(make, bounds, what):
    made = make()
    if made.dtype != bounds.dtype:
        return True
    observer = getattr(made, "activation_post_process", made)
    low, high = bounds.quant_min_lower_bound, bounds.quant_max_upper_bound
    smallest = bounds.scale_min_lower_bound
    scale, zero = bounds.scale_exact_match, bounds.zero_point_exact_match
    eps = getattr(observer, "eps", None)
    own = [getattr(observer, name, None) for name in ("quant_min", "quant_max")]
    problem = None
    if low is not None and high is not None and None in own:
        problem = "must specify 'quant_min' and 'quant_max'"
    elif low is not None and high is not None and (own[0] < low or own[1] > high):
        problem = (
            f"quantization range must fall within the backend's: ({own[0]}, {own[1]}) not in ({low}, {high})"
        )
    elif smallest is not None and eps is None:
        problem = "must specify 'eps'"
    elif smallest is not None and float(eps) < smallest:
        problem = f"eps ({float(eps)}) must be greater than or equal to the backend's min scale ({smallest})"
    elif scale is not None and zero is not None:
        if not type(observer).__name__.startswith("FixedQParams"):
            problem = "must be a FixedQParamsObserver or a FixedQParamsFakeQuantize for fixed qparams ops"
        elif float(observer.scale) != scale or int(observer.zero_point) != zero:
            problem = f"scale and zero point must be the backend's: {scale} and {zero}"
    if problem is not None:
        warnings.warn(f"QConfig {what} {problem}, ignoring {make}", stacklevel=2)
    return problem is None


def _compare_prepare_convert_qconfig_mappings(prepare_qconfig_mapping, convert_qconfig_mapping):
    """Converting may leave things out (None), and may not change them."""
    if not qconfig_equals(prepare_qconfig_mapping.global_qconfig, convert_qconfig_mapping.global_qconfig):
        raise AssertionError(
            "Expected global qconfigs to be the same in the prepare and convert quantization configs"
        )
    for style in _QCONFIG_STYLE_ORDER[1:]:
        before, after = getattr(prepare_qconfig_mapping, style), getattr(convert_qconfig_mapping, style)
        for name, qconfig in before.items():
            if name not in after:
                raise AssertionError(
                    f"Missing key {style} {name} in convert QConfigMapping when it was present in prepare"
                )
            if after[name] is not None and not qconfig_equals(qconfig, after[name]):
                raise AssertionError(
                    f"Expected convert QConfigMapping to have the same qconfig as prepare for key "
                    f"{style} {name}; "
                    f"prepare: {qconfig}; convert: {after[name]}"
                )

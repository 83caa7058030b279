"""Comparing traced models: weights, results of operations, and operations on the other model's operands.

Results are dictionaries: by layer, by what was noted (``weight``, ``node_output``, ``node_input``), by model,
a list of entries with ``values`` and where they come from.
"""

import rushlight
from rushlight import fx, nn
from rushlight.ao.quantization import quantize_fx
from rushlight.ao.quantization.fake_quantize import FakeQuantizeBase
from rushlight.ao.quantization.fx.qconfig_mapping_utils import _generate_node_name_to_qconfig
from rushlight.ao.quantization.fx.tracer import QuantizationTracer
from rushlight.ao.quantization.observer import ObserverBase

from .fx.graph_matcher import get_matching_subgraph_pairs
from .fx.graph_passes import add_loggers_to_model, create_a_shadows_b, fqn_of
from .fx.mappings import get_node_type_to_io_type_map
from .fx.n_shadows_utils import (
    SHADOW_WRAPPER_NODE_NAME_PREFIX,
    Shadows,
    create_results_comparison,
    extract_weight_comparison,
    group_results_by_subgraph,
    print_n_shadows_summary,
)
from .fx.ns_types import NSSingleResultValuesType
from .fx.qconfig_multi_mapping import QConfigMultiMapping
from .fx.utils import compute_sqnr, maybe_add_missing_fqns, rekey_logger_info_on_node_name_of_model
from .fx.weight_utils import extract_weight_from_node

__all__ = [
    "NSTracer",
    "OutputComparisonLogger",
    "OutputLogger",
    "add_loggers",
    "add_shadow_loggers",
    "convert_n_shadows_model",
    "extend_logger_results_with_comparison",
    "extract_logger_info",
    "extract_results_n_shadows_model",
    "extract_shadow_logger_info",
    "extract_weights",
    "loggers_set_enabled",
    "loggers_set_save_activations",
    "prepare_n_shadows_model",
    "print_comparisons_n_shadows_model",
]


class OutputLogger(nn.Module):
    """Notes what passes: tensors in ``stats``, results of recurrent layers in ``stats_rnn``."""

    stats: list[rushlight.Tensor]
    stats_rnn: list[tuple[rushlight.Tensor, tuple[rushlight.Tensor, rushlight.Tensor]]]

    _is_impure = True  # graphs keep calls of it though nothing reads the result

    def __init__(
        self,
        ref_node_name,
        prev_node_name,
        model_name,
        ref_name,
        prev_node_target_type,
        ref_node_target_type,
        results_type,
        index_within_arg,
        index_of_arg,
        fqn,
        qconfig_str="",
    ):
        super().__init__()
        self.stats = []
        self.stats_rnn = []
        self.ref_node_name, self.prev_node_name = ref_node_name, prev_node_name
        self.model_name, self.ref_name = model_name, ref_name
        self.prev_node_target_type = prev_node_target_type
        self.ref_node_target_type = ref_node_target_type
        self.results_type = results_type
        self.index_within_arg, self.index_of_arg = index_within_arg, index_of_arg
        self.fqn, self.qconfig_str = fqn, qconfig_str
        self.enabled = True
        self.save_activations = True

    def forward(self, x):
        if not self.enabled or not self.save_activations:
            return x
        if isinstance(x, rushlight.Tensor):
            self.stats.append(x.detach())
        elif isinstance(x, tuple) and len(x) == 2 and len(x[1]) == 2:
            self.stats_rnn.append((x[0].detach(), (x[1][0].detach(), x[1][1].detach())))
        return x

    def __repr__(self):
        shown = {k: v for k, v in self.__dict__.items() if k not in ("training", "qconfig_str")}
        return f"OutputLogger({', '.join(f'{k}={v}' for k, v in shown.items() if not k.startswith('_'))})"


class OutputComparisonLogger(OutputLogger):
    """Notes how far what passes is from what it should be."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.comparison_fn, self.comparison_fn_name = compute_sqnr, "sqnr"
        self.comparisons = []

    def forward(self, x, x_ref):
        if self.enabled and isinstance(x, rushlight.Tensor):
            super().forward(x)
            self.comparisons.append(self.comparison_fn(x, x_ref))
        return x


class NSTracer(QuantizationTracer):
    """Tracing of models with observers, which stay one node each."""

    def is_leaf_module(self, m, module_qualified_name):
        if isinstance(m, (ObserverBase, FakeQuantizeBase)):
            return True
        return super().is_leaf_module(m, module_qualified_name)


def _traced(model_a, model_b):
    """Both models as graphs whose nodes know the path of their module."""
    names, kinds = [], []
    for model in (model_a, model_b):
        custom = model.meta.get("_observed_graph_module_attrs") if isinstance(model, fx.GraphModule) else None
        custom = getattr(custom, "prepare_custom_config", None)
        if custom is not None:
            names += custom.non_traceable_module_names
            kinds += custom.non_traceable_module_classes
    found = []
    for model in (model_a, model_b):
        tracer = NSTracer(names, kinds)
        made = fx.GraphModule(model, tracer.trace(model))
        made._node_name_to_scope = tracer.node_name_to_scope
        found.append(made)
    return found


# ---- weights ----


def _extract_weights_impl(
    model_name_a,
    gm_a,
    model_name_b,
    gm_b,
    base_name_to_sets_of_related_ops=None,
    unmatchable_types_map=None,
    op_to_type_to_weight_extraction_fn=None,
):
    """The weights of matching operations of two graphs."""
    pairs = get_matching_subgraph_pairs(gm_a, gm_b, base_name_to_sets_of_related_ops, unmatchable_types_map)
    results: dict = {}
    for name, pair in pairs.items():
        for model_name, gm, one in zip((model_name_a, model_name_b), (gm_a, gm_b), pair):
            node = one.base_op_node
            entry = extract_weight_from_node(node, gm, op_to_type_to_weight_extraction_fn)
            if entry is None:
                continue
            entry["fqn"] = fqn_of(node, gm)
            weights = results.setdefault(name, {}).setdefault(NSSingleResultValuesType.WEIGHT.value, {})
            weights.setdefault(model_name, []).append(entry)
    maybe_add_missing_fqns(results)
    return rekey_logger_info_on_node_name_of_model(results, model_name_b)


def extract_weights(
    model_name_a,
    model_a,
    model_name_b,
    model_b,
    base_name_to_sets_of_related_ops=None,
    unmatchable_types_map=None,
    op_to_type_to_weight_extraction_fn=None,
):
    """The weights of matching operations of two models.

    Args:
        model_name_a: what results call the first model.
        model_a: that model.
        model_name_b: what they call the second model, whose nodes name layers.
        model_b: that model.
        base_name_to_sets_of_related_ops: which operations stand for each other.
        unmatchable_types_map: which are never compared.
        op_to_type_to_weight_extraction_fn: what reads weights.
    """
    gm_a, gm_b = _traced(model_a, model_b)
    return _extract_weights_impl(
        model_name_a,
        gm_a,
        model_name_b,
        gm_b,
        base_name_to_sets_of_related_ops,
        unmatchable_types_map,
        op_to_type_to_weight_extraction_fn,
    )


# ---- results ----


def _add_loggers_impl(
    name_a,
    gm_a,
    name_b,
    gm_b,
    logger_cls,
    should_log_inputs,
    base_name_to_sets_of_related_ops=None,
    unmatchable_types_map=None,
):
    """Both graphs with loggers behind matching operations, and before them if that is asked for."""
    pairs = get_matching_subgraph_pairs(gm_a, gm_b, base_name_to_sets_of_related_ops, unmatchable_types_map)
    made = []
    for side, (name, gm) in enumerate(((name_a, gm_a), (name_b, gm_b))):
        inputs, outputs = {}, {}
        for key, pair in pairs.items():
            one = pair[side]
            outputs[one.end_node] = one.base_op_node, key
            if should_log_inputs:
                inputs[one.start_node] = one.base_op_node, key
        made.append(add_loggers_to_model(gm, inputs, outputs, logger_cls, name))
    return tuple(made)


def add_loggers(
    name_a,
    model_a,
    name_b,
    model_b,
    logger_cls,
    should_log_inputs=False,
    base_name_to_sets_of_related_ops=None,
    unmatchable_types_map=None,
):
    """Both models with loggers, ready to be called with samples.

    Args:
        name_a: what results call the first model.
        model_a: that model.
        name_b: what they call the second model.
        model_b: that model.
        logger_cls: what notes values, as `OutputLogger`.
        should_log_inputs: note operands as well.
        base_name_to_sets_of_related_ops: which operations stand for each other.
        unmatchable_types_map: which are never compared.
    """
    gm_a, gm_b = _traced(model_a, model_b)
    return _add_loggers_impl(
        name_a,
        gm_a,
        name_b,
        gm_b,
        logger_cls,
        should_log_inputs,
        base_name_to_sets_of_related_ops,
        unmatchable_types_map,
    )


def _is_logger(module, logger_cls):
    kept = getattr(module, "original_name", None)  # of a scripted one
    return isinstance(module, logger_cls) or kept == logger_cls.__name__


def _gather(model, logger_cls, results):
    """What the loggers of a model noted goes into results by operation."""
    for _, module in model.named_modules():
        if not _is_logger(module, logger_cls):
            continue
        by_model = results.setdefault(module.ref_name, {}).setdefault(module.results_type, {})
        entries = by_model.setdefault(module.model_name, [])
        entries.append(
            {
                "type": module.results_type,
                "values": list(module.stats_rnn) if len(module.stats_rnn) else list(module.stats),
                "ref_node_name": module.ref_node_name,
                "ref_node_target_type": module.ref_node_target_type,
                "prev_node_name": module.prev_node_name,
                "prev_node_target_type": module.prev_node_target_type,
                "index_within_arg": module.index_within_arg,
                "index_of_arg": module.index_of_arg,
                "fqn": module.fqn,
                "qconfig_str": module.qconfig_str,
                "comparisons": getattr(module, "comparisons", []),
                "comparison_fn_name": getattr(module, "comparison_fn_name", ""),
            }
        )
        entries.sort(key=lambda entry: (entry["index_of_arg"], entry["index_within_arg"]))


def extract_logger_info(model_a, model_b, logger_cls, model_name_to_use_for_layer_names):
    """What the loggers of two models of `add_loggers` noted.

    Args:
        model_a: a model with loggers.
        model_b: the other one.
        logger_cls: the class of the loggers.
        model_name_to_use_for_layer_names: the model whose nodes name layers.
    """
    results: dict = {}
    for model in (model_a, model_b):
        _gather(model, logger_cls, results)
    maybe_add_missing_fqns(results)
    return rekey_logger_info_on_node_name_of_model(results, model_name_to_use_for_layer_names)


# ---- operations on the other model's operands ----


def _add_shadow_loggers_impl(
    name_a,
    gm_a,
    name_b,
    gm_b,
    logger_cls,
    should_log_inputs,
    base_name_to_sets_of_related_ops=None,
    node_type_to_io_type_map=None,
    unmatchable_types_map=None,
):
    pairs = get_matching_subgraph_pairs(gm_a, gm_b, base_name_to_sets_of_related_ops, unmatchable_types_map)
    io_types = node_type_to_io_type_map
    io_types = get_node_type_to_io_type_map() if io_types is None else io_types
    return create_a_shadows_b(name_a, gm_a, name_b, gm_b, pairs, logger_cls, should_log_inputs, io_types)


def add_shadow_loggers(
    name_a,
    model_a,
    name_b,
    model_b,
    logger_cls,
    should_log_inputs=False,
    base_name_to_sets_of_related_ops=None,
    node_type_to_io_type_map=None,
    unmatchable_types_map=None,
):
    """The second model, beside whose operations those of the first one run on the same operands.

    Args:
        name_a: what results call the first model.
        model_a: that model.
        name_b: what they call the second model.
        model_b: that model, whose results the made one has.
        logger_cls: what notes values, as `OutputLogger`.
        should_log_inputs: note operands as well.
        base_name_to_sets_of_related_ops: which operations stand for each other.
        node_type_to_io_type_map: which take numbers or integers.
        unmatchable_types_map: which are never compared.
    """
    gm_a, gm_b = _traced(model_a, model_b)
    return _add_shadow_loggers_impl(
        name_a,
        gm_a,
        name_b,
        gm_b,
        logger_cls,
        should_log_inputs,
        base_name_to_sets_of_related_ops,
        node_type_to_io_type_map,
        unmatchable_types_map,
    )


def extract_shadow_logger_info(model_a_shadows_b, logger_cls, model_name_to_use_for_layer_names):
    """What the loggers of a model of `add_shadow_loggers` noted.

    Args:
        model_a_shadows_b: that model.
        logger_cls: the class of the loggers.
        model_name_to_use_for_layer_names: the model whose nodes name layers.
    """
    results: dict = {}
    _gather(model_a_shadows_b, logger_cls, results)
    maybe_add_missing_fqns(results)
    return rekey_logger_info_on_node_name_of_model(results, model_name_to_use_for_layer_names)


def extend_logger_results_with_comparison(
    results, model_name_1, model_name_2, comparison_fn, comparison_name
):
    """Put a measure of values of both models into the entries of the second one.

    Args:
        results: what the functions above give.
        model_name_1: the first model of a comparison.
        model_name_2: the second model, whose entries get the measure.
        comparison_fn: a measure of two tensors, as in `torch.ao.ns.fx.utils`.
        comparison_name: the key of the measure.
    """
    for of_types in results.values():
        for of_models in of_types.values():
            for name in (model_name_1, model_name_2):
                if name not in of_models:
                    raise AssertionError(f"{name} not found in results")
            for one, other in zip(of_models[model_name_1], of_models[model_name_2]):
                pairs = zip(one["values"], other["values"])
                other[comparison_name] = [comparison_fn(first, second) for first, second in pairs]


def loggers_set_enabled(model, enabled):
    """Let all loggers of a model note values, or none."""
    for module in model.modules():
        if isinstance(module, OutputLogger):
            module.enabled = enabled


def loggers_set_save_activations(model, save_activations):
    """Let all loggers of a model keep what they see, or not."""
    for module in model.modules():
        if isinstance(module, OutputLogger):
            module.save_activations = save_activations


# ---- several shadows of each part of one model ----


def _parted(model, inputs, backend_config, mappings, tracer=None, prepare=None, options=None):
    """(the model in parts, the configurations of its nodes by each mapping)"""
    tracer = QuantizationTracer([], []) if tracer is None else tracer
    prepare = quantize_fx.prepare_fx if prepare is None else prepare
    loggers = (OutputLogger, OutputComparisonLogger)
    made = Shadows(model, inputs, backend_config, tracer, loggers, prepare, options)
    modules, scopes = dict(made.gm.named_modules(remove_duplicate=False)), tracer.node_name_to_scope
    return made, [
        _generate_node_name_to_qconfig(made.gm, modules, made.graph, mapping, scopes) for mapping in mappings
    ]


def prepare_n_shadows_model(
    model,
    example_inputs,
    qconfig_multi_mapping,
    backend_config,
    custom_prepare_fn=None,
    custom_prepare_kwargs=None,
    custom_tracer=None,
):
    """A model with, beside each part, a shadow for each configuration, and loggers that compare them.

    Args:
        example_inputs: positional arguments of a call.
        qconfig_multi_mapping: a `QConfigMultiMapping`.
        backend_config: what the engine computes with integers.
        custom_prepare_fn: puts observers into a shadow; `prepare_fx` otherwise.
        custom_prepare_kwargs: more arguments for it.
        custom_tracer: says what stays one node.
    """
    made, qconfigs = _parted(
        model,
        example_inputs,
        backend_config,
        qconfig_multi_mapping.qconfig_mappings_list,
        custom_tracer,
        custom_prepare_fn,
        custom_prepare_kwargs,
    )
    return made.beside(qconfigs)


def _prepare_n_shadows_add_loggers_model(model, example_inputs, qconfig_mapping, backend_config):
    """A model with a quantised copy of all of it beside it, and loggers that compare both part by part."""
    made, (qconfigs,) = _parted(model, example_inputs, backend_config, [qconfig_mapping])
    return made.along(qconfigs)


def convert_n_shadows_model(model, custom_convert_fn=None, custom_convert_kwargs=None):
    """The shadows of a calibrated model become graphs of integers."""
    convert = quantize_fx.convert_fx if custom_convert_fn is None else custom_convert_fn
    for node in model.graph.nodes:
        if node.op == "call_module" and node.target.startswith(SHADOW_WRAPPER_NODE_NAME_PREFIX):
            made = convert(getattr(model, node.target), **(custom_convert_kwargs or {}))
            setattr(model, node.target, made)
    return model


def _n_shadows_compare_weights(model, example_inputs, qconfig_mapping, backend_config):
    """Weights of linear functions beside their rounded ones."""
    mappings = QConfigMultiMapping.from_list_qconfig_mapping([qconfig_mapping])
    prepared = prepare_n_shadows_model(model, example_inputs, mappings, backend_config)
    prepared(*example_inputs)
    return extract_weight_comparison(convert_n_shadows_model(prepared))


def extract_results_n_shadows_model(model):
    """What the loggers noted."""
    results: dict = {}
    _gather(model, OutputLogger, results)
    return results


def print_comparisons_n_shadows_model(results):
    """Print a table of what each shadow loses."""
    print_n_shadows_summary(create_results_comparison(group_results_by_subgraph(results)))

"""Quantisation of traced models: fuse, prepare, calibrate or train, convert."""

import copy
import warnings

from rushlight.ao.nn._functional_modules import FloatFunctional, FXFloatFunctional
from rushlight.fx import GraphModule

from .backend_config import BackendConfig
from .fx.convert import convert as _convert
from .fx.custom_config import ConvertCustomConfig, FuseCustomConfig, PrepareCustomConfig
from .fx.fuse import fuse as _fuse
from .fx.graph_module import ObservedGraphModule as ObservedGraphModule
from .fx.prepare import prepare as _prepare
from .fx.qconfig_mapping_utils import _qconfig_of
from .fx.tracer import QuantizationTracer, Scope, ScopeContextManager
from .qconfig_mapping import QConfigMapping
from .quant_type import QuantType

__all__ = [
    "QuantizationTracer",
    "Scope",
    "ScopeContextManager",
    "attach_preserved_attrs_to_model",
    "convert_fx",
    "convert_to_reference_fx",
    "fuse_fx",
    "prepare_fx",
    "prepare_qat_fx",
]

_PRESERVED = "_user_preserved_attributes"


def attach_preserved_attrs_to_model(model, preserved_attrs):
    """Attributes of the program's, on the graph and through its copies."""
    model.meta[_PRESERVED] = copy.copy(preserved_attrs)
    for name, value in preserved_attrs.items():
        setattr(model, name, value)


def _taken(kind, value, name):
    """A configuration, or the dictionary that older programs pass."""
    if value is None:
        return kind()
    if isinstance(value, dict):
        warnings.warn(
            f"Passing a {name}_dict to prepare is deprecated and will not be supported in a future version. "
            f"Please pass in a {kind.__name__} instead.",
            FutureWarning,
            stacklevel=4,
        )
        return kind.from_dict(value)
    return value


def _watch_in_graph(model):
    """Arithmetic as modules, which eager models watch themselves, is watched as its graph's nodes."""
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, FloatFunctional):
                setattr(parent, name, FXFloatFunctional())


def _kept(model, names):
    return {name: getattr(model, name) for name in names if hasattr(model, name)}


def _prepare_fx(
    model,
    qconfig_mapping,
    is_qat,
    example_inputs,
    prepare_custom_config,
    _equalization_config,
    backend_config,
    is_standalone_module=False,
):
    custom = _taken(PrepareCustomConfig, prepare_custom_config, "prepare_custom_config")
    mapping = _taken(QConfigMapping, qconfig_mapping, "qconfig_mapping")
    if _equalization_config is not None:
        _equalization_config = _taken(QConfigMapping, _equalization_config, "_equalization_config")
    if isinstance(backend_config, dict):
        backend_config = BackendConfig.from_dict(backend_config)
    _watch_in_graph(model)  # before modules come that watch theirs
    skipped = [*custom.non_traceable_module_classes, *custom.standalone_module_classes]
    for classes in custom.float_to_observed_mapping.values():
        skipped += classes
    for kind, classes in custom.float_to_observed_mapping.items():
        if kind != QuantType.STATIC:
            raise ValueError(
                "only modules of static quantisation become other classes before they are watched"
            )
        for path, parent in list(model.named_modules()):
            for name, child in list(parent.named_children()):
                if type(child) in classes:
                    where = f"{path}.{name}" if path else name
                    qconfig = _qconfig_of(mapping, type(child), where, path, 0)
                    for part in child.modules():
                        part.qconfig = qconfig
                    if qconfig is not None:
                        setattr(parent, name, classes[type(child)].from_float(child))
        skipped += classes.values()
    names = [*custom.non_traceable_module_names, *custom.standalone_module_names]
    tracer = QuantizationTracer(names, skipped)
    preserved = _kept(model, custom.preserved_attributes)
    graph = GraphModule(model, tracer.trace(model))
    _prepare_apart(graph, mapping, is_qat, custom, backend_config)
    graph = _fuse(graph, is_qat, None, backend_config)
    prepared = _prepare(
        graph,
        mapping,
        is_qat,
        tracer.node_name_to_scope,
        example_inputs,
        custom,
        _equalization_config,
        backend_config,
        is_standalone_module,
    )
    attach_preserved_attrs_to_model(prepared, preserved)
    return prepared


def _prepare_apart(graph, mapping, is_qat, custom, backend_config):
    """Modules that a program wants prepared for themselves, each by its own settings or by the model's."""
    for path in dict.fromkeys(str(node.target) for node in graph.graph.nodes if node.op == "call_module"):
        module = graph.get_submodule(path)
        kinds = custom.standalone_module_classes
        entry = custom.standalone_module_names.get(path, kinds.get(type(module)))
        if entry is None:
            continue
        parent, _, name = path.rpartition(".")
        own = entry.qconfig_mapping
        if own is None:
            own = QConfigMapping().set_global(_qconfig_of(mapping, type(module), path, parent, 0))
        backend = backend_config if entry.backend_config is None else entry.backend_config
        made = _prepare_fx(
            module, own, is_qat, entry.example_inputs, entry.prepare_custom_config, None, backend, True
        )
        setattr(graph.get_submodule(parent), name, made)


def fuse_fx(model, fuse_custom_config=None, backend_config=None):
    """Fuse layers of a model in eval mode: convolutions and linear layers with normalisation and ReLU."""
    custom = _taken(FuseCustomConfig, fuse_custom_config, "fuse_custom_config")
    preserved = _kept(model, custom.preserved_attributes)
    graph = GraphModule(model, QuantizationTracer([], []).trace(model))
    made = _fuse(graph, False, custom, backend_config)
    attach_preserved_attrs_to_model(made, preserved)
    return made


def prepare_fx(
    model,
    qconfig_mapping,
    example_inputs,
    prepare_custom_config=None,
    _equalization_config=None,
    backend_config=None,
):
    """The traced model with observers, ready to be calibrated.

    Args:
        model: in eval mode.
        qconfig_mapping: which configuration each operation gets.
        example_inputs: positional arguments of a call.
        prepare_custom_config: what stays one node, what attributes are kept.
        backend_config: what the engine computes with integers.
    """
    return _prepare_fx(
        model,
        qconfig_mapping,
        False,
        example_inputs,
        prepare_custom_config,
        _equalization_config,
        backend_config,
    )


def prepare_qat_fx(model, qconfig_mapping, example_inputs, prepare_custom_config=None, backend_config=None):
    """The traced model with layers that round their weights, and with fake quantisers, ready to be
    trained."""
    return _prepare_fx(
        model, qconfig_mapping, True, example_inputs, prepare_custom_config, None, backend_config
    )


def _convert_fx(
    graph_module,
    is_reference,
    convert_custom_config,
    remove_qconfig,
    qconfig_mapping,
    backend_config,
    is_decomposed,
    keep_original_weights=False,
):
    if not isinstance(graph_module, GraphModule):
        raise TypeError(
            "input model must be a GraphModule, Got type:"
            + str(type(graph_module))
            + " Please make sure to follow the tutorials."
        )
    custom = _taken(ConvertCustomConfig, convert_custom_config, "convert_custom_config")
    preserved = _kept(graph_module, custom.preserved_attributes)
    preserved = {**graph_module.meta.get(_PRESERVED, {}), **preserved}
    made = _convert(
        graph_module,
        is_reference,
        custom,
        _remove_qconfig_flag=remove_qconfig,
        qconfig_mapping=qconfig_mapping,
        backend_config=backend_config,
        is_decomposed=is_decomposed,
        keep_original_weights=keep_original_weights,
    )
    attach_preserved_attrs_to_model(made, preserved)
    return made


def convert_fx(
    graph_module,
    convert_custom_config=None,
    _remove_qconfig=True,
    qconfig_mapping=None,
    backend_config=None,
    keep_original_weights=False,
):
    """The calibrated or trained graph as a graph of integers.

    Args:
        graph_module: what prepare_fx or prepare_qat_fx gave.
        convert_custom_config: which attributes are kept.
        qconfig_mapping: operations that shall compute with numbers have None there.
        backend_config: what the engine computes with integers.
        keep_original_weights: whether weights of functions stay beside the packed ones.
    """
    return _convert_fx(
        graph_module,
        False,
        convert_custom_config,
        _remove_qconfig,
        qconfig_mapping,
        backend_config,
        False,
        keep_original_weights,
    )


def convert_to_reference_fx(
    graph_module, convert_custom_config=None, _remove_qconfig=True, qconfig_mapping=None, backend_config=None
):
    """The reference graph: rounding to integers and back around operations on numbers."""
    return _convert_fx(
        graph_module, True, convert_custom_config, _remove_qconfig, qconfig_mapping, backend_config, False
    )


def _convert_to_reference_decomposed_fx(
    graph_module, convert_custom_config=None, qconfig_mapping=None, backend_config=None
):
    """The reference graph with integers in plain tensors: operators of ``quantized_decomposed``."""
    return _convert_fx(
        graph_module, True, convert_custom_config, False, qconfig_mapping, backend_config, True
    )

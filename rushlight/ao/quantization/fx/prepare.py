"""Observers in a graph: before operands and after results of what the engine computes with integers."""

import copy
import warnings

import rushlight
from rushlight.fx import Node
from rushlight.nn.utils.parametrize import type_before_parametrizations

from ..backend_config.backend_config import ObservationType
from ..backend_config.native import get_native_backend_config
from ..backend_config.utils import get_module_to_qat_module
from ..observer import _is_activation_post_process
from ..quantize import propagate_qconfig_
from ..utils import _parent_name, activation_is_dynamically_quantized
from ._equalize import is_equalization_observer, node_supports_equalization
from .custom_config import PrepareCustomConfig
from .graph_module import (
    _KEY,
    ObservedGraphModule,
    ObservedGraphModuleAttrs,
    ObservedStandaloneGraphModule,
    _is_observed_standalone_module,
)
from .match_utils import _pattern_of_each
from .qconfig_mapping_utils import (
    _generate_node_name_to_qconfig,
    _get_flattened_qconfig_dict,
    _is_qconfig_supported_by_dtype_configs,
    _update_qconfig_for_fusion,
    _update_qconfig_for_qat,
)
from .utils import (
    all_node_args_have_no_tensors,
    assert_and_get_unique_device,
    get_new_attr_name_with_prefix,
    gives_states,
    node_arg_is_bias,
    node_arg_is_weight,
    taken_apart,
)

__all__ = ["prepare"]


def _insert_obs_or_fq(node, obs_or_fq, model, named_modules, graph, model_device=None):
    """Put an observer behind a node: the new node that calls it. Users of the node are not changed."""
    device = assert_and_get_unique_device(model) if model_device is None else model_device
    if device is not None:
        obs_or_fq.to(device)
    equalizes = is_equalization_observer(obs_or_fq)
    prefix = f"{node.name}_equalization_process_" if equalizes else "activation_post_process_"
    name = get_new_attr_name_with_prefix(prefix)(model)
    setattr(model, name, obs_or_fq)
    named_modules[name] = obs_or_fq
    with graph.inserting_after(node):
        return graph.create_node("call_module", name, (node,), {})


def _save_state(
    observed,
    node_name_to_qconfig,
    node_name_to_scope,
    prepare_custom_config,
    equalization_node_name_to_qconfig,
    qconfig_mapping,
    is_qat,
    observed_node_names,
):
    """What converting needs to know, in the graph's ``meta``."""
    observed.meta[_KEY] = ObservedGraphModuleAttrs(
        node_name_to_qconfig=node_name_to_qconfig,
        node_name_to_scope=node_name_to_scope,
        prepare_custom_config=prepare_custom_config,
        equalization_node_name_to_qconfig=equalization_node_name_to_qconfig,
        qconfig_mapping=qconfig_mapping,
        is_qat=is_qat,
        observed_node_names=observed_node_names,
    )


def _train_layers(model, backend_config):
    """Layers that have one of training become it."""
    trained = get_module_to_qat_module(backend_config)
    swapped: list = []
    for path, module in list(model.named_modules()):
        kind = type_before_parametrizations(module)
        if any(path.startswith(f"{one}.") for one in swapped):
            continue
        if kind in trained and getattr(module, "qconfig", None) is not None:
            parent, name = _parent_name(path)
            home = model.get_submodule(parent) if parent else model
            # Fused layers hand their configuration on to the part that has the weight.
            if isinstance(module, rushlight.nn.Sequential):
                module[0].qconfig = module.qconfig
            made = trained[kind].from_float(module)
            made.qconfig = module.qconfig
            setattr(home, name, made)
            swapped.append(path)


class _Preparing:
    """One walk over a graph."""

    def __init__(self, model, matches, qconfigs, is_qat, integer_inputs=()):
        self.model, self.graph, self.matches, self.qconfigs, self.is_qat = (
            model,
            model.graph,
            matches,
            qconfigs,
            is_qat,
        )
        self.modules = dict(model.named_modules(remove_duplicate=False))
        self.device = assert_and_get_unique_device(model)
        self.observed_names = set()
        self.states = set()  # results of recurrent layers of integers, and their parts
        self.equalized = {}  # configurations of equalisation by node
        self.custom = set()  # classes of a program's own modules
        self.no_tensors = {}
        self.unobserved = self.masks()
        inputs = [node for node in self.graph.nodes if node.op == "placeholder"]
        self.integer_inputs = {inputs[i] for i in integer_inputs if i < len(inputs)}

    def masks(self):
        """Nodes that only give a mask or a number, and what moves the elements of such."""
        found, todo = set(), []
        for node in self.graph.nodes:
            if node.target in ("masked_fill", "masked_fill_", rushlight.masked_fill):
                todo += [arg for arg in node.args[1:] if isinstance(arg, Node)]
        while todo:
            node = todo.pop()
            if node in found:
                continue
            found.add(node)
            match = self.matches.get(node)
            shared = ObservationType.OUTPUT_SHARE_OBSERVER_WITH_INPUT
            if match is not None and match.observation_type == shared and isinstance(node.args[0], Node):
                todo.append(node.args[0])
        return found

    def observer_of(self, node):
        """The observer that a node calls."""
        module = (
            self.modules.get(str(node.target))
            if isinstance(node, Node) and node.op == "call_module"
            else None
        )
        return module if module is not None and _is_activation_post_process(module) else None

    def insert(self, node, maker):
        return _insert_obs_or_fq(node, maker(), self.model, self.modules, self.graph, self.device)

    def observed(self, arg, maker):
        """An argument behind an observer that asks for this dtype: one that is there, or a new one."""
        if isinstance(arg, (list, tuple)):
            return type(arg)(self.observed(part, maker) for part in arg)
        if not isinstance(arg, Node) or all_node_args_have_no_tensors(arg, self.modules, self.no_tensors):
            return arg
        wanted = maker()
        signature = (wanted.dtype, getattr(wanted, "is_dynamic", False))
        if wanted.dtype == rushlight.float32:
            return arg
        if arg in self.states or (arg in self.integer_inputs and wanted.dtype == rushlight.quint8):
            return arg
        seen = self.observer_of(arg)
        if seen is not None and (seen.dtype, getattr(seen, "is_dynamic", False)) == signature:
            return arg
        for user in arg.users:
            seen = self.observer_of(user)
            if seen is not None and (seen.dtype, getattr(seen, "is_dynamic", False)) == signature:
                return user
        return self.insert(arg, maker)

    def watch_operands(self, node, match, qconfig):
        """Observers before the operands of a pattern; what the pattern itself computes stays as it is."""

        halves = qconfig.activation().dtype == rushlight.float16
        halves = halves and not activation_is_dynamically_quantized(qconfig)

        def watched(arg):
            if isinstance(arg, (list, tuple)):
                return type(arg)(watched(part) for part in arg)
            if not isinstance(arg, Node) or arg in match.nodes:
                return arg
            if node_arg_is_bias(node, arg) and not halves:
                return arg
            if node_arg_is_weight(node, arg):
                return self.observed(arg, qconfig.weight)
            return self.observed(arg, qconfig.activation)

        node.meta["input_type_to_index"] = match.config._input_type_to_index
        recurrent = node.op == "call_module" and isinstance(
            self.modules.get(str(node.target)), rushlight.nn.RNNBase
        )
        if recurrent or match.config.observation_type == ObservationType.OUTPUT_SHARE_OBSERVER_WITH_INPUT:
            # Others say how elements are moved, or are the states of a recurrent layer.
            node.args = tuple(watched(arg) if i == 0 else arg for i, arg in enumerate(node.args))
            return
        node.args = tuple(watched(arg) for arg in node.args)
        node.kwargs = {name: watched(arg) for name, arg in node.kwargs.items()}

    def equalization(self, node):
        """How a node is equalised: not at all where its input has other readers of integers."""
        config = self.equalized.get(node.name)
        if config is None or not node_supports_equalization(node, self.modules):
            return None
        others = [user for user in node.args[0].users if user is not node]
        if any(self.qconfigs.get(user.name) is not None or self.observer_of(user) for user in others):
            warnings.warn(f"Cannot equalize {node} because it is part of a branch.", stacklevel=2)
            return None
        return config

    def watch_columns(self, node, config):
        """Observers of equalisation behind those of a layer's input and of its weight."""
        for arg in node.all_input_nodes:
            if not node_arg_is_bias(node, arg):
                maker = config.weight if node_arg_is_weight(node, arg) else config.input_activation
                node.replace_input_with(arg, self.insert(arg, maker))

    def watch_result(self, node, match, qconfig):
        """An observer behind a pattern's last node, which its users then read."""
        kind = match.observation_type
        if kind == ObservationType.INPUT_OUTPUT_NOT_OBSERVED or activation_is_dynamically_quantized(qconfig):
            return
        dtype = qconfig.activation().dtype
        outputs = [config.output_dtype for config in match.config.dtype_configs]
        if dtype == rushlight.float32 or (dtype == rushlight.float16 and dtype not in outputs):
            return
        if all(config.output_dtype == rushlight.float for config in match.config.dtype_configs):
            return
        maker = qconfig.activation
        operands = None
        if kind == ObservationType.OUTPUT_SHARE_OBSERVER_WITH_INPUT or self.reuses(qconfig):
            operands = self.watchers_before(match.first)
            if operands:
                # The result has its operands' scale, so they all have one observer.
                shared = self.observer_of(operands[0])
                maker = lambda: shared  # noqa: E731
            elif not self.integer_inputs.intersection(match.first.args[:1]):
                return  # an input of integers has a scale that no observer knows
        users = list(node.users)
        made = self.insert(node, maker)
        for user in users:
            user.replace_input_with(node, made)
        for operand in operands or ():
            parent, name = _parent_name(str(operand.target))
            setattr(self.model.get_submodule(parent) if parent else self.model, name, shared)
            self.modules[str(operand.target)] = shared

    def reuses(self, qconfig):
        from ..qconfig import _is_reuse_input_qconfig

        return _is_reuse_input_qconfig(qconfig)

    def watchers_before(self, node):
        found = []

        def look(arg):
            if isinstance(arg, (list, tuple)):
                for part in arg:
                    look(part)
            elif self.observer_of(arg) is not None:
                found.append(arg)

        look(list(node.args))
        return found

    def watch_custom(self, node, qconfig):
        """A program's own module takes and gives integers."""
        self.observed_names.add(node.name)
        node.args = tuple(self.observed(arg, qconfig.activation) for arg in node.args)
        if gives_states(self.modules[str(node.target)]):
            # It watches its results itself.
            self.states.update([node, *taken_apart(node)])
            return
        users = list(node.users)
        made = self.insert(node, qconfig.activation)
        for user in users:
            user.replace_input_with(node, made)

    def watch_apart(self, node, module):
        """A module prepared apart watches its results; what it takes as integers is watched before it."""
        taken = module.meta[_KEY].standalone_module_input_quantized_idxs
        qconfig = self.qconfigs.get(node.name)
        if qconfig is not None:
            self.observed_names.add(node.name)
            node.args = tuple(
                self.observed(arg, qconfig.activation) if i in taken else arg
                for i, arg in enumerate(node.args)
            )

    def run(self):
        for node in list(self.graph.nodes):
            module = self.modules.get(str(node.target)) if node.op == "call_module" else None
            if type(module) in self.custom and self.qconfigs.get(node.name) is not None:
                self.watch_custom(node, self.qconfigs[node.name])
                continue
            if _is_observed_standalone_module(module):
                self.watch_apart(node, module)
                continue
            match = self.matches.get(node)
            qconfig = self.qconfigs.get(match.root.name) if match is not None else None
            if qconfig is None:
                continue
            if self.reuses(qconfig):
                supported = True
            else:
                supported = _is_qconfig_supported_by_dtype_configs(qconfig, match.config.dtype_configs)
            if (
                node in self.unobserved
                or not supported
                or all_node_args_have_no_tensors(node, self.modules, self.no_tensors)
            ):
                continue
            for one in match.nodes:
                self.observed_names.add(one.name)
            if match.observation_type == ObservationType.INPUT_OUTPUT_NOT_OBSERVED:
                continue
            if not self.reuses(qconfig):
                config = self.equalization(node)
                self.watch_operands(node, match, qconfig)
                if config is not None:
                    self.watch_columns(node, config)
            if node is match.last:
                self.watch_result(node, match, qconfig)


def prepare(
    model,
    qconfig_mapping,
    is_qat,
    node_name_to_scope,
    example_inputs,
    prepare_custom_config=None,
    _equalization_config=None,
    backend_config=None,
    is_standalone_module=False,
):
    """The graph with observers in it. In training, layers round their weights."""
    custom = PrepareCustomConfig() if prepare_custom_config is None else prepare_custom_config
    backend = get_native_backend_config() if backend_config is None else backend_config
    mapping = copy.deepcopy(qconfig_mapping)
    _update_qconfig_for_fusion(model, mapping)
    # Before the swap for training: mappings of its classes are for nodes alone.
    propagate_qconfig_(model, _get_flattened_qconfig_dict(mapping), custom.to_dict())
    if is_qat:
        _update_qconfig_for_qat(mapping, backend)
    modules = dict(model.named_modules(remove_duplicate=False))
    qconfigs = _generate_node_name_to_qconfig(model, modules, model.graph, mapping, node_name_to_scope)
    equalized = {}
    if _equalization_config is not None:
        equalizing = copy.deepcopy(_equalization_config)
        _update_qconfig_for_fusion(model, equalizing)
        equalized = _generate_node_name_to_qconfig(
            model, modules, model.graph, equalizing, node_name_to_scope, of_modules=False
        )
    if is_qat:
        _train_layers(model, backend)
    matches = _pattern_of_each(model, backend)
    walk = _Preparing(model, matches, qconfigs, is_qat, custom.input_quantized_indexes)
    walk.equalized = equalized
    walk.custom = {made for kinds in custom.float_to_observed_mapping.values() for made in kinds.values()}
    walk.run()
    made = ObservedStandaloneGraphModule if is_standalone_module else ObservedGraphModule
    observed = made(model, model.graph, set(custom.preserved_attributes))
    _save_state(
        observed, qconfigs, node_name_to_scope, custom, equalized, mapping, is_qat, walk.observed_names
    )
    if is_standalone_module:
        about = observed.meta[_KEY]
        about.is_observed_standalone_module = True
        about.standalone_module_input_quantized_idxs = list(custom.input_quantized_indexes)
        about.standalone_module_output_quantized_idxs = list(custom.output_quantized_indexes)
    return observed

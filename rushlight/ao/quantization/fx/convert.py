"""Observers of a graph become rounding to integers and back; layers become those of a reference model."""

import copy
import dataclasses
import operator

import rushlight
from rushlight import nn
from rushlight.ao.nn.intrinsic import _FusedModule
from rushlight.fx import GraphModule
from rushlight.nn import functional as F
from rushlight.nn.utils.parametrize import type_before_parametrizations

from ..backend_config.native import get_native_backend_config
from ..backend_config.utils import get_root_module_to_quantized_reference_module
from ..observer import _is_activation_post_process
from ..qconfig import qconfig_equals
from ..qconfig_mapping import QConfigMapping
from ..quantize import _remove_qconfig
from ..utils import (
    _parent_name,
    get_qparam_dict,
    is_per_channel,
    to_underlying_dtype,
    weight_is_quantized,
)
from ._equalize import convert_eq_obs, update_obs_for_equalization
from .graph_module import _KEY, _is_observed_module, _is_observed_standalone_module
from .qconfig_mapping_utils import (
    _compare_prepare_convert_qconfig_mappings,
    _generate_node_name_to_qconfig,
    _update_qconfig_for_fusion,
    _update_qconfig_for_qat,
)
from .utils import (
    collect_producer_nodes,
    create_getattr_from_value,
    gives_states,
    graph_module_from_producer_nodes,
)

__all__ = ["convert"]


def _weight_scale(qconfig, module, is_decomposed):
    """What a reference layer is told of its weight."""
    observer = getattr(module, "weight_fake_quant", None)
    trained = observer is not None
    if not trained:
        observer = qconfig.weight()
    # Once: a moving average would take a second look for another step. A trained one need not look again.
    if not (trained and is_decomposed) or not observer.activation_post_process.min_val.numel():
        observer(module.weight)
    found = get_qparam_dict(observer)
    found["is_decomposed"] = is_decomposed
    return found


class _Converting:
    """One walk over a graph."""

    def __init__(self, model, backend, is_decomposed):
        self.model, self.graph, self.is_decomposed = model, model.graph, is_decomposed
        self.modules = dict(model.named_modules(remove_duplicate=False))
        self.references = get_root_module_to_quantized_reference_module(backend)
        self.kept = model.meta[_KEY]
        self.custom = {}  # a program's own observed modules, and what they become
        self.before = {}  # by path, the program's own modules and those prepared apart that were converted

    def leave_out(self, mapping, backend):
        """What the program's mapping has None for computes with numbers."""
        mapping = copy.deepcopy(QConfigMapping.from_dict(mapping) if isinstance(mapping, dict) else mapping)
        if self.kept.is_qat:
            _update_qconfig_for_qat(mapping, backend)
        _update_qconfig_for_fusion(self.model, mapping)
        _compare_prepare_convert_qconfig_mappings(self.kept.qconfig_mapping, mapping)
        wanted = _generate_node_name_to_qconfig(
            self.model,
            copy.deepcopy(self.modules),
            self.graph,
            mapping,
            self.kept.node_name_to_scope,
        )
        before = self.kept.node_name_to_qconfig
        for name, qconfig in wanted.items():
            if name in before and qconfig is not None and not qconfig_equals(before[name], qconfig):
                raise AssertionError(
                    f"Expected {name} to have the same qconfig in prepare and convert, but {before[name]} "
                    f"was updated to {qconfig}"
                )
        self.kept = dataclasses.replace(self.kept, node_name_to_qconfig={**before, **wanted})

    def observers(self):
        for node in list(self.graph.nodes):
            if node.op == "call_module":
                module = self.modules.get(str(node.target))
                if module is not None and _is_activation_post_process(module):
                    yield node, module

    def watch_weights(self):
        """Observers of weights that functions are given see them now: no call of the model ever passes
        them."""
        for node, observer in self.observers():
            producers = collect_producer_nodes(node)
            if producers is not None and not isinstance(observer, rushlight.nn.Identity):
                graph_module_from_producer_nodes(self.model, producers)()

    def round_at(self, node, observer):
        """Rounding and its reverse in place of an observer."""
        dtype, operand = observer.dtype, node.args[0]
        graph = self.graph
        if all(self.left_out(other) for other in (operand, *node.users)):
            node.replace_all_uses_with(operand)
            graph.erase_node(node)
            return
        with graph.inserting_before(node):
            if getattr(observer, "is_dynamic", False):
                made = self.dynamic(operand, observer)
            elif dtype == rushlight.float16:
                half = graph.call_method("to", (operand, rushlight.float16))
                made = graph.call_method("dequantize", (half,))
            elif hasattr(observer, "qscheme") and dtype != rushlight.float32:
                made = self.static(operand, observer, self.prefix(node))
            else:
                made = operand
        node.replace_all_uses_with(made)
        graph.erase_node(node)

    def left_out(self, node):
        """Whether a node computes with numbers, as no configuration says otherwise."""
        qconfigs = self.kept.node_name_to_qconfig
        return node.name in qconfigs and qconfigs[node.name] is None

    def prefix(self, node):
        """How the scale of an observed value is named: by the layer that made it, or by the one that takes
        it where its maker is not quantised."""
        observed, what = node.args[0], ""
        if self.left_out(observed):
            users = list(node.users)
            linear = [u for u in users if u.op == "call_function" and u.target is F.linear]
            observed, what = next(iter(linear + users), observed), "_input"
        path = self.kept.node_name_to_scope.get(observed.name, ("", None))[0]
        return f"{path}{what}_"

    def static(self, operand, observer, prefix):
        scale, zero_point = observer.calculate_qparams()
        channel = is_per_channel(observer.qscheme)
        graph = self.graph
        if not channel:
            scale, zero_point = float(scale), int(zero_point)
        if self.is_decomposed:
            operators = rushlight.ops.quantized_decomposed
            kind = "per_channel" if channel else "per_tensor"
            if channel:
                names = [
                    create_getattr_from_value(self.model, graph, f"{prefix}{part}_", value)
                    for part, value in (("scale", scale), ("zero_point", zero_point))
                ]
                qparams = (*names, observer.ch_axis)
            else:
                qparams = (scale, zero_point)
            more = (*qparams, observer.quant_min, observer.quant_max, to_underlying_dtype(observer.dtype))
            whole = graph.call_function(getattr(operators, f"quantize_{kind}").default, (operand, *more))
            return graph.call_function(getattr(operators, f"dequantize_{kind}").default, (whole, *more))
        parts = [
            create_getattr_from_value(self.model, graph, f"{prefix}{part}_", value)
            for part, value in (("scale", scale), ("zero_point", zero_point))
        ]
        if channel:
            axis = observer.ch_axis
            arguments = (operand, *parts, axis, observer.dtype)
            whole = graph.call_function(rushlight.quantize_per_channel, arguments)
        else:
            whole = graph.call_function(rushlight.quantize_per_tensor, (operand, *parts, observer.dtype))
        return graph.call_method("dequantize", (whole,))

    def dynamic(self, operand, observer):
        graph = self.graph
        if not self.is_decomposed:
            # As layers of these engines take them.
            half_range = rushlight.backends.quantized.engine in ("fbgemm", "x86")
            arguments = (operand, observer.dtype, half_range)
            whole = graph.call_function(rushlight.quantize_per_tensor_dynamic, arguments)
            return graph.call_method("dequantize", (whole,))
        operators = rushlight.ops.quantized_decomposed
        dtype = to_underlying_dtype(observer.dtype)
        bounds = (observer.quant_min, observer.quant_max)
        eps = observer.eps if isinstance(observer.eps, float) else float(observer.eps)
        found = graph.call_function(operators.choose_qparams.tensor, (operand, *bounds, eps, dtype))
        scale = graph.call_function(operator.getitem, (found, 0))
        zero = graph.call_function(operator.getitem, (found, 1))
        arguments = (scale, zero, *bounds, dtype)
        whole = graph.call_function(operators.quantize_per_tensor.tensor, (operand, *arguments))
        return graph.call_function(operators.dequantize_per_tensor.tensor, (whole, *arguments))

    def layer_at(self, node):
        """A layer with a weight becomes the one of reference models."""
        path = str(node.target)
        module = self.modules[path]
        rounding = getattr(module, "weight_fake_quant", None)
        plain = module
        if rounding is not None:
            plain = module.to_float()
            self.replace(path, plain)
        qconfig = self.kept.node_name_to_qconfig.get(node.name)
        if qconfig is None or node.name not in self.kept.observed_node_names:
            return
        if not weight_is_quantized(qconfig):
            return
        root = plain[0] if isinstance(plain, _FusedModule) else plain
        reference = self.references.get(type_before_parametrizations(root))
        recurrent = isinstance(root, (nn.RNNCellBase, nn.RNNBase))
        if reference is None or not (recurrent or hasattr(root, "weight")):
            return
        if recurrent:
            return self.replace(path, reference.from_float(root, self.recurrent_scales(qconfig, root)))
        if rounding is not None:
            root.weight_fake_quant = rounding
        scale = _weight_scale(qconfig, root, self.is_decomposed)
        if rounding is not None:
            del root.weight_fake_quant
        made = reference.from_float(root, scale)
        if isinstance(plain, _FusedModule):
            plain._modules["0"] = made
            made = plain
        self.replace(path, made)

    def replace(self, path, made):
        parent, name = _parent_name(path)
        setattr(self.model.get_submodule(parent) if parent else self.model, name, made)

    def recurrent_scales(self, qconfig, layer):
        """What a recurrent layer is told of each of its weights."""
        found = {"is_decomposed": self.is_decomposed}
        for name, weight in layer.named_parameters(recurse=False):
            if name.startswith("weight"):
                observer = qconfig.weight()
                if observer.dtype == rushlight.qint8:
                    observer(weight)
                found[name] = get_qparam_dict(observer)
        return found

    def run(self):
        self.watch_weights()
        # Found before any is converted: several nodes may call one.
        customs = [node for node in self.graph.nodes if self.is_custom(node)]
        apart = [node for node in self.graph.nodes if self.is_apart(node)]
        own = {*customs, *apart}
        for node in customs:
            self.custom_at(node)
        apart = [(node, self.apart_at(node)) for node in apart]
        for node in list(self.graph.nodes):
            module = self.modules[str(node.target)] if node.op == "call_module" else None
            if module is not None and node not in own and not _is_activation_post_process(module):
                self.layer_at(node)
        for node, observer in list(self.observers()):
            self.round_at(node, observer)
        for node in customs:
            for arg in list(node.all_input_nodes):
                if arg.op == "call_method" and arg.target == "dequantize":
                    node.replace_input_with(arg, arg.args[0])
        for node, taken in apart:
            for arg in (node.args[i] for i in taken if i < len(node.args)):
                if arg.op == "call_method" and arg.target == "dequantize":
                    node.replace_input_with(arg, arg.args[0])
        if self.kept.prepare_custom_config is not None and not self.is_decomposed:
            self.integers_in_and_out(self.kept.prepare_custom_config)

    def is_custom(self, node):
        return node.op == "call_module" and type(self.modules.get(str(node.target))) in self.custom

    def is_apart(self, node):
        module = self.modules.get(str(node.target)) if node.op == "call_module" else None
        return module is not None and _is_observed_standalone_module(module)

    def apart_at(self, node):
        """A module prepared apart is converted apart. Which operands it takes as integers."""
        path = str(node.target)
        module = self.before.get(path, self.modules[path])
        about = module.meta[_KEY]
        taken, given = (
            about.standalone_module_input_quantized_idxs,
            about.standalone_module_output_quantized_idxs,
        )
        if given not in ([], [0]):
            raise AssertionError(
                f"a module prepared apart gives integers as its one result, or none; got {given}"
            )
        if path not in self.before:
            self.becomes(path, self.convert_apart(module))
        if given:
            users = list(node.users)
            with self.graph.inserting_after(node):
                numbers = self.graph.call_method("dequantize", (node,))
            for user in users:
                user.replace_input_with(node, numbers)
        return taken

    def custom_at(self, node):
        """A program's own observed module becomes its module of integers, whose result is one."""
        path = str(node.target)
        first = path not in self.before
        module = self.before.get(path, self.modules[path])
        if gives_states(module):
            self.numbers_of_states(node)
            return self.becomes(path, self.custom[type(module)].from_observed(module)) if first else None
        for user in list(node.users):
            watched = self.modules.get(str(user.target)) if user.op == "call_module" else None
            if watched is not None and _is_activation_post_process(watched):
                if first:
                    module.activation_post_process = watched
                user.replace_all_uses_with(node)
                self.graph.erase_node(user)
        users = list(node.users)
        with self.graph.inserting_after(node):
            numbers = self.graph.call_method("dequantize", (node,))
        for user in users:
            user.replace_input_with(node, numbers)
        if first:
            self.becomes(path, self.custom[type(module)].from_observed(module))

    def becomes(self, path, made):
        self.before[path] = self.modules[path]
        self.replace(path, made)
        self.modules[path] = made

    def numbers_of_states(self, node):
        """Users of (result, (state, cell)) and of its parts read numbers."""
        users = list(node.users)
        before = node

        def call(make, *arguments):
            nonlocal before
            with self.graph.inserting_after(before):
                before = make(*arguments)
            return before

        def read(part, index):
            return call(self.graph.call_function, operator.getitem, (part, index))

        def numbers(part):
            return call(self.graph.call_method, "dequantize", (part,))

        result, states = read(node, 0), read(node, 1)
        result, state, cell = (numbers(part) for part in (result, read(states, 0), read(states, 1)))
        pair = call(self.graph.call_function, tuple, ([state, cell],))
        whole = call(self.graph.call_function, tuple, ([result, pair],))
        for user in users:
            if user.op != "call_function" or user.target is not operator.getitem:
                user.replace_input_with(node, whole)
                continue
            for inner in list(user.users) if user.args[1] == 1 else ():
                if inner.op == "call_function" and inner.target is operator.getitem:
                    inner.replace_all_uses_with((state, cell)[inner.args[1]])
            user.replace_all_uses_with((result, pair)[user.args[1]])

    def integers_in_and_out(self, custom):
        """Inputs that a program gives as integers, and results that it wants so."""
        graph = self.graph
        inputs = [node for node in graph.nodes if node.op == "placeholder"]
        for i in custom.input_quantized_indexes:
            if i < len(inputs):
                users = list(inputs[i].users)
                with graph.inserting_after(inputs[i]):
                    numbers = graph.call_method("dequantize", (inputs[i],))
                for user in users:
                    user.replace_input_with(inputs[i], numbers)

        def integers(arg):
            if isinstance(arg, (list, tuple)):
                return type(arg)(map(integers, arg))
            if isinstance(arg, dict):
                return {name: integers(part) for name, part in arg.items()}
            made_of = arg.op == "call_method" and arg.target == "dequantize"
            return arg.args[0] if made_of else arg

        output = next(node for node in graph.nodes if node.op == "output")
        result, wanted = output.args[0], custom.output_quantized_indexes
        if isinstance(result, (list, tuple)):
            output.args = (type(result)(integers(r) if i in wanted else r for i, r in enumerate(result)),)
        elif 0 in wanted:
            output.args = (integers(result),)


def convert(
    model,
    is_reference=False,
    convert_custom_config=None,
    is_standalone_module=False,
    _remove_qconfig_flag=True,
    qconfig_mapping=None,
    backend_config=None,
    is_decomposed=False,
    keep_original_weights=False,
):
    """The reference graph, which computes with numbers that lie on the grids of integers, or the graph of
    integers."""
    if not _is_observed_module(model):
        raise AssertionError("incoming model must be produced by prepare_fx")
    backend = get_native_backend_config() if backend_config is None else backend_config
    walk = _Converting(model, backend, is_decomposed)
    walk.convert_apart = lambda part: convert(
        part,
        is_reference,
        convert_custom_config,
        True,
        _remove_qconfig_flag,
        backend_config=backend_config,
        is_decomposed=is_decomposed,
        keep_original_weights=keep_original_weights,
    )
    if convert_custom_config is not None:
        walk.custom = {
            k: v
            for kinds in convert_custom_config.observed_to_quantized_mapping.values()
            for k, v in kinds.items()
        }
    if qconfig_mapping is not None:
        walk.leave_out(qconfig_mapping, backend)
    if any(walk.kept.equalization_node_name_to_qconfig.values()):
        convert_eq_obs(model, walk.modules, update_obs_for_equalization(model, walk.modules))
    walk.run()
    model.graph.eliminate_dead_code()
    made = GraphModule(model, model.graph)
    if not (is_reference or is_decomposed):
        from .lower import lower

        kept = walk.kept
        made = lower(made, kept.node_name_to_qconfig, kept.node_name_to_scope, keep_original_weights)
    if _remove_qconfig_flag:
        _remove_qconfig(made)
    made.delete_all_unused_submodules()
    made.meta.pop(_KEY, None)
    return made

"""Several quantised shadows of each part of one model, beside the part: one call notes what each loses."""

import copy
from collections import defaultdict
from operator import attrgetter

import rushlight
from rushlight import fx, nn
from rushlight.ao.quantization.fx.match_utils import _pattern_of_each
from rushlight.ao.quantization.qconfig_mapping import QConfigMapping
from rushlight.nn import functional as F

from .graph_passes import fqn_of
from .ns_types import NSSingleResultValuesType
from .utils import compute_sqnr, get_target_type_str

__all__ = [
    "Shadows",
    "create_results_comparison",
    "extract_weight_comparison",
    "group_results_by_subgraph",
    "print_n_shadows_summary",
]

SHADOW_NODE_NAME_PREFIX = "shadow"
SHADOW_WRAPPER_NODE_NAME_PREFIX = "shadow_wrapper"


class _Values(fx.Interpreter):
    """The value of each node of a graph."""

    def run_node(self, n):
        self.found[n] = super().run_node(n)
        return self.found[n]


def _values_of_nodes(gm, inputs):
    walk = _Values(gm, garbage_collect_values=False)
    walk.found = {}
    walk.run(*inputs)
    return walk.found


def _apart(gm, nodes):
    """(a module of these nodes alone, what it takes): layers are copied, all else comes from outside."""
    operands = list(dict.fromkeys(arg for node in nodes for arg in node.all_input_nodes if arg not in nodes))
    graph, home = fx.Graph(), nn.Module()
    copies = {operand: graph.placeholder(f"{operand.name}_0") for operand in operands}
    for node in nodes:
        copies[node] = made = graph.node_copy(node, lambda other: copies[other])
        if node.op == "call_module":
            made.target = f"mod_{len(home._modules)}"
            home.add_module(made.target, copy.deepcopy(gm.get_submodule(node.target)))
    graph.output(copies[nodes[-1]])
    return fx.GraphModule(home, graph), operands


class Shadows:
    """A model's graph, in parts, with shadows to come.

    Args:
        loggers: the class that notes results, and the class that compares them.
        prepare: what puts observers into a shadow.
    """

    def __init__(self, model, inputs, backend_config, tracer, loggers, prepare, prepare_options):
        self.gm = fx.GraphModule(model, tracer.trace(model))
        self.gm._node_name_to_scope = tracer.node_name_to_scope
        self.graph, self.loggers = self.gm.graph, loggers
        self.prepare, self.prepare_options = prepare, dict(prepare_options or {})
        for name in ("example_inputs", "prepare_custom_config", "qconfig_mapping"):
            if name in self.prepare_options:
                raise AssertionError(f"cannot specify {name} in custom_prepare_kwargs")
        self.values = _values_of_nodes(self.gm, inputs)
        matches = set(_pattern_of_each(self.gm, backend_config).values())
        place = {node: i for i, node in enumerate(self.graph.nodes)}
        parts = [sorted(match.nodes, key=place.get) for match in matches]
        self.parts = sorted(parts, key=lambda nodes: place[nodes[0]])

    def call(self, name, module, args, after):
        """A node that calls a new module."""
        if hasattr(self.gm, name):
            raise AssertionError(f"Unexpected attribute '{name}' found in {type(self.gm).__name__}")
        setattr(self.gm, name, module)
        with self.graph.inserting_after(after):
            return self.graph.call_module(name, args=args)

    def log(self, nodes, index, candidate, args, after, qconfig=""):
        """A logger, which is off until the shadows compute with integers."""
        first, last = nodes[0], nodes[-1]
        made = self.loggers[candidate > 0](
            first.name,
            last.name,
            f"subgraph_{index}_{candidate}",
            "model",
            get_target_type_str(last, self.gm),
            get_target_type_str(first, self.gm),
            NSSingleResultValuesType.NODE_OUTPUT.value,
            0,
            0,
            fqn_of(first, self.gm) or "",
            qconfig,
        )
        made.enabled = False
        return self.call(f"{SHADOW_NODE_NAME_PREFIX}_{index}_{candidate}", made, args, after)

    def shadow(self, nodes, index, candidate, qconfig, after, standing_in=None):
        """A call of a quantised shadow on the part's operands, or on what stands in for them."""
        module, operands = _apart(self.gm, nodes)
        prepared = self.prepare(
            module,
            qconfig_mapping=QConfigMapping().set_global(qconfig),
            example_inputs=tuple(self.values[operand] for operand in operands),
            **self.prepare_options,
        )
        args = tuple((standing_in or {}).get(operand, operand) for operand in operands)
        return self.call(f"{SHADOW_WRAPPER_NODE_NAME_PREFIX}_{index}_{candidate}", prepared, args, after)

    def beside(self, qconfigs):
        """Each part with a shadow for each mapping that has a configuration for it."""
        for index, nodes in enumerate(self.parts):
            wanted = [of_node[nodes[0].name] for of_node in qconfigs]
            if not any(qconfig is not None for qconfig in wanted):
                print(f"unable to find at least one qconfig for node {nodes[0].format_node()}, skipping")
                continue
            last = nodes[-1]
            after = self.log(nodes, index, 0, (last,), last)
            for candidate, qconfig in enumerate(wanted, 1):
                if qconfig is not None:
                    made = self.shadow(nodes, index, candidate, qconfig, after)
                    after = self.log(nodes, index, candidate, (made, last), made, str(qconfig))
        self.gm.recompile()
        return self.gm

    def along(self, qconfigs):
        """The whole model once more beside itself, quantised as a mapping says: errors add up."""
        part_of = {node: nodes for nodes in self.parts for node in nodes}
        shadows: dict = {}
        index = 0
        for node in list(self.graph.nodes):
            nodes = part_of.get(node, [node])
            if node.op in ("placeholder", "get_attr", "output") or node is not nodes[-1]:
                continue
            qconfig = qconfigs[nodes[0].name] if node in part_of else None
            after = self.log(nodes, index, 0, (node,), node)
            if qconfig is not None:
                made = self.shadow(nodes, index, 1, qconfig, after, shadows)
            else:
                made = self.again(nodes, after, shadows)
            self.log(nodes, index, 1, (made, node), made, "" if qconfig is None else str(qconfig))
            shadows[node] = made
            index += 1
        self.gm.recompile()
        return self.gm

    def again(self, nodes, after, shadows):
        """These operations once more, with the same layers."""
        copies = dict(shadows)
        for node in nodes:
            with self.graph.inserting_after(after):
                after = copies[node] = self.graph.node_copy(node, lambda other: copies.get(other, other))
        return after


# ---- results ----

_ROUNDING = (rushlight.quantize_per_tensor, rushlight.quantize_per_channel)


def _rounded_weight(gm, wrapper, weight):
    """A weight as the shadow that takes it rounds it; None if it does not."""
    shadow = gm.get_submodule(wrapper.target)
    inputs = [node for node in shadow.graph.nodes if node.op == "placeholder"]
    for user in inputs[wrapper.args.index(weight)].users:
        if user.target in _ROUNDING:
            parts = [
                getattr(shadow, arg.target) if isinstance(arg, fx.Node) else arg for arg in user.args[1:]
            ]
            return user.target(attrgetter(weight.target)(gm).detach(), *parts)
    return None


def extract_weight_comparison(m):
    """Weights of linear functions, and what shadows round them to."""
    kind = NSSingleResultValuesType.WEIGHT.value
    found: dict = {"model": {kind: {}}}
    scopes = getattr(m, "_node_name_to_scope", {})
    for node in m.graph.nodes:
        if not (node.op == "call_function" and node.target is F.linear and node.args[1].op == "get_attr"):
            continue
        for user in node.args[1].users:
            if user.op != "call_module" or not user.target.startswith(SHADOW_WRAPPER_NODE_NAME_PREFIX):
                continue
            rounded = _rounded_weight(m, user, node.args[1])
            if rounded is None:
                continue
            weight = attrgetter(node.args[1].target)(m).detach()
            index = user.target.split("_")[2]
            about = {
                "res_type": kind,
                "prev_node_name": node.name,
                "prev_node_target_type": get_target_type_str(node, m),
                "ref_node_name": node.name,
                "ref_node_target_type": get_target_type_str(node, m),
                "index_within_arg": 0,
                "index_of_arg": 0,
                "fqn": scopes[node.name][0] if node.name in scopes else None,
                "qconfig_str": "",
                "comparisons": [compute_sqnr(weight, rounded)],
                "comparison_fn_name": "sqnr",
            }
            for candidate, value in enumerate((weight, rounded)):
                found["model"][kind][f"subgraph_{index}_{candidate}"] = [{**about, "values": [value]}]
    return found


_SHOWN = (
    "ref_node_name",
    "ref_node_target_type",
    "fqn",
    "values",
    "qconfig_str",
    "comparisons",
    "comparison_fn_name",
)


def group_results_by_subgraph(results):
    """Results by part, then by shadow (``"0"``: the part itself)."""
    found: dict = defaultdict(dict)
    for name, entries in next(iter(results["model"].values())).items():
        part, _, candidate = name.rpartition("_")
        found[part][candidate] = {key: entries[0][key] for key in _SHOWN}
    return dict(found)


def create_results_comparison(results_grouped):
    """For each part, its shadows' comparisons and their mean."""
    found = {}
    for part, of_part in results_grouped.items():
        candidates = {}
        for name, one in of_part.items():
            if name != "0":
                noted = rushlight.stack(one["comparisons"])
                about = {key: one[key] for key in ("qconfig_str", "comparison_fn_name")}
                candidates[name] = {**about, "cmp_raw": noted, "cmp_mean": noted.mean()}
        about = {key: of_part["0"][key] for key in ("ref_node_name", "ref_node_target_type", "fqn")}
        found[part] = {**about, "candidates": candidates}
    return found


def print_n_shadows_summary(results_comparison):
    """A table: a line for each part, a column for each shadow."""
    rows = [
        [part["ref_node_name"], part["ref_node_target_type"], part["fqn"]]
        + [f"{float(one['cmp_mean']):.4g}" for one in part["candidates"].values()]
        for part in results_comparison.values()
    ]
    shadows = max((len(row) - 3 for row in rows), default=0)
    rows = [["node_name", "node_type", "fqn", *map(str, range(shadows))], *rows]
    widths = [max(len(str(row[i])) for row in rows if i < len(row)) for i in range(3 + shadows)]
    for row in rows:
        print("  ".join(str(cell).ljust(width) for cell, width in zip(row, widths)).rstrip())

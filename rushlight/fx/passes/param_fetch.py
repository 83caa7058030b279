"""What a module was made with, kept at the nodes that call it."""

from rushlight import nn
from rushlight.fx.graph_module import GraphModule

__all__ = ["default_matching", "extract_attrs_for_lowering", "lift_lowering_attrs_to_nodes"]


def default_matching(name, target_version):
    """Names of attributes stay as they are in all versions."""
    return name


_CONV = """
    weight bias kernel_size stride padding dilation groups padding_mode
""".split()
_NORM = "weight bias running_mean running_var eps".split()
module_fetch_book = {
    nn.Linear: (1, ["weight", "bias"], default_matching),
    nn.Conv2d: (1, _CONV, default_matching),
    nn.BatchNorm2d: (2, _NORM, default_matching),
    nn.AdaptiveAvgPool2d: (1, [], default_matching),
    nn.MaxPool2d: (
        1,
        ["kernel_size", "stride", "padding", "dilation", "return_indices", "ceil_mode"],
        default_matching,
    ),
    nn.ReLU: (1, ["inplace"], default_matching),
}


def extract_attrs_for_lowering(mod):
    """A module's class and the attributes that say what it computes."""
    found = module_fetch_book.get(type(mod))
    if found is None:
        raise RuntimeError(f"{type(mod).__name__} is not supported by extract_attrs_for_lowering")
    version, names, matching = found
    return {"name": torch_name(mod)} | {name: getattr(mod, matching(name, version)) for name in names}


def torch_name(mod):
    import rushlight

    return rushlight.typename(mod)


def lift_lowering_attrs_to_nodes(fx_module):
    """Do so for all modules that a graph calls."""
    modules = dict(fx_module.named_modules())
    for node in fx_module.graph.nodes:
        if node.op != "call_module":
            continue
        if isinstance(modules[node.target], GraphModule):
            lift_lowering_attrs_to_nodes(modules[node.target])
        else:
            node.attrs_for_lowering = extract_attrs_for_lowering(modules[node.target])

"""How operators share their work over a mesh.

A rule is a function of a `Call` that lists ways: `call.way(outputs..., input=placement...)` for one dimension
of the mesh; what is not named is whole. That everything is whole is always a way. A way that cuts inputs is
taken only where one of them lies so already, unless the rule is decorated with `may_cut_whole_inputs`.

An adjustment turns the local arguments of a plan into those the local operator needs (sizes, mostly). A
handler runs a call by itself.
"""

from rushlight.distributed.tensor._ops import (
    _indexing,
    _matrix,
    _neural,
    _pointwise,
    _reductions,
    _special,
    _views,
)

_MODULES = (_pointwise, _reductions, _matrix, _views, _indexing, _neural, _special)

RULES: dict = {name: rule for module in _MODULES for name, rule in module.RULES.items()}
ADJUSTMENTS: dict = {name: fix for module in _MODULES for name, fix in module.ADJUSTMENTS.items()}
HANDLERS: dict = dict(_special.HANDLERS)
REGISTERED: dict = {}  # by overload: rules of programs, which hold before those of here


def rule_of(call):
    """The operator's rule, by its name, its traits or its family; None when there is none."""
    if call.form == 2:
        return None
    rule = RULES.get(call.name) or RULES.get(call.name.rstrip("_"))
    if rule is None and call.traits.elementwise:
        return _pointwise.pointwise
    if rule is None and call.traits.batching == "window":
        return _neural.on_images
    return rule or {"reduction": _reductions.reduction, "random": _special.random}.get(call.family)


def adjustment_of(call):
    if call.family == "random":
        return _special.draw_own_part
    if call.traits.batching == "window" and call.family == "gradient":
        return _neural.own_input_sizes
    return ADJUSTMENTS.get(call.name)

"""How operators share their work over a mesh.

A rule is a function of a `Call` that lists ways: `call.way(outputs..., input=placement...)` for one dimension
of the mesh; what is not named is whole. That everything is whole is always a way. An adjustment turns the
local
arguments of a plan into those the local operator needs (sizes, mostly). A handler runs a call by itself.
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


# Operators whose inputs may be cut where none was before, if that moves fewer bytes; others follow their
# inputs.
FREE = {
    "mm",
    "addmm",
    "bmm",
    "baddbmm",
    "mv",
    "dot",
    "vdot",
    "embedding",
    "embedding_dense_backward",
    "convolution",
}


def rule_of(call):
    """The operator's rule, by its name or its family; None when there is none."""
    rule = RULES.get(call.name) or RULES.get(call.name.rstrip("_"))
    if rule is None and call.form != 2:
        rule = {"pointwise": _pointwise.pointwise, "random": _special.random}.get(call.family)
    return None if call.form == 2 else rule


def adjustment_of(call):
    if call.family == "random":
        return _special.draw_own_part
    return ADJUSTMENTS.get(call.name)

"""Passes over graphs whose weights are constant. Packages register patterns; `freezing_passes` applies
them."""

from ..pattern_matcher import PatternMatcherPass, register_graph_pattern

__all__ = ["freezing_passes", "pass_patterns", "register_freezing_graph_pattern"]

pass_patterns: list = []  # by number; those of lower numbers run first


def register_freezing_graph_pattern(pattern, extra_check=lambda match: True, pass_number=0):
    """Register a function of a match for one of the passes, which run one after the other."""
    while len(pass_patterns) <= pass_number:
        pass_patterns.append(PatternMatcherPass())
    return register_graph_pattern(pattern, extra_check, pass_dict=pass_patterns[pass_number])


def freezing_passes(gm, aot_example_inputs):
    """Apply all that is registered."""
    for one in pass_patterns:
        one.apply(gm)
    gm.graph.eliminate_dead_code()
    gm.recompile()
    return gm

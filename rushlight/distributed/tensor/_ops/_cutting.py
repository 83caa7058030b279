"""Which rules may choose ways that cut inputs of which none was cut before."""


def may_cut_whole_inputs(rule):
    """Of products and look-ups in tables: the way that moves the fewest bytes, wherever the inputs lie."""
    rule.may_cut_whole_inputs = True
    return rule

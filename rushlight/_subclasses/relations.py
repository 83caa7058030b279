"""Relations of linear expressions to zero: forms of them, what follows, what an interval decides."""

import operator

MIRRORED = {
    operator.lt: operator.gt, operator.gt: operator.lt, operator.le: operator.ge, operator.ge: operator.le,
    operator.eq: operator.eq,
}  # fmt: skip


def key_of(relation, difference):
    """The condition that a linear expression stands in a relation to zero, in one form."""
    terms = {n: c for n, c in difference.items() if c}
    constant = terms.pop(None, 0)
    if relation in (operator.gt, operator.ge):
        relation, terms, constant = MIRRORED[relation], {n: -c for n, c in terms.items()}, -constant
    if relation is operator.lt:
        relation, constant = operator.le, constant + 1
    elif relation in (operator.eq, operator.ne) and terms and terms[min(terms)] < 0:
        terms, constant = {n: -c for n, c in terms.items()}, -constant
    return relation.__name__, frozenset(terms.items()), constant


def implied(relation, difference):
    """The condition, and those that follow from it at once."""
    found = {key_of(relation, difference)}
    if relation is operator.eq:
        found |= {key_of(operator.le, difference), key_of(operator.ge, difference)}
    elif relation in (operator.lt, operator.gt):
        weaker = operator.le if relation is operator.lt else operator.ge
        found |= {key_of(weaker, difference), key_of(operator.ne, difference)}
    return found


def decided(relation, low, high):
    """Whether the relation to zero holds for all numbers of an interval, or for none; otherwise None."""
    if relation is operator.ne:
        known = decided(operator.eq, low, high)
        return None if known is None else not known
    if relation is operator.eq:
        return True if low == high == 0 else False if low > 0 or high < 0 else None
    all_hold, none_holds = {
        operator.lt: (high < 0, low >= 0),
        operator.le: (high <= 0, low > 0),
        operator.gt: (low > 0, high <= 0),
        operator.ge: (low >= 0, high < 0),
    }[relation]
    return True if all_hold else False if none_holds else None

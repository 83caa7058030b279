"""Rows of the operators on lists of tensors: each form that the operator table has, tensor after tensor."""

from rows import FLOATS, Row, Sample, given

import rushlight

# Where operands come from, by name; (-0.9, 0.9) is in the domain of all others.
DOMAINS = {
    name: (0.2, 3.0) for name in ("log", "log2", "log10", "sqrt", "rsqrt", "reciprocal", "lgamma", "pow")
}
WEIGHTS = (1.5, 2.0, 0.5)
UNLIKE = {"layout": "the factors' tensor must be contiguous, in PyTorch too"}


def others(make, name, overload):
    """The arguments after the first list."""
    lists = lambda: [make(3), make(2, 2), make(0)]
    if name in ("addcmul", "addcdiv"):
        last = {
            "Scalar": (2.0,),
            "ScalarList": (list(WEIGHTS),),
            "Tensor": (given(make(3, low=0.5, high=1.0)),),
        }
        divisors = [make(3, low=0.5, high=2.0), make(2, 2, low=0.5, high=2.0), make(0)]
        return (lists(), divisors, *last[overload])
    if name == "lerp":
        weight = {"List": (lists(),), "Scalar": (0.25,), "ScalarList": (list(WEIGHTS),)}
        return (lists(), *weight[overload])
    if name in ("norm", "powsum"):
        return (2.0,)
    if name == "mm":
        return ([make(3, 2), make(2, 2)],)
    return {
        "": (),
        "List": (lists(),),
        "Scalar": (2.0,),
        "ScalarList": (list(WEIGHTS),),
        "Tensor": (given(make(low=1.0, high=2.0)),),
        "ScalarAndTensor": (lists(),),
    }[overload]


def row(record):
    full, overload = record["name"], record["overload"]
    name = full.removeprefix("_foreach_").removesuffix("_")
    domain = DOMAINS.get(name, (-0.9, 0.9))

    def samples(make):
        first = [make(2, 3), make(2, 2)] if name == "mm" else [make(3), make(2, 2), make(0)]
        if name == "max":  # of nothing there is none
            first = first[:2]
        if overload == "ScalarAndTensor":
            yield Sample((2.0, first))
        elif full == "_foreach_copy_":
            yield Sample((first, [make(3), make(2, 2), make(0)]))
        else:
            yield Sample((first, *others(make, name, overload)))

    refused = UNLIKE if name in ("addcmul", "addcdiv") and overload == "Tensor" else {}
    return Row(full, samples, FLOATS, domain=domain, refused=refused)


ROWS = [row(record) for record in rushlight._C._operator_records() if record["name"].startswith("_foreach_")]

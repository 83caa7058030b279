"""Arguments that are the same tensor, or share memory, where a program writes to them: its graph gets each
tensor once, and in place of several views the memory that they are parts of."""

import rushlight as torch

from ._joint_trace import MOVED, AsWritten

__all__ = ["Merged"]


class Merged:
    """The leaves of a call as leaves that share nothing, and the function of these.

    ``function`` gives what the program gives; `restore` puts arguments that it returned, which are views
    made anew within it, back into the result."""

    def __init__(self, function, leaves, written, number):
        self.program, self.number = function, number
        self.first = [next(j for j, other in enumerate(leaves) if other is leaf) for leaf in leaves]
        unique = [i for i, j in enumerate(self.first) if i == j or not isinstance(leaves[i], torch.Tensor)]
        touched = {leaves[i].untyped_storage()._cdata for i in written}
        strided = [i for i in unique if _is_strided(leaves[i])]
        places = {i: _place(leaves[i]) for i in strided if leaves[i].untyped_storage()._cdata in touched}
        self.places = places
        groups: dict = {}
        for i in places:
            groups.setdefault(leaves[i].untyped_storage()._cdata, []).append(i)
        self.views = {i: group for group in groups.values() if len(group) > 1 for i in group}
        self.order = [i for i in unique if i not in self.views or self.views[i][0] == i]
        self.moved: dict = {}  # position of a view -> where it lies after the program ran
        self.returned: dict = {}  # position in the result -> position of the view that it is

    def leaves(self, given):
        """What the graph is called with."""
        for i, j in enumerate(self.first):
            if i != j and isinstance(given[i], torch.Tensor) and given[i] is not given[j]:
                raise AssertionError(
                    f"At compilation time, graph {self.number} was compiled under the assumption that input "
                    f"{i} would be a duplicate of input {j}, but at runtime this was not the case.  This "
                    "indicates a guard bug in AOTAutograd or Dynamo, please file a bug to PyTorch."
                )
        return [_whole(given, self.views[i]) if i in self.views else given[i] for i in self.order]

    def function(self, *merged):
        given = dict(zip(self.order, merged))
        made = {i: given[group[0]].as_strided(*self.places[i]) for i, group in self.views.items()}
        arguments = {**given, **made}
        result = self.program(*(arguments[i] for i in self.first))
        self.moved = {i: place for i, view in made.items() if (place := _place(view)) != self.places[i]}
        return self._noted(result, {id(view): i for i, view in made.items()})

    def _noted(self, result, views):
        flat, _ = torch.utils._pytree.tree_flatten(result)
        self.returned = {k: views[id(v)] for k, v in enumerate(flat) if id(v) in views}
        return result

    def restore(self, result, given):
        for i, place in self.moved.items():
            given[i].as_strided_(*place)
        if not self.returned:
            return result
        flat, spec = torch.utils._pytree.tree_flatten(result)
        for k, i in self.returned.items():
            flat[k] = given[i]
        return torch.utils._pytree.tree_unflatten(flat, spec)


def _is_strided(leaf):
    return isinstance(leaf, torch.Tensor) and leaf.layout is torch.strided


def _place(tensor):
    return tuple(tensor.shape), tensor.stride(), tensor.storage_offset()


def _whole(leaves, group):
    """The tensor that these leaves are views of."""
    tensors = [leaves[i] for i in group]
    first = tensors[0]
    if any(type(t) not in (torch.Tensor, torch.nn.Parameter) for t in tensors):
        kinds = {type(t).__name__ for t in tensors}
        raise RuntimeError(
            "Encountered aliased inputs that are mutated in the graph, but at least one input "
            f"is a tensor subclass. This is not supported today. The classes are {', '.join(sorted(kinds))}."
        )
    if any(t.dtype != first.dtype or t.is_conj() or t.is_neg() for t in tensors):
        raise AsWritten(MOVED)
    bases = [t if t._base is None else t._base for t in tensors]
    if all(base is bases[0] for base in bases) and bases[0].dtype == first.dtype:
        return bases[0]
    if any(t.requires_grad for t in tensors):
        raise AsWritten("inputs that share memory are written to, and are not all views of one tensor")
    with torch.no_grad():
        memory = first.untyped_storage()
        return first.new_empty(0).set_(memory, 0, (memory.nbytes() // first.element_size(),), (1,))

"""Chains that read the same tensor become one, which reads it once for both."""

import rushlight as torch
from rushlight._operators.traits import gives_a_view
from rushlight._ops import OpOverload
from rushlight.fx import Node

__all__ = ["join_siblings"]

_FARTHEST = 4  # operators in between, views apart: what is computed earlier stays in memory longer


def join_siblings(graph, chains, chain_of, epochs, longest):
    """Move chains up to others before them that read the same, where these are near, and join them."""
    position = {node: i for i, node in enumerate(graph.nodes)}
    work = _work_before(graph)
    for chain in sorted(chains, key=lambda chain: min(map(position.__getitem__, chain.nodes))):
        others = {id(other): other for other in _siblings(chain, chain_of) if other is not chain}
        for other in others.values():
            if not _are_alike(chain, other) or len(chain.nodes) + len(other.nodes) > longest:
                continue
            if epochs[next(iter(chain.nodes))] != epochs[next(iter(other.nodes))]:
                continue
            last = max(other.nodes, key=position.__getitem__)
            if any(position[node] > position[last] for node in _inputs(chain)):
                continue
            end = max(chain.nodes, key=position.__getitem__)
            if position[end] < position[last] or work[end] - work[last] - len(chain.nodes) > _FARTHEST:
                continue
            for node in sorted(chain.nodes, key=position.__getitem__):
                last.append(node)
                work[node], last = work[last], node
            position.update((node, i) for i, node in enumerate(graph.nodes))
            other.absorb(chain)
            chain_of.update(dict.fromkeys(chain.nodes, other))
            chains.remove(chain)
            break
    return position


def _inputs(chain):
    operands = (a for step in chain.nodes.values() for a in step.operands if isinstance(a, Node))
    return dict.fromkeys(a for a in operands if a not in chain.nodes)


def _siblings(chain, chain_of):
    """Chains that read a whole tensor that this one reads."""
    for operand in _inputs(chain):
        value = operand.meta.get("val")
        if isinstance(value, torch.Tensor) and tuple(value.shape) == chain.shape:
            yield from (chain_of[user] for user in operand.users if user in chain_of)


def _are_alike(chain, other):
    plain = not chain.walks_rows and not other.walks_rows
    return plain and (chain.dtype, chain.shape) == (other.dtype, other.shape)


def _work_before(graph):
    """How many operators stand before each node, views apart."""
    count, found = 0, {}
    for node in graph.nodes:
        found[node] = count
        views = isinstance(node.target, OpOverload) and gives_a_view(node.target)
        count += node.op == "call_function" and isinstance(node.target, OpOverload) and not views
    return found

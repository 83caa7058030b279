"""Patterns of nodes, and passes that find them in a graph and hand each match to a function."""

import abc
from collections import defaultdict

import rushlight as torch
from rushlight.fx import Node

__all__ = [
    "Arg",
    "CallFunction",
    "Ignored",
    "KeywordArg",
    "Match",
    "PatternMatcherPass",
    "filter_nodes",
    "register_graph_pattern",
]


def filter_nodes(nodes, fn):
    """The nodes that call a function, or any overload of an operator."""
    targets = {fn}
    if hasattr(fn, "overloads"):
        targets |= {getattr(fn, name) for name in fn.overloads()}
    return [node for node in nodes if node.target in targets]


class Match:
    """Where a pattern stands: its nodes, and what its free arguments are."""

    def __init__(self, pattern, start=None):
        self.pattern, self.start, self.nodes, self.args, self.kwargs = pattern, start, [], [], {}
        self.found = {}  # by pattern, so that a part used twice is one node

    @property
    def graph(self):
        return self.nodes[0].graph

    def output_node(self):
        return self.found[self.pattern]

    def output_nodes(self):
        return [self.output_node()]

    def erase_nodes(self):
        """Take out the pattern's nodes that nothing uses any more."""
        for node in reversed(self.nodes):
            if not node.users and not node._erased:
                node.graph.erase_node(node)


class _Pattern(abc.ABC):
    """A pattern of an argument."""

    @abc.abstractmethod
    def match(self, value, match):
        """Whether a value fits; notes what the function gets."""

    def with_users(self, users):
        return self


class Ignored(_Pattern):
    """Anything, which the function does not get."""

    def match(self, value, match):
        return True


class Arg(_Pattern):
    """Anything, which the function gets by position."""

    def match(self, value, match):
        match.args.append(value)
        return True


class KeywordArg(_Pattern):
    """Anything, which the function gets by name; the same thing wherever the name stands."""

    def __init__(self, name):
        self.name = name

    def match(self, value, match):
        if self.name in match.kwargs:
            return match.kwargs[self.name] is value or match.kwargs[self.name] == value
        match.kwargs[self.name] = value
        return True


class CallFunction(_Pattern):
    """A call of a function, or of one of several, with arguments that match."""

    def __init__(self, fns, *args, _users=1, **kwargs):
        fns = fns if isinstance(fns, (list, tuple)) else [fns]
        self.fns = []
        for fn in fns:
            overloads = [getattr(fn, name) for name in fn.overloads()] if hasattr(fn, "overloads") else []
            self.fns += [fn, *overloads]
        self.args, self.kwargs, self.users = args, kwargs, _users

    def match(self, value, match):
        if self in match.found:
            return match.found[self] is value
        if not isinstance(value, Node) or value.op != "call_function" or value.target not in self.fns:
            return False
        if value is not match.start and self.users >= 0 and len(value.users) != self.users:
            return False
        args, kwargs = list(value.args), dict(value.kwargs)
        if len(args) < len(self.args):
            schema = getattr(value.target, "_schema", None)
            names = [one.name for one in schema.arguments] if schema is not None else []
            for name in names[len(args) : len(self.args)]:
                if name not in kwargs:
                    return False
                args.append(kwargs.pop(name))
        if len(args) != len(self.args) or kwargs.keys() != self.kwargs.keys():
            return False
        pairs = [*zip(self.args, args), *((self.kwargs[name], kwargs[name]) for name in kwargs)]
        if not all(_matches(pattern, part, match) for pattern, part in pairs):
            return False
        match.found[self] = value
        match.nodes.append(value)
        return True

    @property
    def start_fns(self):
        return self.fns


def _matches(pattern, value, match):
    if isinstance(pattern, _Pattern):
        return pattern.match(value, match)
    if isinstance(pattern, (list, tuple)):
        fits = isinstance(value, (list, tuple)) and len(pattern) == len(value)
        return fits and all(_matches(one, part, match) for one, part in zip(pattern, value))
    return not isinstance(value, Node) and value == pattern


class PatternMatcherPass:
    """Patterns, and what is done where one stands."""

    def __init__(self, pass_name=None):
        self.pass_name, self.patterns = pass_name, defaultdict(list)

    def apply(self, graph):
        """Hand each match to its function, from the graph's end on; how many there were."""
        graph = graph.graph if isinstance(graph, torch.fx.GraphModule) else graph
        count = 0
        for node in reversed(list(graph.nodes)):
            if node._erased or node.op != "call_function":
                continue
            for pattern, extra_check, handler in self.patterns.get(node.target, ()):
                match = Match(pattern, node)
                if pattern.match(node, match) and extra_check(match):
                    handler(match, *match.args, **match.kwargs)
                    count += 1
                    break
        return count


def register_graph_pattern(pattern, extra_check=lambda match: True, *, pass_dict, prepend=False):
    """Register a function of a match and of what its free arguments are."""

    def register(handler):
        for fn in pattern.start_fns:
            entries = pass_dict.patterns[fn]
            entries.insert(0 if prepend else len(entries), (pattern, extra_check, handler))
        return handler

    return register

"""Loops and early returns of a script as graphs have them.

A ``prim::Loop`` takes the most turns, whether there is a first one, and the values that turns hand on; its
block takes the number of the turn and these values, and gives whether there is another turn and the next
values. Loops over modules and tuples are written out, a turn after the other."""

import ast

from rushlight.jit._graph_nodes import Block, Node

__all__ = ["for_loop", "list_of_turns", "returned", "returns_early", "while_loop"]

_MOST = 2**63 - 1


def while_loop(low, node):
    test = low.expression(node.test)
    loop(
        low,
        low.literal(_MOST),
        test,
        node,
        lambda index: low.statements(node.body),
        lambda: low.expression(node.test),
    )


def for_loop(low, node):
    """Whether control leaves the block there, as `Lowering.statements` says."""
    items, source = _items(low, node.iter)
    if items is not None:
        for item in items:
            store(low, node.target, item())
            if low.statements(node.body):
                return True
        return None
    turns, item = source
    go = low.literal(True)

    def turn(index):
        store(low, node.target, item(index))
        low.statements(node.body)

    loop(low, turns, go, node, turn, lambda: go)
    return None


def list_of_turns(low, node, element):
    """A list with an item of each turn, as comprehensions make it; ``element`` gives the item's value."""
    made = low.emit("prim::ListConstruct", (), "Tensor[]", line=node.lineno)
    made_for = ast.For(target=node.generators[0].target, iter=node.generators[0].iter, body=[], orelse=[])
    before = dict(low.scope)
    items, source = _items(low, made_for.iter)

    def turn(value):
        store(low, made_for.target, value)
        item = element()
        made._type = made._annotation = f"{item._type}[]"
        low.emit("aten::append", [made, item], made._type, line=node.lineno)

    if items is not None:
        for item in items:
            turn(item())
    else:
        turns, item = source
        go = low.literal(True)
        loop(low, turns, go, ast.copy_location(made_for, node), lambda index: turn(item(index)), lambda: go)
    low.scope = before
    return made


def loop(low, turns, go, node, body, again):
    """Emit a loop: ``body`` writes a turn, whose number it is given, and ``again`` whether one follows."""
    before = dict(low.scope)
    names = [name for name in dict.fromkeys(_stored(node.body)) if name in before]
    index = low.value("int", "i" if isinstance(node, ast.For) else None)
    carried = {name: like(low, before[name], name) for name in names}
    block, outer = Block(), low.block
    block._inputs = [index, *carried.values()]
    low.scope, low.block = {**before, **carried}, block
    try:
        body(index)
        following = again()
    finally:
        low.block = outer
    block._outputs = [following, *(low.scope[name] for name in names)]
    outputs = [like(low, before[name], name) for name in names]
    made = Node("prim::Loop", [turns, go, *map(before.get, names)], outputs, None, [block], node.lineno)
    low.block._nodes.append(made)
    low.scope = {**before, **dict(zip(names, outputs, strict=True))}


def like(low, value, name):
    """A new value of the type of another one."""
    made = low.value(value._type, name)
    made._annotation = value._annotation
    if value in low.modules:
        low.modules[made] = low.modules[value]
    return made


def _stored(body):
    """The names that statements set, those of inner loops too."""
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id


def store(low, target, value):
    """A name, or a tuple of them, gets a value or several."""
    if isinstance(value, tuple):
        if isinstance(target, (ast.Tuple, ast.List)) and len(target.elts) == len(value):
            for part, item in zip(target.elts, value, strict=True):
                store(low, part, item)
            return
        value = low.tuple_of([part if not isinstance(part, tuple) else low.tuple_of(part) for part in value])
    low.store(target, value)


def _items(low, node):
    """(items, None) of what is gone through when the script is made, each a function that gives a value or a
    tuple of them; else (None, (the number of turns, what gives the value of one))."""
    name = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else None
    if name == "range" and 1 <= len(node.args) <= 3:
        return None, _range(low, node)
    if name == "enumerate" and node.args:
        return _enumerate(low, node)
    if name == "zip" and node.args:
        return _zip(low, node)
    if isinstance(node, ast.Tuple):
        return [lambda part=part: low.expression(part) for part in node.elts], None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.args:
        owner = node.func.value
        if _is_module(low, owner) and node.func.attr in ("items", "values", "keys"):
            return _modules(low, low.expression(owner), node.func.attr), None
    value = low.expression(node)
    if value in low.modules:
        return _modules(low, value, "values"), None
    kind = low.kind(node)
    if kind.kind in ("Tuple", "NamedTuple") and kind.args:
        parts = [low.value(part.schema()) for part in kind.args]
        low.block._nodes.append(Node("prim::TupleUnpack", [value], parts, None, (), node.lineno))
        return [lambda part=part: part for part in parts], None
    return None, _sequence(low, value, kind, node.lineno)


def _is_module(low, node):
    """Whether an expression is one of the script's modules: a chain of attributes of `self`."""
    chain = []
    while isinstance(node, ast.Attribute):
        chain.append(node.attr)
        node = node.value
    value = low.scope.get(node.id) if isinstance(node, ast.Name) else None
    if value is None:
        return False
    owner = low.modules.get(value, low.module if value._name == "self" else None)
    for name in reversed(chain):
        owner = getattr(owner, name, None)
    return hasattr(owner, "_modules")


def _modules(low, value, what):
    def child(name):
        made = low.emit("prim::GetAttr", [value], "Module", {"name": name})
        low.modules[made] = low.modules[value]._modules[name]
        return made

    def item(name):
        if what == "values":
            return child(name)
        return (low.literal(name), child(name)) if what == "items" else low.literal(name)

    return [lambda name=name: item(name) for name in low.modules[value]._modules]


def _range(low, node):
    values = [low.expression(part) for part in node.args]
    if len(values) == 1:
        return values[0], lambda index: index
    start, stop, step = values if len(values) == 3 else (*values, low.literal(1))
    turns = low.emit("aten::__range_length", [start, stop, step], "int", line=node.lineno)
    return turns, lambda index: low.emit("aten::__derive_index", [index, start, step], "int")


def _sequence(low, value, kind, line):
    if kind.kind == "Dict":
        value = low.emit("aten::keys", [value], f"{kind.args[0].schema()}[]", line=line)
    turns = low.emit("aten::len", [value], "int", line=line)
    if value._type == "Tensor":
        first = low.literal(0)
        return turns, lambda index: low.emit("aten::select", [value, first, index], line=line)
    element = value._type.removesuffix("[]") if value._type.endswith("[]") else value._type
    return turns, lambda index: low.emit("aten::__getitem__", [value, index], element, line=line)


def _shortest(low, turns):
    lengths = low.emit("prim::ListConstruct", turns, "int[]")
    return low.emit("prim::min", [lengths], "int")


def _enumerate(low, node):
    first = [*node.args[1:], *(word.value for word in node.keywords)]
    start = low.expression(first[0]) if first else None
    items, source = _items(low, node.args[0])
    if items is not None:
        said = first[0].value if first and isinstance(first[0], ast.Constant) else 0
        begin = said if isinstance(said, int) else 0
        return [lambda i=i, item=item: (low.literal(i), item()) for i, item in enumerate(items, begin)], None
    turns, item = source
    turns = _shortest(low, [low.literal(_MOST), turns])

    def pair(index):
        count = index
        if start is not None:
            count = low.emit("aten::__derive_index", [index, start, low.literal(1)], "int")
        return count, item(index)

    return None, (turns, pair)


def _zip(low, node):
    found = [_items(low, part) for part in node.args]
    if all(items is not None for items, _ in found):
        together = zip(*(items for items, _ in found), strict=False)
        return [lambda row=row: tuple(item() for item in row) for row in together], None
    sources = [source for _, source in found if source is not None]
    if len(sources) < len(found):  # beside what is written out, a number of turns that is known
        rows = next(items for items, _ in found if items is not None)
        return [
            lambda i=i: tuple(
                items[i]() if items is not None else source[1](low.literal(i)) for items, source in found
            )
            for i in range(len(rows))
        ], None
    turns = _shortest(low, [turns for turns, _ in sources])
    return None, (turns, lambda index: tuple(item(index) for _, item in sources))


def returned(low, body):
    """The value that statements return at their end, where some return earlier: what follows an `if` that
    returns belongs to its other branch. None where they end without, or return in another way."""
    for place, statement in enumerate(body):
        if isinstance(statement, ast.Return):
            return low.expression(statement.value) if statement.value else low.literal(None)
        static = low.static(statement) if isinstance(statement, ast.If) else None
        if static is not None:
            return returned(low, [*(statement.body if static else statement.orelse), *body[place + 1 :]])
        if isinstance(statement, ast.If) and _returns(statement):
            rest = body[place + 1 :]
            test, blocks, values = low.expression(statement.test), [], []
            before = dict(low.scope)
            for branch in (statement.body, statement.orelse):
                low.scope = dict(before)
                blocks.append(Block())
                outer, low.block = low.block, blocks[-1]
                try:
                    values.append(returned(low, branch if _leaves(branch) else [*branch, *rest]))
                finally:
                    low.block = outer
            found = next((value for value in values if value is not None), None)
            if found is None:  # each side raises
                low.block._nodes.append(Node("prim::If", [test], [], None, blocks, statement.lineno))
                return None
            for block, value in zip(blocks, values, strict=True):
                block._outputs = [low.nothing(found, block) if value is None else value]
            return low.emit("prim::If", [test], found._type, blocks=blocks, line=statement.lineno)
        if low.statements([statement]):
            return None
    return None


def _returns(statement):
    return any(isinstance(node, ast.Return) for node in ast.walk(statement))


def _leaves(body):
    """Whether every run leaves the function in these statements."""
    if not body:
        return False
    last = body[-1]
    if isinstance(last, (ast.Return, ast.Raise)):
        return True
    return isinstance(last, ast.If) and _leaves(last.body) and _leaves(last.orelse)


def returns_early(body):
    """Whether `returned` can follow these statements: each branch that returns does so in all its runs, and
    no loop does."""
    found = False
    for statement in body:
        if isinstance(statement, ast.If):
            for branch in (statement.body, statement.orelse):
                if any(map(_returns, branch)):
                    if not _leaves(branch) or not returns_early(branch) and len(branch) > 1:
                        return False
                    found = True
        elif not isinstance(statement, ast.Return) and _returns(statement):
            return False
        elif isinstance(statement, ast.Return):
            found = True
    return found

"""A script as a graph of operations: what ``.graph`` shows.

The text of a unit is lowered to PyTorch's form: operators are ``aten::name``, `self`'s attributes
``prim::GetAttr``, control flow ``prim::If`` and ``prim::Loop`` with blocks. Types are known where the text
says them."""

import ast
import enum
import itertools

from rushlight.jit import _graph_indexing as indexing
from rushlight.jit._annotations import Annotations, python_type, value_type
from rushlight.jit._graph_calls import functional_call, operands
from rushlight.jit._graph_loops import for_loop, list_of_turns, returned, returns_early, while_loop
from rushlight.jit._graph_nodes import Block, Graph, Node, Value
from rushlight.jit._types import NONE, TENSOR, UNKNOWN, plain


def graph_of(unit, module=None):
    """The graph of a unit; `module` tells the type of `self`."""
    if "_folded" in getattr(module, "__dict__", ()):
        from rushlight.jit._graph_frozen import frozen_graph_of

        return frozen_graph_of(unit, module)
    graph = Graph(unit.tree.name, unit, module)
    Lowering(graph, unit, module).function(unit.tree)
    return graph


_BINARY = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floordiv", ast.Pow: "pow",
    ast.Mod: "remainder", ast.MatMult: "matmul", ast.BitAnd: "__and__", ast.BitOr: "__or__",
    ast.BitXor: "__xor__", ast.LShift: "__lshift__", ast.RShift: "__rshift__",
}  # fmt: skip
_COMPARE = {
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Is: "__is__",
    ast.IsNot: "__isnot__", ast.In: "__contains__", ast.NotIn: "__not_contains__",
}  # fmt: skip
_SAME = {ast.Is: "eq", ast.IsNot: "ne"}  # of truth values, of which there is one each
_UNARY = {ast.USub: "neg", ast.Not: "__not__", ast.Invert: "bitwise_not", ast.UAdd: "positive"}
_TYPES = {bool: "bool", int: "int", float: "float", str: "str", complex: "complex", type(None): "NoneType"}


class Lowering:
    """Emits nodes for statements and expressions into the innermost block."""

    def __init__(self, graph, unit, module):
        self.graph, self.unit, self.module = graph, unit, module
        self.block, self.scope, self.count = graph, {}, 0
        self.modules = {}  # the modules that values stand for

    def value(self, type_="Tensor", stem=None):
        self.count += 1
        return Value(f"{stem}.{self.count}" if stem else str(self.count), type_)

    def emit(self, kind, inputs=(), type_="Tensor", attributes=None, blocks=(), line=None):
        node = Node(kind, inputs, [] if type_ is None else [self.value(type_)], attributes, blocks, line)
        self.block._nodes.append(node)
        return node._outputs[0] if node._outputs else None

    def function(self, tree):
        arguments = [*tree.args.posonlyargs, *tree.args.args, *tree.args.kwonlyargs]
        schema = self.unit.schema
        loaded = {n.id for part in tree.body for n in ast.walk(part) if isinstance(n, ast.Name)}
        known = {a.name: plain(a.type) for a in schema.arguments} if schema is not None else {}
        for i, argument in enumerate(arguments):
            if i == 0 and (self.module is not None or argument.arg == "self"):
                value = Value("self", f"__torch__.{self.module.original_name if self.module else 'Module'}")
            else:
                said = known.get(argument.arg, TENSOR)
                value = self.value(said.schema())
                used = f"{argument.arg}.{self.count}" if argument.arg in loaded else argument.arg
                value._name, value._annotation = used, str(said)
            self.scope[argument.arg] = value
            self.graph._inputs.append(value)
        if returns_early(tree.body):
            found = returned(self, tree.body)
            self.graph._outputs = [] if found is None else [found]
        else:
            self.statements(tree.body)
        if not self.graph._outputs:
            said = schema.returns if schema is not None and tree.returns is not None else NONE
            kind = "prim::Constant" if said == NONE or not said.known else "prim::Uninitialized"
            self.graph._outputs = [self.emit(kind, type_="NoneType" if kind.endswith("t") else said.schema())]

    def statements(self, body):
        """Whether control leaves the block there; what follows is reached by no run."""
        return any(
            getattr(self, f"statement_{type(statement).__name__}", self.other_statement)(statement)
            for statement in body
        )

    def other_statement(self, node):
        self.emit(f"prim::{type(node).__name__}", type_=None, line=node.lineno)

    def statement_Return(self, node):  # noqa: N802
        value = self.expression(node.value) if node.value else self.emit("prim::Constant", type_="NoneType")
        if self.block is self.graph:
            self.graph._outputs = [value]
        else:
            self.emit("prim::ReturnStmt", [value], None, line=node.lineno)
        return True

    def statement_Expr(self, node):  # noqa: N802
        self.expression(node.value)

    def statement_Assign(self, node):  # noqa: N802
        value = self.expression(node.value)
        for target in node.targets:
            self.store(target, value)

    def statement_AnnAssign(self, node):  # noqa: N802
        if node.value is not None:
            self.store(node.target, self.expression(node.value))

    def statement_AugAssign(self, node):  # noqa: N802
        if isinstance(node.target, ast.Subscript) and _kind(node.target.value).kind in ("Tensor", "Inferred"):
            return self.added_to(node)
        target, value = self.expression(node.target), self.expression(node.value)
        plain = target._type in ("int", "float", "bool", "str", "complex")  # which nothing changes in place
        type_ = target._type if not plain or target._type == value._type else "Tensor"
        name = _BINARY[type(node.op)] + ("" if plain else "_")
        made = self.emit(f"aten::{name}", [target, value], type_, line=node.lineno)
        known = plain and _kind(node)
        if known and known.known:
            made._type = made._annotation = known.schema()
        self.store(node.target, made)

    def added_to(self, node):
        """``x[1:] += y`` of a tensor."""
        base, name = self.expression(node.target.value), f"aten::{_BINARY[type(node.op)]}"

        def change(view, in_place):
            return self.emit(name + "_" * in_place, [view, self.expression(node.value)], line=node.lineno)

        indexing.added_to(self, base, _parts(node.target), change, node.lineno)

    def statement_Assert(self, node):  # noqa: N802
        failed = _block_with(self, lambda: self.emit("prim::RaiseException", type_=None))
        passed = _block_with(self, lambda: None)
        self.emit("prim::If", [self.expression(node.test)], None, blocks=[passed, failed], line=node.lineno)

    def statement_Raise(self, node):  # noqa: N802
        self.emit("prim::RaiseException", type_=None, line=node.lineno)
        return True

    def statement_Pass(self, node):  # noqa: N802
        pass

    def statement_If(self, node):  # noqa: N802
        static = self.static(node)
        if static is not None:
            return self.statements(node.body if static else node.orelse)
        test = self.expression(node.test)
        self.branches(test, [node.body, node.orelse], node.lineno)

    def static(self, node):
        """What types say of a condition, or None."""
        return getattr(node, "script_static", None)

    def statement_For(self, node):  # noqa: N802
        return for_loop(self, node)

    def statement_While(self, node):  # noqa: N802
        while_loop(self, node)

    def statement_With(self, node):  # noqa: N802
        for item in node.items:
            self.emit("prim::Enter", [self.expression(item.context_expr)], None)
        self.statements(node.body)
        self.emit("prim::Exit", type_=None)

    def branches(self, test, bodies, line):
        """Two branches: each body is a block, and names that a body sets come out of the node."""
        before, blocks, scopes = dict(self.scope), [], []
        for body in bodies:
            self.scope = dict(before)
            blocks.append(_block_with(self, lambda body=body: self.statements(body)))
            scopes.append(self.scope)
        changed = [
            n
            for n in dict.fromkeys(n for s in scopes for n in s)
            if any(s.get(n) is not before.get(n) for s in scopes)
        ]
        changed = [n for n in changed if n in before or all(n in s for s in scopes)]
        for block, scope in zip(blocks, scopes, strict=True):
            block._outputs = [scope.get(n, before.get(n)) for n in changed]
        outputs = [self.value(scopes[0].get(n, before.get(n))._type, n) for n in changed]
        self.block._nodes.append(Node("prim::If", [test], outputs, None, blocks, line))
        self.scope = {**before, **dict(zip(changed, outputs, strict=True))}

    def store(self, target, value):
        if isinstance(target, ast.Name):
            self.scope[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            node = Node("prim::TupleUnpack", [value], [self.value() for _ in target.elts])
            self.block._nodes.append(node)
            for part, item in zip(target.elts, node._outputs, strict=True):
                self.store(part, item)
        elif isinstance(target, ast.Attribute):
            self.emit("prim::SetAttr", [self.expression(target.value), value], None, {"name": target.attr})
        elif isinstance(target, ast.Subscript):
            base = self.expression(target.value)
            if indexing.is_tensor(base) and _kind(target.value).kind in ("Tensor", "Inferred"):
                indexing.written(self, base, _parts(target), value, target.lineno)
            else:
                self.emit("aten::_set_item", [base, self.expression(target.slice), value], None)

    def expression(self, node):
        made = getattr(self, f"expression_{type(node).__name__}", self.other_expression)(node)
        kind = plain(_kind(node))
        if kind.known and made._node is not None:
            if made._type in ("Tensor", "Any", "Tensor[]"):
                made._type = kind.schema()
            if made._type == kind.schema():
                made._annotation = str(kind)
        return made

    def other_expression(self, node):
        children = [c for c in ast.iter_child_nodes(node) if isinstance(c, ast.expr)]
        simple = [c for c in children if not isinstance(node, ast.DictComp)]
        return self.emit(
            f"prim::{type(node).__name__}", [self.expression(c) for c in simple], line=node.lineno
        )

    def expression_Constant(self, node):  # noqa: N802
        if node.value is None:
            return self.emit("prim::Constant", type_="NoneType")
        return self.emit(
            "prim::Constant", type_=_TYPES.get(type(node.value), "Any"), attributes={"value": node.value}
        )

    def expression_Name(self, node):  # noqa: N802
        if node.id in self.scope:
            return self.scope[node.id]
        value = self.unit.names.get(node.id)
        if isinstance(value, enum.Enum):
            return self.constant_of_enum(value)
        if isinstance(value, type) and issubclass(value, enum.Enum):
            listed = f"{python_type(value).schema()}[]"
            return self.emit("prim::Constant", type_=listed, attributes={"value": list(value)})
        return self.emit("prim::Constant", type_="Any", attributes={"name": node.id})

    def constant_of_enum(self, value):
        kind = python_type(type(value))
        return self.emit("prim::Constant", type_=kind.schema(), attributes={"value": value})

    def expression_Attribute(self, node):  # noqa: N802
        base = self.expression(node.value)
        if base._name == "self" or base._type == "Module":
            type_, found = "Tensor", None
            owner = self.modules.get(base, self.module if base._name == "self" else None)
            if owner is not None:
                found = getattr(owner, node.attr, None)
                type_ = "Module" if hasattr(found, "_modules") else _TYPES.get(type(found), "Tensor")
                if isinstance(found, enum.Enum):
                    type_ = value_type(found).schema()
            made = self.emit("prim::GetAttr", [base], type_, {"name": node.attr})
            if type_ == "Module":
                self.modules[made] = found
            return made
        base, owner = self.awaited(node.value, base)
        member = base.toIValue() if base._type.startswith("Enum<") else None
        if isinstance(member, enum.Enum) and node.attr in ("name", "value"):
            value = getattr(member, node.attr)
            return self.emit("prim::Constant", type_=_TYPES[type(value)], attributes={"value": value})
        if base._type.startswith("Enum<") and node.attr in ("name", "value"):
            return self.emit(f"prim::Enum{node.attr.title()}", [base])
        if owner in ("Class", "NamedTuple"):
            return self.emit("prim::GetAttr", [base], attributes={"name": node.attr})
        return self.emit(f"prim::{node.attr}", [base])

    def awaited(self, node, value):
        """(value, kind) whose attributes are meant: of what is yet to be called, those of its result."""
        kind = _kind(node)
        if kind.kind != "Await":
            return value, kind.kind
        result = kind.args[0]
        return self.emit("prim::awaitable_wait", [value], result.schema(), line=node.lineno), result.kind

    def expression_BinOp(self, node):  # noqa: N802
        left, right = self.expression(node.left), self.expression(node.right)
        type_ = left._type if left._type == right._type else "Tensor"
        return self.emit(f"aten::{_BINARY[type(node.op)]}", [left, right], type_, line=node.lineno)

    def expression_UnaryOp(self, node):  # noqa: N802
        number = getattr(node.operand, "value", None)
        if isinstance(node.op, ast.USub) and type(number) in (int, float):
            return self.literal(-number)
        value = self.expression(node.operand)
        return self.emit(f"aten::{_UNARY[type(node.op)]}", [value], value._type, line=node.lineno)

    def expression_Compare(self, node):  # noqa: N802
        values = [self.expression(node.left), *map(self.expression, node.comparators)]
        results = [
            self.emit(f"aten::{_compared(op, pair)}", pair, _type_of_comparison(op, pair), line=node.lineno)
            for op, pair in zip(node.ops, itertools.pairwise(values), strict=True)
        ]
        return results[0] if len(results) == 1 else self.emit("aten::__and__", results, "bool")

    def expression_BoolOp(self, node):  # noqa: N802
        kind = "aten::__and__" if isinstance(node.op, ast.And) else "aten::__or__"
        return self.emit(kind, map(self.expression, node.values), "bool", line=node.lineno)

    def expression_IfExp(self, node):  # noqa: N802
        test = self.expression(node.test)
        blocks = []
        for side in (node.body, node.orelse):
            results = []
            block = _block_with(
                self, lambda side=side, results=results: results.append(self.expression(side))
            )
            block._outputs = results
            blocks.append(block)
        return self.emit("prim::If", [test], blocks[0]._outputs[0]._type, blocks=blocks, line=node.lineno)

    def expression_ListComp(self, node):  # noqa: N802
        return list_of_turns(self, node, lambda: self.expression(node.elt))

    def expression_Tuple(self, node):  # noqa: N802
        return self.tuple_of([self.expression(e) for e in node.elts])

    def tuple_of(self, values):
        return self.emit("prim::TupleConstruct", values, f"({', '.join(v._type for v in values)})")

    def literal(self, value):
        return self.emit("prim::Constant", type_=_TYPES[type(value)], attributes=_stored(value))

    def nothing(self, value, block):
        """A value of another one's type at the end of a block that no run leaves there."""
        outer, self.block = self.block, block
        try:
            return (
                self.literal(None)
                if value._type == "NoneType"
                else self.emit("prim::Uninitialized", (), value._type)
            )
        finally:
            self.block = outer

    @staticmethod
    def kind(node):
        return _kind(node)

    def expression_List(self, node):  # noqa: N802
        values = [self.expression(e) for e in node.elts]
        return self.emit("prim::ListConstruct", values, f"{values[0]._type if values else 'Tensor'}[]")

    def expression_Dict(self, node):  # noqa: N802
        values = [self.expression(e) for pair in zip(node.keys, node.values, strict=True) for e in pair]
        return self.emit("prim::DictConstruct", values, "Dict(str, Tensor)")

    def expression_Subscript(self, node):  # noqa: N802
        if (
            isinstance(node.value, ast.Attribute) and node.value.attr == "_modules"
        ):  # a child whose name is a number
            base, name = self.expression(node.value.value), node.slice.value
            made = self.emit("prim::GetAttr", [base], "Module", {"name": name})
            owner = self.modules.get(base, self.module if base._name == "self" else None)
            if owner is not None and name in owner._modules:
                self.modules[made] = owner._modules[name]
            return made
        base, parts = self.expression(node.value), _parts(node)
        owner = _kind(node.value).kind
        if owner in ("List", "str") and isinstance(node.slice, ast.Slice):
            ends = [
                self.expression(p or ast.Constant(value=None)) for p in (node.slice.lower, node.slice.upper)
            ]
            step = self.expression(node.slice.step or ast.Constant(value=1))
            return self.emit("aten::slice", [base, *ends, step], base._type, line=node.lineno)
        if owner in _ITEMS and not isinstance(node.slice, ast.Slice):
            kind = "prim::TupleIndex" if owner in ("Tuple", "NamedTuple") else "aten::__getitem__"
            return self.emit(kind, [base, self.expression(node.slice)], line=node.lineno)
        return indexing.read(self, base, parts, node.lineno)

    def expression_Call(self, node):  # noqa: N802
        arguments = [*node.args, *(k.value for k in node.keywords)]
        if getattr(node.func, "id", None) in ("isinstance", "torch.jit.isinstance") and len(node.args) == 2:
            asked = f"[{', '.join(self.asked(node.args[1]))}]"
            return self.emit(
                "prim::isinstance", [self.expression(node.args[0])], "bool", {"types": _Words(asked)}
            )
        if isinstance(node.func, ast.Attribute):
            base, _ = self.awaited(node.func.value, self.expression(node.func.value))
            if indexing.is_tensor(base):
                arguments = operands(node.func.attr, node, [node.func.value])
            values = [base, *map(self.expression, arguments)]
            if base._name == "self" or base in self.modules:
                found = getattr(self.modules.get(base, self.module), node.func.attr, None)
                if hasattr(found, "_modules"):  # a module of ours is called
                    values[0] = self.emit("prim::GetAttr", [base], "Module", {"name": node.func.attr})
                    self.modules[values[0]] = found
                    return self.called_method(node, "forward", values)
                return self.called_method(node, node.func.attr, values)
            return self.emit(f"aten::{node.func.attr}", values, line=node.lineno)
        name = getattr(node.func, "id", "")
        if name.startswith("torch.nn.functional."):
            name, arguments = functional_call(name.rpartition(".")[2], node)
            name = f"torch.nn.functional.{name}"
        elif name.startswith("torch.") and name.count(".") == 1:
            arguments = operands(name.removeprefix("torch."), node)
        values = list(map(self.expression, arguments))
        if not isinstance(node.func, ast.Name):
            function = self.expression(node.func)
            if function._type == "Module":
                return self.called_method(node, "forward", [function, *values])
            return self.emit("prim::CallFunction", [function, *values], line=node.lineno)
        if name in self.scope:
            return self.called_method(node, "forward", [self.scope[name], *values])
        if name.startswith("__torch__."):
            return self.called_function(node, name, values)
        if name.startswith("torch.ops."):
            space, own = name.split(".")[2:4]
            return self.emit(f"{space}::{own}", values, line=node.lineno)
        if name in _LATER:
            return self.emit(_LATER[name], values, line=node.lineno)
        if name in _CONVERSIONS and len(values) == 1:
            return self.emit(f"aten::{name.title()}", values, name, line=node.lineno)
        if name == "print":
            return self.emit("prim::Print", values, "NoneType", line=node.lineno)
        if name == "torch.rsub" and len(values) == 2:
            return self.emit("aten::sub", values[::-1], line=node.lineno)
        space = "aten" if "." in name or name in _OPERATORS else "prim"
        return self.emit(f"{space}::{name.rpartition('.')[2]}", values, line=node.lineno)

    def called_method(self, node, name, values):
        """A method is called of the module that is the first value."""
        return self.emit("prim::CallMethod", values, attributes={"name": name}, line=node.lineno)

    def called_function(self, node, name, values):
        """A script is called that is no method, or a class."""
        found = self.unit.names.get(name)
        if isinstance(found, type) and (kind := _kind(node)).kind in ("NamedTuple", "Class"):
            return self.made(kind, node, values)
        attributes = {"name": name.rpartition(".")[2]}
        function = self.emit("prim::Constant", type_="Function", attributes=attributes)
        return self.emit("prim::CallFunction", [function, *values], line=node.lineno)

    def made(self, kind, node, values):
        """An object of the program's, with its fields or through its ``__init__``."""
        if kind.kind == "NamedTuple":
            return self.emit("prim::NamedTupleConstruct", values, kind.schema(), line=node.lineno)
        made = self.emit("prim::CreateObject", type_=kind.schema(), line=node.lineno)
        initialize = {"name": "__init__"}
        self.emit("prim::CallMethod", [made, *values], "NoneType", initialize, line=node.lineno)
        return made

    def asked(self, node):
        """The types that an `isinstance` asks for, as graphs write them."""
        if isinstance(node, ast.Tuple):
            return [text for part in node.elts for text in self.asked(part)]
        try:
            return [Annotations(self.unit, self.unit.outside).type_of(node).schema()]
        except RuntimeError:  # bare `list` and the like
            return [ast.unparse(node)]


def _parts(node):
    return node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]


def _stored(value):
    return None if value is None else {"value": value}


def _type_of_comparison(op, values):
    """A tensor where tensors are compared by what they hold."""
    held = isinstance(op, (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE))
    return "Tensor" if held and any(map(indexing.is_tensor, values)) else "bool"


def _compared(op, values):
    same = _SAME.get(type(op)) if all(value._type == "bool" for value in values) else None
    return same or _COMPARE[type(op)]


class _Words(str):
    """Text that graphs show without quotes."""

    def __repr__(self):
        return str(self)


# Calls that are made elsewhere or when they are asked for.
_LATER = {
    "torch.jit.fork": "prim::fork",
    "torch.jit._fork": "prim::fork",
    "torch.jit._awaitable": "prim::awaitable",
    "torch.jit._awaitable_wait": "prim::awaitable_wait",
    "torch.jit._awaitable_nowait": "prim::awaitable_nowait",
}
# Python's functions that graphs have operators for; others belong to the language.
_OPERATORS = frozenset("len list ord chr sorted sum any all round hex oct bin divmod str".split())
_CONVERSIONS = ("int", "float", "bool", "complex")
_ITEMS = ("List", "Dict", "Tuple", "NamedTuple", "str")


def _kind(node):
    """The type that the checker worked out for a node of the text."""
    return getattr(node, "script_type", UNKNOWN)


def _block_with(lowering, run):
    outer, block = lowering.block, Block()
    lowering.block = block
    try:
        run()
    finally:
        lowering.block = outer
    return block

"""Graphs of functions of PyTorch's archives: their code is brought into the form that scripts have, and
lowered as these are."""

import ast
import copy

from rushlight.jit._graph import Lowering
from rushlight.jit._graph_nodes import Graph
from rushlight.jit._operator_match import operator_schemas

__all__ = ["archive_graph"]


def archive_graph(unit, module, inlined=False):
    """The graph of a method of a module that came from an archive; ``inlined``, with the operations of the
    methods that it calls in place of the calls, as far as these return at their end alone."""
    graph, script = Graph(unit.name, unit, module), _AsScript(unit)
    (_Inlining if inlined else _Lowering)(graph, script, module).function(script.tree)
    if graph._inputs and graph._inputs[0]._name == "self":
        graph._inputs[0]._type = graph._inputs[0]._annotation = module._c.qualified_name
    return graph


_BOOLEAN = ("eq", "ne", "lt", "le", "gt", "ge", "__is__", "__isnot__", "__not__", "__contains__")


class _Lowering(Lowering):
    """Code of archives says each operator by its name: brackets pick from lists, tuples and dictionaries, and
    a variable that is called is a function."""

    def emit(self, kind, inputs=(), type_="Tensor", attributes=None, blocks=(), line=None):
        inputs = list(inputs)
        if type_ == "Tensor" and kind.startswith("aten::") and not blocks:
            type_ = _result(kind.removeprefix("aten::"), inputs)
        return super().emit(kind, inputs, type_, attributes, blocks, line)

    def expression_Subscript(self, node):  # noqa: N802
        values = [self.expression(node.value), self.expression(node.slice)]
        is_tuple = values[0]._type.startswith("(")
        return self.emit("prim::TupleIndex" if is_tuple else "aten::__getitem__", values, line=node.lineno)

    def expression_Call(self, node):  # noqa: N802
        name = getattr(node.func, "id", "")
        function = self.scope.get(name)
        if function is not None:
            values = [function, *map(self.expression, node.args)]
            return self.emit("prim::CallFunction", values, line=node.lineno)
        if name == "uninitialized":
            return self.emit("prim::Uninitialized", line=node.lineno)
        if name.endswith(".__new__"):
            return self.emit("prim::CreateObject", (), name.removesuffix(".__new__"), line=node.lineno)
        if isinstance(node.func, ast.Attribute) and node.func.attr != "tolist":  # of an object
            values = list(map(self.expression, (node.func.value, *node.args)))
            return self.called_method(node, node.func.attr, values)
        if name == "getattr":  # of what has a name that is none of Python's
            return self._part(self.expression(node.args[0]), node.args[1].value)
        return super().expression_Call(node)

    def called_method(self, node, name, values):
        owner = self.modules.get(values[0], self.module if values[0]._name == "self" else None)
        unit = getattr(owner, "_archive_units", {}).get(name)
        said = None if unit is None else unit.schema.returns
        type_ = "Tensor" if said is None or not said.known else said.schema()
        return super().emit("prim::CallMethod", values, type_, {"name": name}, line=node.lineno)

    def expression_UnaryOp(self, node):  # noqa: N802
        if isinstance(node.op, ast.USub) and getattr(node.operand, "id", None) in ("inf", "nan"):
            return self.literal(-float(node.operand.id))
        return super().expression_UnaryOp(node)

    def expression_Name(self, node):  # noqa: N802
        if node.id in ("inf", "nan") and node.id not in self.scope:
            return self.literal(float(node.id))
        if node.id.startswith("__torch__.") and node.id not in self.unit.names:
            attributes = {"name": node.id.rpartition(".")[2]}
            return self.emit("prim::Constant", type_="Function", attributes=attributes)
        return super().expression_Name(node)

    def _part(self, base, name):
        """A module by its name in another one."""
        made = super().emit("prim::GetAttr", [base], "Module", {"name": name})
        owner = self.modules.get(base, self.module if base._name == "self" else None)
        if owner is not None and name in owner._modules:
            self.modules[made] = owner._modules[name]
        return made

    def store(self, target, value):
        """Several results of one operator are values of its node; a tuple that is only named is none."""
        node = value._node
        fresh = node is not None and self.block._nodes[-1:] == [node] and isinstance(target, ast.Tuple)
        if fresh and node.kind() == "prim::TupleConstruct":
            self.block._nodes.pop()
            for part, item in zip(target.elts, node._inputs, strict=True):
                item._uses.remove(node)
                super().store(part, item)
            return None
        if not fresh or not node.kind().startswith("aten::"):
            return super().store(target, value)
        node._outputs = [value, *(self.value() for _ in target.elts[1:])]
        for part, result in zip(target.elts, node._outputs, strict=True):
            result._node, result._type, result._annotation = node, "Tensor", "Tensor"
            super().store(part, result)
        return None


class _Inlining(_Lowering):
    """Writes the operations of methods in place of their calls."""

    def called_method(self, node, name, values):
        owner = self.modules.get(values[0], self.module if values[0]._name == "self" else None)
        unit = getattr(owner, "_archive_units", {}).get(name)
        script = unit and _AsScript(unit)
        if script is None or not _returns_at_end(script.tree):
            return super().called_method(node, name, values)
        arguments, outer = script.tree.args, (self.unit, self.module, self.scope)
        names = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
        left = names[len(values) :]
        self.unit, self.module, self.scope = script, owner, dict(zip(names, values, strict=False))
        for missing, default in zip(
            left, arguments.defaults[len(arguments.defaults) - len(left) :], strict=True
        ):
            self.scope[missing] = self.expression(default)
        self.statements(script.tree.body[:-1])
        result = self.expression(script.tree.body[-1].value)
        self.unit, self.module, self.scope = outer
        return result


def _returns_at_end(tree):
    returns = [node for node in ast.walk(tree) if isinstance(node, ast.Return)]
    return len(returns) == 1 and returns[0] is tree.body[-1] and returns[0].value is not None


def _result(name, inputs):
    """The type of what an operator gives: of numbers and the like no tensor."""
    if not any(value._type == "Tensor" for value in inputs) and inputs:
        return "bool" if name in _BOOLEAN else "int" if name == "len" else inputs[0]._type
    if name in _BOOLEAN[6:]:
        return "bool"
    kinds = {schema.returns[0].type.annotation_str for schema in operator_schemas(name) if schema.returns}
    return kinds.pop() if len(kinds) == 1 and kinds < {"int", "bool", "float"} else "Tensor"


class _AsScript:
    """A unit of an archive as the lowering of scripts reads it."""

    names: dict = {}
    outside: dict = {}
    overloaded = False

    def __init__(self, unit):
        self.tree = _Resolved(unit.tree).visit(copy.deepcopy(unit.tree))
        self.name, self.schema, self.source = unit.name, unit.schema, unit.source


_ROOTS = ("torch", "ops", "__torch__", "CONSTANTS")


class _Resolved(ast.NodeTransformer):
    """Names with dots become names that the lowering knows; types that are said for the compiler go."""

    def __init__(self, tree):
        self.locals = {
            n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        }

    def visit_arg(self, node):
        return node

    def visit_FunctionDef(self, node):
        node.body = [self.visit(statement) for statement in node.body]
        return node

    def visit_AnnAssign(self, node):
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        return ast.copy_location(ast.Assign([node.target], self.visit(node.value)), node)

    def visit_Attribute(self, node):
        parts, base = [node.attr], node.value
        while isinstance(base, ast.Attribute):
            parts.append(base.attr)
            base = base.value
        if not isinstance(base, ast.Name) or base.id not in _ROOTS or base.id in self.locals:
            return self.generic_visit(node)
        dotted = ".".join([base.id, *reversed(parts)])
        dotted = f"torch.{dotted}" if base.id == "ops" else dotted
        return ast.copy_location(ast.Name(dotted, ast.Load()), node)

    def visit_Call(self, node):
        name = getattr(node.func, "id", None)
        if name == "annotate":
            return self.visit(node.args[1])
        if name == "unchecked_cast":
            node.args = node.args[1:]
        if name == "isinstance":
            node.args[0] = self.visit(node.args[0])
            return node
        return self.generic_visit(node)

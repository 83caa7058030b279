"""The code of TorchScript archives: a subset of Python, checked node by node and compiled to functions.

Names stand for local variables alone. All else goes through `_torchscript_ops` and `_torchscript_values`:
operators (`torch.add`, `ops.prim.dtype`), attributes and methods of the archive's modules, and what
`__torch__…` names in the archive."""

import ast
import enum
from collections import namedtuple

import rushlight
from rushlight.jit import _torchscript_ops as operators
from rushlight.jit import _torchscript_values as values
from rushlight.jit._executable import BUILTINS
from rushlight.jit._run_errors import UNIT
from rushlight.jit._torchscript_methods import ArchiveUnit, PublicMethod

_HOOKS = ("__forward_pre_hooks__", "__forward_hooks__")
_SPECIAL = ("__len__", "__contains__", "__getitem__", "__setstate__", "__getstate__")
_ROOTS = ("torch", "ops", "__torch__", "CONSTANTS")
_COMPARISONS = {
    ast.Is: "__is__",
    ast.IsNot: "__isnot__",
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
    ast.In: "in",
    ast.NotIn: "not_in",
}
_ARITHMETIC = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.FloorDiv: "floordiv",
    ast.Mod: "remainder",
    ast.Pow: "pow",
    ast.MatMult: "matmul",
    ast.BitAnd: "__and__",
    ast.BitOr: "__or__",
    ast.BitXor: "__xor__",
}


def refuse(message):
    return NotImplementedError(message)


def _attributes(node):
    """Name -> the tree of its type, of what objects of a class hold."""
    said = [n for n in node.body if isinstance(n, ast.AnnAssign) and n.value is None]
    found = {n.target.id: n.annotation for n in said if isinstance(n.target, ast.Name)}
    for n in node.body:  # names that are none of Python's
        match n:
            case ast.Assign([ast.Subscript(slice=ast.Constant(value=str(name)))], value=said):
                found[name] = said
    return found


class Unit:
    """One file of code."""

    def __init__(self, archive, prefix, text):
        self.archive, self.prefix, self.text = archive, prefix, text
        self.filename = f"{archive.name}/code/{prefix.replace('.', '/')}.py"
        try:
            tree = ast.parse(text, self.filename)
        except (SyntaxError, RecursionError, MemoryError) as e:
            raise ValueError(f"its code does not parse: {e}") from None
        self.lines = text.splitlines()
        self.functions = {}  # by their trees
        self.nodes = {n.name: n for n in tree.body if isinstance(n, (ast.ClassDef, ast.FunctionDef))}

    def define(self, name):
        """What the file has under a name; a class knows where it is from."""
        made = self._made(name)
        if isinstance(made, type):
            made._archive_path = made._qualified_name = f"{self.prefix}.{name}"
            made._archive = self.archive
        return made

    def _made(self, name):
        node = self.nodes.get(name)
        if node is None:
            raise RuntimeError(f"jit.load: {self.filename} has no {name}")
        if isinstance(node, ast.FunctionDef):
            return values.Function(self._compile(node), f"{self.prefix}.{name}")
        base = node.bases[0].id if node.bases and isinstance(node.bases[0], ast.Name) else ""
        if base == "Module":
            return self._module(node)
        if base == "NamedTuple":
            fields = [n.target.id for n in node.body if isinstance(n, ast.AnnAssign)]
            return namedtuple(node.name, fields, rename=True)
        if base in ("", "Object"):
            return self._class(node)
        if base == "Enum":
            return self._enumeration(node)
        raise refuse(f"jit.load: {self.filename}:{node.lineno}: classes of the kind {base!r} are not read")

    def _module(self, node):
        from rushlight.jit._torchscript import LoadedModule

        methods, members = self._methods(node), {}
        for item in node.body:
            if (
                isinstance(item, ast.AnnAssign)
                and item.value is not None
                and isinstance(item.target, ast.Name)
            ):
                members[item.target.id] = self._constant(item.value)
        lists = {
            n.targets[0].id: [e.value for e in n.value.elts if isinstance(e, ast.Constant)]
            for n in node.body
            if isinstance(n, ast.Assign)
            and isinstance(n.targets[0], ast.Name)
            and isinstance(n.value, ast.List)
        }
        for name in (*methods, *members):
            special = name.endswith("__") and name not in _SPECIAL
            if name.startswith("__") and (special or not name.endswith(("__", "_getter", "_setter"))):
                raise ValueError(f"the name {name!r} is not allowed for a member of a class")
        hooks = {kind: tuple(methods[n] for n in lists.get(kind, ()) if n in methods) for kind in _HOOKS}
        units = {n.name: self.functions[n] for n in node.body if isinstance(n, ast.FunctionDef)}
        public = {n: m if n.startswith("__") else PublicMethod(units[n]) for n, m in methods.items()}
        public = {n: m for n, m in public.items() if n not in ("__setstate__", "__getstate__")}
        return type(
            "RecursiveScriptModule",
            (LoadedModule,),
            {
                **{n: v for n, v in members.items() if not hasattr(rushlight.nn.Module, n)},
                **public,
                "_original_name": node.name,
                "_archive_constants": members,
                "_archive_methods": methods,
                "_archive_units": units,
                "_archive_attributes": _attributes(node),
                "_archive_hooks": tuple(hooks.values()),
                "_archive_parameters": tuple(lists.get("__parameters__", ())),
                "_archive_buffers": tuple(lists.get("__buffers__", ())),
                "__module__": "torch.jit._script",
                "__qualname__": "RecursiveScriptModule",
            },
        )

    def _class(self, node):
        methods = self._methods(node)
        members = {"_archive_methods": methods, "_archive_attributes": _attributes(node)}
        return type(node.name, (values.Instance,), {**members, "__module__": "torch.jit._script"})

    def _enumeration(self, node):
        members = {}
        for item in node.body:
            if not isinstance(item, ast.Assign) or not isinstance(item.targets[0], ast.Name):
                raise ValueError(f"{self.filename}:{item.lineno}: no member of an enumeration")
            name, value = item.targets[0].id, self._constant(item.value)
            if name.startswith("_") or type(value) not in (int, float, str):
                raise ValueError(f"{self.filename}:{item.lineno}: no member of an enumeration")
            members[name] = value
        make = enum.Enum
        return make(node.name, members, module="torch.jit._script")

    def _methods(self, node):
        return {n.name: self._compile(n) for n in node.body if isinstance(n, ast.FunctionDef)}

    def _compile(self, node):
        unit = self.functions[node] = ArchiveUnit(node, self.filename, self.lines)
        translator = _Translator(self, node)
        translator.globals[UNIT] = unit
        unit.function = translator.function()
        return unit.function

    def _constant(self, node):
        wrapper = ast.parse("def value():\n  return None").body[0]
        wrapper.body = [ast.copy_location(ast.Return(node), node)]
        try:
            return self._compile(ast.copy_location(wrapper, node))()
        except NotImplementedError:
            return None  # of a kind that only a method could use, which would say so


class _Translator:
    """One function of an archive as a function of Python."""

    def __init__(self, unit, node):
        self.unit, self.node = unit, node
        self.globals = {
            "__builtins__": BUILTINS,
            "$get": values.get_attribute,
            "$set": values.set_attribute,
            "$method": values.method,
            "$call": values.call_value,
            "$range": values.counted,
            "$iterate": values.iterate,
            "$true": values.truth,
            "$is": values.is_instance,
            "$fork": values.fork,
            "$context": values.Context,
            "$list": values.to_list,
            "$item": values.item,
        }
        arguments = node.args
        if arguments.vararg or arguments.kwarg or node.decorator_list:
            self.fail(node, "this kind of function")
        names = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        self.locals = {a.arg for a in names}
        self.locals |= {
            n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        }
        self.locals |= {n.name for n in ast.walk(node) if isinstance(n, ast.FunctionDef) and n is not node}
        for name in self.locals:
            if name.startswith("__") and name.endswith("__"):
                self.fail(node, f"the name {name!r}")

    def fail(self, node, what):
        line = getattr(node, "lineno", 0)
        raise refuse(f"jit.load: {self.unit.filename}:{line}: {what} is not covered")

    def function(self):
        node, old = self.node, self.node.args
        plain = lambda a: ast.arg(a.arg)  # noqa: E731
        arguments = ast.arguments(
            posonlyargs=[],
            args=[plain(a) for a in (*old.posonlyargs, *old.args)],
            kwonlyargs=[plain(a) for a in old.kwonlyargs],
            kw_defaults=[d and self.expression(d) for d in old.kw_defaults],
            defaults=[self.expression(d) for d in old.defaults],
        )
        made = ast.FunctionDef(name="f", args=arguments, body=self.block(node.body), decorator_list=[])
        if hasattr(made, "type_params"):
            made.type_params = []
        module = ast.Module(body=[ast.copy_location(made, node)], type_ignores=[])
        exec(compile(ast.fix_missing_locations(module), self.unit.filename, "exec"), self.globals)
        function = self.globals["f"]
        function.__name__, function.__qualname__ = node.name, f"{self.unit.prefix}.{node.name}"
        function.__module__ = "__torch__"
        return function

    # --- statements

    def block(self, body):
        return [self.statement(s) for s in body] or [ast.Pass()]

    def statement(self, s):
        method = getattr(self, "_" + type(s).__name__, None)
        if method is None:
            self.fail(s, f"the statement {type(s).__name__}")
        return ast.copy_location(method(s), s)

    def _Pass(self, s):
        return ast.Pass()

    def _Return(self, s):
        return ast.Return(s.value and self.expression(s.value))

    def _Expr(self, s):
        return ast.Expr(self.expression(s.value))

    def _Assign(self, s):
        target = s.targets[0]
        if len(s.targets) != 1:
            self.fail(s, "an assignment to several targets")
        if isinstance(target, ast.Attribute):
            text = ast.Constant(target.attr)
            return ast.Expr(
                self.helper("$set", self.expression(target.value), text, self.expression(s.value))
            )
        return ast.Assign([self.target(target)], self.expression(s.value))

    def _AnnAssign(self, s):
        if s.value is None:
            return ast.Pass()
        return ast.Assign([self.target(s.target)], self.expression(s.value))

    def target(self, t):
        if isinstance(t, ast.Name):
            return ast.Name(t.id, ast.Store())
        if isinstance(t, ast.Tuple):
            return ast.Tuple([self.target(e) for e in t.elts], ast.Store())
        self.fail(t, "this target of an assignment")

    def _If(self, s):
        return ast.If(self.condition(s.test), self.block(s.body), self.block(s.orelse) if s.orelse else [])

    def _While(self, s):
        return ast.While(self.condition(s.test), self.block(s.body), [])

    def _For(self, s):
        if s.orelse:
            self.fail(s, "else after a loop")
        return ast.For(
            self.target(s.target), self.helper("$iterate", self.expression(s.iter)), self.block(s.body), []
        )

    def _FunctionDef(self, s):
        """What `fork` runs: a function without arguments, which sees the variables around it."""
        given = s.args
        if not s.name.startswith("__forked_function") or s.decorator_list or ast.unparse(given):
            self.fail(s, "a function inside of a function")
        made = ast.FunctionDef(name=s.name, args=given, body=self.block(s.body), decorator_list=[])
        if hasattr(made, "type_params"):
            made.type_params = []
        return made

    def _With(self, s):
        items = [
            ast.withitem(
                self.helper("$context", self.expression(item.context_expr)),
                item.optional_vars and self.target(item.optional_vars),
            )
            for item in s.items
        ]
        return ast.With(items, self.block(s.body))

    def _Break(self, s):
        return ast.Break()

    def _Continue(self, s):
        return ast.Continue()

    # --- expressions

    def helper(self, name, *arguments):
        return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])

    def condition(self, e):
        return self.helper("$true", self.expression(e))

    def expression(self, e):
        method = getattr(self, "_" + type(e).__name__, None)
        if method is None:
            self.fail(e, f"the expression {type(e).__name__}")
        return ast.copy_location(method(e), e)

    def _Constant(self, e):
        if not isinstance(e.value, (int, float, complex, str, bytes, type(None))):
            self.fail(e, "this constant")
        return ast.Constant(e.value)

    def _Name(self, e):
        if e.id in self.locals:
            return ast.Name(e.id, ast.Load())
        if e.id in ("inf", "nan"):
            return ast.Constant(float(e.id))
        self.fail(e, f"the name {e.id!r}")

    def _Tuple(self, e):
        return ast.Tuple([self.expression(x) for x in e.elts], ast.Load())

    def _List(self, e):
        return ast.List([self.expression(x) for x in e.elts], ast.Load())

    def _Dict(self, e):
        if None in e.keys:
            self.fail(e, "this dict")
        return ast.Dict([self.expression(k) for k in e.keys], [self.expression(v) for v in e.values])

    def _Subscript(self, e):
        if isinstance(e.slice, ast.Slice):
            self.fail(e, "a slice in brackets")
        return self.helper("$item", self.expression(e.value), self.expression(e.slice))

    def _UnaryOp(self, e):
        if isinstance(e.op, ast.Not):
            return ast.UnaryOp(ast.Not(), self.condition(e.operand))
        return self.operator(
            "torch", {"USub": "neg", "Invert": "bitwise_not"}.get(type(e.op).__name__, "+"), e.operand
        )

    def _BinOp(self, e):
        return self.operator("torch", _ARITHMETIC.get(type(e.op), type(e.op).__name__), e.left, e.right)

    def _BoolOp(self, e):
        return ast.BoolOp(e.op, [self.condition(v) for v in e.values])

    def _Compare(self, e):
        if len(e.ops) != 1:
            self.fail(e, "a chain of comparisons")
        return self.operator("torch", _COMPARISONS[type(e.ops[0])], e.left, e.comparators[0])

    def _IfExp(self, e):
        return ast.IfExp(self.condition(e.test), self.expression(e.body), self.expression(e.orelse))

    def _Attribute(self, e):
        path = self.path(e)
        if path is None:
            return self.helper("$get", self.expression(e.value), ast.Constant(e.attr))
        if path[0] == "CONSTANTS" and len(path) == 2 and path[1][:1] == "c" and path[1][1:].isdecimal():
            return self.place(f"$constant {path[1]}", self.unit.archive.constants[int(path[1][1:])])
        if path[0] == "__torch__":
            member = self.unit.archive.member(path)
            if member is not None:
                return self.place(f"$member {'.'.join(path)}", member)
            return self.named(path)
        self.fail(e, ".".join(path))

    def path(self, e):
        """The parts of a dotted name that starts with no local variable."""
        parts = []
        while isinstance(e, ast.Attribute):
            parts.append(e.attr)
            e = e.value
        if not isinstance(e, ast.Name) or e.id not in _ROOTS or e.id in self.locals:
            return None
        return [e.id, *reversed(parts)]

    def place(self, key, value):
        self.globals[key] = value
        return ast.Name(key, ast.Load())

    def named(self, path):
        dotted = ".".join(path)
        return self.place(f"$named {dotted}", values.Reference(self.unit.archive, dotted))

    def operator(self, space, name, *arguments, keywords=()):
        function = self.place(f"$op {space}.{name}", self.unit.archive.operator(space, name))
        words = [ast.keyword(k.arg, self.expression(k.value)) for k in keywords]
        return ast.Call(function, [self.expression(a) for a in arguments], words)

    def _Call(self, e):
        if any(k.arg is None for k in e.keywords) or any(isinstance(a, ast.Starred) for a in e.args):
            self.fail(e, "a call with unpacked arguments")
        f = e.func
        if isinstance(f, ast.Name) and f.id not in self.locals:
            return self.builtin(e, f.id)
        path = self.path(f) if isinstance(f, ast.Attribute) else None
        if path is not None and path[0] == "torch" and len(path) == 2:
            return self.operator("torch", path[1], *e.args, keywords=e.keywords)
        if path is not None and path[0] == "ops" and len(path) == 3:
            return self.operator(path[1], path[2], *e.args, keywords=e.keywords)
        words = [ast.keyword(k.arg, self.expression(k.value)) for k in e.keywords]
        arguments = [self.expression(a) for a in e.args]
        if path is not None and path[0] == "__torch__" and path[-1] == "__new__":
            return ast.Call(ast.Name("$call", ast.Load()), [self.named(path[:-1])], [])
        if path is not None and path[0] == "__torch__":
            return ast.Call(ast.Name("$call", ast.Load()), [self.named(path), *arguments], words)
        if isinstance(f, ast.Attribute) and path is None and f.attr == "tolist" and not arguments:
            return self.helper("$list", self.expression(f.value))
        if isinstance(f, ast.Attribute) and path is None:
            bound = self.helper("$method", self.expression(f.value), ast.Constant(f.attr))
            return ast.Call(bound, arguments, words)
        if path is None:
            return ast.Call(ast.Name("$call", ast.Load()), [self.expression(f), *arguments], words)
        self.fail(e, ".".join(path))

    def builtin(self, e, name):
        if name in ("annotate", "unchecked_cast", "uninitialized"):  # types are not evaluated
            return ast.Constant(None) if name == "uninitialized" else self.expression(e.args[1])
        if name == "fork":
            if len(e.args) != 1 or e.keywords or not isinstance(e.args[0], ast.Name):
                self.fail(e, "this call of fork")
            return self.helper("$fork", self.expression(e.args[0]))
        if name == "getattr":
            return self.helper("$get", self.expression(e.args[0]), self.expression(e.args[1]))
        if name == "range":
            return self.helper("$range", *[self.expression(a) for a in e.args])
        if name == "isinstance":
            return self.helper("$is", self.expression(e.args[0]), ast.Constant(ast.unparse(e.args[1])))
        if name in operators.BUILTINS:
            return self.operator("python", name, *e.args, keywords=e.keywords)
        self.fail(e, f"the function {name!r}")

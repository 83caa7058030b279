"""From a Python function to a unit of TorchScript: the subset of Python, with every outside name resolved.

A unit keeps the syntax tree of its function. Names from outside stand in it as single names with dots
(``torch.nn.functional.relu``), so the tree can be printed, written to a file, read again and compiled with a
namespace that holds those names and nothing else."""

import ast
import builtins
import cmath
import contextlib
import copy
import enum
import inspect
import types
import typing

import rushlight
from rushlight.jit._annotations import schema_of
from rushlight.jit._arithmetic import in_script as in_arithmetic
from rushlight.jit._call_check import checked
from rushlight.jit._checker import check_function
from rushlight.jit._decorations import _overloaded
from rushlight.jit._executable import BUILTINS, HELPERS, executable
from rushlight.jit._library import library_name
from rushlight.jit._python_calls import in_script
from rushlight.jit._run_errors import UNIT
from rushlight.jit._scripted_class import record_of
from rushlight.jit._source import Source
from rushlight.jit._static_branches import argument_types, drop_static_branches
from rushlight.jit._syntax import FrontendError, NotSupportedError, UnsupportedNodeError, check_syntax
from rushlight.jit._type_comments import apply_type_comment
from rushlight.jit._types import DTYPE_LIKE, UNKNOWN, Argument, Schema

__all__ = [
    "FrontendError",
    "NotSupportedError",
    "Unit",
    "UnsupportedNodeError",
    "script_function",
]


DEFAULT = "__default__."  # tensors that arguments have unless others are given: no text says them
_BUILTINS = frozenset(
    """abs all any bin bool chr complex dict divmod enumerate float getattr hasattr hash hex id int isinstance
    len list max min oct ord pow print range reversed round set slice sorted str sum tuple zip type""".split()
)
_TYPING = ("List", "Dict", "Tuple", "Optional", "Union", "Any")
_EXCEPTIONS = frozenset(
    name for name, value in vars(builtins).items() if isinstance(value, type) and issubclass(value, Exception)
)
_SETTINGS = (rushlight.device, *DTYPE_LIKE)
_SPACES = (types.ModuleType, type, rushlight._ops._OpNamespace, rushlight._ops.OpOverloadPacket)
_CONSTANTS = (bool, int, float, complex, str, bytes, type(None), type(...))


def _answer_of_hasattr(test, first, holds):
    """What a condition made of ``hasattr(self, "name")`` says, or None where it is another one."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        answer = _answer_of_hasattr(test.operand, first, holds)
        return None if answer is None else not answer
    if isinstance(test, ast.BoolOp):
        answers = [_answer_of_hasattr(value, first, holds) for value in test.values]
        decides = isinstance(test.op, ast.Or)
        return decides if decides in answers else None if None in answers else not decides
    if not (isinstance(test, ast.Call) and isinstance(test.func, ast.Name) and test.func.id == "hasattr"):
        return None
    match test.args:
        case [ast.Name(id=name), ast.Constant(value=str(attribute))] if name == first:
            return holds(attribute)
    return None


class Unit:
    """One function or method: its tree, what its names from outside stand for, and what it asks of `self`."""

    schema = None  # what calls from Python are checked against
    overloaded = False
    drawing: list = []  # of a trace: calls that draw random numbers
    late_names: dict | None = None  # what is not where its class is defined yet: the class itself
    under_way = False  # while it is compiled, or its types are followed
    outside: dict = {}  # the names around the function it was made of
    typed_for = None  # a weak reference to the module for whose attributes types were followed last

    def __init__(self, name, tree, names, filename="<torch_script>", python=(), source=None):
        self.name, self.tree, self.names, self.filename = name, tree, names, filename
        self.source = source or Source(filename, ())
        self.plain_name = name
        self.python = tuple(python)  # functions that stay Python and so cannot be written to a file
        self._function = None

    @property
    def code(self):
        return ast.unparse(_Shown().visit(copy.deepcopy(self.tree))) + "\n"

    def is_typed_for(self, module):
        return self.typed_for is not None and self.typed_for() is module

    @property
    def attributes_of_self(self):
        """Attribute -> line, for those of the first argument."""
        first = self.tree.args.args[0].arg if self.tree.args.args else None
        return {
            node.attr: node.lineno
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == first
        }

    def attributes_needed(self, holds):
        """Name -> where it is asked for, of `attributes_of_self` but for what ``hasattr`` leaves out, whose
        answers `holds` gives."""
        first = self.tree.args.args[0].arg if self.tree.args.args else None
        needed = {}

        def visit(node):
            if (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id == first
            ):
                needed.setdefault(node.attr, node)
            if isinstance(node, (ast.If, ast.IfExp)):
                taken = _answer_of_hasattr(node.test, first, holds)
                if taken is not None:
                    branch = node.body if taken else node.orelse
                    for part in branch if isinstance(branch, list) else [branch]:
                        visit(part)
                    return
            for child in ast.iter_child_nodes(node):
                visit(child)

        visit(self.tree)
        return needed

    @property
    def methods_of_others(self):
        """Methods that are called on something else than the first argument: pairs of the attributes that
        lead to it from there, or None where it is found in another way, and a name."""
        first = self.tree.args.args[0].arg if self.tree.args.args else None
        found = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                path, base = [], node.func.value
                while isinstance(base, ast.Attribute):
                    path.insert(0, base.attr)
                    base = base.value
                from_first = isinstance(base, ast.Name) and base.id == first
                if path or not from_first:
                    found[tuple(path) if from_first else None, node.func.attr] = None
        return list(found)

    def function(self):
        """The function, compiled so that its tracebacks show the program's own lines."""
        if self._function is None:
            module = ast.Module(body=[executable(self.tree, self.names)], type_ignores=[])
            space = {"__builtins__": BUILTINS, UNIT: self, **HELPERS, **self.names}
            try:
                code = compile(ast.fix_missing_locations(module), self.filename, "exec")
            except SyntaxError as error:  # which a text may have, as a break outside of loops
                raise RuntimeError(f"SyntaxError: {error.msg} in line {error.lineno}") from None
            exec(code, space)
            self._function = space[self.tree.name]
            self._function.__module__ = "__torch__"
        return self._function

    def checked(self, skip_self=False):
        """The function for calls from Python: it refuses and converts arguments."""
        function = self.function()
        if self.schema is None:
            free = self.overloaded
            self.schema = (
                _free(self, skip_self) if free else schema_of(self, None, skip_self, defaults_of(function))
            )
        return checked(function, self.schema, skip_self)

    def refuse(self, message, node, kind=RuntimeError):
        """Raise an error that shows where in the source a node is."""
        raise kind(f"{message}:\n{self.source.shown(node)}")


class _Shown(ast.NodeTransformer):
    """Annotations that a file held as text are shown as they were written, defaults that have a text."""

    def visit_arguments(self, node):
        unsaid = [i for i, d in enumerate(node.defaults) if getattr(d, "id", "").startswith(DEFAULT)]
        node.defaults = node.defaults[max(unsaid, default=-1) + 1 :]
        return self.generic_visit(node)

    def visit_arg(self, node):
        node.annotation = _plain(node.annotation)
        return node

    def visit_FunctionDef(self, node):
        node.returns = _plain(node.returns)
        return self.generic_visit(node)

    def visit_AnnAssign(self, node):
        node.annotation = _plain(node.annotation)
        return node


def _plain(annotation):
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        return ast.Name(annotation.value, ast.Load())
    return annotation


def script_function(fn, known, method=False, extra=None):
    """The unit of a Python function; ``known`` maps functions to their units, those under way too, and
    ``extra`` has names that are not where the function was defined yet."""
    if fn in known:
        return known[fn]
    before = dict(known)
    try:
        return _compile_function(fn, known, {}, method, extra)
    except (FrontendError, RuntimeError):
        # What a script cannot take may stand where no argument of the right type leads.
        arguments = _source_tree(fn)[0].args
        written = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
        types_of = argument_types(fn, [a.arg for a in written if a.annotation is not None])
        known.clear()
        known.update(before)
        try:
            return _compile_function(fn, known, types_of, method, extra)
        except (FrontendError, RuntimeError):
            pass
        raise


def _compile_function(fn, known, types_of, method, extra=None):
    if getattr(fn, "__overload_signature__", False):
        raise RuntimeError(
            f'Implementation for the {"method" if method else "function"} "{fn.__qualname__}" is missing. '
            "Please make sure a definition is provided and defined after all overload declarations."
        )
    tree, source = _source_tree(fn)
    unit = Unit(fn.__qualname__.replace(".<locals>", ""), tree, {}, source.filename, source=source)
    unit.plain_name = fn.__qualname__.rpartition("<locals>.")[2]
    unit.overloaded = (fn.__module__, fn.__qualname__) in _overloaded
    unit.late_names = extra
    known[fn] = unit
    unit.under_way = True
    try:
        annotations = getattr(fn, "__annotations__", {})
        names = {**(extra or {}), **_outside_names(fn)}
        _complete(unit, names, known, types_of, method, defaults_of(fn), annotations)
    except BaseException:
        known.pop(fn, None)
        raise
    unit.under_way = False
    return unit


def unit_from_text(tree, lines, names, known):
    """The unit of a function of a text, which may name what ``names`` has."""
    source = Source("<string>", lines)
    apply_type_comment(tree, lines[tree.lineno - 1 :], source, tree.lineno - 1)
    unit = Unit(tree.name, tree, {}, "<string>", source=source)
    _complete(unit, names, known, {}, False, None)
    return unit


def unit_of_method_text(name, text, names):
    """The unit of a method that was made from no source, whose text names what ``names`` has."""
    tree = ast.parse(text).body[0]
    unit = Unit(name, tree, {}, "<string>", source=Source("<string>", text.splitlines(True)))
    _complete(unit, names, {}, {}, True, None)
    return unit


def _complete(unit, names, known, types_of, method, defaults, annotations=None):
    """Resolve the names of a parsed function and check its types."""
    tree = unit.tree
    check_syntax(unit)
    local_names = _local_names(tree)
    if defaults is not None:
        read = lambda: schema_of(unit, names, method, defaults, annotations)  # noqa: E731
        unit.schema = _free(unit, method) if unit.overloaded else read()
    unit.tree = drop_static_branches(tree, names, local_names, types_of)
    resolver = _Resolver(unit, names, known, defaults or {})
    unit.tree = resolver.visit(unit.tree)
    unit.python = tuple(resolver.python)
    unit.outside = names
    if defaults is None:  # a text: Python works out what its defaults are
        unit.schema = schema_of(unit, names, method, defaults_of(unit.function()))
    if not method and not unit.overloaded:
        check_function(unit, names)


def schema_of_function(fn, method):
    """The schema of a function whose body is not compiled."""
    tree, source = _source_tree(fn)
    unit = Unit(fn.__qualname__, tree, {}, source.filename, source=source)
    return schema_of(unit, _outside_names(fn), method, defaults_of(fn), getattr(fn, "__annotations__", {}))


def _free(unit, method):
    """The schema of a function with several signatures: any value may be given."""
    arguments = unit.tree.args
    names = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs][method:]
    return Schema(unit.tree.name, [Argument(a.arg, UNKNOWN, None) for a in names])


def defaults_of(fn):
    code, given = fn.__code__, fn.__defaults__ or ()
    names = code.co_varnames[: code.co_argcount]
    return {**dict(zip(names[len(names) - len(given) :], given, strict=True)), **(fn.__kwdefaults__ or {})}


def _source_tree(fn):
    try:
        lines, first = inspect.getsourcelines(fn)
        filename = inspect.getsourcefile(fn) or "<unknown>"
    except (OSError, TypeError):
        raise OSError(
            f"Can't get source for {fn}. TorchScript requires source access in order to carry out "
            "compilation, make sure original .py files are available."
        ) from None
    if not lines[0][0].isspace():
        body = ast.parse("".join(lines)).body
    else:  # below something, as it stands: texts of several lines and comments may begin further left
        whole = ast.parse("if True:\n" + "".join(lines))
        ast.increment_lineno(whole, -1)
        body = getattr(whole.body[0], "body", [])
    tree = body[0] if body else None
    if len(body) != 1 or not isinstance(tree, ast.FunctionDef):
        raise NotSupportedError(f"script: {fn} in {filename}, line {first}, is no plain function definition")
    source = Source(filename, lines, first)
    apply_type_comment(tree, lines, source)
    ast.increment_lineno(tree, first - 1)
    start = tree.body[0]
    if isinstance(start, ast.Expr) and isinstance(start.value, ast.Constant) and len(tree.body) > 1:
        tree.body = tree.body[1:]  # the docstring
    tree.decorator_list = []
    return tree, source


def _outside_names(fn):
    closure = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=False))
    found = dict(fn.__globals__)
    for name, cell in closure.items():
        try:
            found[name] = cell.cell_contents
        except ValueError:
            pass
    return found


def _local_names(tree):
    names = {a.arg for a in (*tree.args.posonlyargs, *tree.args.args, *tree.args.kwonlyargs)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            names.add(node.name)
    return names


class _Resolver(ast.NodeTransformer):
    """Replaces each use of an outside name by the dotted name, literal or unit that it stands for."""

    def __init__(self, unit, outside, known, defaults):
        self.unit, self.outside, self.known, self.defaults = unit, outside, known, defaults
        self.locals = _local_names(unit.tree)
        self.python = []
        self.body = True

    # Types stay as they were written, for readers of the code.

    def visit_arg(self, node):
        return node

    def visit_FunctionDef(self, node):
        node.body = [self.visit(statement) for statement in node.body]
        self.body = False  # Python works out defaults
        positional = [*node.args.posonlyargs, *node.args.args]
        given = zip(positional[len(positional) - len(node.args.defaults) :], node.args.defaults, strict=True)
        node.args.defaults = [self._default(argument, default) for argument, default in given]
        given = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
        node.args.kw_defaults = [default and self._default(argument, default) for argument, default in given]
        return node

    def _default(self, argument, node):
        """A default. Python has worked it out where the function was defined."""
        if argument.arg not in self.defaults:
            return self.visit(node)
        value = self.defaults[argument.arg]
        if not isinstance(value, rushlight.Tensor):
            return self._reference(value, node)
        self.unit.names[f"{DEFAULT}{argument.arg}"] = value
        return ast.copy_location(ast.Name(f"{DEFAULT}{argument.arg}", ast.Load()), node)

    def visit_AnnAssign(self, node):
        node.value = node.value and self.visit(node.value)
        return node

    def visit_Name(self, node):
        if node.id in self.locals or not isinstance(node.ctx, ast.Load):
            return node
        if node.id == "Ellipsis" and node.id not in self.outside:  # as graphs of fx write it
            return ast.copy_location(ast.Constant(...), node)
        value = self._value(node)
        constant = _is_constant(value) or isinstance(value, _SETTINGS)
        if constant and self.body and node.id in self.outside and node.id not in ("inf", "nan"):
            if not self.unit.overloaded:  # whose branches are for one signature each
                self._refuse_value(value, node)
        return self._reference(value, node)

    def visit_Call(self, node):
        asked = node.args[1] if len(node.args) == 2 else node
        if getattr(node.func, "id", None) == "isinstance" and "isinstance" not in self.locals:
            if any(isinstance(part, ast.Subscript) for part in ast.walk(asked)):  # which Python's refuses
                node.func = ast.copy_location(self._reference(rushlight.jit.isinstance, node.func), node.func)
                node.args = list(map(self.visit, node.args))
                return node
        return self.generic_visit(node)

    def visit_Attribute(self, node):
        chain, base = [], node
        while isinstance(base, ast.Attribute):
            chain.append(base.attr)
            base = base.value
        if not isinstance(base, ast.Name) or base.id in self.locals:
            return self.generic_visit(node)
        value = self._value(base)
        while chain and isinstance(value, _SPACES):
            if not hasattr(value, chain[-1]):
                name = getattr(value, "__name__", str(value))
                lacks = f"has no attribute {chain[-1]!r}"
                if isinstance(value, types.ModuleType):
                    lacks = f"object has no attribute {chain[-1]}"
                self.unit.refuse(f"{name!r} {lacks}", node)
            value = getattr(value, chain.pop())
        made = self._reference(value, node)
        for name in reversed(chain):
            made = ast.copy_location(ast.Attribute(value=made, attr=name, ctx=ast.Load()), node)
        return made

    def _value(self, node):
        if node.id in self.outside:
            return self.outside[node.id]
        if node.id in _BUILTINS or node.id in _EXCEPTIONS:
            return getattr(builtins, node.id)
        if node.id in _TYPING:
            return getattr(typing, node.id)
        self.unit.refuse(f"undefined value {node.id}", node)

    def _reference(self, value, node):
        """A node that stands for a value from outside."""
        if _is_constant(value):
            return ast.copy_location(self._literal(value), node)
        name, value = self._named(value, node)
        self.unit.names[name] = value
        return ast.copy_location(ast.Name(id=name, ctx=ast.Load()), node)

    def _literal(self, value):
        """A node for a constant; infinity and NaN have no literals, neither here nor in a file's text."""
        if type(value) is tuple:
            return ast.Tuple(elts=[self._literal(item) for item in value], ctx=ast.Load())
        if isinstance(value, (float, complex)) and not cmath.isfinite(value):
            kind = type(value).__name__
            self.unit.names[kind] = type(value)
            return ast.Call(ast.Name(kind, ast.Load()), [ast.Constant(str(value))], [])
        return ast.parse(repr(value), mode="eval").body

    def _named(self, value, node):
        from rushlight.jit._script import ScriptFunction

        if isinstance(value, ScriptFunction):
            return f"__torch__.{value.name}", Late(value.unit)
        if isinstance(value, CallByName):
            return f"__torch__.{value.name}", value
        name = library_name(value)
        if name is not None:
            return name, replacement(name, value)
        if isinstance(value, types.FunctionType):
            if getattr(value, "_torchscript_modifier", None) is not None:
                return self._kept_in_python(value)
            unit = self._called(inspect.unwrap(value), node)
            return f"__torch__.{unit.name}", Late(unit)
        if isinstance(value, type):
            return self._class(value, node)
        call = inspect.getattr_static(type(value), "__call__", None)
        if getattr(call, "_torchscript_modifier", None) == "ignore":
            return self._kept_in_python(value, type(value).__qualname__)
        if isinstance(value, enum.Enum):
            return f"{self._class(type(value), node)[0]}.{value.name}", value
        self._refuse_value(value, node)

    def _class(self, cls, node):
        """A class of the program, whose methods are compiled, too."""
        record = None
        if getattr(cls, "_torchscript_modifier", None) is None:
            record = record_of(cls)
        if record is None:
            return self._kept_in_python(cls)
        try:
            with self._called_from_here(record.name, node):
                return record.compile().name, cls
        except OSError:  # without source it stays what it is
            return self._kept_in_python(cls)

    def _called(self, function, node):
        """The unit of a function that this one calls; its errors say by whom it was called."""
        with self._called_from_here(function.__name__, node):
            unit = script_function(function, self.known, extra=self.unit.late_names)
        if unit.under_way:
            self.unit.refuse(
                f"function '{unit.tree.name}' is called recursively. Recursive calls are not supported", node
            )
        return unit

    @contextlib.contextmanager
    def _called_from_here(self, name, node):
        """Errors tell that what has this name is compiled because a node asks for it."""
        try:
            yield
        except (FrontendError, RuntimeError) as error:
            stack = (
                f"'{name}' is being compiled since it was called from '{self.unit.plain_name}'\n"
                f"{self.unit.source.shown(node)}"
            )
            error.args = (f"{error.args[0] if error.args else ''}{stack}",)
            raise

    def _refuse_value(self, value, node):
        if hasattr(type(value), "_script_methods"):
            self.unit.refuse("Cannot call a ScriptModule that is not a submodule of the caller", node)
        self.unit.refuse(
            f"python value of type '{type(value).__name__}' cannot be used as a value. Perhaps it is "
            "a closed "
            "over global variable? If so, please consider passing it in as an argument or use a "
            "local variable "
            "instead.",
            node,
        )

    def _kept_in_python(self, value, name=None):
        value = in_script(value)
        name = f"__python__.{name or value.__qualname__}"
        self.python.append(name)
        return name, value


def _is_constant(value):
    plain = isinstance(value, _CONSTANTS) and not isinstance(value, enum.Enum)
    return plain or (type(value) is tuple and all(map(_is_constant, value)))


class CallByName:
    """A function of a text, which may be defined later; ``functions`` has those that are."""

    def __init__(self, functions, name):
        self.functions, self.name = functions, name

    @property
    def unit(self):
        found = self.functions.get(self.name)
        return found and found.unit

    def __call__(self, *args, **kwargs):
        return self.functions[self.name].unit.function()(*args, **kwargs)


class Late:
    """A function that is compiled when it is called first: functions may call each other in circles."""

    def __init__(self, unit):
        self.unit = unit

    def __call__(self, *args, **kwargs):
        return self.unit.function()(*args, **kwargs)


def replacement(name, value):
    """What a library name means inside a script."""
    if name == "torch.jit.is_scripting":
        return lambda: True
    return in_arithmetic(name, value)

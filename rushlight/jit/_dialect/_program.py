"""What an archive of PyTorch's holds of a script: files of code, constants, and the class of each object."""

from __future__ import annotations

import contextlib
import types

import rushlight
from rushlight._command.names import is_own
from rushlight.jit import _types as t
from rushlight.jit._annotations import members_of_enum, plain_name, value_type
from rushlight.jit._attributes import constants_of
from rushlight.jit._check_values import declared_type
from rushlight.jit._checker import check_function
from rushlight.jit._dialect._statements import FunctionText
from rushlight.jit._dialect._text import Unwritable, literal, quoted, type_text
from rushlight.jit._frozen_modules import is_frozen, whole
from rushlight.jit._interfaces import methods_of
from rushlight.jit._library import own_module
from rushlight.jit._library_methods import library_unit
from rushlight.jit._script import ScriptFunction, ScriptModule, script
from rushlight.jit._scripted_class import record_of
from rushlight.jit.frontend import script_function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Program"]

CALLED = "_called"  # follows the names of hooks as code calls them, which PyTorch keeps from methods
_OWN = frozenset(rushlight.nn.Module().__dict__) - {"training"}
_NO_GRAD = """class {name}:
  before : bool
  def __init__(self):
    self.before = torch.is_grad_enabled()
  def __enter__(self):
    self.before = torch.is_grad_enabled()
    torch.set_grad_enabled({mode})
  def __exit__(self, kind: Any, error: Any, trace: Any):
    torch.set_grad_enabled(self.before)
"""


class ModuleText:
    """The class of one module: what is written of it so far."""

    def __init__(self, number: int, module: Any, name: str, frozen: bool) -> None:
        self.number, self.module, self.name, self.frozen = number, module, name, frozen
        self.methods: dict[str, str] = {}  # name -> text, in order
        self.attributes: dict[str, tuple[Any, t.Type]] = {}
        self.path = ""
        self.hooks: dict[str, list[tuple[str, Any]]] = {}  # table -> (name, unit) of each


class Program:
    """Collects the code that a module or a function needs."""

    def __init__(self) -> None:
        self.files: dict[str, list[str]] = {}
        self.constants: list[Any] = []
        self.modules: dict[int, ModuleText] = {}
        self._taken: set[str] = set()
        self._functions: dict[int, str] = {}
        self._classes: dict[Any, str] = {}
        self._alive: list[Any] = []
        self._under_way: set[int] = set()

    # --- names

    def _free(self, path: str) -> str:
        """A name that nothing has yet."""
        module, _, name = path.rpartition(".")
        found, count = path, 0
        while found in self._taken:
            found, count = f"{module}.___torch_mangle_{count}.{name}", count + 1
        self._taken.add(found)
        return found

    def _add(self, path: str, text: str) -> None:
        self.files.setdefault(path.rpartition(".")[0], []).append(text)

    def code(self) -> dict[str, str]:
        """Record -> text."""
        return {f"code/{home.replace('.', '/')}.py": "".join(texts) for home, texts in self.files.items()}

    def type_text(self, kind: t.Type) -> str:
        return type_text(kind, self.class_path)

    # --- functions

    def function(self, unit: Any, path: str) -> str:
        """The path of a function, whose text is written when it is asked for first."""
        if id(unit) not in self._functions:
            if unit.overloaded:
                raise Unwritable(f"the function {unit.name} of several signatures")
            found = self._functions[id(unit)] = self._free(path)
            self._alive.append(unit)
            self._add(found, FunctionText(self, unit).text(found.rpartition(".")[2], ""))
        return self._functions[id(unit)]

    def constant(self, value: Any) -> str:
        self.constants.append(value)
        return f"CONSTANTS.c{len(self.constants) - 1}"

    # --- classes of the program

    def class_path(self, cls: Any) -> str:
        if cls in self._classes:
            return self._classes[cls]
        path = self._classes[cls] = self._free(plain_name(cls))
        name = path.rpartition(".")[2]
        if hasattr(cls, "__torch_script_interface__"):
            self._add(path, self._interface(cls, name))
            return path
        record = record_of(cls)
        if record is None or record.read_from_file and record.kind == "class":
            raise Unwritable(f"the class {cls.__name__}")
        self._add(path, getattr(self, f"_text_of_{record.kind}")(record, name))
        return path

    def grad_mode(self, cls: Any) -> str:
        """The class of `torch.no_grad` or `torch.enable_grad`."""
        if cls not in self._classes:
            name = cls.__name__
            path = self._classes[cls] = self._free(f"__torch__.torch.autograd.grad_mode.{name}")
            self._add(path, _NO_GRAD.format(name=name, mode=name == "enable_grad"))
        return self._classes[cls]

    def _text_of_enum(self, record: Any, name: str) -> str:
        members = members_of_enum(record.cls)
        lines = "".join(f"  {n} = {literal(v)}\n" for n, v in members.items())
        return f"class {name}(Enum):\n{lines}"

    def _text_of_tuple(self, record: Any, name: str) -> str:
        cls, kinds = record.cls, []
        from rushlight.jit._annotations import python_type

        found = python_type(cls)
        kinds = list(found.args) if found is not None and found.args else [t.TENSOR] * len(cls._fields)
        lines = []
        for field, kind in zip(cls._fields, kinds, strict=True):
            lines.append(f"  {field} : {self.type_text(kind)}\n")
        return f"class {name}(NamedTuple):\n{''.join(lines)}"

    def _text_of_class(self, record: Any, name: str) -> str:
        record.compile()
        lines = [f"class {name}:\n"]
        for attribute, kind in record.attributes.items():
            lines.append(f"  {attribute} : {self.type_text(t.plain(kind))}\n")
        for method, unit in record.units.items():
            if unit.overloaded:
                raise Unwritable(f"the method {record.name}.{method} of several signatures")
            if method in ("__getstate__", "__setstate__") or record.is_static(method):
                continue
            if isinstance(record.member(method), property):
                if method in record.setters:
                    raise Unwritable(f"the setter of {record.name}.{method}")
            lines.append(FunctionText(self, unit, record=record).text(method, "  "))
        return "".join(lines) if len(lines) > 1 else f"{lines[0]}  pass\n"

    def _text_of_exception(self, record: Any, name: str) -> str:
        raise Unwritable(f"a value of type {name}")

    def _interface(self, cls: Any, name: str) -> str:
        from rushlight.jit._interfaces import _schema

        kind = "ModuleInterface" if issubclass(cls, rushlight.nn.Module) else "Interface"
        lines = [f"class {name}({kind}):\n"]
        for method, function in methods_of(cls).items():
            schema = _schema(cls, method, function)
            given = "".join(f", {a.name}: {self.type_text(t.plain(a.type))}" for a in schema.arguments)
            returns = self.type_text(t.plain(schema.returns))
            lines.append(f"  def {method}(self{given}) -> {returns}:\n    pass\n")
        return "".join(lines)

    # --- modules

    def module(self, module: Any) -> ModuleText:
        """What is written of the class of a module."""
        if id(module) in self.modules:
            return self.modules[id(module)]
        frozen = bool(is_frozen(module))
        real = whole(module) if frozen else module
        if not isinstance(real, ScriptModule):
            real = script(real)
        if getattr(type(real), "_archive_path", None) is not None:
            raise Unwritable(f"{real.original_name}, which came from an archive of PyTorch's")
        self._alive += [module, real]
        made = ModuleText(len(self.modules), real, self._name_of(real), frozen)
        self.modules[id(module)] = self.modules[id(real)] = made
        for child in real._modules.values():
            if child is not None:
                self.module(child)
        self._take_attributes(made)
        for method, unit in type(real)._script_methods.items():
            if method not in ("__getstate__", "__setstate__"):
                self.method(made, method, unit)
        if "forward" not in type(real)._script_methods and self.method_unit(real, "forward") is not None:
            self.method(made, "forward")
        self._hooks(made)
        return made

    def _hooks(self, made: ModuleText) -> None:
        """Hooks are methods, which a list names."""
        if made.module._forward_hooks_with_kwargs or made.module._forward_pre_hooks_with_kwargs:
            raise Unwritable(f"hooks with keyword arguments of {made.module.original_name}")
        for table in ("_forward_pre_hooks", "_forward_hooks"):
            found = made.hooks[table] = []
            for hook in getattr(made.module, table).values():
                unit = getattr(hook, "_script_unit", None) or script_function(hook, {}, True)
                unit.checked(True)
                if unit.outside:
                    check_function(unit, unit.outside, True, made.module)
                found.append((unit.tree.name, unit))
                for name in (unit.tree.name, f"{unit.tree.name}{CALLED}"):
                    self.method(made, name, unit)

    def _name_of(self, module: Any) -> str:
        named = getattr(type(module), "_qualified_name", None)
        base = getattr(type(module), "_library_base", None)
        if named is None and base is not None and base is not rushlight.nn.Module:
            named = plain_name(base).replace("__torch__.rushlight.", "__torch__.torch.")
        named = named or f"__torch__.{module.original_name}"
        home, _, last = named.rpartition(".")
        return f"{home.replace('.rushlight.', '.torch.')}.{last}" if last.isidentifier() else "__torch__.M"

    def _take_attributes(self, made: ModuleText) -> None:
        module = made.module
        found = made.attributes
        for table in (module._parameters, module._buffers):
            for name, tensor in table.items():
                found[name] = (tensor, declared_type(module, name) if tensor is None else t.TENSOR)
                found[name] = (tensor, found[name][1] or t.NONE)
        found["training"] = (False if made.frozen else module.training, t.BOOL)
        for name, value in module.__dict__.items():
            if name in _OWN or name in found or isinstance(value, (ScriptFunction, types.FunctionType)):
                continue
            kind = declared_type(module, name)
            if kind is not None and kind.kind == "Interface":
                continue
            if kind is None or not kind.known:
                kind = value_type(value)
            if kind.known and name.isidentifier() and self._writable(kind):
                found[name] = (value, t.plain(kind))

    def _writable(self, kind: t.Type) -> bool:
        try:
            self.type_text(kind)
        except (Unwritable, RuntimeError):
            return False
        return True

    def attribute_of(self, module: Any, name: str) -> tuple[Any, t.Type] | None:
        made = self.modules.get(id(module))
        return None if made is None else made.attributes.get(name)

    def is_constant(self, module: Any, name: str) -> bool:
        """Whether an attribute never changes: the class says so, or it is one of the library's layers."""
        cls = type(module)
        if name == "training":
            return self.modules[id(module)].frozen if id(module) in self.modules else False
        if name in getattr(cls, "_constants", ()) or name in constants_of(cls):
            return True
        value = module.__dict__.get(name, self)
        if value is self:
            return False
        base = getattr(cls, "_library_base", None)
        of_library = base is not None and base is not rushlight.nn.Module and name in _state_of(base, module)
        plain = value is None or type(value) in (str, bool, int, float, tuple, rushlight.Size)
        return value is None and declared_type(module, name) is None or of_library and plain

    def method_unit(self, module: Any, name: str) -> Any:
        """The unit of a method: of the program, of what is written of the library's layers, or of these."""
        from rushlight.jit._dialect._library import layer_unit

        own = type(module)._script_methods.get(name)
        if own is not None:
            return own
        return layer_unit(module, name) or library_unit(module, name)

    def method(self, made: ModuleText, name: str, unit: Any = None) -> None:
        """Write a method of a module, once."""
        if name in made.methods:
            return
        module = made.module
        unit = unit or self.method_unit(module, name)
        if unit is None:
            raise Unwritable(f"the method {name} of {module.original_name}")
        if unit.overloaded:
            raise Unwritable(f"the method {name} of several signatures of {module.original_name}")
        own = unit.tree.args.args and type(module).__dict__.get(name).__class__ is not staticmethod
        if unit.outside and own and not unit.is_typed_for(module):
            of_program = type(module)._script_methods.get(name) is unit
            # The library's layers take whole numbers where scripts ask for reals.
            with contextlib.nullcontext() if of_program else contextlib.suppress(RuntimeError):
                check_function(unit, unit.outside, True, module)
        made.methods[name] = ""  # it is under way
        static = not own
        made.methods[name] = FunctionText(self, unit, None if static else module).text(
            name, "  ", static=static
        )

    def finish(self) -> None:
        """Give each module's class its place; modules of one text are of one class."""
        known: dict[tuple[str, str], str] = {}
        done: set[int] = set()
        for made in list(self.modules.values()):
            self._place(made, known, done)

    def _place(self, made: ModuleText, known: dict[tuple[str, str], str], done: set[int]) -> None:
        if made.number in done:
            return
        done.add(made.number)
        children = [(n, m) for n, m in made.module._modules.items() if m is not None]
        for _, child in children:
            self._place(self.modules[id(child)], known, done)
        text = self._class_text(made, children)
        key = (made.name, text)
        if key not in known:
            known[key] = self._free(made.name)
            name = known[key].rpartition(".")[2]
            self._add(known[key], f"class {name}(Module):\n{text}")
        made.path = known[key]

    def _class_text(self, made: ModuleText, children: list[tuple[str, Any]]) -> str:
        module = made.module
        parameters = [] if made.frozen else [n for n, p in module._parameters.items() if p is not None]
        buffers = [] if made.frozen else [n for n, b in module._buffers.items() if b is not None]
        lines = [f"  __parameters__ = [{''.join(f'{quoted(n)}, ' for n in parameters)}]\n"]
        lines.append(f"  __buffers__ = [{''.join(f'{quoted(n)}, ' for n in buffers)}]\n")
        for table, hooks in made.hooks.items():
            names = "".join(f"{quoted(n)}, " for n, _ in hooks)
            lines += [f"  _{table}__ = [{names}]\n"] if hooks else []
        typed = {name: self.type_text(kind) for name, (_, kind) in made.attributes.items()}
        for name, child in children:
            said = declared_type(module, name)
            is_interface = said is not None and said.kind == "Interface"
            typed[name] = self.type_text(said) if is_interface and said else self.modules[id(child)].path
        plain = all(name.isidentifier() for name in typed)
        lines += [] if plain else ["  __annotations__ = []\n"]
        for name, text in typed.items():
            place = name if name.isidentifier() else f"__annotations__[{quoted(name)}]"
            lines.append(f"  {place} : {text}\n" if name.isidentifier() else f"  {place} = {text}\n")
        return "".join((*lines, *made.methods.values()))


def _state_of(base: Any, module: Any) -> Any:
    """What a module of the library's class keeps: what a program's class adds is none of it."""
    own = getattr(type(module), "_python_class", base)
    if own is base or is_own(own_module(own), "nn"):
        return module.__dict__
    return getattr(base, "__constants__", ())

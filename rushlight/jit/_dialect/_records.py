"""The records of an archive of PyTorch's for a script: code, and pickles of what its objects hold."""

from __future__ import annotations

import enum
import pickle
from collections import OrderedDict

import rushlight
from rushlight._serialization.tensor_pickler import TensorPickler
from rushlight.jit import _types as t
from rushlight.jit._dialect._program import Program
from rushlight.jit._dialect._statements import FunctionText
from rushlight.jit._dialect._text import Unwritable
from rushlight.jit._script import ScriptFunction
from rushlight.jit._scripted_class import record_of
from rushlight.jit._torchscript_writer import _ArchivePickler, _Global, _Tagged
from rushlight.nn import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["REASON", "parts_of", "write_parts"]

REASON = "rushlight.txt"  # why PyTorch cannot read an archive

_VERSION = b"10\n"  # of operators, in which PyTorch reads the code
_FUNCTION = "__torch__.PlaceholderModule"


class Holder:
    """What stands for a function in an archive: a module that has it as `forward`."""


class Parts:
    """What an archive holds beside further records: of PyTorch's part, code and constants, or why there is
    none."""

    def __init__(self, own: bytes, storages: list[Any], data: bytes | None = None) -> None:
        self.own, self.storages, self.data = own, storages, data
        self.constants: tuple[bytes, list[Any]] = (pickle.dumps((), 2), [])
        self.code: dict[str, str] = {}
        self.reason = ""


def parts_of(obj: Any, own: Any) -> Parts:
    """The parts of the archive of a script; ``own`` is what is written of it for us."""
    from rushlight.serialization import _pickle_with_storages, _pickles_with_storages

    try:
        program, root = _program_of(obj)
        pickler = type("Pickler", (_ScriptPickler,), {"state": _State(program, root)})
        written = [(own, TensorPickler), (root, pickler)]
        (mine, data), storages = _pickles_with_storages(written, pickle, 2)
        made = Parts(mine, storages, data)
        made.constants = _pickle_with_storages(tuple(program.constants), pickle, 2, pickler=pickler)
        made.code = program.code()  # values may have added classes
        return made
    except Exception as error:  # what has no words there is read here alone, and says why
        made = Parts(*_pickle_with_storages(own, pickle, 2))
        made.reason = f"{type(error).__name__}: {error}"
        return made


def _program_of(obj: Any) -> tuple[Program, Any]:
    program = Program()
    root: Any = obj
    if isinstance(obj, ScriptFunction) and obj.owner is None:
        root = Holder()
        text = _holder_text(program, obj)
        program.files.setdefault("__torch__", []).append(text)
    else:
        root = obj.owner if isinstance(obj, ScriptFunction) else obj
        program.module(root)
    program.finish()
    return program, root


def write_parts(writer: Any, parts: Parts) -> None:
    """Write the records of an archive and close it."""
    from rushlight.serialization import _write_records

    writer.write("constants.pkl", parts.constants[0])  # by which an archive of this kind is known
    if parts.data is None:
        writer.write(REASON, parts.reason.encode())
        return _write_records(writer, parts.own, parts.storages, True)
    for number, (content, _) in enumerate(parts.constants[1]):
        writer.write(f"constants/{number}", content)
    for record, text in parts.code.items():
        writer.write(record, text.encode())
    writer.write("rushlight.pkl", parts.own)
    return _write_records(writer, parts.data, parts.storages, True, version=_VERSION)


def _holder_text(program: Program, function: Any) -> str:
    unit = function.unit
    path = program.function(unit, f"__torch__.{function.name}")
    writer = FunctionText(program, unit)
    tree = unit.tree.args
    keywords = {a.arg for a in tree.kwonlyargs}
    given, passed = ["self"], []
    for argument in unit.schema.arguments:
        if argument.name in keywords and "*" not in given:
            given.append("*")
        given.append(writer.parameter(argument.name, argument))
        name = writer.variable(argument.name)
        passed.append(f"{name}={name}" if argument.name in keywords else name)
    return (
        "class PlaceholderModule(Module):\n  __parameters__ = []\n  __buffers__ = []\n  training : bool\n"
        f"  def forward({', '.join(given)}):\n    return {path}({', '.join(passed)})\n"
    )


class _State:
    """The class and the attributes of each object that is written."""

    def __init__(self, program: Program, root: Any) -> None:
        self.program, self.root = program, root
        self._globals: dict[str, _Global] = {}

    def named(self, path: str) -> _Global:
        module, _, name = path.rpartition(".")
        return self._globals.setdefault(path, _Global(module, name))

    def of(self, obj: Any) -> tuple[str, dict[str, Any]]:
        if isinstance(obj, Holder):
            return _FUNCTION, {"training": True}
        if isinstance(obj, Module):
            made = self.program.modules[id(obj)]
            held = {n: self.typed(v, kind) for n, (v, kind) in made.attributes.items()}
            children = {n: m for n, m in made.module._modules.items() if m is not None}
            return made.path, {**held, **children}
        record = record_of(type(obj))
        if record is None or record.kind != "class":
            raise Unwritable(f"a value of type {type(obj).__name__}")
        fields = {n: self.typed(getattr(obj, n), kind) for n, kind in record.attributes.items()}
        return self.program.class_path(type(obj)), fields

    def typed(self, value: Any, kind: t.Type) -> Any:
        """A value with the types of the lists and dictionaries in it."""
        if kind.kind == "Optional" and value is not None:
            return self.typed(value, kind.args[0])
        if isinstance(value, t.DTYPE_LIKE):
            from rushlight.jit._dialect._text import number_of_kind

            return number_of_kind(value)
        if kind.kind == "List" and isinstance(value, (list, tuple)):
            return _Tagged([self.typed(v, kind.args[0]) for v in value], self.program.type_text(kind))
        if kind.kind == "Dict" and isinstance(value, (dict, OrderedDict)):
            held = {k: self.typed(v, kind.args[1]) for k, v in value.items()}
            return _Tagged(held, self.program.type_text(kind))
        if kind.kind == "Tuple" and type(value) in (tuple, rushlight.Size):
            return tuple(self.typed(v, k) for v, k in zip(value, kind.args, strict=True))
        return value


class _ScriptPickler(_ArchivePickler):
    """Writes objects under the names that `_State` tells."""

    state: _State

    def save(self, obj: Any, save_persistent_id: bool = True) -> Any:
        if type(obj) is complex:
            return self.save_reduce(self.state.named("builtins.complex"), (obj.real, obj.imag))
        if isinstance(obj, enum.Enum):
            self.save(self.state.named(self.state.program.class_path(type(obj))))
            self.save(obj.value)
            return self.write(pickle.REDUCE)
        if isinstance(obj, tuple) and hasattr(obj, "_fields"):
            obj = tuple(obj)  # what it is of, the type of the attribute says
        known = not isinstance(obj, rushlight.Tensor) and record_of(type(obj)) is not None
        if isinstance(obj, Holder) or known:
            return self._save_object(obj)
        return super().save(obj, save_persistent_id)

    def _save_object(self, obj: Any) -> Any:
        seen = self.memo.get(id(obj))
        if seen is not None:
            return self.write(self.get(seen[0]))
        path, state = self.state.of(obj)
        self.save(self.state.named(path))
        self.write(pickle.EMPTY_TUPLE + pickle.NEWOBJ)
        self.save(state)
        self.write(pickle.BUILD)
        return self.memoize(obj)  # PyTorch makes the object there

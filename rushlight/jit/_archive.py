"""Scripts in files: a zip archive with a pickle of plain values and tensors, in which the code is text.

Beside it stands what PyTorch reads (`_dialect`); weights are there once. Loading needs none of the program's
classes and runs nothing: the text becomes functions that can name the library and each other
(`_closed_source.unit_from_source`), and the pickle is read by the closed unpickler."""

import enum
import io
import types

import rushlight
from rushlight._command.names import is_own
from rushlight._quantized.packed import ScriptObject
from rushlight.jit._annotations import is_compiled_class, qualified_name
from rushlight.jit._archive_classes import ClassReader, described
from rushlight.jit._closed_source import unit_from_source
from rushlight.jit._decorations import unusable
from rushlight.jit._frozen_modules import fold, is_frozen, whole
from rushlight.jit._handle import Handle
from rushlight.jit._library import class_name, library_name, own_module
from rushlight.jit._script import (
    ScriptFunction,
    ScriptModule,
    describe_methods,
    script,
    script_class,
    shell,
)
from rushlight.jit.frontend import FrontendError, script_function
from rushlight.nn import Module

_VERSION = 1
OWN_PART = "rushlight.pkl"  # beside what PyTorch reads

# What Python itself may ask of a module out of a file.
_SPECIAL_METHODS = frozenset(("__call__", "__contains__", "__getstate__", "__len__", "__setstate__"))


def save(m, f, _extra_files=None):
    """Write a ScriptModule or ScriptFunction to a path or file object.

    Args:
        _extra_files: more records for the file, from name to text or bytes.
    """
    m = m._module if isinstance(m, Handle) else m
    if not isinstance(m, (ScriptModule, ScriptFunction)):
        raise AttributeError(
            f"save: expected what torch.jit.script or torch.jit.trace gives, got {type(m).__name__}; "
            "plain modules are saved by torch.save"
        )
    if _is_of_pytorch(m):
        return m.save(f, _extra_files)
    import os

    from rushlight._serialization.zip_records import RecordWriter, write_atomically, write_to_stream
    from rushlight.jit._dialect._records import parts_of, write_parts

    parts = parts_of(m, _Writer().write(m))

    def write(file, folder):
        writer = RecordWriter(file, folder)
        for name, content in (_extra_files or {}).items():
            writer.write(f"extra/{name}", content.encode() if isinstance(content, str) else content)
        write_parts(writer, parts)

    if isinstance(f, (str, os.PathLike)):
        path = os.fsdecode(f)
        write_atomically(path, lambda file: write(file, os.path.splitext(os.path.basename(path))[0]))
    else:
        write_to_stream(f, lambda file: write(file, "archive"))


def _is_of_pytorch(module):
    """Whether a module came from an archive of PyTorch's, and with it its code."""
    return getattr(type(module), "_archive_path", None) is not None


def to_bytes(m, _extra_files=None):
    buffer = io.BytesIO()
    save(m, buffer, _extra_files)
    return buffer.getvalue()


class _Writer:
    """Turns modules and functions into lists and dicts of plain values, text and tensors."""

    def __init__(self):
        self.functions, self.classes, self.modules = {}, [], []
        self.overloaded = []  # names of functions with several signatures
        self.types, self.objects, self.object_numbers = {}, [], {}
        self.class_numbers, self.module_numbers = {}, {}
        self.written, self.alive = (
            {},
            [],
        )  # class of the program -> what is written for it; modules made for it

    def write(self, obj):
        obj = obj.owner or obj if isinstance(obj, ScriptFunction) else obj
        if isinstance(obj, ScriptFunction):
            self._function(f"__torch__.{obj.name}", obj.unit)
            root = f"__torch__.{obj.name}"
        else:
            root = self._module(obj)
        return {
            "types": self.types,
            "objects": self.objects,
            "torchscript": _VERSION,
            "root": root,
            "functions": self.functions,
            "overloaded": self.overloaded,
            "classes": self.classes,
            "modules": self.modules,
        }

    def _function(self, name, unit):
        if name not in self.functions:
            self.functions[name] = unit.code
            self.overloaded += [name] if unit.overloaded else []
            self._called(unit)

    def _called(self, unit):
        if unit.python:
            raise RuntimeError(
                f"Could not export Python function call '{unit.python[0].rpartition('.')[2]}'. Remove calls "
                f"to Python functions before export. It is called in {unit.name}."
            )
        for name, value in unit.names.items():
            if isinstance(value, (type, enum.Enum)) and name.startswith("__torch__."):
                self._type(value if isinstance(value, type) else type(value))
            elif name.startswith("__torch__."):
                self._function(name, value.unit if hasattr(value, "unit") else value._script_unit)

    def _type(self, cls):
        """Write a class of the program that scripts use; gives its name."""
        name = qualified_name(cls)
        if name not in self.types:
            self.types[name] = None  # methods may name their own class
            self.types[name] = described(cls, self._called, lambda v: self._value(v, cls.__name__, "default"))
        return name

    def _object(self, value, tensors):
        """Write a value of a class of the program, once; gives its number."""
        if id(value) not in self.object_numbers:
            number = self.object_numbers[id(value)] = len(self.objects)
            self.objects.append(None)
            self.alive.append(value)
            name = self._type(type(value))
            state = {n: self._value(v, type(value).__name__, n, tensors) for n, v in vars(value).items()}
            self.objects[number] = [name, state]
        return self.object_numbers[id(value)]

    def _class(self, cls):
        if cls not in self.class_numbers:
            self.class_numbers[cls] = len(self.classes)
            base = cls._library_base
            if base is None:
                raise NotImplementedError(
                    f"save: {cls._original_name} came from an archive of PyTorch's, and is written in such "
                    "an archive alone: save it by itself"
                )
            methods = {}
            for name, unit in cls._script_methods.items():
                self._called(unit)
                member = cls.__dict__.get(name)
                kind = {property: "property", staticmethod: "static"}.get(type(member), "method")
                methods[name] = [kind, unit.code]
                if kind == "property" and (setter := getattr(member.fset, "_script_unit", None)):
                    self._called(setter)
                    methods[name].append(setter.code)
            constants = {
                n: self._value(v, cls._original_name, n)
                for n, v in vars(cls).items()
                if n[0] != "_" and n not in methods and not callable(v) and not isinstance(v, property)
            }
            self.classes.append(
                {
                    "name": cls._original_name,
                    "base": class_name(base),
                    "methods": methods,
                    "overloaded": [n for n, unit in cls._script_methods.items() if unit.overloaded],
                    "unused": [n for n, v in vars(cls).items() if hasattr(v, "is_left_out")],
                    "constants": constants,
                    "traced": cls.__name__ == "TopLevelTracedModule",
                }
            )
        return self.class_numbers[cls]

    def _written(self, cls):
        """The class to write for one: of a program's that inherits from ScriptModule, its scripts."""
        if hasattr(cls, "_library_base"):
            return cls
        if cls not in self.written:
            methods = {name: getattr(cls, name) for name in cls._script_methods}
            self.written[cls] = script_class(Module, cls.__name__, methods, cls._script_methods)
        return self.written[cls]

    def _module(self, module):
        key = id(module)
        if key not in self.module_numbers:
            number = self.module_numbers[key] = len(self.modules)
            self.modules.append(None)
            frozen = is_frozen(module) and [sorted(module._kept), list(module._script_methods)]
            self.alive.append(module)
            module = whole(module)
            cls = self._class(self._written(type(module)))
            tensors = {
                id(t): n
                for t_ in (module._parameters, module._buffers)
                for n, t in t_.items()
                if t is not None
            }
            used = {n for unit in type(module)._script_methods.values() for n in unit.attributes_of_self}
            attributes = {}
            for name, value in module.__dict__.items():
                if name not in _TABLES:
                    try:
                        attributes[name] = self._value(value, module.original_name, name, tensors)
                    except TypeError as error:  # nothing that a script uses, unless it says so
                        if name in used:
                            raise RuntimeError(f"save: {error}") from None
            self.modules[number] = {
                "class": cls,
                "frozen": frozen or None,
                "parameters": dict(module._parameters),
                "buffers": dict(module._buffers),
                "transient": sorted(module._non_persistent_buffers_set),
                "attributes": attributes,
                "children": {n: None if m is None else self._child(m) for n, m in module._modules.items()},
                "hooks": {
                    table: [self._hook(hook, module) for hook in getattr(module, table).values()]
                    for table in _HOOKS
                    if getattr(module, table)
                },
            }
        return self.module_numbers[key]

    def _hook(self, hook, module):
        """The name and text of a hook, which is compiled as a method of its module is."""
        unit = getattr(hook, "_script_unit", None)  # of a module that came from a file
        if unit is not None:
            self._called(unit)
            return [unit.tree.name, unit.code]
        where = f"the hook {getattr(hook, '__name__', type(hook).__name__)!r} of {module.original_name}"
        if not isinstance(hook, types.FunctionType) or getattr(hook, "_torchscript_modifier", None):
            raise RuntimeError(
                f"save: {where} is no function to compile: remove it before the module is saved"
            )
        if any(module._forward_hooks_with_kwargs.values()) or module._forward_pre_hooks_with_kwargs:
            raise RuntimeError(f"save: {where} takes keyword arguments, which scripts do not give to hooks")
        try:
            unit = script_function(hook, {}, True)
        except (FrontendError, RuntimeError, OSError, SyntaxError) as error:
            raise RuntimeError(f"save: {where} cannot be compiled: {error}") from error
        self._called(unit)
        return [unit.tree.name, unit.code]

    def _child(self, module):
        """A part of a module; of a class that inherits from ScriptModule they may be plain ones."""
        return self._module(module if isinstance(module, ScriptModule) else script(module))

    def _value(self, value, owner, name, tensors=None):
        """A value of an attribute as plain data: what is not plain is a dict with one key that says what
        it is."""
        same = (tensors or {}).get(id(value))
        if same is not None:
            return {"__tensor__": same}
        if value is None or isinstance(
            value, (rushlight.Tensor, rushlight.dtype, rushlight.device, rushlight.qscheme)
        ):
            return value
        if type(value) in (bool, int, float, complex, str, bytes, rushlight.Size):
            return value
        if type(value) in (list, tuple):
            return type(value)([self._value(v, owner, name, tensors) for v in value])
        if isinstance(value, enum.Enum):
            return {"__enum__": [self._type(type(value)), value.name]}
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return {"__tuple__": [self._type(type(value)), [self._value(v, owner, name) for v in value]]}
        if isinstance(value, dict):
            return {"__dict__": [[k, self._value(v, owner, name, tensors)] for k, v in value.items()]}
        if isinstance(value, ScriptFunction) and value.owner is not None:
            return {"__module__": self._module(value.owner)}
        if isinstance(value, ScriptFunction):
            self._function(f"__torch__.{value.name}", value.unit)
            return {"__function__": f"__torch__.{value.name}"}
        if isinstance(value, Module) and isinstance(value, ScriptModule):
            return {"__module__": self._module(value)}
        if isinstance(value, ScriptObject):
            kind = value._type()
            return {"__packed__": [kind, self._value(value._held.state(), owner, name)]}
        from rushlight.jit._closed_source import _library_value

        name_of = library_name(value)
        if name_of is not None and callable(value) and _library_value(name_of) is not None:
            return {"__function__": name_of}
        if is_compiled_class(type(value)):
            return {"__object__": self._object(value, tensors)}
        raise TypeError(
            f"{owner}.{name} is of type {type(value).__name__}, which cannot be written to a file"
        )


_HOOKS = "_forward_pre_hooks", "_forward_hooks"
_TABLES = frozenset((*Module().__dict__, "_graphs")) - {"training"}


def load(f, map_location=None, _extra_files=None, _restore_shapes=False):
    """Read what ``torch.jit.save`` wrote: a ScriptModule or a ScriptFunction, without the program's classes.

    Args:
        map_location: where tensors go, as for ``torch.load``.
        _extra_files: a dict whose keys are names of further records; their contents replace the values.
    """
    import os

    if isinstance(f, (str, os.PathLike)):
        if not os.path.exists(f):
            raise ValueError(f"The provided filename {os.fspath(f)} does not exist")
        if os.path.isdir(f):
            raise ValueError(f"The provided filename {os.fspath(f)} is a directory")
        with open(f, "rb") as file:
            return _load(file, os.fspath(f), map_location, _extra_files)
    return _load(f, getattr(f, "name", "<file object>"), map_location, _extra_files)


def _load(file, name, map_location, extra_files):
    from rushlight._serialization.zip_records import RecordReader, is_zip
    from rushlight.serialization import _load_records, _restorer, _unpickler_factory

    if not is_zip(file):
        raise RuntimeError(
            f"PytorchStreamReader failed reading zip archive: not a ZIP archive: {name}. torch.jit.load "
            "reads what torch.jit.save wrote"
        )
    records = RecordReader(file, name)
    if not records.has("constants.pkl"):
        raise RuntimeError(
            f"PytorchStreamReader failed locating file constants.pkl: file not found: {name} is no "
            "TorchScript archive; read it with torch.load"
        )
    for key in extra_files or {}:
        extra_files[key] = records.read(f"extra/{key}")
    if records.has(OWN_PART):
        from rushlight.jit._torchscript import Folder

        records = Folder(records, "data", records.read(OWN_PART))  # type: ignore[assignment]
    elif any(n.startswith("code/") for n in records.names()):
        from rushlight.jit._torchscript import load_archive

        return load_archive(records, file, name, _restorer(map_location))
    content = _load_records(
        records, file, name, _restorer(map_location), _unpickler_factory(True, None, {}), None
    )
    try:
        return _Reader(content, name).root()
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise RuntimeError(f"jit.load: {name} is damaged ({type(error).__name__}: {error})") from error


class _Reader:
    """Builds modules and functions from what `_Writer` made; the content is believed nowhere."""

    def __init__(self, content, name):
        if not isinstance(content, dict) or content.get("torchscript") != _VERSION:
            found = content.get("torchscript") if isinstance(content, dict) else None
            raise RuntimeError(f"jit.load: {name}: format {found} is not known; expected {_VERSION}")
        self.content, self.name = content, name
        self.units, self.functions = {}, {}
        for dotted in content["functions"]:
            self.functions[dotted] = _Named(self.units, dotted)
        classes = ClassReader(content.get("types", {}), self.functions, name, self._value)
        self.types, self.objects = classes.classes, {}
        for dotted, source in content["functions"].items():
            unit = unit_from_source(dotted.removeprefix("__torch__."), source, self.functions, name)
            unit.overloaded = dotted in content.get("overloaded", ())
            self.units[dotted] = unit
        classes.fill()
        self.classes = [self._class(c) for c in content["classes"]]
        self.modules = [shell(self.classes[m["class"]], dict(Module().__dict__)) for m in content["modules"]]
        for module, saved in zip(self.modules, content["modules"], strict=True):
            self._fill(module, saved)
        for module, saved in zip(self.modules, content["modules"], strict=True):
            if saved.get("frozen"):
                fold(module, *saved["frozen"])
            describe_methods(module)

    def root(self):
        root = self.content["root"]
        return ScriptFunction(self.units[root]) if isinstance(root, str) else self.modules[root]

    def _class(self, saved):
        base = rushlight
        for part in saved["base"].split(".")[1:]:
            base = getattr(base, part)
        if not (isinstance(base, type) and issubclass(base, Module) and is_own(own_module(base), "nn")):
            raise RuntimeError(f"jit.load: {self.name}: {saved['base']} is no module of the library")
        units, methods = {}, {}
        for name, (kind, source, *setter) in saved["methods"].items():
            units[name] = unit_from_source(f"{saved['name']}.{name}", source, self.functions, self.name)
            units[name].overloaded = name in saved.get("overloaded", ())
            made = units[name].checked(kind != "static")
            methods[name] = {"property": property, "static": staticmethod}.get(kind, lambda f: f)(made)
            for text in setter:
                unit = unit_from_source(f"{saved['name']}.{name}", text, self.functions, self.name)
                made = unit.checked(True)
                made._script_unit = unit
                methods[name] = methods[name].setter(made)
        for name, value in saved["constants"].items():
            methods.setdefault(name, self._value(value))
        for name in saved.get("unused", ()):
            methods.setdefault(name, unusable(name))
        if not all(n.isidentifier() and (n[:2] != "__" or n in _SPECIAL_METHODS) for n in methods):
            raise RuntimeError(
                f"jit.load: {self.name}: methods of {saved['name']} have names that are not allowed"
            )
        from rushlight.jit._trace import TopLevelTracedModule

        kind = {"kind": TopLevelTracedModule} if saved.get("traced") else {}
        return script_class(base, str(saved["name"]), methods, units, **kind)

    def _fill(self, module, saved):
        own = module.__dict__
        own["_parameters"] = {n: p if p is None else _parameter(p) for n, p in saved["parameters"].items()}
        own["_buffers"] = dict(saved["buffers"])
        own["_non_persistent_buffers_set"] = set(saved["transient"])
        own["_modules"] = {n: None if i is None else self.modules[i] for n, i in saved["children"].items()}
        for name, value in saved["attributes"].items():
            if name not in _TABLES and not name.startswith("__"):
                own[name] = self._value(value, {**own["_parameters"], **own["_buffers"]})
        for table, hooks in saved.get("hooks", {}).items():
            if table not in _HOOKS:
                raise RuntimeError(f"jit.load: {self.name}: there are no hooks of the kind {table!r}")
            for i, (name, source) in enumerate(hooks):
                unit = unit_from_source(f"{module.original_name}.{name}", source, self.functions, self.name)
                own[table][i] = unit.function()
                vars(own[table][i])["_script_unit"] = unit

    def _value(self, value, tensors=None):
        if type(value) in (list, tuple):
            return type(value)([self._value(v, tensors) for v in value])
        if type(value) is not dict:
            return value
        (kind, content), *more = value.items()
        if kind == "__tensor__":
            return tensors[content]
        if kind == "__dict__":
            return {k: self._value(v, tensors) for k, v in content}
        if kind == "__module__":
            return self.modules[content]
        if kind == "__packed__":
            name, state = content
            made = ScriptObject.__new__(ScriptObject)
            made.__setstate__((self._value(state), name))
            return made
        if kind == "__object__":
            return self._object(content, tensors)
        if kind == "__enum__":
            return self.types[content[0]].__members__[content[1]]
        if kind == "__tuple__":
            return self.types[content[0]](*[self._value(v, tensors) for v in content[1]])
        if content in self.units:
            return ScriptFunction(self.units[content])
        from rushlight.jit._closed_source import _library_value

        found = _library_value(content)
        if found is None or more:
            raise RuntimeError(f"jit.load: {self.name}: {content} is not something that a file may name")
        return found

    def _object(self, number, tensors):
        """A value of a class of the file; values may hold each other in circles."""
        if number not in self.objects:
            name, state = self.content["objects"][number]
            cls = self.types[name]
            made = self.objects[number] = object.__new__(cls)
            for attribute, value in state.items():
                if not str(attribute).isidentifier() or attribute.startswith("__"):
                    raise RuntimeError(f"jit.load: {self.name}: {attribute} is no attribute of {name}")
                object.__setattr__(made, attribute, self._value(value, tensors))
        return self.objects[number]


def _parameter(value):
    if not isinstance(value, rushlight.nn.Parameter):
        value = rushlight.nn.Parameter(value, value.requires_grad)
    return value


class _Named:
    """A function of the archive, looked up when it is called: they may call each other in circles."""

    def __init__(self, units, name):
        self._units, self._name = units, name

    @property
    def unit(self):
        return self._units[self._name]

    def __call__(self, *args, **kwargs):
        return self._units[self._name].function()(*args, **kwargs)

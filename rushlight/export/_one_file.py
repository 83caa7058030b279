"""Models in one file that runs without Python: `save_file` writes, `load_file` and `rushlight-run` run."""

import inspect
import os
import threading
from typing import Any

import rushlight as torch
from rushlight import _C

from ._fixed_numbers import with_fixed_numbers
from ._lower import UnsupportedError, lower
from ._small_weights import unwrap
from ._state import find_state

SUFFIX = ".rl"
_ONLY = "forward"


def save_file(
    program, path, args=None, kwargs=None, *, dynamic_shapes=None, optimize=True, state=None, texts=None
):
    """Write a model to one file that `rushlight-run`, the C++ and C runtimes and `load_file` run.

    ``program`` is what `export` returned, or a module, which is then exported for inference on the example
    inputs ``args`` and ``kwargs``; or a dict of these, or of methods of modules, by the names that the file's
    methods shall have, and the others are then dicts too. ``optimize`` folds constants and batch
    normalisations, and drops what nothing depends on; results may then differ in the last bits.

    Tensors that methods write to in place become the state of the model, which begins with what they hold
    now. ``state`` says whether that is allowed; by default it is where several methods are saved.
    ``texts`` are strings or bytes by name that go with the model, such as a tokenizer's.
    """
    several = isinstance(program, dict)
    if state is None:
        state = several
    if not several:
        program, args, kwargs, dynamic_shapes = (
            {_ONLY: value} for value in (program, args, kwargs, dynamic_shapes)
        )
    args, kwargs = _of_methods(program, args, "args"), _of_methods(program, kwargs, "kwargs")
    shapes = _of_methods(program, dynamic_shapes, "dynamic_shapes")
    exported, owners = {}, []
    for name, method in program.items():
        exported[name] = _program(method, args[name], kwargs[name], shapes[name])
        if not several:  # another method may write what this one reads
            exported[name] = with_fixed_numbers(exported[name])
        owners.append(getattr(method, "__self__", method))
    lowered = {}
    for name, (text, constants) in ((n, lower(p)) for n, p in exported.items()):
        graph, constants = unwrap(_C._JitGraph(text).propagate_shapes(constants), constants)
        if not state:
            _refuse_writes(graph)
        lowered[name] = graph, constants
    held, names = find_state(lowered, owners) if state else ({}, {name: {} for name in lowered})
    methods = {}
    for name, (graph, constants) in lowered.items():
        graph = graph.with_state(names[name])
        constants = {key: t for key, t in constants.items() if key not in names[name]}
        if optimize:
            graph, constants = graph.optimize(constants)
            graph = graph.propagate_shapes(constants)
        methods[name] = graph, constants
    texts = {k: t.encode() if isinstance(t, str) else bytes(t) for k, t in (texts or {}).items()}
    _C._write_model(os.fspath(path), methods, held, texts)


def _of_methods(program, values, what):
    """What belongs to each method."""
    if values is None:
        return dict.fromkeys(program)
    if not isinstance(values, dict):
        raise TypeError(
            f"rushlight.export.save_file: {what} of several methods must be a dict by their names"
        )
    for name in values:
        if name not in program:
            raise ValueError(f"rushlight.export.save_file: {what} has '{name}', but there is no such method")
    return {name: values.get(name) for name in program}


def _program(program, args, kwargs, dynamic_shapes):
    from . import ExportedProgram

    if isinstance(program, torch.nn.Module):
        return _exported(program, args, kwargs, dynamic_shapes)
    if inspect.ismethod(program) and isinstance(program.__self__, torch.nn.Module):
        return _exported_method(program, args, kwargs, dynamic_shapes)
    if not isinstance(program, ExportedProgram):
        raise TypeError(
            "rushlight.export.save_file: expected an ExportedProgram or a module, "
            f"got {type(program).__name__}"
        )
    if args is not None or kwargs is not None or dynamic_shapes is not None:
        raise ValueError(
            "rushlight.export.save_file: example inputs and dynamic shapes belong to export when the program "
            "is exported already"
        )
    return program


def _exported_method(method, args, kwargs, dynamic_shapes):
    """The program of a method of a module, which stands for its `forward` meanwhile."""
    module = method.__self__
    own = vars(module).get("forward")
    module.forward = method
    try:
        return _exported(module, args, kwargs, dynamic_shapes)
    finally:
        if own is None:
            del module.forward
        else:
            module.forward = own


def _exported(module, args, kwargs, dynamic_shapes):
    from . import export
    from ._trace import keeping_attention

    if args is None and kwargs is None:
        raise TypeError(
            "rushlight.export.save_file: a module needs example inputs: save_file(model, path, args)"
        )
    with torch.no_grad(), keeping_attention():
        return export(module, tuple(args or ()), kwargs, dynamic_shapes=dynamic_shapes)


def _refuse_writes(graph):
    for name, source in graph.written_constants():
        raise UnsupportedError(
            f"rushlight.export.save: {source + ': ' if source else ''}the model writes to its own tensor "
            f"'{name}': call eval() on it if that was not meant, or save it with state=True, and it becomes "
            "the state of a session"
        )


class _Method:
    def __init__(self, graph, constants):
        self.graph, self.states = graph, graph.states
        self.executor = _C._JitExecutor(graph, constants, mapped_constants=True)
        self.inputs = dict(graph.inputs)
        self.outputs = {name or f"output_{i}": type for i, (name, type) in enumerate(graph.outputs)}

    def run(self, state, args, kwargs):
        values = dict(zip(self.inputs, args))
        if len(args) > len(self.inputs) or any(name in values or name not in self.inputs for name in kwargs):
            raise ValueError(f"the inputs do not fit. The model expects {self.inputs}")
        values.update(kwargs)
        missing = [name for name in self.inputs if name not in values]
        if missing:
            raise ValueError(f"the inputs {missing} are missing. The model expects {self.inputs}")
        inputs = [values[name] for name in self.inputs]
        return dict(zip(self.outputs, self.executor.run(inputs, [state[name] for name in self.states])))


class _Runner:
    """What models and sessions have in common: methods by name."""

    def _run(self, method, args, kwargs):
        raise NotImplementedError

    def run(self, *args, **kwargs):
        """The outputs of the first method by name."""
        return self._run(self.methods[0], args, kwargs)

    def call(self, method, *args, **kwargs):
        """The outputs of a method by name."""
        return self._run(method, args, kwargs)

    def __call__(self, *args, **kwargs) -> Any:
        """The output of the first method, or a tuple of them."""
        return _plain(self.run(*args, **kwargs))

    def __getattr__(self, name):
        if name.startswith("_") or name not in self.methods:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        return lambda *args, **kwargs: _plain(self._run(name, args, kwargs))


def _plain(outputs):
    results = tuple(outputs.values())
    return results[0] if len(results) == 1 else results


class FileModel(_Runner):
    """A model of one file. Call it, or its methods, with tensors in the order of `inputs`, or by name.

    A model with `state` runs in sessions: ``session = model.session()``, then call that.
    """

    def __init__(self, path):
        methods, self._state, self.texts = _C._read_model(os.fspath(path))
        self._methods = {name: _Method(*both) for name, both in methods.items()}
        self.methods = list(methods)
        first = self._methods[self.methods[0]]
        self.inputs, self.outputs = first.inputs, first.outputs

    @property
    def state(self):
        """The types of the state by name."""
        return {name: f"{str(t.dtype)[6:]}{list(t.shape)}" for name, t in self._state.items()}

    def signature(self, method):
        """(inputs, outputs) of a method: types by name."""
        return self._method(method).inputs, self._method(method).outputs

    def session(self):
        """A state of its own: what methods write is seen by the session's later calls alone."""
        return Session(self, {name: t.clone() for name, t in self._state.items()})

    def _method(self, name):
        if name not in self._methods:
            raise ValueError(f"there is no method '{name}'; the model has {', '.join(self.methods)}")
        return self._methods[name]

    def _run(self, method, args, kwargs):
        found = self._method(method)
        if found.states:
            raise ValueError(
                f"the method '{method}' writes to the state '{found.states[0]}': call it in a session, "
                "model.session()"
            )
        return found.run({}, args, kwargs)

    def __str__(self):
        if self.methods == [_ONLY]:
            return str(self._methods[_ONLY].graph)
        return "\n".join(f"# {name}\n{method.graph}" for name, method in self._methods.items())


class Session(_Runner):
    """A state of a model, and its methods. Threads that share one wait for each other."""

    def __init__(self, model, state):
        self.model, self.methods = model, model.methods
        self.state = state  # the tensors themselves: what is written to them is seen
        self._lock = threading.Lock()

    def _run(self, method, args, kwargs):
        found = self.model._method(method)
        with self._lock:
            return found.run(self.state, args, kwargs)

    def reset(self):
        """Begin again with what the file holds."""
        with self._lock:
            for name, t in self.state.items():
                t.copy_(self.model._state[name])

    def clone(self):
        """Another session that goes on from here by itself."""
        with self._lock:
            return Session(self.model, {name: t.clone() for name, t in self.state.items()})

    @property
    def nbytes(self):
        """The memory of the state, which never grows."""
        return sum(t.nbytes for t in self.state.values())


def load_file(path):
    """A model that `save_file` wrote, to be called; its weights stay in the file, mapped into memory."""
    return FileModel(path)

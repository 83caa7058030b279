"""Models in one file that runs without Python: `save_file` writes, `load_file` and `rushlight-run` run."""

import os

import rushlight as torch
from rushlight import _C

from ._lower import UnsupportedError, lower

SUFFIX = ".rl"


def save_file(program, path, args=None, kwargs=None, *, dynamic_shapes=None, optimize=True):
    """Write a model to one file that `rushlight-run`, the C++ and C runtimes and `load_file` run.

    ``program`` is what `export` returned, or a module, which is then exported for inference on the example
    inputs ``args`` and ``kwargs``. ``optimize`` folds constants and batch normalisations, and drops what
    nothing depends on; results may then differ in the last bits.
    """
    from . import ExportedProgram

    if isinstance(program, torch.nn.Module):
        program = _exported(program, args, kwargs, dynamic_shapes)
    elif not isinstance(program, ExportedProgram):
        raise TypeError(
            "rushlight.export.save_file: expected an ExportedProgram or a module, "
            f"got {type(program).__name__}"
        )
    elif args is not None or kwargs is not None or dynamic_shapes is not None:
        raise ValueError(
            "rushlight.export.save_file: example inputs and dynamic shapes belong to export when the program "
            "is exported already"
        )
    text, constants = lower(program)
    graph = _C._JitGraph(text).propagate_shapes(constants)
    _refuse_writes(graph)
    if optimize:
        graph, constants = graph.optimize(constants)
        graph = graph.propagate_shapes(constants)
    _C._write_model(os.fspath(path), graph, constants)


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
            f"'{name}', but a model in a file has no state: call eval() on it, or make the tensor an input "
            "and return what becomes of it"
        )


class FileModel:
    """A model of one file. Call it with tensors in the order of `inputs`, or by name."""

    def __init__(self, path):
        graph, constants = _C._read_model(os.fspath(path))
        self._executor = _C._JitExecutor(graph, constants, mapped_constants=True)
        self._graph = graph
        self.inputs = dict(graph.inputs)
        self.outputs = {name or f"output_{i}": type for i, (name, type) in enumerate(graph.outputs)}

    def run(self, *args, **kwargs):
        """The outputs by name."""
        values = dict(zip(self.inputs, args))
        if len(args) > len(self.inputs) or any(name in values or name not in self.inputs for name in kwargs):
            raise ValueError(f"the inputs do not fit. The model expects {self.inputs}")
        values.update(kwargs)
        missing = [name for name in self.inputs if name not in values]
        if missing:
            raise ValueError(f"the inputs {missing} are missing. The model expects {self.inputs}")
        return dict(zip(self.outputs, self._executor.run([values[name] for name in self.inputs])))

    def __call__(self, *args, **kwargs):
        """The output, or a tuple of them."""
        results = tuple(self.run(*args, **kwargs).values())
        return results[0] if len(results) == 1 else results

    def __str__(self):
        return str(self._graph)


def load_file(path):
    """A model that `save_file` wrote, to be called; its weights stay in the file, mapped into memory."""
    return FileModel(path)

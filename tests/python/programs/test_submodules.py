"""Submodules that PyTorch imports with itself are attributes after `import torch` alone."""

import subprocess
import sys

import pytest

import rushlight as torch
from rushlight._command.submodules import submodules_of

PATHS = """
    ao.nn.qat.dynamic ao.nn.quantized.reference.modules cuda.amp.autocast_mode cuda.amp.grad_scaler
    distributed.utils fx.experimental.proxy_tensor fx.experimental.const_fold
    fx.experimental.symbolic_shapes fx.passes.infra.pass_manager jit._freeze multiprocessing._atfork
    nested._internal.nested_tensor nn.parallel.comm nn.utils._named_member_accessor
    nn.utils.parametrizations optim._stateless optim.lr_scheduler profiler._memory_profiler
    sparse.semi_structured utils.data.datapipes.iter.filelister utils.checkpoint _awaits
    _decomp.decompositions _export.utils _functorch.eager_transforms _functorch.vmap
    _higher_order_ops.out_dtype _prims _prims_common _subclasses.meta_utils
""".split()

PROGRAM = """
import functools, sys, rushlight
for path in sys.argv[1:]:
    module = functools.reduce(getattr, path.split("."), rushlight)
    assert module.__name__.split(".", 1)[1].endswith(path.rpartition(".")[2]), (path, module)
"""


def test_they_are_found_without_an_import():
    subprocess.run([sys.executable, "-c", PROGRAM, *PATHS], check=True, timeout=120)


@pytest.mark.parametrize("path", ["fx.experimental", "nn.utils", "jit", "profiler", "utils", "_functorch"])
def test_other_names_are_errors_that_name_the_package(path):
    package = torch
    for name in path.split("."):
        package = getattr(package, name)
    with pytest.raises(AttributeError, match=rf"module '\w+\.{path}' has no attribute 'no_such_thing'"):
        package.no_such_thing  # noqa: B018
    assert not hasattr(package, "__no_such_thing__")


def test_a_missing_dependency_of_a_submodule_is_told(tmp_path, monkeypatch):
    package = tmp_path / "broken_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "part.py").write_text("import there_is_no_such_module\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="there_is_no_such_module"):
        submodules_of("broken_package")("part")

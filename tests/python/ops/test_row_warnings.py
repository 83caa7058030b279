"""Operators warn where PyTorch warns, in its words: what is deprecated names what replaces it.

Left out is what PyTorch says of the state of its own parts: prototypes, betas, checks that it leaves out.
"""

import re
import warnings

import engine
import pytest
from loader import ROWS, samples

import rushlight as rl
from rushlight._command.names import is_aliased

OF_PYTORCH_ITSELF = re.compile(
    "beta|experimental|implicitly disabled|other quantized tensor creation functions|"
    "FOUND weight out of range"
)
IN_OTHER_WORDS = {  # a blank that PyTorch forgot
    "solve_triangularand": "solve_triangular and",
    "lu_solveand": "lu_solve and",
}


@pytest.fixture(autouse=True)
def warn_always():
    libraries = [lib for lib in (rl, engine.oracle()) if lib is not None]
    before = [lib.is_warn_always_enabled() for lib in libraries]
    for lib in libraries:
        lib.set_warn_always(True)
    yield
    for lib, was in zip(libraries, before):
        lib.set_warn_always(was)


def warnings_of(call, *args):
    """The warnings of a call; its error where it is refused."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            call(*args)
        except (RuntimeError, TypeError, ValueError, IndexError, AttributeError) as error:
            return f"refused: {error}"
    said = (re.sub(r" ?\(Triggered internally.*", "", str(w.message), flags=re.S) for w in caught)
    return {text for text in said if not OF_PYTORCH_ITSELF.search(text)}


def as_we_say(text):
    for theirs, ours in IN_OTHER_WORDS.items():
        text = text.replace(theirs, ours)
    return text


def run(lib, row, sample, dtype):
    """The operator, and its derivative where there is one."""
    args, kwargs = engine.arguments(lib, sample, dtype)
    engine.resolve(lib, row.name)(*args, **kwargs)
    leaves, function = engine.variables(lib, row, sample, dtype)
    results = [t for t in engine.tensors_in(function(leaves)) if t.requires_grad]
    if results:
        lib.autograd.grad([t.abs().sum() for t in results], leaves, allow_unused=True)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_warnings_are_pytorchs(row):
    torch = pytest.importorskip("torch")
    if is_aliased():
        pytest.skip("torch is Rushlight here")
    for dtype in {row.dtypes[0], row.dtypes[-1]}:
        for sample in samples(row, dtype)[:3]:
            theirs = warnings_of(run, torch, row, sample, dtype)
            if isinstance(theirs, set):  # what PyTorch refuses may work here
                assert warnings_of(run, rl, row, sample, dtype) == {as_we_say(t) for t in theirs}


@pytest.mark.parametrize("name", ["T", "mT", "H", "mH", "adjoint"])
def test_transposes_of_no_dimensions_are_the_tensor_itself(name):
    number = rl.tensor(3.0)
    with pytest.warns(UserWarning, match="deprecated on 0-D tensors"):
        found = getattr(number, name)
        found = found() if callable(found) else found
    assert found is number or name == "T"
    assert found == 3

"""`help()` on the names that programs use most: arguments, shapes, formulas, errors, an example that runs."""

import builtins
import doctest
import inspect
import re
import sys
import warnings
from pathlib import Path

import pytest

import rushlight as torch

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tools"))
from reference.names import named, names  # noqa: E402

NAMES = names()
_ARGUMENTS = re.compile(r"^ *(?:Args|Arguments):\n((?:(?: .*)?\n?)+)", re.M)
_NUMBER = re.compile(r"-?\d+\.?\d*(?:e[-+]?\d+)?")


def document(name):
    return inspect.getdoc(named(name)) or ""


def parameters(name):
    """The names of what a caller passes."""
    value = named(name)
    try:
        found = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return []
    names = [p.name for p in found if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if not inspect.isclass(value) and "." in name and names[:1] in (["self"], ["input"]):
        owner = named(name.rpartition(".")[0])
        names = names[1:] if inspect.isclass(owner) else names
    return [n for n in names if not n.startswith("_")]


def is_layer(value):
    return inspect.isclass(value) and issubclass(value, torch.nn.Module)


def lacks(name):
    """What a name's document should have and has not."""
    value, text = named(name), document(name)
    found = [] if ">>> " in text else ["example"]
    described = _ARGUMENTS.search(text)
    if parameters(name):
        told = described[1] if described else ""
        missing = [p for p in parameters(name) if not re.search(rf"\b{p}\b", told)]
        found += [f"arguments {', '.join(missing)}"] if missing else []
    if hasattr(value, "_overloads") or (is_layer(value) and value.__module__.endswith(_LAYERS)):
        found += [part for part in ("Shape", "Formula") if f"{part}:" not in text]
    if hasattr(value, "_overloads"):
        found += ["Source"] if "Source:" not in text else []
    return found


_LAYERS = tuple("linear conv normalization batchnorm activation pooling dropout loss sparse".split())


@pytest.mark.parametrize("name", NAMES)
def test_help_tells_what_a_caller_needs(name):
    assert not lacks(name), document(name)


@pytest.mark.parametrize("name", NAMES)
def test_examples_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"torch": torch, "nn": torch.nn, "F": torch.nn.functional, **vars(builtins)}
    test = doctest.DocTestParser().get_doctest(document(name), names, name, None, 0)
    assert test.examples
    run = doctest.DocTestRunner(
        checker=_CloseNumbers(), optionflags=doctest.NORMALIZE_WHITESPACE, verbose=False
    )
    told = []
    with torch.random.fork_rng(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        run.run(test, out=told.append)
    vars(builtins).pop("_", None)  # where examples leave their last result
    assert not run.failures, "".join(told)


class _CloseNumbers(doctest.OutputChecker):
    """The last digits of numbers may differ, as they do between processors."""

    def check_output(self, want, got, optionflags):
        if super().check_output(want, got, optionflags):
            return True
        if _NUMBER.sub("0", want).split() != _NUMBER.sub("0", got).split():
            return False
        pairs = zip(_NUMBER.findall(want), _NUMBER.findall(got))
        return all(abs(float(a) - float(b)) <= 2e-3 * max(1, abs(float(a))) for a, b in pairs)


if __name__ == "__main__":  # what is missing
    short = {name: lacks(name) for name in NAMES}
    for name, found in short.items():
        if found:
            print(name, "|", ", ".join(found))
    print(f"{sum(not found for found in short.values())} of {len(NAMES)}")

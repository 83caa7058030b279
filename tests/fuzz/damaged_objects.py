"""damaged_samples.py for what is no operator: modules, optimizers, distributions, data, indexing, storages.

    PYTHONPATH=. python tests/fuzz/damaged_objects.py --calls 200000 --seed 1 --only '^nn'

Modules and optimizers take the samples of PyTorch's own tests (`module_db`, `optim_db`); the other calls
stand here. Arguments of a constructor and of the calls that follow are damaged alike.
"""

import argparse
import functools
import io
import os
import random
import re
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import damaged_samples as samples  # noqa: E402
from damage import EXPECTED, Damage  # noqa: E402
from operator_samples import Translator  # noqa: E402


def built_and_called(build, call, count):
    """A function of the arguments of both; those named `call_*` and those after `count` go to the call."""

    def function(*args, **kwargs):
        made = build(*args[:count], **{k: v for k, v in kwargs.items() if not k.startswith("call_")})
        return call(made, *args[count:], **{k[5:]: v for k, v in kwargs.items() if k.startswith("call_")})

    return function


# --- modules and optimizers ---------------------------------------------------------------------------------


def module_calls(rl, translator):
    import torch
    from torch.testing._internal.common_modules import module_db

    for info in module_db:
        name = info.name
        cls = functools.reduce(lambda at, part: getattr(at, part, None), name.split("."), rl)
        if cls is None:
            continue
        try:
            inputs = info.module_inputs_func(
                info, device="cpu", dtype=torch.float32, requires_grad=True, training=True
            )
        except EXPECTED:  # the generators of some modules want more
            continue
        for given in inputs[:6]:
            yield name, cls, given.constructor_input, given.forward_input


def called_module(module, *args, **kwargs):
    result = module(*args, **kwargs)
    repr(module)
    module.load_state_dict(module.state_dict())
    return result


def modules(rl, translator):
    for name, cls, made, called in module_calls(rl, translator):

        def make(cls=cls, made=made, called=called):
            args, kwargs = translator.value((made.args, made.kwargs))
            forward, named = translator.value(
                (called.args if called else (), called.kwargs if called else {})
            )
            function = built_and_called(cls, called_module, len(args))
            return function, [*args, *forward], {**kwargs, **{f"call_{k}": v for k, v in named.items()}}

        yield name, make


def stepped(optimizer, sizes=None):
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    for _ in range(2):
        optimizer.zero_grad()
        sum((p * p).sum() for p in parameters).backward()
        optimizer.step(lambda: parameters[0].sum()) if "LBFGS" in type(
            optimizer
        ).__name__ else optimizer.step()
    optimizer.load_state_dict(optimizer.state_dict())
    repr(optimizer)


def optimizers(rl, translator):
    from torch.testing._internal.common_optimizers import optim_db

    for info in optim_db:
        cls = getattr(rl.optim, info.optim_cls.__name__, None)
        for given in info.optim_inputs_func(device="cpu") if cls else []:

            def make(cls=cls, given=given):
                parameters = [rl.nn.Parameter(rl.ones(2, 3)), rl.nn.Parameter(rl.ones(3))]
                if given.kwargs.get("fused") or "SparseAdam" in cls.__name__:
                    parameters = [p.detach().requires_grad_() for p in parameters]
                return built_and_called(cls, stepped, 1), [parameters], translator.value(dict(given.kwargs))

            yield f"optim.{cls.__name__}", make


# --- distributions ------------------------------------------------------------------------------------------

DISTRIBUTIONS = {
    "Bernoulli": "t.ones(2) / 3",
    "Beta": "t.ones(2), t.ones(2)",
    "Binomial": "5, t.ones(2) / 3",
    "Categorical": "t.ones(2, 3)",
    "Cauchy": "t.zeros(2), t.ones(2)",
    "Chi2": "t.ones(2)",
    "ContinuousBernoulli": "t.ones(2) / 3",
    "Dirichlet": "t.ones(2, 3)",
    "Exponential": "t.ones(2)",
    "FisherSnedecor": "t.ones(2), t.ones(2)",
    "Gamma": "t.ones(2), t.ones(2)",
    "Geometric": "t.ones(2) / 3",
    "Gumbel": "t.zeros(2), t.ones(2)",
    "HalfCauchy": "t.ones(2)",
    "HalfNormal": "t.ones(2)",
    "InverseGamma": "t.ones(2), t.ones(2)",
    "Kumaraswamy": "t.ones(2), t.ones(2)",
    "LKJCholesky": "3, 1.0",
    "Laplace": "t.zeros(2), t.ones(2)",
    "LogNormal": "t.zeros(2), t.ones(2)",
    "LogisticNormal": "t.zeros(2), t.ones(2)",
    "LowRankMultivariateNormal": "t.zeros(2), t.ones(2, 1), t.ones(2)",
    "Multinomial": "4, t.ones(3)",
    "MultivariateNormal": "t.zeros(2), t.eye(2)",
    "NegativeBinomial": "4, t.ones(2) / 3",
    "Normal": "t.zeros(2), t.ones(2)",
    "OneHotCategorical": "t.ones(2, 3)",
    "Pareto": "t.ones(2), t.ones(2)",
    "Poisson": "t.ones(2)",
    "RelaxedBernoulli": "t.tensor(0.7), t.ones(2) / 3",
    "RelaxedOneHotCategorical": "t.tensor(0.7), t.ones(2, 3)",
    "StudentT": "t.ones(2)",
    "Uniform": "t.zeros(2), t.ones(2)",
    "VonMises": "t.zeros(2), t.ones(2)",
    "Weibull": "t.ones(2), t.ones(2)",
    "Wishart": "t.tensor(3.0), t.eye(2)",
}


def drawn(distribution, shape, value, larger):
    result = distribution.log_prob(value)
    distribution.sample(shape)
    distribution.expand(larger).sample()
    repr(distribution), distribution.mean, distribution.variance, distribution.support
    for method in (distribution.entropy, lambda: distribution.cdf(value), distribution.enumerate_support):
        try:
            method()
        except NotImplementedError:
            pass
    return result


def distributions(rl, translator):
    for name, text in DISTRIBUTIONS.items():

        def make(cls=getattr(rl.distributions, name), text=text):
            args = list(eval(f"({text},)", {"t": rl}))
            value = cls(*args).sample()
            larger = [4, *cls(*args).batch_shape]
            return built_and_called(cls, drawn, len(args)), [*args, (2,), value, larger], {}

        yield f"distributions.{name}", make


# --- calls that stand here ----------------------------------------------------------------------------------

CALLS = Path(__file__).with_suffix(".txt")  # a call in each line, its notation in the first


def saved_and_loaded(t, value, file=None, location=None, weights_only=True):
    file = io.BytesIO() if file is None else file
    t.save(value, file)
    hasattr(file, "seek") and file.seek(0)
    return t.load(file, map_location=location, weights_only=weights_only)


def loaded(loader, count=2):
    return [batch for batch, _ in zip(loader, range(count))]


def mapped(t, in_dims, out_dims, randomness, chunk_size, *args):
    return t.vmap(lambda *a: a[0] * 2, in_dims, out_dims, randomness, chunk_size=chunk_size)(*args)


def differentiated(t, argnums, has_aux, *args):
    return t.func.grad(lambda *a: (a[0] * a[-1]).sum(), argnums, has_aux)(*args)


def graph(t, name, value):
    made = t.fx.Graph()
    node = made.placeholder(name)
    made.output(made.call_method("add", (node, value)))
    return t.fx.GraphModule(t.nn.Module(), made)(t.ones(2))


def library_defined(t, schema, name):
    with t.library._scoped_library("fuzz", "FRAGMENT") as library:
        library.define(schema)


OTHERS = {
    "save": lambda t, x: (functools.partial(saved_and_loaded, t), [{"a": x}, None, "cpu", False], {}),
    "utils.data.DataLoader": lambda t, x: (
        built_and_called(t.utils.data.DataLoader, loaded, 1),
        [[t.ones(2), t.ones(2), t.ones(2)]],
        {"batch_size": 2, "shuffle": True, "drop_last": False, "num_workers": 0, "call_count": 2},
    ),
    "vmap": lambda t, x: (functools.partial(mapped, t), [(0, None), 0, "error", None, x, x], {}),
    "func.grad": lambda t, x: (functools.partial(differentiated, t), [0, False, x, x], {}),
    "fx.Graph": lambda t, x: (functools.partial(graph, t), ["x", 2], {}),
    "library.define": lambda t, x: (
        functools.partial(library_defined, t),
        ["add(Tensor a, Scalar[] b, int? c=None, *, float d=1e-3) -> (Tensor, Tensor[])", "a"],
        {},
    ),
}


def written_calls(rl, translator):
    def place():
        x = (rl.arange(12.0).view(3, 4) - 5).requires_grad_()
        heads = [rl.ones(12, 4), rl.ones(12), None, None, False, 0.0, rl.ones(4, 4), rl.ones(4)]
        return {"t": rl, "x": x, "i": rl.tensor([0, 2, 1]), "HEADS": heads}

    def taken(*args, **kwargs):
        return list(args), kwargs

    for line in CALLS.read_text().splitlines()[1:]:
        path, _, text = line.partition(" |")
        names = path.split(".")
        if any(names[: n + 1] for n in range(len(names)) if not found(rl, names[: n + 1])):
            continue
        function = found(rl, names)

        def make(function=function, text=text):
            args, kwargs = eval(f"taken({text})", {**place(), "taken": taken})
            return function, args, kwargs

        yield path, make
    for path, made in OTHERS.items():
        yield path, lambda made=made: made(rl, place()["x"])


def found(rl, names):
    import importlib

    at = rl
    for n, name in enumerate(names):
        if not hasattr(at, name):
            try:
                importlib.import_module(".".join([rl.__name__, *names[: n + 1]]))
            except ImportError:
                return None
        at = getattr(at, name)
    return at


# --- the search ---------------------------------------------------------------------------------------------


class ObjectRunner(samples.Runner):
    may_loop = True  # layers, epochs

    def accepts(self, error):
        # Names of files, and a program that a graph's names make.
        return super().accepts(error) or isinstance(error, (OSError, SyntaxError))

    def arguments(self, sample, functions_here, seed):
        rng = random.Random(seed)
        self.rl.manual_seed(0)
        function, args, kwargs = sample()
        args, kwargs = Damage(self.rl, rng).call(args, kwargs)
        return functions_here[0][0], function, args, kwargs, rng


class ObjectSearch(samples.Search):
    Runner = ObjectRunner

    def subjects(self):
        translator = Translator(self.rl, self.oracle)
        self.makers = {}
        for family in (modules, optimizers, distributions, written_calls):
            for name, make in family(self.rl, translator):
                self.makers.setdefault(name, []).append(make)
        return [name for name in sorted(self.makers) if re.search(self.options.only, name)]

    def prepare(self, runner, name):
        return [(name, None)], [make for make in self.makers[name] if makes(make)]


def makes(make):
    try:
        make()
        return True
    except (*EXPECTED, AssertionError):
        return False


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    with tempfile.TemporaryDirectory() as folder:  # for files whose names are damaged
        os.chdir(folder)
        return samples.main(ObjectSearch, parser)


if __name__ == "__main__":
    sys.exit(main())

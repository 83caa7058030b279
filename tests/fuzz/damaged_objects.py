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
        except samples.EXPECTED:  # the generators of some modules want more
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

# path | arguments; `t` is the library, `x` a tensor of 3 x 4, `i` one of integers
CALLS = """
Tensor.__getitem__ | x, (slice(1, 3), 2)
Tensor.__getitem__ | x, (i[:2], None, ...)
Tensor.__getitem__ | x, ([0, 1], [1, 2])
Tensor.__getitem__ | x, x > 0
Tensor.__getitem__ | x, slice(0, 3, 2)
Tensor.__setitem__ | x.detach(), (slice(1, 3), 2), 5.0
Tensor.__setitem__ | x.detach(), ([0, 1], [1, 2]), t.ones(2)
Tensor.__setitem__ | x.detach(), x > 0, 1
Tensor.__contains__ | x, 1.0
Tensor.backward | x.sum(), t.ones(())
Tensor.register_hook | x * 1, lambda g: g
Tensor.new_tensor | x, [[1.0, 2.0]]
Tensor.new_full | x, (2, 3), 4.0
Tensor.new_zeros | x, (2, 3)
Tensor.new_empty_strided | x, (2, 3), (3, 1)
Tensor.set_ | t.ones(2), t.ones(4).untyped_storage(), 1, (2,), (1,)
Tensor.set_ | t.ones(2), t.ones(4)
Tensor.resize_ | t.ones(4), (2, 2)
Tensor.to | x, t.float64
Tensor.to | x, 'cpu', t.float64, False, True
Tensor.type | x, 'torch.DoubleTensor'
Tensor.view | x, (4, 3)
Tensor.view | x, t.int32
Tensor.apply_ | t.ones(3), lambda v: v + 1
Tensor.map_ | t.ones(3), t.ones(3), lambda a, b: a + b
Tensor.index_put_ | t.ones(3, 4), (i[:2], i[:2]), t.ones(2), True
Tensor.put_ | t.ones(3, 4), i, t.ones(3), True
Tensor.random_ | t.ones(3), 0, 10
Tensor.uniform_ | t.ones(3), 0.0, 1.0
Tensor.normal_ | t.ones(3), 0.0, 1.0
Tensor.cauchy_ | t.ones(3), 0.0, 1.0
Tensor.log_normal_ | t.ones(3), 1.0, 2.0
Tensor.geometric_ | t.ones(3), 0.3
Tensor.exponential_ | t.ones(3), 1.0
Tensor.bernoulli_ | t.ones(3), 0.5
Tensor.fill_diagonal_ | t.ones(3, 3), 5, False
Tensor.numpy | x.detach()
Tensor.tolist | x
Tensor.__array__ | x.detach(), 'float64'
Tensor.as_subclass | x, t.nn.Parameter
Tensor.requires_grad_ | x.detach(), True
Tensor.share_memory_ | t.ones(2)
Tensor.storage_offset | x
Tensor.stride | x, 0
Tensor.size | x, 1
Tensor.unflatten | x, 1, (2, 2)
Tensor.rename | x.detach(), None
Tensor.align_to | x, 'a', 'b'
Tensor.__format__ | t.ones(()), '.3f'
Tensor.__dlpack__ | x.detach()
Tensor.dim_order | x
tensor | [[1.0, 2], [3, 4]]
as_tensor | [[1.0, 2], [3, 4]], t.float64
asarray | [[1.0, 2], [3, 4]]
from_numpy | x.detach().numpy()
frombuffer | bytearray(b'12345678'), dtype=t.float32, count=1, offset=4
from_dlpack | x.detach()
from_file | '/nonexistent', False, 3
sparse_coo_tensor | t.tensor([[0, 1], [1, 2]]), t.ones(2), (3, 3)
sparse_csr_tensor | t.tensor([0, 1, 2]), t.tensor([0, 1]), t.ones(2), (2, 2)
sparse_csc_tensor | t.tensor([0, 1, 2]), t.tensor([0, 1]), t.ones(2), (2, 2)
sparse_bsr_tensor | t.tensor([0, 1]), t.tensor([0]), t.ones(1, 2, 2), (2, 2)
sparse_compressed_tensor | t.tensor([0, 1, 2]), t.tensor([0, 1]), t.ones(2), (2, 2), layout=t.sparse_csr
sparse.mm | t.eye(3).to_sparse(), t.ones(3, 2)
sparse.addmm | t.ones(3, 2), t.eye(3).to_sparse(), t.ones(3, 2)
sparse.sum | t.eye(3).to_sparse(), 0
sparse.softmax | t.eye(3).to_sparse(), 0
sparse.log_softmax | t.eye(3).to_sparse(), 1
sparse.spdiags | t.ones(2, 3), t.tensor([0, 1]), (3, 3)
sparse.sampled_addmm | t.eye(3).to_sparse_csr(), t.ones(3, 2), t.ones(2, 3)
smm | t.eye(3).to_sparse(), t.ones(3, 2)
hspmm | t.eye(3).to_sparse(), t.ones(3, 2)
Tensor.to_sparse | t.eye(3), 1
Tensor.to_sparse_csr | t.eye(3)
Tensor.to_sparse_bsr | t.eye(4), (2, 2)
Tensor.sparse_mask | t.ones(3, 3), t.eye(3).to_sparse()
Tensor.sparse_resize_ | t.eye(3).to_sparse(), (4, 4), 2, 0
Tensor.coalesce | t.eye(3).to_sparse()
Tensor.__getitem__ | t.eye(3).to_sparse(), 1
Tensor.index_select | t.eye(3).to_sparse(), 0, i
Tensor.mul | t.eye(3).to_sparse(), t.eye(3).to_sparse()
Tensor.add | t.eye(3).to_sparse_csr(), t.eye(3).to_sparse_csr()
Tensor.matmul | t.eye(3).to_sparse_csr(), t.ones(3, 2)
nested.nested_tensor | [t.ones(2, 3), t.ones(1, 3)], layout=t.jagged
nested.nested_tensor | [t.ones(2, 3), t.ones(1, 3)]
nested.as_nested_tensor | [t.ones(2, 3), t.ones(1, 3)], layout=t.jagged
nested.nested_tensor_from_jagged | t.ones(3, 2), t.tensor([0, 1, 3])
nested.narrow | t.ones(3, 4), 1, t.tensor([0, 1, 1]), t.tensor([1, 2, 1]), layout=t.jagged
nested.to_padded_tensor | t.nested.nested_tensor([t.ones(2, 3), t.ones(1, 3)]), 0.0
masked.masked_tensor | t.ones(3), t.tensor([True, False, True])
masked.softmax | x, 1, mask=x > 0
masked.sum | x, 1, mask=x > 0
quantize_per_tensor | x.detach(), 0.1, 0, t.qint8
fake_quantize_per_channel_affine | x, t.ones(3), t.zeros(3, dtype=t.int32), 0, -128, 127
autograd.grad | x.sum(), x, None, True
autograd.grad | [(x * 2)], [x], [t.ones(3, 4)]
autograd.backward | [x.sum()], [t.ones(())]
autograd.functional.jacobian | lambda a: a * 2, x
autograd.functional.hessian | lambda a: (a * a).sum(), x
autograd.functional.vjp | lambda a: a * 2, x, t.ones(3, 4)
autograd.functional.jvp | lambda a: a * 2, x, t.ones(3, 4)
autograd.gradcheck | lambda a: a * 2, (x.detach().double().requires_grad_(),), 1e-6
autograd.forward_ad.make_dual | x, x
func.jvp | lambda a: a * 2, (x,), (x,)
func.linearize | lambda a: a * 2, x
func.functional_call | t.nn.Linear(4, 2), {'bias': t.ones(2)}, (x,)
func.stack_module_state | [t.nn.Linear(2, 2), t.nn.Linear(2, 2)]
utils.checkpoint.checkpoint | lambda a: a * 2, x, use_reentrant=False
utils.checkpoint.checkpoint_sequential | [t.nn.ReLU(), t.nn.ReLU()], 2, x, use_reentrant=False
utils.data.TensorDataset | t.ones(3, 2), t.ones(3)
utils.data.Subset | [1, 2, 3], [0, 1]
utils.data.ConcatDataset | [[1, 2], [3]]
utils.data.random_split | range(10), [3, 7]
utils.data.default_collate | [{'a': 1, 'b': t.ones(2)}, {'a': 2, 'b': t.ones(2)}]
utils.data.default_collate | [(1, 'a', 2.5), (2, 'b', 3.5)]
utils.data.default_convert | [1, x.detach().numpy()]
utils.data.WeightedRandomSampler | [0.1, 0.9], 3, True
utils.data.BatchSampler | [1, 2, 3], 2, False
utils.data.RandomSampler | [1, 2, 3], True, 4
utils.data.SubsetRandomSampler | [1, 2, 3]
utils.data.distributed.DistributedSampler | [1, 2, 3], 2, 0, True
nn.utils.clip_grad_norm_ | [x], 1.0, 2.0
nn.utils.clip_grad_value_ | [x], 1.0
nn.utils.parameters_to_vector | [x, x]
nn.utils.vector_to_parameters | t.ones(4), [t.nn.Parameter(t.zeros(2, 2))]
nn.utils.rnn.pack_padded_sequence | t.ones(3, 2, 4), [3, 1]
nn.utils.rnn.pad_packed_sequence | t.nn.utils.rnn.pack_sequence([t.ones(2), t.ones(1)])
nn.utils.rnn.pad_sequence | [t.ones(2), t.ones(1)], True, 0.0
nn.utils.rnn.pack_sequence | [t.ones(2), t.ones(1)]
nn.utils.rnn.unpad_sequence | t.ones(2, 3), t.tensor([2, 1]), True
nn.utils.rnn.PackedSequence | t.ones(3), t.tensor([2, 1])
nn.utils.weight_norm | t.nn.Linear(2, 2), 'weight', 0
nn.utils.spectral_norm | t.nn.Linear(2, 2), 'weight', 1
nn.utils.parametrizations.orthogonal | t.nn.Linear(2, 2), 'weight'
nn.utils.parametrizations.weight_norm | t.nn.Linear(2, 2), 'weight', 0
nn.utils.skip_init | t.nn.Linear, 2, 3
nn.utils.fusion.fuse_conv_bn_eval | t.nn.Conv2d(1, 2, 1).eval(), t.nn.BatchNorm2d(2).eval()
nn.utils.prune.l1_unstructured | t.nn.Linear(2, 2), 'weight', 0.5
nn.utils.prune.ln_structured | t.nn.Linear(2, 2), 'weight', 0.5, 2, 0
nn.init.uniform_ | t.ones(2, 3), 0.0, 1.0
nn.init.trunc_normal_ | t.ones(2, 3), 0.0, 1.0, -2.0, 2.0
nn.init.xavier_normal_ | t.ones(2, 3), 1.0
nn.init.kaiming_uniform_ | t.ones(2, 3), 0.0, 'fan_in', 'relu'
nn.init.orthogonal_ | t.ones(2, 3), 1
nn.init.sparse_ | t.ones(2, 3), 0.1
nn.init.dirac_ | t.ones(2, 3, 3), 1
nn.init.eye_ | t.ones(2, 3)
nn.init.calculate_gain | 'leaky_relu', 0.2
nn.Sequential | t.nn.Linear(2, 2), t.nn.ReLU()
nn.ModuleList | [t.nn.Linear(2, 2)]
nn.ModuleDict | {'a': t.nn.Linear(2, 2)}
nn.ParameterList | [t.ones(2)]
nn.ParameterDict | {'a': t.ones(2)}
nn.Parameter | t.ones(2), True
nn.Buffer | t.ones(2), True
nn.Module.register_buffer | t.nn.Module(), 'a', t.ones(2), True
nn.Module.register_parameter | t.nn.Module(), 'a', t.nn.Parameter(t.ones(2))
nn.Module.add_module | t.nn.Module(), 'a', t.nn.ReLU()
nn.Module.get_submodule | t.nn.Sequential(t.nn.ReLU()), '0'
nn.Module.load_state_dict | t.nn.Linear(2, 2), t.nn.Linear(2, 2).state_dict(), True, False
nn.Module.load_state_dict | t.nn.Linear(2, 2), {'weight': t.ones(2, 2), 'bias': t.ones(2)}
nn.Module.to | t.nn.Linear(2, 2), t.float64
nn.Module.apply | t.nn.Linear(2, 2), lambda m: None
nn.Module.requires_grad_ | t.nn.Linear(2, 2), False
nn.functional.scaled_dot_product_attention | *[t.ones(1, 2, 3, 4)] * 3, None, 0.0, True
nn.functional.multi_head_attention_forward | *[t.ones(3, 1, 4)] * 3, 4, 2, *HEADS
nn.functional.ctc_loss | t.zeros(5, 1, 4), t.tensor([[1, 2]]), [5], [2]
nn.functional.embedding_bag | i, t.ones(5, 2), t.tensor([0, 2])
nn.functional.rnn_relu | x
nn.attention.flex_attention.create_block_mask | lambda b, h, q, k: q >= k, 1, 1, 128, 128, 'cpu'
optim.lr_scheduler.StepLR | t.optim.SGD([x], 0.1), 2, 0.1
optim.lr_scheduler.MultiStepLR | t.optim.SGD([x], 0.1), [2, 3], 0.1
optim.lr_scheduler.LambdaLR | t.optim.SGD([x], 0.1), lambda e: 0.5
optim.lr_scheduler.ExponentialLR | t.optim.SGD([x], 0.1), 0.5
optim.lr_scheduler.CosineAnnealingLR | t.optim.SGD([x], 0.1), 5, 0.0
optim.lr_scheduler.CosineAnnealingWarmRestarts | t.optim.SGD([x], 0.1), 5, 1, 0.0
optim.lr_scheduler.OneCycleLR | t.optim.SGD([x], 0.1), 0.5, 10
optim.lr_scheduler.CyclicLR | t.optim.SGD([x], 0.1, 0.9), 0.1, 0.2, 3
optim.lr_scheduler.PolynomialLR | t.optim.SGD([x], 0.1), 5, 1.0
optim.lr_scheduler.LinearLR | t.optim.SGD([x], 0.1), 0.3, 1.0, 5
optim.lr_scheduler.ReduceLROnPlateau | t.optim.SGD([x], 0.1), 'min', 0.1, 2
optim.lr_scheduler.SequentialLR | t.optim.SGD([x], 0.1), [], [2]
optim.lr_scheduler.ChainedScheduler | [t.optim.lr_scheduler.StepLR(t.optim.SGD([x], 0.1), 2)]
optim.swa_utils.AveragedModel | t.nn.Linear(2, 2), 'cpu'
optim.swa_utils.get_ema_multi_avg_fn | 0.9
optim.Optimizer.load_state_dict | t.optim.SGD([x], 0.1), t.optim.SGD([x], 0.1).state_dict()
optim.Optimizer.add_param_group | t.optim.SGD([x], 0.1), {'params': [x * 1], 'lr': 0.1}
amp.GradScaler | 'cpu', 2.0, 2.0, 0.5, 3
autocast | 'cpu', t.bfloat16, True
Generator.manual_seed | t.Generator(), 4
Generator.set_state | t.Generator(), t.Generator().get_state()
UntypedStorage | 4
UntypedStorage.resize_ | t.UntypedStorage(4), 8
UntypedStorage.copy_ | t.UntypedStorage(4), t.UntypedStorage(4)
UntypedStorage.__getitem__ | t.ones(2).untyped_storage(), 3
UntypedStorage.__setitem__ | t.ones(2).untyped_storage(), 3, 1
UntypedStorage.fill_ | t.UntypedStorage(4), 1
UntypedStorage.from_buffer | b'12345678', 'native', dtype=t.float32
TypedStorage.__getitem__ | t.ones(2).storage(), 1
FloatStorage | [1.0, 2.0]
Size | [1, 2]
Size.numel | t.Size([1, 2])
device | 'cpu', 0
dtype.to_real | t.complex64
finfo | t.float32
iinfo | t.int8
result_type | x, 1
promote_types | t.float32, t.int8
can_cast | t.float32, t.int8
is_tensor | x
broadcast_shapes | (2, 1), (1, 3)
meshgrid | t.ones(2), t.ones(3), indexing='ij'
einsum | 'ij,jk->ik', x, x.t()
tensordot | x, x, 2
block_diag | x, x
cdist | x, x, 2.0
norm | x, 'fro', 0
unique | i, True, True
unique_consecutive | i, True, True
stft | t.ones(20), 8, 2, 8, t.ones(8)
istft | t.ones(5, 4, dtype=t.complex64), 8, 2
lobpcg | t.eye(6), 2
svd_lowrank | t.ones(4, 3), 2, 2
pca_lowrank | t.ones(4, 3), 2
split | x, [1, 2]
chain_matmul | x, x.t()
atleast_2d | [x, x]
cartesian_prod | i, i
combinations | i, 2
signal.windows.gaussian | 5, std=1.0
signal.windows.kaiser | 5, beta=12.0
signal.windows.general_cosine | 5, a=[0.5, 0.5]
fft.fftfreq | 5, 0.1
fft.fftshift | x, 0
fft.hfft2 | x, (4, 4), (0, 1), 'ortho'
fft.rfftn | x, (4,), (1,), 'ortho'
fft.irfftn | x, (4,), (1,)
library.custom_op | 'fuzz::a', lambda v: v, mutates_args=(), schema='(Tensor v) -> Tensor'
utils._pytree.tree_unflatten | [1, 2], t.utils._pytree.tree_structure([1, 2])
utils._pytree.tree_map | lambda v: v, [1, {'a': x}], [1, {'a': x}]
utils._pytree.treespec_loads | '[1, {"type": null, "context": null, "children_spec": []}]'
utils.dlpack.from_dlpack | x.detach()
fx.symbolic_trace | t.nn.Linear(2, 2), None
fx.Graph.call_function | t.fx.Graph(), t.add, (1, 2)
fx.Graph.create_node | t.fx.Graph(), 'call_function', t.add, (1, 2), {}, 'a'
fx.Graph.placeholder | t.fx.Graph(), 'x'
fx.Graph.output | t.fx.Graph(), (1, [2])
cond | t.tensor(True), lambda a: a, lambda a: a, (x,)
testing.assert_close | x, x, rtol=0.1, atol=0.1
testing.make_tensor | (2, 3), dtype=t.float32, device='cpu', low=-1, high=1
overrides.get_overridable_functions |
from_numpy | x.detach().numpy()[::-1]
distributions.kl_divergence | t.distributions.Normal(0.0, 1.0), t.distributions.Normal(0.0, 1.0)
distributions.TransformedDistribution | t.distributions.Normal(0.0, 1.0), [t.distributions.ExpTransform()]
distributions.Independent | t.distributions.Normal(t.zeros(2, 3), 1.0), 1
distributions.MixtureSameFamily | t.distributions.Categorical(x[0].exp()), t.distributions.Normal(x[0], 1.0)
distributions.AffineTransform | 1.0, 2.0, 0
distributions.StackTransform | [t.distributions.ExpTransform()], 0
distributions.ReshapeTransform | (2, 3), (3, 2)
get_rng_state |
seed |
bucketize | x, t.tensor([0.0, 1.0])
searchsorted | t.tensor([0.0, 1.0]), x, right=True
histogramdd | t.ones(4, 2), [2, 2]
_foreach_add | [x.detach(), x.detach()], [x.detach(), x.detach()], alpha=2
_foreach_add_ | [t.ones(2), t.ones(3)], 1.0
_foreach_mul | [x.detach(), x.detach()], [2.0, 3.0]
_foreach_addcmul | [t.ones(2)], [t.ones(2)], [t.ones(2)], 2.0
_foreach_addcdiv_ | [t.ones(2)], [t.ones(2)], [t.ones(2)], [2.0]
_foreach_norm | [x.detach()], 2
_foreach_lerp | [t.ones(2)], [t.ones(2)], 0.5
_foreach_pow | [t.ones(2)], [2.0]
_foreach_copy_ | [t.ones(2)], [t.ones(2)]
_foreach_zero_ | [t.ones(2)]
_foreach_clamp_max | [t.ones(2)], 1.0
Tensor.lerp_ | t.ones(3), t.ones(3), 0.5
Tensor.__rpow__ | x, 2
Tensor.__rsub__ | x, 2
Tensor.__matmul__ | x, x.t()
Tensor.__iadd__ | t.ones(3), t.ones(3)
Tensor.__ilshift__ | t.arange(3), 2
Tensor.__and__ | t.arange(3), 2
Tensor.__divmod__ | x, 2
Tensor.__eq__ | x, x
Tensor.__len__ | x
Tensor.__reduce_ex__ | x.detach(), 2
Tensor.__deepcopy__ | x.detach(), {}
"""


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

    for line in CALLS.strip().split("\n"):
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
        args, kwargs = samples.Damage(self.rl, rng).call(args, kwargs)
        return functions_here[0][0], function, args, kwargs, rng


class ObjectSearch(samples.Search):
    Runner = ObjectRunner

    def subjects(self):
        translator = samples.Translator(self.rl, self.oracle)
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
    except (*samples.EXPECTED, AssertionError):
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

"""Distributions against PyTorch's: samples of equal seeds, densities, moments, divergences, transforms."""

import itertools
import pickle

import pytest

import rushlight
import rushlight.distributions as D  # noqa: N812

oracle = pytest.importorskip("torch")
import torch.distributions as O  # noqa: E402, N812

# Makers of one distribution each; `t` is the module, `d` its distributions.
SPD = [[2.0, 0.5, 0.1], [0.5, 1.5, 0.2], [0.1, 0.2, 1.0]]
CASES = {
    "Bernoulli": lambda t, d: d.Bernoulli(t.tensor([0.1, 0.5, 0.9])),
    "Bernoulli-logits": lambda t, d: d.Bernoulli(logits=t.tensor([-1.0, 0.5])),
    "Beta": lambda t, d: d.Beta(t.tensor([0.5, 2.0]), t.tensor([1.5, 3.0])),
    "Beta-numbers": lambda t, d: d.Beta(2.0, 3.0),
    "Binomial": lambda t, d: d.Binomial(5, t.tensor([0.2, 0.7])),
    "Binomial-logits": lambda t, d: d.Binomial(5, logits=t.tensor([[-0.2], [0.7]])),
    "Categorical": lambda t, d: d.Categorical(t.tensor([[0.2, 0.3, 0.5], [1.0, 1.0, 2.0]])),
    "Categorical-logits": lambda t, d: d.Categorical(logits=t.tensor([0.2, -0.3, 0.5])),
    "Cauchy": lambda t, d: d.Cauchy(t.tensor([0.0, 1.0]), t.tensor([1.0, 2.0])),
    "Chi2": lambda t, d: d.Chi2(t.tensor([1.0, 4.0])),
    "ContinuousBernoulli": lambda t, d: d.ContinuousBernoulli(t.tensor([0.1, 0.5, 0.9])),
    "Dirichlet": lambda t, d: d.Dirichlet(t.tensor([[0.5, 1.5, 2.0], [1.0, 2.0, 3.0]])),
    "Exponential": lambda t, d: d.Exponential(t.tensor([0.5, 2.0])),
    "FisherSnedecor": lambda t, d: d.FisherSnedecor(t.tensor([3.0, 6.0]), t.tensor([5.0, 9.0])),
    "Gamma": lambda t, d: d.Gamma(t.tensor([0.5, 3.0]), t.tensor([1.0, 2.0])),
    "GeneralizedPareto": lambda t, d: d.GeneralizedPareto(
        t.tensor([0.0, 1.0, 0.0]), t.tensor([1.0, 2.0, 1.0]), t.tensor([0.1, -0.3, 0.0])
    ),
    "Geometric": lambda t, d: d.Geometric(t.tensor([0.2, 0.7])),
    "Gumbel": lambda t, d: d.Gumbel(t.tensor([0.0, 1.0]), t.tensor([1.0, 2.0])),
    "HalfCauchy": lambda t, d: d.HalfCauchy(t.tensor([1.0, 2.0])),
    "HalfNormal": lambda t, d: d.HalfNormal(t.tensor([1.0, 2.0])),
    "Independent": lambda t, d: d.Independent(d.Normal(t.zeros(2, 3), t.ones(2, 3)), 1),
    "InverseGamma": lambda t, d: d.InverseGamma(t.tensor([1.5, 3.0]), t.tensor([1.0, 2.0])),
    "Kumaraswamy": lambda t, d: d.Kumaraswamy(t.tensor([1.5, 3.0]), t.tensor([2.0, 1.2])),
    "LKJCholesky": lambda t, d: d.LKJCholesky(3, t.tensor([0.5, 2.0])),
    "Laplace": lambda t, d: d.Laplace(t.tensor([0.0, 1.0]), t.tensor([1.0, 2.0])),
    "LogNormal": lambda t, d: d.LogNormal(t.tensor([0.0, 1.0]), t.tensor([1.0, 0.5])),
    "LogisticNormal": lambda t, d: d.LogisticNormal(t.tensor([0.0, 1.0]), t.tensor([1.0, 0.5])),
    "LowRankMultivariateNormal": lambda t, d: d.LowRankMultivariateNormal(
        t.zeros(3), t.tensor([[1.0], [0.5], [0.2]]), t.tensor([1.0, 2.0, 0.5])
    ),
    "MixtureSameFamily": lambda t, d: d.MixtureSameFamily(
        d.Categorical(t.tensor([0.3, 0.7])), d.Normal(t.tensor([-1.0, 1.0]), t.tensor([0.5, 1.0]))
    ),
    "MixtureSameFamily-event": lambda t, d: d.MixtureSameFamily(
        d.Categorical(t.ones(2)), d.Independent(d.Normal(t.zeros(2, 3), t.ones(2, 3)), 1)
    ),
    "Multinomial": lambda t, d: d.Multinomial(4, t.tensor([[0.2, 0.3, 0.5], [0.6, 0.2, 0.2]])),
    "MultivariateNormal": lambda t, d: d.MultivariateNormal(t.zeros(3), covariance_matrix=t.tensor(SPD)),
    "MultivariateNormal-precision": lambda t, d: d.MultivariateNormal(
        t.ones(2, 3), precision_matrix=t.tensor(SPD)
    ),
    "MultivariateNormal-tril": lambda t, d: d.MultivariateNormal(
        t.ones(4, 1, 3), scale_tril=t.linalg.cholesky(t.tensor([SPD, SPD]))
    ),
    "NegativeBinomial": lambda t, d: d.NegativeBinomial(t.tensor([3.0, 5.0]), t.tensor([0.3, 0.6])),
    "Normal": lambda t, d: d.Normal(t.tensor([0.0, 1.0]), t.tensor([1.0, 2.0])),
    "Normal-numbers": lambda t, d: d.Normal(0.0, 1.0),
    "OneHotCategorical": lambda t, d: d.OneHotCategorical(t.tensor([[0.2, 0.3, 0.5], [0.6, 0.2, 0.2]])),
    "OneHotCategoricalStraightThrough": lambda t, d: d.OneHotCategoricalStraightThrough(t.tensor([0.2, 0.8])),
    "Pareto": lambda t, d: d.Pareto(t.tensor([1.0, 2.0]), t.tensor([2.5, 4.0])),
    "Poisson": lambda t, d: d.Poisson(t.tensor([0.5, 7.0])),
    "RelaxedBernoulli": lambda t, d: d.RelaxedBernoulli(t.tensor([0.7]), t.tensor([0.2, 0.6])),
    "RelaxedOneHotCategorical": lambda t, d: d.RelaxedOneHotCategorical(
        t.tensor([0.7]), t.tensor([0.2, 0.6, 0.2])
    ),
    "StudentT": lambda t, d: d.StudentT(t.tensor([1.5, 5.0]), t.tensor([0.0, 1.0]), t.tensor([1.0, 2.0])),
    "TransformedDistribution": lambda t, d: d.TransformedDistribution(
        d.Normal(t.zeros(2), t.ones(2)), [d.AffineTransform(1.0, 2.0), d.SigmoidTransform()]
    ),
    "Uniform": lambda t, d: d.Uniform(t.tensor([0.0, 1.0]), t.tensor([1.0, 3.0])),
    "VonMises": lambda t, d: d.VonMises(t.tensor([0.0, 1.0]), t.tensor([0.5, 4.0])),
    "Weibull": lambda t, d: d.Weibull(t.tensor([1.0, 2.0]), t.tensor([1.5, 3.0])),
    "Wishart": lambda t, d: d.Wishart(t.tensor(5.0), covariance_matrix=t.tensor(SPD)),
}


def both(name):
    return CASES[name](rushlight, D), CASES[name](oracle, O)


def outcome(f):
    """The value of f, or the type of the exception that says there is none."""
    try:
        return f()
    except NotImplementedError:
        return NotImplementedError


def agree(ours, theirs, rtol=1e-4, atol=1e-5):
    if not oracle.is_tensor(theirs):
        assert ours == theirs or (ours != ours and theirs != theirs)
        return
    assert tuple(ours.shape) == tuple(theirs.shape)
    mine = oracle.from_numpy(ours.detach().numpy().copy())
    oracle.testing.assert_close(mine, theirs.detach(), rtol=rtol, atol=atol, equal_nan=True)


def sample_of(theirs, shape=(4,)):
    oracle.manual_seed(1)
    value = theirs.sample(shape)
    return rushlight.from_numpy(value.numpy().copy()), value


@pytest.mark.parametrize("name", CASES)
def test_description(name):
    ours, theirs = both(name)
    assert repr(ours) == repr(theirs)
    assert tuple(ours.batch_shape) == tuple(theirs.batch_shape)
    assert tuple(ours.event_shape) == tuple(theirs.event_shape)
    assert ours.has_rsample == theirs.has_rsample
    assert ours.has_enumerate_support == theirs.has_enumerate_support
    assert repr(ours.support) == repr(theirs.support)
    assert {k: repr(v) for k, v in ours.arg_constraints.items()} == {
        k: repr(v) for k, v in theirs.arg_constraints.items()
    }


@pytest.mark.parametrize("name", CASES)
def test_samples_of_equal_seeds(name):
    ours, theirs = both(name)
    for shape in ((), (3,), (2, 5)):
        rushlight.manual_seed(0)
        oracle.manual_seed(0)
        agree(ours.sample(shape), theirs.sample(shape))
        if theirs.has_rsample:
            agree(ours.rsample(shape), theirs.rsample(shape))


@pytest.mark.parametrize("name", CASES)
def test_moments_and_entropy(name):
    ours, theirs = both(name)
    for what in ("mean", "variance", "stddev", "mode"):
        agree(outcome(lambda w=what: getattr(ours, w)), outcome(lambda w=what: getattr(theirs, w)))
    agree(outcome(ours.entropy), outcome(theirs.entropy))


@pytest.mark.parametrize("name", CASES)
def test_densities(name):
    ours, theirs = both(name)
    mine, value = sample_of(theirs)
    agree(ours.log_prob(mine), theirs.log_prob(value), rtol=1e-3)
    agree(outcome(lambda: ours.cdf(mine)), outcome(lambda: theirs.cdf(value)))
    p = [0.1, 0.5, 0.9]
    ones = (1,) * len(theirs.batch_shape + theirs.event_shape)
    quantiles = outcome(lambda: theirs.icdf(oracle.tensor(p).view(3, *ones)))
    agree(outcome(lambda: ours.icdf(rushlight.tensor(p).view(3, *ones))), quantiles)


@pytest.mark.parametrize("name", CASES)
def test_expand_and_pickle(name):
    ours, theirs = both(name)
    wider, theirs_wider = ours.expand((2, *ours.batch_shape)), theirs.expand((2, *theirs.batch_shape))
    assert tuple(wider.batch_shape) == tuple(theirs_wider.batch_shape)
    mine, value = sample_of(theirs_wider)
    agree(wider.log_prob(mine), theirs_wider.log_prob(value), rtol=1e-3)
    agree(pickle.loads(pickle.dumps(ours)).log_prob(mine), theirs.log_prob(value), rtol=1e-3)


@pytest.mark.parametrize("name", [n for n in CASES if CASES[n](oracle, O).has_enumerate_support])
def test_enumerate_support(name):
    ours, theirs = both(name)
    for expand in (True, False):
        agree(ours.enumerate_support(expand), theirs.enumerate_support(expand))


GRADIENTS = {
    "Beta": ([0.5, 2.0], [1.5, 3.0]),
    "Cauchy": ([0.0, 1.0], [1.0, 2.0]),
    "Chi2": ([1.0, 4.0],),
    "ContinuousBernoulli": ([0.1, 0.9],),
    "Dirichlet": ([0.5, 1.5, 2.0],),
    "Exponential": ([0.5, 2.0],),
    "FisherSnedecor": ([3.0, 6.0], [5.0, 9.0]),
    "Gamma": ([0.5, 3.0], [1.0, 2.0]),
    "Gumbel": ([0.0, 1.0], [1.0, 2.0]),
    "HalfNormal": ([1.0, 2.0],),
    "InverseGamma": ([1.5, 3.0], [1.0, 2.0]),
    "Kumaraswamy": ([1.5, 3.0], [2.0, 1.2]),
    "Laplace": ([0.0, 1.0], [1.0, 2.0]),
    "LowRankMultivariateNormal": ([0.0, 1.0], [[1.0], [2.0]], [1.0, 0.5]),
    "MultivariateNormal": ([0.0, 1.0], [[2.0, 0.5], [0.5, 1.0]]),
    "Normal": ([0.0, 1.0], [1.0, 2.0]),
    "RelaxedOneHotCategorical": (0.7, [0.2, 0.6, 0.2]),
    "StudentT": ([3.0, 5.0], [0.0, 1.0], [1.0, 2.0]),
    "Uniform": ([0.0, 1.0], [1.0, 3.0]),
    "Weibull": ([1.0, 2.0], [1.5, 3.0]),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_through_samples(name):
    def gradients(module, distributions):
        parameters = [module.tensor(v, requires_grad=True) for v in GRADIENTS[name]]
        module.manual_seed(3)
        sample = getattr(distributions, name)(*parameters).rsample((4,))
        weight = module.arange(sample.numel()).view(sample.shape) + 1.0
        return module.autograd.grad((sample * weight).sum(), parameters)

    for mine, other in zip(gradients(rushlight, D), gradients(oracle, O), strict=True):
        agree(mine, other, rtol=1e-3, atol=1e-4)


def test_gradients_through_wishart_samples():
    # PyTorch's own raises here. Scaling the factor by s scales samples by s squared.
    scale = rushlight.tensor(1.5, requires_grad=True)
    distribution = D.Wishart(rushlight.tensor(5.0), scale_tril=scale * rushlight.eye(2))
    sample = distribution.rsample((4,))
    (gradient,) = rushlight.autograd.grad(sample.sum(), scale)
    assert gradient.item() == pytest.approx(2 * sample.sum().item() / 1.5, rel=1e-4)


def pairs_with_formulas():
    """One pair of cases for every pair of types that PyTorch knows a divergence of."""
    by_type = {type(CASES[name](oracle, O)): name for name in reversed(CASES)}
    known = [(a, b) for a, b in O.kl._KL_REGISTRY if a in by_type and b in by_type]
    return [(by_type[a], by_type[b]) for a, b in known] + [("Chi2", "Gamma"), ("Beta-numbers", "Beta")]


@pytest.mark.filterwarnings("ignore:Ambiguous")
@pytest.mark.parametrize(("a", "b"), pairs_with_formulas())
def test_divergence(a, b):
    (p, theirs_p), (q, theirs_q) = both(a), both(b)
    try:
        expected = O.kl_divergence(theirs_p, theirs_q)
    except Exception as error:  # shapes that don't fit, counts that can't be compared
        with pytest.raises((type(error), RuntimeError, ValueError, NotImplementedError)):
            D.kl_divergence(p, q)
        return
    agree(D.kl_divergence(p, q), expected, rtol=1e-3, atol=1e-4)


TRANSFORMS = {
    "abs": lambda t, d: d.AbsTransform(),
    "affine": lambda t, d: d.AffineTransform(1.0, t.tensor([2.0, -3.0, 0.5])),
    "affine-event": lambda t, d: d.AffineTransform(1.0, -2.0, event_dim=1),
    "cat": lambda t, d: d.CatTransform([d.ExpTransform(), d.AffineTransform(0.0, 2.0)], -1, [1, 2]),
    "compose": lambda t, d: d.ComposeTransform([d.TanhTransform(), d.AffineTransform(0.0, 2.0)]),
    "corr_cholesky": lambda t, d: d.CorrCholeskyTransform(),
    "cumulative": lambda t, d: d.CumulativeDistributionTransform(d.Normal(0.0, 1.0)),
    "exp": lambda t, d: d.ExpTransform(),
    "independent": lambda t, d: d.IndependentTransform(d.ExpTransform(), 1),
    "power": lambda t, d: d.ComposeTransform([d.ExpTransform(), d.PowerTransform(t.tensor(2.0))]),
    "reshape": lambda t, d: d.ReshapeTransform((3,), (1, 3)),
    "sigmoid": lambda t, d: d.SigmoidTransform(),
    "softmax": lambda t, d: d.SoftmaxTransform(),
    "softplus": lambda t, d: d.SoftplusTransform(),
    "stack": lambda t, d: d.StackTransform([d.ExpTransform(), d.TanhTransform(), d.SigmoidTransform()], -1),
    "stick_breaking": lambda t, d: d.StickBreakingTransform(),
    "tanh": lambda t, d: d.TanhTransform(cache_size=1),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transform(name):
    ours, theirs = TRANSFORMS[name](rushlight, D), TRANSFORMS[name](oracle, O)
    values = [[0.3, -0.7, 1.1], [-0.2, 0.4, 0.9]]
    x, theirs_x = rushlight.tensor(values), oracle.tensor(values)
    y, theirs_y = ours(x), theirs(theirs_x)
    agree(y, theirs_y)
    assert tuple(ours.forward_shape(x.shape)) == tuple(theirs.forward_shape(theirs_x.shape))
    agree(ours.inv(y), theirs.inv(theirs_y), atol=1e-4)
    agree(
        outcome(lambda: ours.log_abs_det_jacobian(x, y)),
        outcome(lambda: theirs.log_abs_det_jacobian(theirs_x, theirs_y)),
    )
    assert ours.bijective == theirs.bijective
    assert repr(ours.domain) == repr(theirs.domain)
    assert repr(ours.codomain) == repr(theirs.codomain)
    assert repr(ours) == repr(theirs)
    assert ours.inv.inv is ours
    assert ours == TRANSFORMS[name](rushlight, D) or theirs != TRANSFORMS[name](oracle, O)


REGISTERED = [
    *itertools.product(["biject_to"], ["real", "positive", "unit_interval", "simplex", "real_vector"]),
    *itertools.product(["transform_to"], ["simplex", "lower_cholesky", "positive_definite", "real_vector"]),
]


@pytest.mark.parametrize(("registry", "constraint"), REGISTERED)
def test_registry_reaches_the_constraint(registry, constraint):
    target = getattr(D.constraints, constraint)
    transform = getattr(D, registry)(target)
    rushlight.manual_seed(0)
    y = transform(rushlight.randn(4, 3, 3))
    assert target.check(y).all()
    agree(y, getattr(O, registry)(getattr(O.constraints, constraint))(seeded_normals()), atol=1e-4)


def seeded_normals():
    oracle.manual_seed(0)
    return oracle.randn(4, 3, 3)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda d, t: d.Normal(t.zeros(2), t.tensor([1.0, -1.0])), "Expected parameter scale"),
        (lambda d, t: d.Normal(0.0, 1.0).log_prob(t.tensor(float("nan"))), "within the support"),
        (lambda d, t: d.Categorical(), "Either `probs` or `logits` must be specified, but not both"),
        (lambda d, t: d.Bernoulli(t.tensor(0.5), t.tensor(0.0)), "Either `probs` or `logits`"),
        (lambda d, t: d.Dirichlet(t.tensor(1.0)), "at least one-dimensional"),
        (lambda d, t: d.MultivariateNormal(t.zeros(2)), "Exactly one of"),
        (lambda d, t: d.Independent(d.Normal(0.0, 1.0), 1), "Expected reinterpreted_batch_ndims"),
        (lambda d, t: d.Categorical(t.ones(3)).log_prob(t.tensor(5)), "within the support"),
        (lambda d, t: d.Normal(t.zeros(2), 1.0).log_prob(t.zeros(3)), "not broadcastable"),
        (lambda d, t: d.Normal("a", 1.0), "Input arguments must all be instances of Number"),
    ],
)
def test_bad_arguments(make, words, monkeypatch):
    # PyTorch's compiler, which other tests use in this process, turns its checks off for good.
    monkeypatch.setattr(O.Distribution, "_validate_args", True)
    with pytest.raises(ValueError, match="(?s)" + words.replace("(", r"\(")):
        make(D, rushlight)
    with pytest.raises(ValueError, match="(?s)" + words.replace("(", r"\(")):
        make(O, oracle)


def test_unknown_divergence_and_own_registration():
    class Mine(D.Normal):
        pass

    with pytest.raises(NotImplementedError, match="p type Normal and q type VonMises"):
        D.kl_divergence(D.Normal(0.0, 1.0), D.VonMises(rushlight.tensor(0.0), rushlight.tensor(1.0)))
    assert D.kl_divergence(Mine(0.0, 1.0), Mine(0.0, 1.0)).item() == 0

    @D.register_kl(Mine, Mine)
    def mine(p, q):
        return rushlight.tensor(7.0)

    try:
        assert D.kl_divergence(Mine(0.0, 1.0), Mine(0.0, 1.0)).item() == 7
    finally:
        del D.kl._KL_REGISTRY[Mine, Mine]
        D.kl._KL_MEMOIZE.clear()


def test_parameters_that_need_no_broadcast_are_the_given_ones():
    for lib in (rushlight, pytest.importorskip("torch")):
        whole, row = lib.ones(2, 3, requires_grad=True), lib.ones(3, requires_grad=True)
        found = lib.broadcast_tensors(whole, row)
        assert found[0] is whole and found[1] is not row
        normal = lib.distributions.Normal(lib.tensor(1.0, requires_grad=True), lib.tensor(2.0))
        normal.rsample((3,)).sum().backward()
        assert normal.loc.grad.item() == 3.0

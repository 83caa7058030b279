"""Special functions."""

from rushlight import _C

__capture__ = "through"  # Note [Capture marks]

globals().update({name: f for name, f in vars(_C._special).items() if not name.startswith("__")})
TYPE_CHECKING = False
if TYPE_CHECKING:  # the same names, for type checkers
    from rushlight._C._special import *  # noqa: F403
__all__ = sorted(name for name in vars(_C._special) if not name.startswith("_"))

# The names under which the top namespace has the same functions.
_ALIASES = {
    "digamma": "digamma",
    "erf": "erf",
    "erfc": "erfc",
    "erfinv": "erfinv",
    "exp2": "exp2",
    "expit": "sigmoid",
    "expm1": "expm1",
    "gammainc": "igamma",
    "gammaincc": "igammac",
    "gammaln": "lgamma",
    "i0": "i0",
    "log1p": "log1p",
    "log_softmax": "log_softmax",
    "logit": "logit",
    "logsumexp": "logsumexp",
    "multigammaln": "mvlgamma",
    "polygamma": "polygamma",
    "psi": "digamma",
    "round": "round",
    "sinc": "sinc",
    "softmax": "softmax",
    "xlogy": "xlogy",
}
for _name, _source in _ALIASES.items():
    if _name not in globals() and hasattr(_C._VariableFunctions, _source):
        globals()[_name] = getattr(_C._VariableFunctions, _source)
        __all__.append(_name)

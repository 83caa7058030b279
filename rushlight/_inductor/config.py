"""Settings of the default back end. Those of PyTorch's code generator may be set, without effect: they stand
in settings.txt."""

import ast
import pathlib
import sys

from rushlight.utils._config_module import install_config_module

TYPE_CHECKING = False
if TYPE_CHECKING:  # what `install_config_module` gives
    from typing import Any

    patch: Any
    get_config_copy: Any
    get_type: Any

measure = True  # compare the first calls with running the program itself, and keep what is faster
force_disable_caches = False  # keep nothing on disk
freezing = True  # without gradients, compute what depends on parameters alone once until they are written to
pack_products = True  # matrices that products share are laid out beforehand; the same holds
batch_products = True  # small products by one matrix become one, whose last digits may differ


class triton:  # noqa: N801 - PyTorch's name
    """Settings of kernels that PyTorch generates."""

    cudagraphs = False


_own = {name for name, value in vars().items() if type(value) is bool} - {"TYPE_CHECKING"}
EFFECTIVE = frozenset(_own | {"triton.cudagraphs"})
del _own


def _of_the_code_generator():
    for line in pathlib.Path(__file__).with_name("settings.txt").read_text().splitlines():
        if line.startswith("#"):
            continue
        value, _, names = line.partition(" | ")
        fixed = not value.endswith(" ?")
        default = ast.literal_eval(value if fixed else value[:-2])
        for name in names.split():
            yield name, default, type(default) if fixed else object


install_config_module(sys.modules[__name__], more=_of_the_code_generator())

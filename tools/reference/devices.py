"""The page cuda_operators.md: where each operator is computed for CUDA tensors."""

from collections import defaultdict

# The library that computes an operator on CUDA; all others are loops of our own.
_LIBRARIES = {
    "cuBLAS": "mm bmm mv dot vdot baddbmm",
    "cuBLAS, cuBLASLt": "addmm",
    "cuDNN, or our loops and cuBLAS": "convolution _conv_input_gradient _conv_weight_gradient",
    "cuFFT": "_fft_c2c _fft_r2c _fft_c2r",
    "cuSOLVER, cuBLAS": "lu_factor_ex lu_solve _linalg_solve_ex inv_ex _linalg_det _linalg_slogdet"
    " solve_triangular triangular_solve cholesky_ex cholesky_solve cholesky_inverse geqrf householder_product"
    " ormqr _linalg_eigh _linalg_svd eig _linalg_eigvals ldl_factor_ex ldl_solve",
    "CUB": "sort argsort mode _unique2 randperm",
    "our own tiles; cuBLAS above a width of 128": (
        "_scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_flash_attention_for_cpu_backward"
        " _scaled_dot_product_efficient_attention _scaled_dot_product_efficient_attention_backward"
    ),
}
_BY_OPERATOR = {name: library for library, names in _LIBRARIES.items() for name in names.split()}

_STATES = {
    "device": "computed on the device",
    "view": "a view: nothing is computed",
    "composite": "made of other operators, wherever those are computed",
    "cpu": "computed on the CPU, with copies there and back and a warning",
}

_HEAD = """# Operators on CUDA

Printed from the operator table when the site is built. [CUDA](cuda.md) says what of it has run where.
`RUSHLIGHT_CUDA_FALLBACK=error` refuses what would run on the CPU, `=silent` does not warn.
"""


def state(record):
    """device, view, composite or cpu."""
    if record["family"] in ("composite", "view"):
        return record["family"]
    return "device" if record["traits"].devices else "cpu"


def states(records):
    """The names of the operators by state, then by family."""
    found = {name: defaultdict(set) for name in _STATES}
    for record in records:
        found[state(record)][record["family"]].add(record["name"])
    return found


def page(records):
    found = states(records)
    lines = [_HEAD, "| where | operators |", "|---|---|"]
    for name, text in _STATES.items():
        lines.append(f"| {text} | {sum(map(len, found[name].values()))} |")
    lines += ["", "## By NVIDIA's libraries", "", "| library | operators |", "|---|---|"]
    on_device = set().union(*found["device"].values())
    for library, names in _LIBRARIES.items():
        lines.append(f"| {library} | {_names(set(names.split()) & on_device)} |")
    for name, text in _STATES.items():
        lines += ["", f"## {text[0].upper()}{text[1:]}", "", "| family | operators |", "|---|---|"]
        for family in sorted(found[name]):
            own = found[name][family] - _BY_OPERATOR.keys()
            lines += [f"| {family} | {_names(own)} |"] if own else []
    return "\n".join(lines) + "\n"


def _names(names):
    return " ".join(f"`{name}`" for name in sorted(names))

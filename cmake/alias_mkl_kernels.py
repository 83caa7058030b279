"""Writes C++ that lets some of MKL's kernels be others that do the same: ``NM libmkl_core.a OUT``.

MKL has each kernel for AVX-512, AVX2, SSE 4.2 (`mc3`) and any x86-64 (`def`), and has the last once more with
the same results on every machine (`cnr_def`, for MKL_CBWR=COMPATIBLE). Processors with SSE 4.2 and without
AVX2 are from before 2013; for them and for that mode the wheel would be 6 MB larger. `mkl_blas_mc3_x` and
`mkl_blas_cnr_def_x` become jumps to `mkl_blas_def_x`, which the same table of MKL's names.

Some kernels are there twice on one processor. `mkl_blas_avx512_x_cnr`, for MKL_CBWR=AVX512, is the code of
`mkl_blas_avx512_x`, byte for byte. Of products `..._kernel_nocopy_NN_b1` adds to what is there, whatever beta
it is given, and `..._bn` to beta times that: with 1 in its place each result is the same to the last bit.

Both names of a jump are weak: kernels that nothing asks for stay in the archive, and one that has no such
counterpart comes from there with all it needs.
"""

import re
import subprocess
import sys

JUMP = """\
.section .text.{name},"ax",@progbits
.weak {name}
.hidden {name}
.type {name}, @function
{name}: {before}jmp {target}
.size {name}, .-{name}
.weak {target}
.hidden {target}
"""


# Their ninth argument, the third that lies on the stack, points to beta.
WITH_BETA_ONE = "lea .Lone_{kind}(%rip), %rax\nmov %rax, 24(%rsp)\n"
ONES = """\
.section .rodata
.balign 8
.Lone_d: .double 1
.Lone_s: .float 1
"""
# Names of kernels that have a counterpart: a pattern, the counterpart's name, what comes before the jump, and
# how many there are at least.
COUNTERPARTS = (
    (r"_mc3_", "_def_", "", 200),
    (r"_cnr_def_", "_def_", "", 200),
    (r"(_avx512_\w+)_cnr$", r"\1", "", 100),
    (r"(_dgemm_kernel_nocopy_[NT]{2})_b1$", r"\1_bn", WITH_BETA_ONE.format(kind="d"), 8),
    (r"(_sgemm_kernel_nocopy_[NT]{2})_b1$", r"\1_bn", WITH_BETA_ONE.format(kind="s"), 8),
)


def main(nm, archive, out):
    listed = subprocess.run([nm, "-g", "--defined-only", archive], capture_output=True, text=True).stdout
    functions = set(re.findall(r" T (mkl_\w+)$", listed, re.MULTILINE))
    jumps = []
    for pattern, replacement, before, least in COUNTERPARTS:
        names = sorted(name for name in functions if re.search(pattern, name))
        pairs = [(name, re.sub(pattern, replacement, name, count=1)) for name in names]
        found = [
            JUMP.format(name=name, before=before, target=target)
            for name, target in pairs
            if target in functions
        ]
        if len(found) < least:
            sys.exit(
                f"{archive} has {len(found)} kernels named {pattern}: see whether this version of MKL names "
                "them otherwise"
            )
        jumps += found
    with open(out, "w") as file:
        file.write('asm(R"(\n' + ONES + "".join(jumps) + '.text\n)");\n')


if __name__ == "__main__":
    main(*sys.argv[1:])

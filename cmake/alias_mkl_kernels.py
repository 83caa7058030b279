"""Writes C++ that lets some of MKL's kernels be those for any x86-64: ``NM libmkl_core.a OUT``.

MKL has each kernel for AVX-512, AVX2, SSE 4.2 (`mc3`) and any x86-64 (`def`), and has the last once more with
the same results on every machine (`cnr_def`, for MKL_CBWR=COMPATIBLE). Processors with SSE 4.2 and without
AVX2 are from before 2013; for them and for that mode the wheel would be 6 MB larger. `mkl_blas_mc3_x` and
`mkl_blas_cnr_def_x` become jumps to `mkl_blas_def_x`, which the same table of MKL's names. Both names are
weak: kernels that nothing asks for stay in the archive, and one that has no such counterpart comes from there
with all it needs.
"""

import re
import subprocess
import sys

JUMP = """\
.section .text.{name},"ax",@progbits
.weak {name}
.hidden {name}
.type {name}, @function
{name}: jmp {target}
.size {name}, .-{name}
.weak {target}
.hidden {target}
"""


def main(nm, archive, out):
    listed = subprocess.run([nm, "-g", "--defined-only", archive], capture_output=True, text=True).stdout
    functions = set(re.findall(r" T (mkl_\w+)$", listed, re.MULTILINE))
    jumps = []
    for kind in ("_mc3_", "_cnr_def_"):
        names = sorted(name for name in functions if kind in name)
        pairs = [(name, name.replace(kind, "_def_", 1)) for name in names]
        found = [JUMP.format(name=name, target=target) for name, target in pairs if target in functions]
        if not found:
            sys.exit(
                f"{archive} has no kernels named {kind}: see whether this version of MKL names them otherwise"
            )
        jumps += found
    with open(out, "w") as file:
        file.write('asm(R"(\n' + "".join(jumps) + '.text\n)");\n')


if __name__ == "__main__":
    main(*sys.argv[1:])

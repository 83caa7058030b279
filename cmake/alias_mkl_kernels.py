"""Writes C++ that lets MKL's kernels for SSE 4.2 be those for any x86-64: ``NM libmkl_core.a OUT``.

MKL has each kernel for five instruction sets. Processors with SSE 4.2 and without AVX2 are from before
2013; for them the wheel would be 5 MB larger. `mkl_blas_mc3_x` becomes a jump to `mkl_blas_def_x`, which
the same table of MKL's names. Both names are weak: kernels that nothing asks for stay in the archive, and
one that only SSE 4.2 has comes from there with all it needs.
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
    pairs = [(name, name.replace("_mc3_", "_def_", 1)) for name in sorted(functions) if "_mc3_" in name]
    jumps = [JUMP.format(name=name, target=target) for name, target in pairs if target in functions]
    if not jumps:
        sys.exit(
            f"{archive} has no kernels for SSE 4.2: see whether this version of MKL names them otherwise"
        )
    with open(out, "w") as file:
        file.write('asm(R"(\n' + "".join(jumps) + '.text\n)");\n')


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Graphs of forward and backward passes, for programs that compile them."""

from rushlight._functorch import config
from rushlight._functorch.aot_autograd import (
    aot_function,
    aot_module,
    aot_module_simplified,
    compiled_function,
    compiled_module,
    get_aot_compilation_context,
    get_aot_graph_name,
    get_graph_being_compiled,
    make_boxed_compiler,
    make_boxed_func,
)
from rushlight._functorch.compilers import (
    debug_compile,
    default_decompositions,
    draw_graph_compile,
    memory_efficient_fusion,
    nop,
    print_compile,
    ts_compile,
)
from rushlight._functorch.fx_minifier import minifier
from rushlight._functorch.partitioners import (
    default_partition,
    draw_graph,
    min_cut_rematerialization_partition,
)

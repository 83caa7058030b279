// Passes: each takes a graph to one that computes the same. They know of aliases and of writes (jit/alias.h).
#pragma once
#include "jit/graph.h"

namespace rushlight::jit {

// Writes to memory that nobody else sees become new values: relu_ becomes relu.
void functionalize(Graph& graph);
// Leaves out what no output depends on.
void eliminate_dead_code(Graph& graph);
// Computes what is computed twice once.
void eliminate_common_subexpressions(Graph& graph);
// Takes steps between floats and integers into the layers they surround, and quantised tensors for plain
// integers; what rounds within a layer does so once.
void fuse_quantized(Graph& graph, Constants& constants);
// Computes now what depends on constants alone, unless that takes more memory than it saves. Results become
// constants named after their values.
void fold_constants(Graph& graph, Constants& constants);
// Takes a normalisation by stored statistics into the convolution before it.
void fold_batch_norm(Graph& graph, Constants& constants);
// Sums and bounds that follow a convolution of images become a part of it. For graphs that are run without
// gradients; files keep what was written.
void fuse_convolutions(Graph& graph);
// Operators that give positions besides, which nobody takes, give their values alone. Likewise.
void leave_out_positions(Graph& graph);
// The same as for convolutions, for sums that follow those of integers.
void fuse_quantized_sums(Graph& graph);
// The types of all values, found by running the graph without data at the symbols' example sizes, and again
// at others. Values whose sizes follow no rule, and those after an operator that needs data, stay unknown.
void propagate_shapes(Graph& graph, const Constants& constants);

// All of it for inference: afterwards `constants` holds what the graph still reads.
void optimize(Graph& graph, Constants& constants);

}  // namespace rushlight::jit

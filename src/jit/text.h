// The text of a graph.
//
//   rushlight graph 1
//   symbol N = 8 in [1, inf]
//   graph(%x: float32[N, 3, 224, 224]) {
//     %w: float32[64, 3, 7, 7] = constant("conv1.weight")
//     %seen: int64[] = state("seen")
//     %n: int = sym::size(%x, 0)
//     %1 = convolution(%x, %w, None, [2, 2], [3, 3], [1, 1], False, [0, 0], 1)  # model.py, line 12
//     %values, _ = topk(%1, 5, largest=True)
//     return (values: %values)
//   }
//
// A node is `results = name(arguments)`: a record of the operator table as [space::]name[.overload] (with an
// underscore at the name's end: in place), `constant`, `state`, or arithmetic of sizes: sym::size, add, sub,
// mul, floordiv, max and min. Arguments are positional, then by name; those left out take the schema's
// defaults.
// `_` drops a result. Types of inputs and constants are checked when the graph runs, those of other values
// inform. A comment after a node tells where it comes from.
#pragma once
#include "jit/graph.h"

namespace rushlight::jit {

inline constexpr int kTextVersion = 1;

// Reads a graph and checks it against the schemas. Any text gives a graph or one ValueError that names the
// line.
Graph parse_graph(std::string_view text);

// Text from which parse_graph makes the same graph.
std::string print_graph(const Graph& graph);

// A string as the text writes it.
std::string quoted(std::string_view s);

}  // namespace rushlight::jit

// Operators of functions that are graphs, as models of one file hold them: loops and scans.
#pragma once
#include <memory>

#include "dispatch/op.h"

namespace rushlight::ops {

class GraphFunction {
 public:
  virtual ~GraphFunction() = default;
  virtual std::vector<Tensor> run(std::vector<Tensor> inputs) = 0;
};
// Makes a function of the text of a graph. What runs graphs is above this folder and puts its own here.
using GraphReader = std::shared_ptr<GraphFunction> (*)(std::string_view text);
inline GraphReader read_graph = nullptr;

// While condition(*carried, *given) gives true, carried = body(*carried, *given); the last one.
inline Fn<std::vector<Tensor>(std::string_view condition, std::string_view body, TensorList carried,
                              TensorList given)>
    loop_graph;
// carried, results = function(*carried, *row of each, *given) for all rows; the last `carried`, and the
// results stacked.
inline Fn<std::vector<Tensor>(std::string_view function, TensorList carried, TensorList rows,
                              TensorList given)>
    scan_graph;
// What the graph `one` gives if `truth` is true, else what `other` gives.
inline Fn<std::vector<Tensor>(const Tensor& truth, std::string_view one, std::string_view other,
                              TensorList given)>
    choose_graph;

}  // namespace rushlight::ops

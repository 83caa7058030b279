// Models in one file, run without Python: load, look at inputs and outputs, run. Any number of threads may
// run one model at a time. Files are made by rushlight.export.save (docs/one_file.md).
#pragma once
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/tensor.h"

namespace rushlight::runtime {

// What an input must be, or an output will be.
struct TensorInfo {
  std::string name;
  DType dtype = DType::Float32;
  bool has_sizes = false;
  std::vector<int64_t> sizes;  // -1 where callers choose
  std::string type;            // as messages show it: "float32[N, 3, 224, 224]"
};

class Model {
 public:
  // Weights are read where they lie in the file, which must not change while the model lives.
  static Model load(const std::string& path);

  const std::vector<TensorInfo>& inputs() const;
  const std::vector<TensorInfo>& outputs() const;

  // In the order of inputs() and outputs().
  std::vector<Tensor> run(const std::vector<Tensor>& inputs) const;
  // By name.
  std::unordered_map<std::string, Tensor> run(const std::unordered_map<std::string, Tensor>& inputs) const;

 private:
  struct State;
  explicit Model(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

}  // namespace rushlight::runtime

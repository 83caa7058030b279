// Models in one file, run without Python: load, look at inputs and outputs, run. Any number of threads may
// run one model at a time. Files are made by rushlight.export.save (docs/one_file.md).
#pragma once
#include <memory>
#include <span>
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

class Session;

class Model {
 public:
  // Weights are read where they lie in the file, which must not change while the model lives.
  static Model load(const std::string& path);
  // The same of a file that is in memory, at a multiple of 64, for as long as `owner` lives. The model keeps
  // it.
  static Model load(std::span<const std::byte> bytes, std::shared_ptr<const void> owner);

  // A model that was saved as one module has one method, "forward".
  const std::vector<std::string>& methods() const;
  const std::vector<TensorInfo>& inputs() const { return inputs(methods()[0]); }
  const std::vector<TensorInfo>& outputs() const { return outputs(methods()[0]); }
  const std::vector<TensorInfo>& inputs(const std::string& method) const;
  const std::vector<TensorInfo>& outputs(const std::string& method) const;
  // What methods write to; such a model runs in sessions.
  const std::vector<TensorInfo>& state() const;
  // A text that goes with the model, such as "tokenizer.json"; null if there is none.
  const std::string* text(const std::string& name) const;

  // In the order of inputs() and outputs().
  std::vector<Tensor> run(const std::vector<Tensor>& inputs) const { return run(methods()[0], inputs); }
  std::vector<Tensor> run(const std::string& method, const std::vector<Tensor>& inputs) const;
  // By name.
  std::unordered_map<std::string, Tensor> run(const std::unordered_map<std::string, Tensor>& inputs) const {
    return run(methods()[0], inputs);
  }
  std::unordered_map<std::string, Tensor> run(const std::string& method,
                                              const std::unordered_map<std::string, Tensor>& inputs) const;

 private:
  friend Session;
  struct State;
  explicit Model(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

// The state of one conversation, say: methods write to it, and later runs see that. A session runs one method
// at a time; threads that share one wait for each other. After a run that failed the state is as far as that
// came: reset it.
class Session {
 public:
  explicit Session(const Model& model);
  // State of `rows` instead of the file's along its first dimension, for methods that take any, such as those
  // of language models: it must begin as zeros.
  Session(const Model& model, int64_t rows);

  const Model& model() const;
  std::vector<Tensor> run(const std::string& method, const std::vector<Tensor>& inputs);
  std::unordered_map<std::string, Tensor> run(const std::string& method,
                                              const std::unordered_map<std::string, Tensor>& inputs);
  void reset();           // to what the file holds
  Session clone() const;  // goes on from here by itself
  size_t nbytes() const;  // of the state, which never grows
  // The session's own memory: what is written to it is seen by the next run.
  Tensor state(const std::string& name) const;

 private:
  struct Data;
  explicit Session(std::shared_ptr<Data> data) : data_(std::move(data)) {}
  std::shared_ptr<Data> data_;
};

}  // namespace rushlight::runtime

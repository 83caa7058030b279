// Note [Prepared weights]
// Convolutions and products want their weights in an order of their own. Models of one file have them put in
// order once, since they cannot change (constant_memory.h). An eager program's may, so what kernels make of a
// weight is kept only while its storage lives and nobody writes to it, counted or not (write_watch.h), and
// not before it was read a few times without a write: in training every step writes. Memory that others can
// write to without notice (NumPy's, another process's, a file's) is left alone. All that is kept has a bound;
// what was not used for longest goes first.
#pragma once
#include <memory>
#include <optional>

#include "core/constant_memory.h"
#include "core/tensor.h"

namespace rushlight {

// For the length of a kernel, its weight is constant memory if it may be. Undefined tensors may be given.
class PreparedWeight {
 public:
  explicit PreparedWeight(const Tensor& weight);
  ~PreparedWeight();
  PreparedWeight(const PreparedWeight&) = delete;

 private:
  struct Contents;
  class Registry;
  friend void forget_prepared(StorageImpl& storage);
  friend size_t prepared_bytes();
  void use(const Tensor& weight);

  std::shared_ptr<Contents> contents_;
  std::optional<UseConstants> use_;
};

// Called as a storage with prepared contents dies.
void forget_prepared(StorageImpl& storage);
// How much is kept now; for tests.
size_t prepared_bytes();

}  // namespace rushlight

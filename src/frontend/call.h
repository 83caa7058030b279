// How the printed functions reach the gate: by the record's name, with boxed arguments.
#pragma once
#include "dispatch/op.h"
#include "rushlight/types.h"

namespace rushlight::frontend {

// The record of "add.Tensor" or "linalg::inv"; the table is filled when it is first asked.
const Op& find_operator(std::string_view name);

template <class R>
[[gnu::noinline]] R call(const Op& op, const Value* values) {
  Results results;
  call_boxed(op, values, results);
  if constexpr (!std::is_void_v<R>) return rushlight::detail::Rebox<R>::take(results);
}
extern template Tensor call<Tensor>(const Op&, const Value*);
extern template std::vector<Tensor> call<std::vector<Tensor>>(const Op&, const Value*);

// The in-place form of an operator, and one that writes to its first operand by its schema.
Tensor& call_inplace(const Op& op, const Value* values, const Tensor& self);
Tensor& call_writing(const Op& op, const Value* values, const Tensor& self);
Tensor& call_out(const Op& op, const Value* values, Tensor& out);
void call_outs(const Op& op, const Value* values, const Tensor* outs);

// What a factory made, as the options ask.
Tensor made(Tensor result, const TensorOptions& options);

// A parameter int[2]: one number stands for two of them.
class ListOf {
 public:
  ListOf(IntArrayRef given, int length) : given_(given) { repeat(length); }
  ListOf(const OptionalIntArrayRef& given, int length) : none_(!given.has_value()) {
    if (!none_) given_ = given.value(), repeat(length);
  }
  Value value() const { return none_ ? Value() : Value(given_); }

 private:
  void repeat(int length) {
    if (given_.size() != 1) return;
    repeated_.resize(static_cast<size_t>(length), given_[0]);
    given_ = repeated_;
  }
  IntArrayRef given_;
  Dims repeated_;
  bool none_ = false;
};

inline Value floats(const ArrayRef<double>& list) { return Value(FloatList(list.data(), list.size())); }
inline Value floats(const std::optional<ArrayRef<double>>& list) { return list ? floats(*list) : Value(); }
inline const Value& default_of(const Op& op, size_t i) { return op.schema.parameters[i].default_value; }

}  // namespace rushlight::frontend

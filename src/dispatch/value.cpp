#include "dispatch/value.h"

#include <cstring>

namespace rushlight {

Scalar Value::scalar() const {
  switch (tag_) {
    case Tag::Scalar:
      return scalar_;
    case Tag::Int:
      return Scalar(int_);
    case Tag::Float:
      return Scalar(float_);
    case Tag::Bool:
      return Scalar(int_ != 0);
    default:
      RL_ASSERT(false, "not a number");
      return Scalar();
  }
}

OwnedValue::OwnedValue(const Value& borrowed) : plain_(borrowed) {
  auto keep_bytes = [&](const void* data, size_t n) {
    const auto* first = static_cast<const std::byte*>(data);
    bytes_.assign(first, first + n);
  };
  switch (borrowed.tag()) {
    case Tag::Tensor:
      tensors_.push_back(borrowed.tensor());
      break;
    case Tag::TensorList:
      tensors_.assign(borrowed.tensors().begin(), borrowed.tensors().end());
      break;
    case Tag::IntList:
      keep_bytes(borrowed.ints().data(), borrowed.ints().size() * sizeof(int64_t));
      break;
    case Tag::FloatList:
      keep_bytes(borrowed.floats().data(), borrowed.floats().size_bytes());
      break;
    case Tag::ScalarList:
      keep_bytes(borrowed.scalars().data(), borrowed.scalars().size_bytes());
      break;
    case Tag::BoolList:
      keep_bytes(borrowed.bools().data(), borrowed.bools().size_bytes());
      break;
    case Tag::String:
      keep_bytes(borrowed.string().data(), borrowed.string().size());
      break;
    default:
      break;
  }
}

Value OwnedValue::get() const {
  const void* data = bytes_.data();
  switch (plain_.tag()) {
    case Tag::Tensor:
      return Value(tensors_[0]);
    case Tag::TensorList:
      return Value(TensorList(tensors_));
    case Tag::IntList:
      return Value(IntList(static_cast<const int64_t*>(data), bytes_.size() / sizeof(int64_t)));
    case Tag::FloatList:
      return Value(FloatList(static_cast<const double*>(data), bytes_.size() / sizeof(double)));
    case Tag::ScalarList:
      return Value(ScalarList(static_cast<const Scalar*>(data), bytes_.size() / sizeof(Scalar)));
    case Tag::BoolList:
      return Value(std::span<const bool>(static_cast<const bool*>(data), bytes_.size()));
    case Tag::String:
      return Value(std::string_view(static_cast<const char*>(data), bytes_.size()));
    default:
      return plain_;
  }
}

}  // namespace rushlight

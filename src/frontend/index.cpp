// x.index({...}) and x.index_put_({...}, value), step by step with the operators of views.
#include "rushlight/index.h"

#include <cstring>
#include <ostream>

#include "ops/copy.h"
#include "ops/index.h"
#include "ops/view.h"
#include "rushlight/tensor.h"

namespace rushlight {

TensorIndex::TensorIndex(const char* text) : kind_(Kind::Ellipsis) {
  RL_CHECK_VALUE(std::strcmp(text, "...") == 0, "Expected \"...\" to represent an ellipsis index, but got \"",
                 text, "\"");
}

namespace {

using indexing::Slice;

bool is_mask(const Tensor& t) { return t.dtype() == DType::Bool || t.dtype() == DType::UInt8; }

int64_t dims_consumed(const TensorIndex& i) {
  if (i.is_integer() || i.is_slice()) return 1;
  if (!i.is_tensor()) return 0;
  return is_mask(i.tensor()) ? i.tensor().dim() : 1;
}

// The view that the basic indices ask for, and a tensor (or nothing) per dimension of it.
struct Indexed {
  Tensor view;
  std::vector<Tensor> tensors;
  bool any_tensor = false;
  int64_t covered = 0;  // dimensions that `tensors` stand for; a mask stands for several
};

void add_tensor(Indexed& x, int64_t& dim, const Tensor& t) {
  RL_CHECK_INDEX(is_integral_or_bool(t.dtype()),
                 "tensors used as indices must be long, int, byte or bool tensors");
  for (; x.covered < dim; ++x.covered) x.tensors.emplace_back();
  x.tensors.push_back(t);
  x.any_tensor = true;
  const int64_t consumed = is_mask(t) ? t.dim() : 1;
  x.covered += consumed;
  dim += consumed;
}

void add_bool(Indexed& x, int64_t& dim, bool value) {
  x.view = ops::unsqueeze(x.view, dim);
  Tensor positions = empty_tensor({value ? 1 : 0}, DType::Int64);
  if (value) *positions.data<int64_t>() = 0;
  add_tensor(x, dim, positions);
}

Tensor sliced(const Tensor& t, int64_t dim, const Slice& s) {
  RL_CHECK_VALUE(s.step() != 0, "step must be nonzero");
  RL_CHECK_VALUE(s.step() > 0, "step must be greater than zero");
  if (s.start() == 0 && s.stop() == indexing::INDEX_MAX && s.step() == 1) return t;
  return ops::slice(t, dim, s.start(), s.stop(), s.step());
}

Indexed apply(const Tensor& t, ArrayRef<TensorIndex> indices) {
  Indexed x{t, {}};
  int64_t specified = 0, dim = 0;
  for (const TensorIndex& i : indices) specified += dims_consumed(i);
  RL_CHECK_INDEX(specified <= t.dim(), "too many indices for tensor of dimension ", t.dim());
  for (const TensorIndex& i : indices) switch (i.kind()) {
      case TensorIndex::Kind::None:
        x.view = ops::unsqueeze(x.view, dim++);
        break;
      case TensorIndex::Kind::Ellipsis:
        dim += t.dim() - specified;
        specified = t.dim();  // a second one stands for nothing
        break;
      case TensorIndex::Kind::Integer:
        x.view = ops::select(x.view, dim, i.integer());
        break;
      case TensorIndex::Kind::Boolean:
        add_bool(x, dim, i.boolean());
        break;
      case TensorIndex::Kind::Slice:
        x.view = sliced(x.view, dim++, i.slice());
        break;
      case TensorIndex::Kind::Tensor:
        if (i.tensor().dim() == 0 && is_mask(i.tensor()))
          add_bool(x, dim, i.tensor().item<bool>());
        else if (i.tensor().dim() == 0)
          x.view = ops::select(x.view, dim, i.tensor().item<int64_t>());
        else
          add_tensor(x, dim, i.tensor());
    }
  return x;
}

// Leading dimensions of size 1 that the target lacks go.
Tensor fitted(const Tensor& value, const Tensor& target, int64_t rank) {
  Tensor v = value;
  while (v.dim() > rank && v.size(0) == 1) v = ops::squeeze_dim(v, 0);
  return v.dtype() == target.dtype() ? v : v.to(target.dtype());
}

Tensor& assign(Tensor& self, ArrayRef<TensorIndex> indices, const Tensor& value) {
  Indexed x = apply(self, indices);
  if (x.any_tensor)
    x.view.index_put_(TensorList(x.tensors), fitted(value, x.view, 0));
  else
    ops::copy_(x.view, fitted(value, x.view, x.view.dim()), false);
  return self;
}

}  // namespace

Tensor Tensor::index(ArrayRef<TensorIndex> indices) const {
  RL_CHECK_INDEX(!indices.empty(), "Passing an empty index list to Tensor::index() is not valid syntax");
  Indexed x = apply(*this, indices);
  if (!x.any_tensor) return x.view.is_same(*this) ? ops::alias(*this) : x.view;
  return rushlight::index(x.view, TensorList(x.tensors));
}
Tensor Tensor::index(std::initializer_list<TensorIndex> indices) const {
  return index(ArrayRef<TensorIndex>(indices.begin(), indices.size()));
}
Tensor& Tensor::index_put_(ArrayRef<TensorIndex> indices, const Tensor& value) {
  return assign(*this, indices, value);
}
Tensor& Tensor::index_put_(ArrayRef<TensorIndex> indices, const Scalar& value) {
  return assign(*this, indices, scalar_tensor_of(value, dtype(), device()));
}
Tensor& Tensor::index_put_(std::initializer_list<TensorIndex> indices, const Tensor& value) {
  return index_put_(ArrayRef<TensorIndex>(indices.begin(), indices.size()), value);
}
Tensor& Tensor::index_put_(std::initializer_list<TensorIndex> indices, const Scalar& value) {
  return index_put_(ArrayRef<TensorIndex>(indices.begin(), indices.size()), value);
}
Tensor& Tensor::index_put_(TensorList indices, const Tensor& values, bool accumulate) const {
  Tensor& self = const_cast<Tensor&>(*this);
  return rushlight::index_put_(self, indices, values, accumulate);
}
Tensor Tensor::slice(int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end,
                     int64_t step) const {
  return ops::slice(*this, dim, start, end, step);
}
Tensor Tensor::operator[](int64_t index) const { return ops::select(*this, 0, index); }
Tensor Tensor::operator[](const Tensor& index) const { return this->index({TensorIndex(index)}); }
Tensor Tensor::operator[](const Scalar& index) const {
  RL_CHECK_INDEX(index.is_integral(), "Can only index tensors with integral scalars");
  return ops::select(*this, 0, index.to_int());
}

std::ostream& operator<<(std::ostream& out, const indexing::Slice& s) {
  return out << s.start() << ":" << s.stop() << ":" << s.step();
}
std::ostream& operator<<(std::ostream& out, const TensorIndex& i) {
  switch (i.kind()) {
    case TensorIndex::Kind::None:
      return out << "None";
    case TensorIndex::Kind::Ellipsis:
      return out << "...";
    case TensorIndex::Kind::Integer:
      return out << i.integer();
    case TensorIndex::Kind::Boolean:
      return out << (i.boolean() ? "true" : "false");
    case TensorIndex::Kind::Slice:
      return out << i.slice();
    default:
      return out << i.tensor();
  }
}
std::ostream& operator<<(std::ostream& out, const std::vector<TensorIndex>& indices) {
  out << "(";
  for (size_t i = 0; i < indices.size(); ++i) out << (i ? ", " : "") << indices[i];
  return out << ")";
}

}  // namespace rushlight

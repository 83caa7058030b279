#include "ops/complex.h"

#include <bit>
#include <cstring>

#include "core/parallel.h"
#include "core/pending.h"
#include "cpu/iterator.h"
#include "cpu/pointwise.h"
#include "ops/copy.h"
#include "ops/pointwise_family.h"
#include "ops/register.h"
#include "ops/view.h"
#include "ops/zeros_like.h"

namespace rushlight {
namespace {

using cpu::Formula;

// The real numbers inside complex storage: strides and offset count twice as many elements.
Tensor view_as_parts(const Tensor& self, IntList sizes, IntList strides, int64_t offset) {
  Tensor view = make_view(self, self.sizes(), self.strides(), self.storage_offset());
  view->dtype = real_dtype(self.dtype());
  view->offset = offset;
  view->set_layout(sizes, strides);
  return view;
}

Dims doubled(IntList strides) {
  Dims result = strides.dims();
  for (int64_t& s : result) s *= 2;
  return result;
}

Tensor view_as_real_kernel(const Call&, const Tensor& self) {
  RL_CHECK(is_complex(self.dtype()), "view_as_real is only supported for complex tensors");
  RL_CHECK(
      !(self->flags & kPendingConj),
      "view_as_real doesn't work on unresolved conjugated tensors.  To resolve the conjugate tensor so you "
      "can view it as real, use self.resolve_conj(); however, be warned that the resulting tensor will NOT "
      "alias the original.");
  Dims sizes = self->sizes, strides = doubled(self.strides());
  sizes.push_back(2);
  strides.push_back(1);
  return view_as_parts(self, sizes, strides, 2 * self.storage_offset());
}

Tensor view_as_complex_kernel(const Call&, const Tensor& self) {
  RL_CHECK(is_floating(self.dtype()) && self.dtype() != DType::BFloat16 && !is_float8(self.dtype()),
           "view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar "
           "type: ",
           legacy_name(self.dtype()));
  RL_CHECK(self.dim() > 0, "Input tensor must have one or more dimensions");
  RL_CHECK(self.size(-1) == 2, "Tensor must have a last dimension of size 2");
  RL_CHECK(self.stride(-1) == 1, "Tensor must have a last dimension with stride 1");
  Dims sizes = self->sizes, strides = self->strides;
  sizes.pop_back();
  strides.pop_back();
  for (int64_t& s : strides) {
    RL_CHECK(s % 2 == 0, "Tensor must have a stride divisible by 2 for all but last dimension");
    s /= 2;
  }
  RL_CHECK(self.storage_offset() % 2 == 0, "Tensor must have a storage_offset divisible by 2");
  Tensor view = make_view(self, self.sizes(), self.strides(), self.storage_offset());
  view->dtype = complex_dtype(self.dtype());
  view->offset = self.storage_offset() / 2;
  view->set_layout(sizes, strides);
  return view;
}

// A conjugate that is pending has the parts of what it is a view of, the imaginary one negated.
Tensor part_of(const Tensor& self, int64_t index) {
  if (!(self->flags & kPendingConj)) return ops::select(ops::view_as_real(self), -1, index);
  const Tensor part = part_of(turned_view(self, kPendingConj), index);
  return index ? turned_view(part, kPendingNeg) : part;
}
Tensor real_body(const Call&, const Tensor& self) {
  return is_complex(self.dtype()) ? part_of(self, 0) : self;
}
Tensor imag_body(const Call&, const Tensor& self) {
  RL_CHECK(is_complex(self.dtype()), "imag is not implemented for tensors with non-complex dtypes.");
  return part_of(self, 1);
}

Tensor conj_physical_kernel(const Call& call, const Tensor& self) {
  if (is_complex(self.dtype())) return pointwise::compute(call, Formula::Conj, self.dtype(), {&self});
  pointwise::check_same_out(call, self);
  return self;
}
template <uint32_t flag>
Tensor resolve_body(const Call&, const Tensor& self) {
  return self->flags & flag ? ops::clone(self) : self;
}
Tensor conj_body(const Call&, const Tensor& self) {
  return turned_view && is_complex(self.dtype()) ? turned_view(self, kPendingConj) : conj_of(self);
}

Tensor angle_kernel(const Call& call, const Tensor& self) {
  return pointwise::compute(call, Formula::Angle, pointwise::float_type(self.dtype()), {&self});
}

Grads angle_grads(const Tensor& g, const Tensor& z) {
  if (!is_complex(z.dtype())) return Grads{g * Scalar(0)};
  const Tensor re = ops::real(z), im = ops::imag(z), size = re * re + im * im;
  const Tensor a = where(eq(size, 0), 0, -im / size), b = where(eq(size, 0), 0, re / size);
  return Grads{g * ops::complex(a, b)};
}

void check_parts(std::string_view op, const Tensor& a, const Tensor& b) {
  RL_CHECK(is_floating(a.dtype()) && is_floating(b.dtype()) && !is_float8(a.dtype()) &&
               a.dtype() != DType::BFloat16,
           "Expected both inputs to be Half, Float or Double tensors but got ", legacy_name(a.dtype()),
           " and ", legacy_name(b.dtype()));
  RL_CHECK(a.dtype() == b.dtype(), "Expected object of scalar type ", legacy_name(a.dtype()),
           " but got scalar type ", legacy_name(b.dtype()), " for second argument of ", op);
}

void check_complex_out(const Call& call, const Tensor& part) {
  const DType wanted = complex_dtype(part.dtype());
  RL_CHECK(!call.out || call.out->dtype() == wanted, "Expected object of scalar type ", legacy_name(wanted),
           " but got scalar type ", call.out ? legacy_name(call.out->dtype()) : "", " for argument 'out'");
}

bool lies_plainly(const Tensor& t, IntList sizes) { return t.is_contiguous() && t.sizes() == sizes; }

void interleave(const Tensor& out, const Tensor& real, const Tensor& imag) {
  visit_dtype(TypeList<Half, float, double>{}, real.dtype(), "complex", [&](auto tag) {
    using T = decltype(tag);
    parallel_for(0, out.numel(), kGrainSize, [&](int64_t begin, int64_t end) {
      auto* to = static_cast<T*>(out.data_ptr()) + 2 * begin;
      const T *x = real.data<T>() + begin, *y = imag.data<T>() + begin;
      if constexpr (sizeof(T) <= 4 && std::endian::native == std::endian::little) {  // a number at a time
        using Part = std::conditional_t<sizeof(T) == 4, uint32_t, uint16_t>;
        using Whole = std::conditional_t<sizeof(T) == 4, uint64_t, uint32_t>;
        for (int64_t i = 0; i < end - begin; ++i) {
          const Whole number = std::bit_cast<Part>(x[i]) | static_cast<Whole>(std::bit_cast<Part>(y[i]))
                                                               << (8 * sizeof(T));
          std::memcpy(static_cast<void*>(to + 2 * i), &number, sizeof(Whole));
        }
        return;
      }
      for (int64_t i = 0; i < end - begin; ++i) to[2 * i] = x[i], to[2 * i + 1] = y[i];
    });
  });
}

Tensor complex_kernel(const Call& call, const Tensor& real, const Tensor& imag) {
  check_parts("complex", real, imag);
  check_complex_out(call, real);
  const Dims sizes = broadcast_shapes(real.sizes(), imag.sizes());
  const Tensor* const operands[] = {&real, &imag};
  const Dims strides = cpu::pointwise_strides(sizes, operands);
  const Tensor out = empty_strided_tensor(sizes, strides.empty() ? contiguous_strides(sizes) : strides,
                                          complex_dtype(real.dtype()), real.device());
  if (out.is_cpu() && out.is_contiguous() && lies_plainly(real, sizes) && lies_plainly(imag, sizes)) {
    interleave(out, real, imag);
    return out;
  }
  const Tensor parts = ops::view_as_real(out);
  copy_result(ops::select(parts, -1, 0), real, false);
  copy_result(ops::select(parts, -1, 1), imag, false);
  return out;
}

Tensor polar_body(const Call&, const Tensor& abs, const Tensor& angle) {
  check_parts("polar", abs, angle);
  return ops::complex(abs * ops::cos(angle), abs * ops::sin(angle));
}

}  // namespace

void register_complex_operators(Table& t) {
  t.op(ops::view_as_real, "view_as_real(Tensor(a) self) -> Tensor(a)", view_as_real_kernel)
      .family(Family::View)
      .function_only()
      .doc("The parts of complex numbers as a last dimension of size 2.")
      .batching(Batching::Dims)
      .derivative([](Grad g) { return ops::view_as_complex(ops::clone(g, MemoryFormat::Contiguous)); });
  t.op(ops::view_as_complex, "view_as_complex(Tensor(a) self) -> Tensor(a)", view_as_complex_kernel)
      .family(Family::View)
      .function_only()
      .doc("Complex numbers whose parts are the last dimension.")
      .batching(Batching::Dims)
      .autocast(Cast::Float, Cast::None)
      .derivative([](Grad g) { return ops::view_as_real(g); });
  t.composite(ops::real, "real(Tensor(a) self) -> Tensor(a)", real_body)
      .function_only()
      .doc("The real part, a view.")
      .elementwise();
  t.composite(ops::imag, "imag(Tensor(a) self) -> Tensor(a)", imag_body)
      .function_only()
      .doc("The imaginary part, a view.")
      .elementwise();
  t.op(ops::conj_physical, "conj_physical(Tensor self) -> Tensor", conj_physical_kernel)
      .family(Family::Pointwise)
      .inplace()
      .out()
      .doc("The complex conjugate.")
      .linear()
      .out_apart(kFirst)
      .may_return_input()
      .derivative([](Grad g) { return conj_of(g); });
  t.composite(ops::conj, "conj(Tensor(a) self) -> Tensor(a)", conj_body)
      .doc("The complex conjugate.")
      .one_node()
      .elementwise();
  t.composite("resolve_conj(Tensor(a) self) -> Tensor(a)", resolve_body<kPendingConj>)
      .doc("A copy in which no conjugation is pending; the tensor itself if none is.");
  t.composite("resolve_neg(Tensor(a) self) -> Tensor(a)", resolve_body<kPendingNeg>)
      .doc("A copy in which no negation is pending; the tensor itself if none is.");
  t.op(ops::angle, "angle(Tensor self) -> Tensor", angle_kernel)
      .family(Family::Pointwise)
      .out()
      .doc("The argument of complex numbers; pi for negative reals.")
      .derivative([](Grad g, In<0> z) { return angle_grads(g, z); });
  t.op(ops::complex, "complex(Tensor real, Tensor imag) -> Tensor", complex_kernel)
      .out()
      .doc("Complex numbers from their parts.")
      .on_devices()
      .linear()
      .batching(Batching::Pointwise)
      .derivative([](Grad g) { return Grads{ops::real(g), ops::imag(g)}; });
  t.composite(ops::polar, "polar(Tensor abs, Tensor angle) -> Tensor", polar_body)
      .out(OutRule::SameType)
      .doc("Complex numbers from size and angle.")
      .autocast(Cast::Float, Cast::None)
      .one_node();
}

}  // namespace rushlight

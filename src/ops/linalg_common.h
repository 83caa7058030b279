// What the families of linear algebra share: checks, matrices by columns, LAPACK's status.
#pragma once
#include <type_traits>

#include "cpu/linalg.h"
#include "device/linalg.h"
#include "dispatch/table.h"
#include "ops/copy.h"
#include "ops/factory.h"
#include "ops/join.h"
#include "ops/linalg.h"
#include "ops/matmul.h"
#include "ops/operators.h"
#include "ops/reduction.h"
#include "ops/register.h"
#include "ops/view.h"

namespace rushlight::linalg {

void check_floating(std::string_view who, const Tensor& a, bool low_precision = false);
// Who refuses what LAPACK has no type for, which decides the exception's type, as in PyTorch: a check of the
// arguments (RuntimeError), or the kernel (NotImplementedError), for all types or for half precision only.
enum class RefusedBy : uint8_t { Check, KernelIfHalf, Kernel };
void check_lapack_type(std::string_view who, const Tensor& a, RefusedBy by);
void check_matrix(std::string_view who, const Tensor& a, std::string_view name = "A");
// A floating type too.
void check_square(std::string_view who, const Tensor& a, RefusedBy by, std::string_view name = "A");
void check_same_type(std::string_view who, const Tensor& a, const Tensor& b);
// op(A) X = B, or X op(A) = B.
void check_solve_shapes(std::string_view who, const Tensor& a, const Tensor& b, bool left, RefusedBy by);
// Raises LinAlgError for the first matrix that LAPACK could not finish. An operator, so that graphs hold it.
inline Fn<void(const Tensor& info, std::string_view api_name, bool is_matrix)> linalg_check_errors;
void check_info(std::string_view who, const Tensor& info);
void register_linalg_checks(Table& t);

inline IntList batch_of(const Tensor& a) { return a.sizes().slice(0, static_cast<size_t>(a.dim() - 2)); }
Dims with(IntList batch, std::initializer_list<int64_t> sizes);
Tensor uninitialized(IntList sizes, DType dtype, const Tensor& like);
// Matrices by columns, as LAPACK has them: without values, or a copy.
Tensor by_columns(IntList batch, int64_t rows, int64_t columns, const Tensor& like);
Tensor by_columns(const Tensor& a);
// `t` itself when it lies by columns, else a copy.
Tensor readable_by_columns(const Tensor& t);
Tensor new_info(IntList batch, const Tensor& like);
// Whether there is something to compute.
inline bool has_work(const Tensor& t) { return !t.device().is_meta() && t.numel() > 0; }
inline cpu::Batch batch_for(const Tensor& a) { return {a.dtype(), checked_numel(batch_of(a))}; }

// A loop of cpu/linalg.h on the arguments, or its counterpart where `t` lies on a device.
template <class... P>
void compute(const Tensor& t, void (*here)(P...), void (*DeviceLinalg::*there)(int, P...),
             std::type_identity_t<P>... arguments) {
  if (t.is_cpu()) return here(arguments...);
  (device_linalg(t.device().type()).*there)(t.device().index(), arguments...);
}
#define RL_LINALG(t, loop, ...) ::rushlight::linalg::compute(t, cpu::loop, &DeviceLinalg::loop, __VA_ARGS__)
// As above, for what the library of a device may lack: false, and nothing was done.
template <class... P>
bool compute_perhaps(const Tensor& t, void (*here)(P...), bool (*DeviceLinalg::*there)(int, P...),
                     std::type_identity_t<P>... arguments) {
  if (!t.is_cpu()) return (device_linalg(t.device().type()).*there)(t.device().index(), arguments...);
  here(arguments...);
  return true;
}
#define RL_PERHAPS_LINALG(t, loop, ...) \
  ::rushlight::linalg::compute_perhaps(t, cpu::loop, &DeviceLinalg::loop, __VA_ARGS__)
// Then: Note [Operators that a device lacks].
Results computed_on_cpu(const Call& call, std::initializer_list<Value> arguments, Device device);

Dims common_batch(const Tensor& a, const Tensor& b);
Tensor stretched(const Tensor& t, IntList batch);
Tensor identity(int64_t n, DType dtype, const Tensor& like);
// Copies an identity into the first rows and columns.
void fill_identity(const Tensor& t);

inline Tensor adjoint_of(const Tensor& t) { return ops::transpose(conj_of(t), -2, -1); }
inline Tensor transposed(const Tensor& t) { return ops::transpose(t, -2, -1); }
inline Tensor diagonal_of(const Tensor& t) { return ops::diagonal(t, 0, -2, -1); }
inline Tensor diagonal_matrix(const Tensor& d) { return ops::diag_embed(d, 0, -2, -1); }
inline Tensor as_column(const Tensor& t) { return ops::unsqueeze(t, -1); }
inline Tensor as_row(const Tensor& t) { return ops::unsqueeze(t, -2); }
inline Tensor sum_defined(const Tensor& a, const Tensor& b) {
  return !a.defined() ? b : !b.defined() ? a : a + b;
}

}  // namespace rushlight::linalg

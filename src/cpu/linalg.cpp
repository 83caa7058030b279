#include "cpu/linalg.h"

#include "core/parallel.h"
#include "cpu/small_matrices.h"

namespace rushlight::cpu {
namespace {

using MatrixTypes = Concat<TypeList<float, double>, ComplexTypes>;

constexpr int64_t kSerialWork = 1 << 16;  // multiplications below which no thread is worth waking

int as_int(int64_t n) {
  RL_CHECK(n <= std::numeric_limits<int>::max(), "linear algebra: a dimension of ", n,
           " is more than LAPACK can count");
  return static_cast<int>(n);
}

// The one driver of batches: f(T{}, index, scratch) for each matrix, of `work` multiplications. A single
// matrix is left to the library's own threads.
template <class F>
void each_matrix(Batch batch, int64_t work, F&& f) {
  visit_dtype(MatrixTypes{}, batch.dtype, "linalg", [&](auto tag) {
    using T = decltype(tag);
    auto range = [&](int64_t begin, int64_t end) {
      Scratch<T> scratch;
      for (int64_t i = begin; i < end; ++i) f(tag, i, scratch);
    };
    if (batch.count == 1 && work > kSerialWork && !in_parallel_region())
      return run_in_pool([&] { range(0, 1); });
    parallel_for(0, batch.count, std::max<int64_t>(1, kSerialWork / std::max<int64_t>(work, 64)),
                 [&](int64_t begin, int64_t end) { run_alone([&] { range(begin, end); }); });
  });
}

template <class T>
T* at(void* data, int64_t i, int64_t elements) {
  return data ? static_cast<T*>(data) + i * elements : nullptr;
}
template <class T>
const T* at(const void* data, int64_t i, int64_t elements) {
  return static_cast<const T*>(data) + i * elements;
}

int64_t cube(int64_t n) { return n * n * n; }

// f(index of the first matrix, how many) for groups that share the lanes of a vector. False if there are no
// loops for such.
template <class F>
bool each_group(Batch batch, int64_t n, int64_t work, F&& f) {
  const SmallMatrices kernels = small_matrices(batch.dtype, n, batch.count);
  const int64_t lanes = kernels.lanes;
  if (!lanes) return false;
  const int64_t groups = (batch.count + lanes - 1) / lanes;
  parallel_for(0, groups, std::max<int64_t>(1, kSerialWork / std::max<int64_t>(work, 64)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t g = begin; g < end; ++g)
                   f(kernels, g * lanes, std::min(lanes, batch.count - g * lanes));
               });
  return true;
}
char* matrix_at(void* data, Batch batch, int64_t i, int64_t elements) {
  return static_cast<char*>(data) + i * elements * static_cast<int64_t>(element_size(batch.dtype));
}
const char* matrix_at(const void* data, Batch batch, int64_t i, int64_t elements) {
  return static_cast<const char*>(data) + i * elements * static_cast<int64_t>(element_size(batch.dtype));
}

}  // namespace

void lu_factor(Batch batch, int64_t m, int64_t n, void* a, int32_t* pivots, int32_t* info) {
  const int rows = as_int(m), columns = as_int(n);
  if (m == n && each_group(batch, n, cube(n), [&](const SmallMatrices& s, int64_t i, int64_t count) {
        s.factor(n, matrix_at(a, batch, i, n * n), pivots + i * n, info + i, count);
      }))
    return;
  each_matrix(batch, m * n * std::min(m, n), [&](auto tag, int64_t i, auto&) {
    using T = decltype(tag);
    info[i] = Lapack<T>::getrf(rows, columns, at<T>(a, i, m * n), pivots + i * std::min(m, n));
  });
}

void lu_solve(Batch batch, int64_t n, int64_t columns, char op, const void* lu, const int32_t* pivots,
              void* b) {
  const int size = as_int(n), k = as_int(columns);
  if (op == 'N' && columns <= SmallMatrices::kMost &&
      each_group(batch, n, n * n * columns, [&](const SmallMatrices& s, int64_t i, int64_t count) {
        s.solve(n, columns, matrix_at(lu, batch, i, n * n), pivots + i * n,
                matrix_at(b, batch, i, n * columns), count);
      }))
    return;
  each_matrix(batch, n * n * columns, [&](auto tag, int64_t i, auto&) {
    using T = decltype(tag);
    Lapack<T>::getrs(op, size, k, at<T>(lu, i, n * n), pivots + i * n, at<T>(b, i, n * columns));
  });
}

void lu_inverse(Batch batch, int64_t n, void* lu, const int32_t* pivots, const int32_t* info) {
  const int size = as_int(n);
  const bool grouped = each_group(batch, n, cube(n), [&](const SmallMatrices& s, int64_t i, int64_t count) {
    s.invert(n, matrix_at(lu, batch, i, n * n), pivots + i * n, info + i, count);
  });
  if (grouped && std::all_of(info, info + batch.count, [](int32_t status) { return status == 0; })) return;
  each_matrix(batch, cube(n), [&](auto tag, int64_t i, auto& scratch) {
    using T = decltype(tag);
    T* matrix = at<T>(lu, i, n * n);
    if (info[i] == 0) {
      if (!grouped) Lapack<T>::getri(size, matrix, pivots + i * n, scratch);
      return;
    }
    std::vector<T> solution(static_cast<size_t>(n * n), T(0));  // getri gives none
    for (int64_t j = 0; j < n; ++j) solution[static_cast<size_t>(j * (n + 1))] = T(1);
    Lapack<T>::getrs('N', size, size, matrix, pivots + i * n, solution.data());
    if constexpr (is_complex_v<T>)  // LAPACK's quotients by zero, in whichever order ours are taken
      for (T& z : solution)
        if (!std::isfinite(z.real()) || !std::isfinite(z.imag()))
          z = T(std::numeric_limits<typename T::value_type>::quiet_NaN(),
                std::numeric_limits<typename T::value_type>::quiet_NaN());
    std::copy(solution.begin(), solution.end(), matrix);
  });
}

void cholesky(Batch batch, int64_t n, bool upper, void* a, int32_t* info) {
  const int size = as_int(n);
  const bool grouped = each_group(batch, n, cube(n), [&](const SmallMatrices& s, int64_t i, int64_t count) {
    s.cholesky(n, upper, matrix_at(a, batch, i, n * n), info + i, count);
  });
  each_matrix(batch, cube(n), [&](auto tag, int64_t i, auto&) {
    using T = decltype(tag);
    T* matrix = at<T>(a, i, n * n);
    if (!grouped || info[i] != 0) info[i] = Lapack<T>::potrf(upper, size, matrix);
    for (int64_t j = 0; j < n; ++j)
      upper ? std::fill_n(matrix + j * n + j + 1, n - j - 1, T(0)) : std::fill_n(matrix + j * n, j, T(0));
  });
}

void cholesky_inverse(Batch batch, int64_t n, bool upper, void* a, int32_t* info) {
  const int size = as_int(n);
  each_matrix(batch, cube(n), [&](auto tag, int64_t i, auto&) {
    using T = decltype(tag);
    T* matrix = at<T>(a, i, n * n);
    info[i] = Lapack<T>::potri(upper, size, matrix);
    for (int64_t column = 0; column < n; ++column)
      for (int64_t row = column + 1; row < n; ++row) {
        T &below = matrix[column * n + row], &above = matrix[row * n + column];
        upper ? below = conj_of(above) : above = conj_of(below);
      }
  });
}

void triangular_solve(Batch batch, int64_t n, int64_t columns, bool upper, char op, bool unit, const void* a,
                      void* b) {
  const int size = as_int(n), k = as_int(columns);
  each_matrix(batch, n * n * columns, [&](auto tag, int64_t i, auto&) {
    using T = decltype(tag);
    Lapack<T>::trsm(upper, op, unit, size, k, at<T>(a, i, n * n), at<T>(b, i, n * columns));
  });
}

void ldl_factor(Batch batch, int64_t n, bool hermitian, void* a, int32_t* pivots, int32_t* info) {
  const int size = as_int(n);
  each_matrix(batch, cube(n), [&](auto tag, int64_t i, auto& scratch) {
    using T = decltype(tag);
    info[i] = Lapack<T>::sytrf(hermitian, size, at<T>(a, i, n * n), pivots + i * n, scratch);
  });
}

void ldl_solve(Batch batch, int64_t n, int64_t columns, bool hermitian, const void* ld, const int32_t* pivots,
               void* b) {
  const int size = as_int(n), k = as_int(columns);
  each_matrix(batch, n * n * columns, [&](auto tag, int64_t i, auto&) {
    using T = decltype(tag);
    Lapack<T>::sytrs(hermitian, size, k, at<T>(ld, i, n * n), pivots + i * n, at<T>(b, i, n * columns));
  });
}

void geqrf(Batch batch, int64_t m, int64_t n, void* a, void* tau) {
  const int rows = as_int(m), columns = as_int(n);
  each_matrix(batch, m * n * std::min(m, n), [&](auto tag, int64_t i, auto& scratch) {
    using T = decltype(tag);
    Lapack<T>::geqrf(rows, columns, at<T>(a, i, m * n), at<T>(tau, i, std::min(m, n)), scratch);
  });
}

void orgqr(Batch batch, int64_t m, int64_t n, int64_t k, void* a, const void* tau) {
  const int rows = as_int(m), columns = as_int(n), reflectors = as_int(k);
  each_matrix(batch, m * n * k, [&](auto tag, int64_t i, auto& scratch) {
    using T = decltype(tag);
    Lapack<T>::orgqr(rows, columns, reflectors, at<T>(a, i, m * n), at<T>(tau, i, k), scratch);
  });
}

void ormqr(Batch batch, bool left, bool adjoint, int64_t m, int64_t n, int64_t k, const void* a,
           const void* tau, void* c) {
  const int rows = as_int(m), columns = as_int(n), reflectors = as_int(k);
  each_matrix(batch, m * n * k, [&](auto tag, int64_t i, auto& scratch) {
    using T = decltype(tag);
    Lapack<T>::ormqr(left, adjoint, rows, columns, reflectors, at<T>(a, i, (left ? m : n) * k),
                     at<T>(tau, i, k), at<T>(c, i, m * n), scratch);
  });
}

void eigh(Batch batch, int64_t n, bool vectors, void* a, void* values, int32_t* info) {
  const int size = as_int(n);
  each_matrix(batch, 4 * cube(n), [&](auto tag, int64_t i, auto& scratch) {
    using T = decltype(tag);
    info[i] = Lapack<T>::heevd(vectors, size, at<T>(a, i, n * n), at<Real<T>>(values, i, n), scratch);
  });
}

void eig(Batch batch, int64_t n, void* a, void* values, void* v, int32_t* info) {
  const int size = as_int(n);
  each_matrix(batch, 10 * cube(n), [&](auto tag, int64_t i, auto& scratch) {
    using T = decltype(tag);
    using C = std::complex<Real<T>>;
    info[i] = Lapack<T>::geev(size, at<T>(a, i, n * n), at<C>(values, i, n), at<C>(v, i, n * n), scratch);
  });
}

void svd(Batch batch, bool by_qr, bool full, int64_t m, int64_t n, void* a, void* s, void* u, void* vh,
         int32_t* info) {
  const int rows = as_int(m), columns = as_int(n);
  const int64_t k = std::min(m, n), ku = full ? m : k, kv = full ? n : k;
  each_matrix(batch, 8 * m * n * k, [&](auto tag, int64_t i, auto& scratch) {
    using T = decltype(tag);
    info[i] = Lapack<T>::gesvd(by_qr, full, rows, columns, at<T>(a, i, m * n), at<Real<T>>(s, i, k),
                               at<T>(u, i, m * ku), at<T>(vh, i, kv * n), scratch);
  });
}

void least_squares(Batch batch, Driver driver, int64_t m, int64_t n, int64_t columns, double rcond, void* a,
                   void* b, int64_t* rank, void* s, int32_t* info) {
  const int rows = as_int(m), width = as_int(n), k = as_int(columns);
  each_matrix(batch, 4 * m * n * std::max(n, columns), [&](auto tag, int64_t i, auto& scratch) {
    using T = decltype(tag);
    using R = Real<T>;
    int found = 0;
    info[i] =
        Lapack<T>::gels(driver, rows, width, k, at<T>(a, i, m * n), at<T>(b, i, std::max(m, n) * columns),
                        static_cast<R>(rcond), &found, at<R>(s, i, std::min(m, n)), scratch);
    if (rank) rank[i] = found;
  });
}

}  // namespace rushlight::cpu

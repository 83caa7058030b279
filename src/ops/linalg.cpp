#include "ops/linalg.h"

#include "dispatch/table.h"
#include "ops/register.h"

namespace rushlight {

void register_linalg_lu_operators(Table& t);
void register_linalg_triangular_operators(Table& t);
void register_linalg_qr_operators(Table& t);
void register_linalg_eigen_operators(Table& t);
void register_linalg_least_squares_operators(Table& t);
void register_linalg_norm_operators(Table& t);
void register_linalg_product_operators(Table& t);
void register_linalg_distance_operators(Table& t);

void register_linalg_operators(Table& t) {
  register_linalg_lu_operators(t);
  register_linalg_triangular_operators(t);
  register_linalg_qr_operators(t);
  register_linalg_eigen_operators(t);
  register_linalg_least_squares_operators(t);
  register_linalg_norm_operators(t);
  register_linalg_product_operators(t);
  register_linalg_distance_operators(t);
}

}  // namespace rushlight

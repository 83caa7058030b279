// The operator table of the whole library: the records of ops/, then the interceptors that calls may meet.
#include "ops/register.h"
#include "transform/autocast.h"
#include "transform/autograd.h"
#include "transform/forward.h"
#include "transform/level.h"
#include "transform/profiler.h"
#include "transform/sparse.h"

namespace rushlight {

Table& mutable_operator_table() {
  static Table* table = [] {
    auto* t = new Table;  // lives as long as the process: handles point into it
    register_all_operators(*t);
    t->freeze();
    install_gradient_ops();
    install_autocast();
    install_autograd();
    install_levels();
    install_forward();
    install_sparse();
    install_profiler();
    return t;
  }();
  return *table;
}

const Table& operator_table() { return mutable_operator_table(); }

}  // namespace rushlight

// The inner loops of fused optimizer steps.
#include "cpu/optimizer.h"

#include "cpu/optimizer_steps.h"

namespace rushlight::cpu::RL_ISA {
namespace {

struct Adjacent {
  int64_t begin, end;
  static constexpr int64_t step = 1;
};

template <class T>
void sgd(const StepArrays& a, const SgdOptions& o, int64_t begin, int64_t end) {
  steps::sgd<T>(a, o, Adjacent{begin, end});
}
template <class T>
void adam(const StepArrays& a, const AdamOptions& o, int64_t begin, int64_t end) {
  steps::adam<T>(a, o, Adjacent{begin, end});
}
template <class T>
void unscale(const StepArrays& a, double scale, int64_t begin, int64_t end) {
  steps::unscale<T>(a, scale, Adjacent{begin, end});
}
template <void (*rule)(const StepArrays&, const UpdateOptions&, Adjacent)>
void update(const StepArrays& a, const UpdateOptions& o, int64_t begin, int64_t end) {
  rule(a, o, Adjacent{begin, end});
}

template <class T>
using Rules = steps::Rules<T, Adjacent>;

template <class T>
constexpr StepLoops loops_of = {
    sgd<T>,
    adam<T>,
    {update<Rules<T>::adagrad>, update<Rules<T>::rmsprop>, update<Rules<T>::adadelta>,
     update<Rules<T>::adamax>, update<Rules<T>::nadam>, update<Rules<T>::radam>, update<Rules<T>::asgd>,
     update<Rules<T>::rprop>},
    unscale<T>};

}  // namespace

const StepLoops* optimizer_loops(DType dtype) {
  switch (dtype) {
    case DType::Float32:
      return &loops_of<float>;
    case DType::Float64:
      return &loops_of<double>;
    case DType::Float16:
      return &loops_of<Half>;
    case DType::BFloat16:
      return &loops_of<BFloat16>;
    default:
      return nullptr;
  }
}

}  // namespace rushlight::cpu::RL_ISA

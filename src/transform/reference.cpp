// Gradients of reference implementations within function transforms.
#include "ops/reference.h"

#include "transform/level.h"

namespace rushlight {
namespace {

// What is recorded further out stays so: only this level's graph ends here.
std::vector<Tensor> at_own_level(const ReferenceFunction& reference, std::vector<Tensor> inputs,
                                 const Tensor& g) {
  const bool recorded = GradMode::enabled();
  NewLevel scope(LevelKind::Grad);
  GradMode on(true);
  std::vector<Tensor> wanted;
  for (Tensor& t : inputs) {
    if (!t.defined()) continue;
    t = wrap_tensor(without_dead(t), scope.level());
    set_requires_grad(t, true);
    wanted.push_back(t);
  }
  const Tensor outputs[] = {reference(inputs)}, seeds[] = {g};
  std::vector<Tensor> found =
      grad(outputs, wanted, seeds, true, {.create_graph = recorded, .accumulate = false});
  for (Tensor& t : found)
    if (t.defined())
      if (const Wrapping* w = wrapping_at(t, scope.level())) t = Tensor(w->inner);
  return found;
}

}  // namespace

void install_reference_gradients() { gradients_at_own_level = at_own_level; }

}  // namespace rushlight

#include "dispatch/traits.h"

#include "dispatch/op.h"

namespace rushlight {
namespace {

bool takes_generator(const Op& op) {
  for (const Parameter& p : op.schema.parameters)
    if (p.type == Tag::Generator) return true;
  return false;
}

// Dropout, attention and recurrent layers draw numbers only when asked; batch norm updates statistics then.
bool depends_on_training(const Op& op) {
  for (const Parameter& p : op.schema.parameters)
    if (p.name == "dropout_p" || p.name == "train" || p.name == "training") return true;
  return false;
}

Tangent tangent_of_family(const Op& op) {
  if (op.family == Family::View && (op.derivative || op.mutated)) return Tangent::Linear;
  if (!op.derivative || op.family == Family::Random) return Tangent::None;
  if (op.family == Family::Pointwise && op.schema.returns.size() == 1) return Tangent::Elementwise;
  return Tangent::DoubleVjp;
}

Batching batching_of_family(const Op& op) {
  if (op.traits.data_dependent_shape) return Batching::Refused;
  if (op.family == Family::Pointwise) return Batching::Pointwise;
  if (op.family == Family::Random || (op.family == Family::Factory && takes_generator(op)))
    return op.mutated ? Batching::RandomLike : Batching::Random;
  if (op.family == Family::View && op.mutated) return Batching::Geometry;
  // One that reads values is batched as a kernel is.
  if (op.family == Family::Composite && !(op.intercepted & kWrapped)) return Batching::Composite;
  return Batching::Loop;
}

Aliasing aliasing_of_family(const Op& op) {
  if (op.made_in_python || op.mutated || op.family == Family::Composite) return Aliasing::MayReturnInput;
  return op.family == Family::View ? Aliasing::View : Aliasing::Fresh;
}

Reshaping reshaping_of_family(const Op& op) {
  return op.family == Family::View && op.mutated ? Reshaping::Geometry : Reshaping::None;
}

}  // namespace

const char* family_name(Family family) {
  static constexpr const char* kNames[kFamilyCount] = {
      "pointwise",     "reduction", "view",         "index",     "matmul",    "factory",
      "random",        "composite", "copy",         "join",      "scan",      "window",
      "normalization", "loss",      "embedding",    "attention", "recurrent", "linear algebra",
      "transform",     "gradient",  "multi-tensor", "sparse",    "value",     "other"};
  return kNames[static_cast<int>(family)];
}

void resolve_traits(Op& op) {
  Traits& t = op.traits;
  if (t.tangent == Tangent::ByFamily) t.tangent = tangent_of_family(op);
  if (t.batching == Batching::ByFamily) t.batching = batching_of_family(op);
  if (t.aliasing == Aliasing::ByFamily) t.aliasing = aliasing_of_family(op);
  if (t.reshaping == Reshaping::ByFamily) t.reshaping = reshaping_of_family(op);
  if (t.batching == Batching::Pointwise) t.elementwise = true;
  if (t.on_quantized == OnQuantized::ByFamily)
    t.on_quantized = op.family == Family::View ? OnQuantized::Integers : OnQuantized::Refused;
  if (op.family == Family::Random || op.made_in_python || takes_generator(op) || depends_on_training(op))
    t.random = true;
  const bool cast = t.autocast_cpu != Cast::None || t.autocast_cuda != Cast::None || op.made_in_python;
  if (!cast) op.intercepted &= ~kAutocast;
}

}  // namespace rushlight

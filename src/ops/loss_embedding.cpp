// Losses of pairs and triples of examples, by their distance, angle or rank: composites.
#include "dispatch/table.h"
#include "ops/copy.h"
#include "ops/factory.h"
#include "ops/linalg.h"
#include "ops/loss.h"
#include "ops/operators.h"
#include "ops/pointwise.h"
#include "ops/reduction.h"

namespace rushlight {
namespace {

using namespace ops;

Tensor total(const Tensor& t, int64_t dim) { return sum_dim(t, IntList{dim}, false, std::nullopt); }
Tensor positive_part(const Tensor& t) { return clamp_min(t, Scalar(0)); }

// `like` where the target is not -1, `unlike` where it is not 1.
Tensor by_target(const Tensor& target, const Tensor& like, const Tensor& unlike) {
  const Tensor zeros = zeros_like(like);
  return rushlight::where(target != Scalar(1), unlike, zeros) +
         rushlight::where(target != Scalar(-1), like, zeros);
}

Tensor hinge_embedding_body(const Call&, const Tensor& self, const Tensor& target, double margin,
                            int64_t reduction) {
  const Tensor unlike = to_dtype(positive_part(Scalar(margin) - self), self.dtype());
  return reduced(by_target(target, self, unlike), reduction);
}

Tensor cosine_embedding_body(const Call&, const Tensor& input1, const Tensor& input2, const Tensor& target,
                             double margin, int64_t reduction) {
  constexpr double kEpsilon = 1e-12;
  const int64_t batch = target.dim();
  RL_CHECK(batch == 0 || batch == 1, "0D or 1D target tensor expected, multi-target not supported");
  RL_CHECK(input1.dim() == batch + 1 && input2.dim() == batch + 1, batch, "D target tensor expects ",
           batch + 1, "D input tensors, but found inputs with sizes ", input1.sizes(), " and ",
           input2.sizes(), ".");
  const Tensor size1 = total(input1 * input1, batch) + Scalar(kEpsilon),
               size2 = total(input2 * input2, batch) + Scalar(kEpsilon);
  const Tensor cosine = total(input1 * input2, batch) / sqrt(size1 * size2), zeros = zeros_like(cosine);
  const Tensor like = rushlight::where(target == Scalar(1), Scalar(1) - cosine, zeros),
               unlike = rushlight::where(target == Scalar(-1), positive_part(cosine - Scalar(margin)), zeros);
  return reduced(like + unlike, reduction);
}

Tensor margin_ranking_body(const Call&, const Tensor& input1, const Tensor& input2, const Tensor& target,
                           double margin, int64_t reduction) {
  return reduced(positive_part(-target * (input1 - input2) + Scalar(margin)), reduction);
}

Tensor triplet_margin_body(const Call&, const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           double margin, double p, double eps, bool swap, int64_t reduction) {
  RL_CHECK(anchor.dim() == positive.dim() && anchor.dim() == negative.dim(),
           "The anchor, positive, and negative tensors are expected to have the same number of dimensions, "
           "but got: anchor ",
           anchor.dim(), "D, positive ", positive.dim(), "D, and negative ", negative.dim(), "D inputs");
  const Tensor near = pairwise_distance(anchor, positive, p, eps, false);
  Tensor far = pairwise_distance(anchor, negative, p, eps, false);
  if (swap) far = minimum(far, pairwise_distance(positive, negative, p, eps, false));
  return reduced(positive_part(Scalar(margin) + near - far), reduction);
}

// --- nn.functional

Tensor nn_hinge_embedding_body(const Call&, const Tensor& input, const Tensor& target, double margin,
                               OptBool size_average, OptBool reduce, std::string_view reduction) {
  return hinge_embedding_loss(input, target, margin, reduction_of(reduction, size_average, reduce));
}
Tensor nn_cosine_embedding_body(const Call&, const Tensor& input1, const Tensor& input2, const Tensor& target,
                                double margin, OptBool size_average, OptBool reduce,
                                std::string_view reduction) {
  return cosine_embedding_loss(input1, input2, target, margin, reduction_of(reduction, size_average, reduce));
}
Tensor nn_margin_ranking_body(const Call&, const Tensor& input1, const Tensor& input2, const Tensor& target,
                              double margin, OptBool size_average, OptBool reduce,
                              std::string_view reduction) {
  const int64_t how = reduction_of(reduction, size_average, reduce);
  RL_CHECK(input1.dim() == input2.dim() && input1.dim() == target.dim(),
           "margin_ranking_loss : All input tensors should have same dimension but got sizes: input1: "
           "torch.Size(",
           input1.sizes(), "), input2: torch.Size(", input2.sizes(), "), target: torch.Size(", target.sizes(),
           ") ");
  return margin_ranking_loss(input1, input2, target, margin, how);
}
Tensor nn_triplet_margin_body(const Call&, const Tensor& anchor, const Tensor& positive,
                              const Tensor& negative, double margin, double p, double eps, bool swap,
                              OptBool size_average, OptBool reduce, std::string_view reduction) {
  const int64_t how = reduction_of(reduction, size_average, reduce);
  RL_CHECK_VALUE(!(margin <= 0), "margin must be greater than 0, got ", margin);
  return triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, how);
}

}  // namespace

void register_embedding_loss_operators(Table& t) {
  const auto add = [&](const char* doc, auto& handle, const char* schema, auto body, const char* by_name,
                       auto nn_body) {
    t.composite(handle, schema, body).function_only().doc(doc).autocast(Cast::Float);
    t.composite(by_name, nn_body).doc(doc).autocast(Cast::Float);
  };
#define RL_BY_NAME "bool? size_average=None, bool? reduce=None, str reduction='mean') -> Tensor"
  add("The input where the target is 1, max(0, margin - input) where it is -1.", hinge_embedding_loss,
      "hinge_embedding_loss(Tensor self, Tensor target, float margin=1.0, int reduction=1) -> Tensor",
      hinge_embedding_body,
      "nn::hinge_embedding_loss(Tensor input, Tensor target, float margin=1.0, " RL_BY_NAME,
      nn_hinge_embedding_body);
  add("1 - cosine for pairs of target 1, the cosine above `margin` for those of -1.", cosine_embedding_loss,
      "cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, int reduction=1) "
      "-> Tensor",
      cosine_embedding_body,
      "nn::cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0, " RL_BY_NAME,
      nn_cosine_embedding_body);
  add("max(0, -target (input1 - input2) + margin).", margin_ranking_loss,
      "margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, int reduction=1) "
      "-> Tensor",
      margin_ranking_body,
      "nn::margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0, " RL_BY_NAME,
      nn_margin_ranking_body);
  add("max(0, d(anchor, positive) - d(anchor, negative) + margin), d being the p-norm distance.",
      triplet_margin_loss,
      "triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1.0, float p=2, "
      "float eps=1e-06, bool swap=False, int reduction=1) -> Tensor",
      triplet_margin_body,
      "nn::triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1.0, float p=2, "
      "float eps=1e-06, bool swap=False, " RL_BY_NAME,
      nn_triplet_margin_body);
#undef RL_BY_NAME
}

}  // namespace rushlight

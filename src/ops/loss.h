// Losses. The nn:: operators have nn.functional's arguments; the others are what they are made of.
#pragma once
#include "dispatch/op.h"

namespace rushlight::ops {

using OptBool = std::optional<bool>;

inline Fn<Tensor(const Tensor& input, const Tensor& target, const Tensor& weight, OptBool size_average,
                 int64_t ignore_index, OptBool reduce, std::string_view reduction)>
    nll_loss;
inline Fn<Tensor(const Tensor& input, const Tensor& target, const Tensor& weight, OptBool size_average,
                 int64_t ignore_index, OptBool reduce, std::string_view reduction, double label_smoothing)>
    cross_entropy;
inline Fn<Tensor(const Tensor& input, const Tensor& target, OptBool size_average, OptBool reduce,
                 std::string_view reduction, const Tensor& weight)>
    mse_loss, l1_loss;
inline Fn<Tensor(const Tensor& input, const Tensor& target, OptBool size_average, OptBool reduce,
                 std::string_view reduction, double beta)>
    smooth_l1_loss;
inline Fn<Tensor(const Tensor& input, const Tensor& target, std::string_view reduction, double delta,
                 const Tensor& weight)>
    huber_loss;
inline Fn<Tensor(const Tensor& input, const Tensor& target, const Tensor& weight, OptBool size_average,
                 OptBool reduce, std::string_view reduction)>
    binary_cross_entropy;
inline Fn<Tensor(const Tensor& input, const Tensor& target, const Tensor& weight, OptBool size_average,
                 OptBool reduce, std::string_view reduction, const Tensor& pos_weight)>
    binary_cross_entropy_with_logits;
inline Fn<Tensor(const Tensor& input, const Tensor& target, OptBool size_average, OptBool reduce,
                 std::string_view reduction, bool log_target)>
    kl_div;

// reduction: 0 none, 1 mean, 2 sum.
inline Fn<Tensor(const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction,
                 int64_t ignore_index, double label_smoothing)>
    cross_entropy_loss;
inline Fn<Tensor(const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction,
                 int64_t ignore_index)>
    nll_loss_nd;
// The second result is the total weight that a mean divides by.
inline Fn<std::tuple<Tensor, Tensor>(const Tensor& self, const Tensor& target, const Tensor& weight,
                                     int64_t reduction, int64_t ignore_index)>
    nll_loss_forward, nll_loss2d_forward;
inline Fn<Tensor(const Tensor& grad_output, const Tensor& target, const Tensor& weight, int64_t reduction,
                 int64_t ignore_index, const Tensor& total_weight, IntList input_sizes)>
    nll_loss_backward;
inline Fn<Tensor(const Tensor& self, const Tensor& target, int64_t reduction)> mse_loss_raw, l1_loss_raw,
    soft_margin_loss, multilabel_margin_loss;
inline Fn<Tensor(const Tensor& self, const Tensor& target, int64_t reduction, bool log_target)> kl_div_raw;
inline Fn<Tensor(const Tensor& self, const Tensor& target, const Scalar& p, const Scalar& margin,
                 const Tensor& weight, int64_t reduction)>
    multi_margin_loss;
inline Fn<Tensor(const Tensor& input, const Tensor& target, bool log_input, bool full, double eps,
                 int64_t reduction)>
    poisson_nll_loss;
inline Fn<Tensor(const Tensor& self, const Tensor& target, double margin, int64_t reduction)>
    hinge_embedding_loss;
inline Fn<Tensor(const Tensor& input1, const Tensor& input2, const Tensor& target, double margin,
                 int64_t reduction)>
    cosine_embedding_loss, margin_ranking_loss;
inline Fn<Tensor(const Tensor& anchor, const Tensor& positive, const Tensor& negative, double margin,
                 double p, double eps, bool swap, int64_t reduction)>
    triplet_margin_loss;
inline Fn<Tensor(const Tensor& self, const Tensor& target, int64_t reduction, double beta)>
    smooth_l1_loss_raw, huber_loss_raw;
inline Fn<Tensor(const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction)>
    binary_cross_entropy_raw;
inline Fn<Tensor(const Tensor& self, const Tensor& target, const Tensor& weight, const Tensor& pos_weight,
                 int64_t reduction)>
    binary_cross_entropy_with_logits_raw;

}  // namespace rushlight::ops

namespace rushlight {

enum Reduction : int64_t { kNone = 0, kMean = 1, kSum = 2 };
// What `reduction`, or the two old arguments in its place, asks for.
Reduction reduction_of(std::string_view reduction, std::optional<bool> size_average = std::nullopt,
                       std::optional<bool> reduce = std::nullopt);
Tensor reduced(const Tensor& loss, int64_t reduction);
// A loss in the dtype of an operand, as if it was written there; never with less than its kind can hold.
Tensor in_type_of(const Tensor& operand, const Tensor& loss, std::string_view who);

void register_nll_operators(class Table& t);
void register_likelihood_loss_operators(Table& t);
void register_embedding_loss_operators(Table& t);

}  // namespace rushlight

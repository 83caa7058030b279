#include "rushlight/nn/linear.h"

#include <cmath>
#include <ostream>

#include "rushlight/autograd.h"
#include "rushlight/nn/functional.h"
#include "rushlight/nn/init.h"

namespace rushlight::nn {

LinearImpl::LinearImpl(const LinearOptions& o) : options(o) { LinearImpl::reset(); }
void LinearImpl::reset() {
  weight = register_parameter("weight", rushlight::empty({options.out_features(), options.in_features()}));
  bias = options.bias() ? register_parameter("bias", rushlight::empty({options.out_features()}))
                        : register_parameter("bias", {}, false);
  reset_parameters();
}
void LinearImpl::reset_parameters() { init::detail::default_weights(weight, bias); }
void LinearImpl::pretty_print(std::ostream& stream) const {
  stream << std::boolalpha << "torch::nn::Linear(in_features=" << options.in_features()
         << ", out_features=" << options.out_features() << ", bias=" << options.bias() << ")";
}
Tensor LinearImpl::forward(const Tensor& input) { return functional::linear(input, weight, bias); }

BilinearImpl::BilinearImpl(const BilinearOptions& o) : options(o) { BilinearImpl::reset(); }
void BilinearImpl::reset() {
  weight = register_parameter(
      "weight", rushlight::empty({options.out_features(), options.in1_features(), options.in2_features()}));
  bias = options.bias() ? register_parameter("bias", rushlight::empty(options.out_features()))
                        : register_parameter("bias", {}, false);
  reset_parameters();
}
void BilinearImpl::reset_parameters() {
  const double bound = 1 / std::sqrt(static_cast<double>(weight.size(1)));
  init::uniform_(weight, -bound, bound);
  if (bias.defined()) init::uniform_(bias, -bound, bound);
}
void BilinearImpl::pretty_print(std::ostream& stream) const {
  stream << std::boolalpha << "torch::nn::Bilinear(in1_features=" << options.in1_features()
         << ", in2_features=" << options.in2_features() << ", out_features=" << options.out_features()
         << ", bias=" << options.bias() << ")";
}
Tensor BilinearImpl::forward(const Tensor& a, const Tensor& b) {
  return functional::bilinear(a, b, weight, bias);
}

void IdentityImpl::pretty_print(std::ostream& stream) const { stream << "torch::nn::Identity()"; }
void FlattenImpl::pretty_print(std::ostream& stream) const {
  stream << "torch::nn::Flatten(start_dim=" << options.start_dim() << ", end_dim=" << options.end_dim()
         << ")";
}
void UnflattenImpl::pretty_print(std::ostream& stream) const {
  stream << "torch::nn::Unflatten(dim=" << options.dim()
         << ", unflattened_size=" << IntArrayRef(options.sizes()) << ")";
}

EmbeddingImpl::EmbeddingImpl(EmbeddingOptions o) : options(std::move(o)) { EmbeddingImpl::reset(); }
void EmbeddingImpl::reset() {
  if (auto& index = options.padding_idx()) {
    RL_CHECK(*index < options.num_embeddings() && *index >= -options.num_embeddings(),
             "Padding_idx must be within num_embeddings");
    if (*index < 0) index = options.num_embeddings() + *index;
  }
  if (options._weight().defined()) {
    RL_CHECK(options._weight().sizes() == IntList({options.num_embeddings(), options.embedding_dim()}),
             "Shape of _weight does not match num_embeddings and embedding_dim");
    weight = register_parameter("weight", options._weight());
    return;
  }
  weight =
      register_parameter("weight", rushlight::empty({options.num_embeddings(), options.embedding_dim()}));
  reset_parameters();
}
void EmbeddingImpl::reset_parameters() {
  init::normal_(weight);
  if (options.padding_idx()) {
    NoGradGuard no_grad;
    weight[*options.padding_idx()].fill_(0);
  }
}
template <class Options>
static void print_embedding(std::ostream& stream, const char* name, const Options& o) {
  stream << "torch::nn::" << name << "(num_embeddings=" << o.num_embeddings()
         << ", embedding_dim=" << o.embedding_dim();
  if constexpr (std::is_same_v<Options, EmbeddingOptions>)
    if (o.padding_idx()) stream << ", padding_idx=" << *o.padding_idx();
  if (o.max_norm()) stream << ", max_norm=" << *o.max_norm();
  if (o.norm_type() != 2) stream << ", norm_type=" << o.norm_type();
  if (o.scale_grad_by_freq()) stream << ", scale_grad_by_freq=true";
  if (o.sparse()) stream << ", sparse=true";
}
void EmbeddingImpl::pretty_print(std::ostream& stream) const {
  print_embedding(stream, "Embedding", options);
  stream << ")";
}
Tensor EmbeddingImpl::forward(const Tensor& indices) {
  return functional::embedding(indices, weight, options.padding_idx(), options.max_norm(),
                               options.norm_type(), options.scale_grad_by_freq(), options.sparse());
}
Embedding Embedding::from_pretrained(const Tensor& embeddings, const EmbeddingFromPretrainedOptions& o) {
  RL_CHECK(embeddings.dim() == 2, "Embeddings parameter is expected to be 2-dimensional");
  Embedding made(EmbeddingOptions(embeddings.size(0), embeddings.size(1))
                     ._weight(embeddings)
                     .padding_idx(o.padding_idx())
                     .max_norm(o.max_norm())
                     .norm_type(o.norm_type())
                     .scale_grad_by_freq(o.scale_grad_by_freq())
                     .sparse(o.sparse()));
  made->weight.set_requires_grad(!o.freeze());
  return made;
}

EmbeddingBagImpl::EmbeddingBagImpl(EmbeddingBagOptions o) : options(std::move(o)) {
  EmbeddingBagImpl::reset();
}
void EmbeddingBagImpl::reset() {
  if (options._weight().defined()) {
    weight = register_parameter("weight", options._weight());
    return;
  }
  weight =
      register_parameter("weight", rushlight::empty({options.num_embeddings(), options.embedding_dim()}));
  init::normal_(weight);
  if (options.padding_idx()) {
    NoGradGuard no_grad;
    weight[*options.padding_idx()].fill_(0);
  }
}
void EmbeddingBagImpl::pretty_print(std::ostream& stream) const {
  print_embedding(stream, "EmbeddingBag", options);
  if (options.mode() != kMean) stream << ", mode=" << options.mode().enumerator();
  if (options.include_last_offset()) stream << ", include_last_offset=true";
  if (options.padding_idx()) stream << ", padding_idx=" << *options.padding_idx();
  stream << ")";
}
Tensor EmbeddingBagImpl::forward(const Tensor& input, const Tensor& offsets,
                                 const Tensor& per_sample_weights) {
  return functional::embedding_bag(input, weight,
                                   functional::EmbeddingBagFuncOptions()
                                       .offsets(offsets)
                                       .max_norm(options.max_norm())
                                       .norm_type(options.norm_type())
                                       .scale_grad_by_freq(options.scale_grad_by_freq())
                                       .mode(options.mode())
                                       .sparse(options.sparse())
                                       .per_sample_weights(per_sample_weights)
                                       .include_last_offset(options.include_last_offset())
                                       .padding_idx(options.padding_idx()));
}
EmbeddingBag EmbeddingBag::from_pretrained(const Tensor& embeddings,
                                           const EmbeddingBagFromPretrainedOptions& o) {
  RL_CHECK(embeddings.dim() == 2, "Embeddings parameter is expected to be 2-dimensional");
  EmbeddingBag made(EmbeddingBagOptions(embeddings.size(0), embeddings.size(1))
                        ._weight(embeddings)
                        .max_norm(o.max_norm())
                        .norm_type(o.norm_type())
                        .scale_grad_by_freq(o.scale_grad_by_freq())
                        .mode(o.mode())
                        .sparse(o.sparse())
                        .include_last_offset(o.include_last_offset())
                        .padding_idx(o.padding_idx()));
  made->weight.set_requires_grad(!o.freeze());
  return made;
}

}  // namespace rushlight::nn

// What texts that run together need of a language model: keys and values in pages, attention over them, and
// products whose rows do not depend on each other (docs/generation.md).
#include <cmath>
#include <limits>

#include "cpu/packed_product.h"
#include "cpu/paged_attention.h"
#include "dispatch/table.h"
#include "ops/copy.h"
#include "ops/factory.h"
#include "ops/index.h"
#include "ops/matmul.h"
#include "ops/operators.h"
#include "ops/softmax.h"
#include "ops/view.h"

namespace rushlight {
namespace ops {
inline Fn<Tensor(const Tensor& input, const Tensor& weight, const Tensor& bias)> row_linear;
inline Fn<Tensor(const Tensor& self, const Tensor& pages, const Tensor& places, const Tensor& source)>
    write_pages_;
inline Fn<Tensor(const Tensor& query, const Tensor& keys, const Tensor& values, const Tensor& pages,
                 const Tensor& texts, const Tensor& positions, std::optional<double> scale, int64_t window)>
    paged_attention;
}  // namespace ops

namespace {

bool plain_on_cpu(std::initializer_list<const Tensor*> operands) {
  constexpr uint32_t kTransforms = kPythonDispatch | kWrapped | kForwardGrad;
  for (const Tensor* t : operands)
    if (t->defined() && (!t->is_cpu() || ((*t)->flags & kTransforms & dispatch_state.consider) != 0))
      return false;
  return true;
}

// --- products

Tensor row_linear_reference(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  return ops::linear(input, to_dtype(weight, input.dtype()), bias);
}

Tensor row_linear_kernel(const Call& call, const Tensor& input, const Tensor& weight, const Tensor& bias) {
  RL_CHECK(weight.dim() == 2 && input.dim() > 0 && input->sizes.back() == weight->sizes[1], call.op.name(),
           "(): expected rows of ", weight.dim() == 2 ? weight->sizes[1] : 0, " elements, but got ",
           describe(input), " and the weight ", describe(weight));
  const int64_t n = weight->sizes[0], k = weight->sizes[1];
  RL_CHECK(!bias.defined() || (bias.dim() == 1 && bias->sizes[0] == n && bias.dtype() == input.dtype()),
           call.op.name(), "(): expected ", n, " terms of ", input.dtype(), ", but got ",
           bias.defined() ? describe(bias) : std::string());
  const bool covered = plain_on_cpu({&input, &weight, &bias}) && input.dtype() == DType::Float32 &&
                       (weight.dtype() == DType::Float32 || weight.dtype() == DType::BFloat16) && k > 0;
  if (!covered) return row_linear_reference(input, weight, bias);
  const Tensor x = ops::contiguous(input, MemoryFormat::Contiguous);
  const Tensor terms = bias.defined() ? ops::contiguous(bias, MemoryFormat::Contiguous) : Tensor();
  Dims sizes = input.sizes().dims();
  sizes.back() = n;
  const Tensor result = empty_tensor(sizes, DType::Float32);
  cpu::multiply_rows_apart(x.numel() / k, n, k, x.data_ptr(), k, weight.dtype(),
                           {weight.data_ptr(), weight->strides[1], weight->strides[0]},
                           terms.defined() ? terms.data_ptr() : nullptr, result.data_ptr());
  return result;
}

// --- pages

// An axis of numbers for each of `count` tokens, dense.
Tensor numbers_of_tokens(const Call& call, const Tensor& t, int64_t count, const char* what) {
  RL_CHECK(t.dtype() == DType::Int64 && t.dim() == 1 && t->sizes[0] == count, call.op.name(), "(): ", what,
           " must be int64[", count, "], but got ", describe(t));
  return ops::contiguous(t, MemoryFormat::Contiguous);
}

template <class To, class From>
void copy_token(To* to, int64_t head_step, int64_t step, const From* from, int64_t heads, int64_t width) {
  for (int64_t h = 0; h < heads; ++h)
    for (int64_t d = 0; d < width; ++d)
      to[h * head_step + d * step] = To(static_cast<compute_type<From>>(from[h * width + d]));
}

// Tokens are few: one thread writes them.
Tensor write_pages_kernel(const Call& call, const Tensor& self, const Tensor& pages, const Tensor& places,
                          const Tensor& source) {
  RL_CHECK(self.dim() == 4 && source.dim() == 3 && source->sizes[1] == self->sizes[1] &&
               source->sizes[2] == self->sizes[3],
           call.op.name(),
           "(): expected pages of [heads, positions, width] and tokens of [heads, width], but got ",
           describe(self), " and ", describe(source));
  const int64_t tokens = source->sizes[0], heads = self->sizes[1], width = self->sizes[3];
  const Tensor page = numbers_of_tokens(call, pages, tokens, "pages"),
               place = numbers_of_tokens(call, places, tokens, "places");
  const auto floats = [](DType d) { return d == DType::Float32 || d == DType::BFloat16; };
  if (!plain_on_cpu({&self, &pages, &places, &source}) || !floats(self.dtype()) || !floats(source.dtype())) {
    const Tensor by_position = ops::permute(self, IntList{0, 2, 1, 3});
    ops::index_put_(by_position, std::vector<Tensor>{page, place}, to_dtype(source, self.dtype()), false);
    return self;
  }
  const Tensor tokens_dense = ops::contiguous(source, MemoryFormat::Contiguous);
  if (!self.has_data() || !page.has_data() || !tokens_dense.has_data()) return self;
  const int64_t *at = page.data<int64_t>(), *in = place.data<int64_t>();
  for (int64_t t = 0; t < tokens; ++t)
    RL_CHECK_INDEX(at[t] >= 0 && at[t] < self->sizes[0] && in[t] >= 0 && in[t] < self->sizes[2],
                   call.op.name(), "(): there is no place ", in[t], " in a page ", at[t]);
  visit_dtype(TypeList<float, BFloat16>{}, self.dtype(), "_write_pages_", [&](auto to) {
    visit_dtype(TypeList<float, BFloat16>{}, source.dtype(), "_write_pages_", [&](auto from) {
      for (int64_t t = 0; t < tokens; ++t)
        copy_token(
            static_cast<decltype(to)*>(self.data_ptr()) + at[t] * self->strides[0] + in[t] * self->strides[2],
            self->strides[1], self->strides[3],
            static_cast<const decltype(from)*>(tokens_dense.data_ptr()) + t * heads * width, heads, width);
    });
  });
  return self;
}

// --- attention

// Every token with the whole of its text's pages.
Tensor paged_attention_reference(const Tensor& query, const Tensor& keys, const Tensor& values,
                                 const Tensor& pages, const Tensor& texts, const Tensor& positions,
                                 double scale, int64_t window) {
  const int64_t tokens = query->sizes[0], heads = query->sizes[1], width = query->sizes[2];
  const int64_t key_heads = keys->sizes[1], reach = pages->sizes[1] * keys->sizes[3];
  const Tensor own = ops::reshape(ops::index_select(pages, 0, texts), IntList{-1});
  const auto gathered = [&](const Tensor& t, IntList order, IntList sizes) {
    const Tensor all = to_dtype(ops::index_select(t, 0, own), query.dtype());
    return ops::reshape(
        ops::permute(ops::reshape(all, IntList{tokens, pages->sizes[1], key_heads, t->sizes[2], t->sizes[3]}),
                     order),
        sizes);
  };
  const Tensor k = gathered(keys, IntList{0, 2, 3, 1, 4}, IntList{tokens, key_heads, width, reach});
  const Tensor v = gathered(values, IntList{0, 2, 1, 3, 4}, IntList{tokens, key_heads, reach, width});
  const Tensor place = ops::arange(Scalar(int64_t{0}), Scalar(reach), Scalar(int64_t{1}), DType::Int64,
                                   std::nullopt, query.device(), std::nullopt);
  const Tensor until = ops::unsqueeze(positions, 1);
  Tensor seen = ops::le(place, until);
  if (window > 0) seen = ops::logical_and(seen, ops::gt(place, until - Scalar(window)));
  const Tensor never = ops::logical_not(seen);
  const Tensor q = ops::reshape(query, IntList{tokens, key_heads, heads / key_heads, width});
  const Tensor scores =
      masked_fill(ops::matmul(q, k) * Scalar(scale), ops::reshape(never, IntList{tokens, 1, 1, reach}),
                  Scalar(-std::numeric_limits<double>::infinity()));
  const Tensor seen_values = masked_fill(v, ops::reshape(never, IntList{tokens, 1, reach, 1}), Scalar(0.0));
  return ops::reshape(ops::matmul(ops::softmax(scores, -1, std::nullopt), seen_values), query.sizes());
}

void check_pages(const Call& call, const cpu::PagedAttention& p, int64_t all_pages, int64_t texts) {
  for (int64_t t = 0; t < p.tokens; ++t) {
    RL_CHECK_INDEX(
        p.texts[t] >= 0 && p.texts[t] < texts && p.positions[t] >= 0 && p.positions[t] / p.page < p.most,
        call.op.name(), "(): there is no position ", p.positions[t], " of a text ", p.texts[t]);
    const int64_t* pages = p.pages + p.texts[t] * p.most;
    for (int64_t i = 0; i <= p.positions[t] / p.page; ++i)
      RL_CHECK_INDEX(pages[i] >= 0 && pages[i] < all_pages, call.op.name(), "(): there is no page ",
                     pages[i]);
  }
}

Tensor paged_attention_kernel(const Call& call, const Tensor& query, const Tensor& keys, const Tensor& values,
                              const Tensor& pages, const Tensor& texts, const Tensor& positions,
                              std::optional<double> given_scale, int64_t window) {
  RL_CHECK(query.dim() == 3 && keys.dim() == 4 && values.dim() == 4 && pages.dim() == 2, call.op.name(),
           "(): expected tokens of [heads, width], pages of keys and values, and a table of pages, but got ",
           describe(query), ", ", describe(keys), ", ", describe(values), " and ", describe(pages));
  const int64_t tokens = query->sizes[0], heads = query->sizes[1], width = query->sizes[2];
  const int64_t key_heads = keys->sizes[1], page = keys->sizes[3];
  RL_CHECK(keys->sizes[2] == width && values->sizes[0] == keys->sizes[0] && values->sizes[1] == key_heads &&
               values->sizes[2] == page && values->sizes[3] == width && key_heads > 0 && page > 0 &&
               heads % key_heads == 0 && keys.dtype() == values.dtype() && pages.dtype() == DType::Int64,
           call.op.name(), "(): the sizes of the query ", describe(query), ", the keys ", describe(keys),
           " and the values ", describe(values), " do not fit");
  const Tensor text = numbers_of_tokens(call, texts, tokens, "texts"),
               position = numbers_of_tokens(call, positions, tokens, "positions"),
               table = ops::contiguous(pages, MemoryFormat::Contiguous);
  const double scale = given_scale.value_or(1 / std::sqrt(static_cast<double>(width)));
  const bool covered = plain_on_cpu({&query, &keys, &values, &pages, &texts, &positions}) &&
                       query.dtype() == DType::Float32 && page % cpu::kPageUnit == 0 &&
                       (keys.dtype() == DType::Float32 || keys.dtype() == DType::BFloat16) &&
                       keys.is_contiguous() && values.is_contiguous();
  if (!covered) return paged_attention_reference(query, keys, values, table, text, position, scale, window);
  const Tensor q = ops::contiguous(query, MemoryFormat::Contiguous);
  const Tensor result = empty_tensor(query.sizes(), DType::Float32);
  const cpu::PagedAttention p{.tokens = tokens,
                              .heads = heads,
                              .key_heads = key_heads,
                              .width = width,
                              .page = page,
                              .query = q.data<float>(),
                              .result = result.data<float>(),
                              .dtype = keys.dtype(),
                              .keys = keys.data_ptr(),
                              .values = values.data_ptr(),
                              .pages = table.data<int64_t>(),
                              .most = pages->sizes[1],
                              .texts = text.data<int64_t>(),
                              .positions = position.data<int64_t>(),
                              .window = window,
                              .scale = static_cast<float>(scale)};
  check_pages(call, p, keys->sizes[0], pages->sizes[0]);
  cpu::paged_attention(p);
  return result;
}

}  // namespace

void register_paged_operators(Table& t) {
  const char* reason = "it stands in graphs that record no gradients";
  t.op(ops::row_linear, "_row_linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor",
       row_linear_kernel)
      .absent_in_pytorch()
      .doc("linear() by a weight that may be bfloat16; a row's result has the same bits in any company.")
      .layer({.weight = 1, .bias = 2})
      .internal()
      .family(Family::Matmul)
      .on_devices()
      .not_differentiable(reason);
  t.op(ops::write_pages_,
       "_write_pages_(Tensor(a!) self, Tensor pages, Tensor places, Tensor source) -> Tensor(a!)",
       write_pages_kernel)
      .absent_in_pytorch()
      .doc("Writes each token's [heads, width] to its place in a page of [heads, positions, width].")
      .internal()
      .family(Family::Index)
      .on_devices()
      .not_differentiable(reason);
  t.op(ops::paged_attention,
       "_paged_attention(Tensor query, Tensor keys, Tensor values, Tensor pages, Tensor texts, Tensor "
       "positions, float? scale=None, int window=0) -> Tensor",
       paged_attention_kernel)
      .absent_in_pytorch()
      .doc("Attention of each token to those before it in its text, whose keys and values lie in pages.")
      .internal()
      .family(Family::Matmul)
      .on_devices()
      .not_differentiable(reason);
}

}  // namespace rushlight

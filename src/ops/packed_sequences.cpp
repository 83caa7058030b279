// Padded batches of sequences as packed ones, and back.
#include <algorithm>

#include "dispatch/table.h"
#include "ops/copy.h"
#include "ops/factory.h"
#include "ops/join.h"
#include "ops/operators.h"
#include "ops/reference.h"
#include "ops/register.h"
#include "ops/rnn.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;

// The numbers of a vector of int64.
std::vector<int64_t> numbers_of(const Tensor& t) {
  const Tensor dense = as_contiguous(on_cpu(t));
  return {dense.data<int64_t>(), dense.data<int64_t>() + dense.numel()};
}

// So many rows of steps, and what a step holds besides.
std::vector<int64_t> shape_of(std::initializer_list<int64_t> first, const Tensor& like, size_t taken) {
  std::vector<int64_t> shape(first);
  shape.insert(shape.end(), like.sizes().begin() + static_cast<std::ptrdiff_t>(taken), like.sizes().end());
  return shape;
}

void check_lengths(const std::vector<int64_t>& lengths, const Tensor& steps) {
  RL_CHECK(steps.numel() > 0, "Cannot pack empty tensors.");
  RL_CHECK(static_cast<int64_t>(lengths.size()) == steps->sizes[1],
           "Expected `len(lengths)` to be equal to batch_size, but got ", lengths.size(),
           " (batch_size=", steps->sizes[1], ")");
  RL_CHECK(lengths.back() > 0,
           "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0");
  RL_CHECK(std::is_sorted(lengths.rbegin(), lengths.rend()),
           "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
           "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement "
           "if you do not need ONNX exportability.");
  RL_CHECK(lengths.front() <= steps->sizes[0], "Expected `lengths` to be at most ", steps->sizes[0],
           ", but got ", lengths.front());
}

std::tuple<Tensor, Tensor> pack_body(const Call&, const Tensor& input, const Tensor& lengths,
                                     bool batch_first) {
  RL_CHECK(lengths.dim() == 1 && lengths.dtype() == DType::Int64 && lengths.device() == Device(),
           "'lengths' argument should be a 1D CPU int64 tensor, but got ", describe(lengths));
  RL_CHECK(input.dim() >= 2, "expected a batch of sequences, got ", describe(input));
  const Tensor steps = batch_first ? transpose(input, 0, 1) : input;
  const std::vector<int64_t> ends = numbers_of(lengths);
  check_lengths(ends, steps);
  const Tensor batch_sizes = empty_tensor(Dims(ends.data(), 1), DType::Int64, Device());
  int64_t start = 0, active = static_cast<int64_t>(ends.size());
  std::vector<Tensor> parts;
  // Between the ends of two sequences the batch has one size: a block of steps.
  for (auto end = ends.rbegin(); end != ends.rend(); ++end, --active) {
    if (*end <= start) continue;
    const Tensor block = narrow(narrow(steps, 0, start, *end - start), 1, 0, active);
    parts.push_back(reshape(block, shape_of({(*end - start) * active}, steps, 2)));
    std::fill(batch_sizes.data<int64_t>() + start, batch_sizes.data<int64_t>() + *end, active);
    start = *end;
  }
  return {cat(parts, 0), batch_sizes};
}

std::tuple<Tensor, Tensor> pad_body(const Call&, const Tensor& data, const Tensor& batch_sizes,
                                    bool batch_first, const Scalar& padding_value, int64_t total_length) {
  RL_CHECK(batch_sizes.dim() == 1 && batch_sizes.dtype() == DType::Int64 && batch_sizes.numel() > 0,
           "expected batch_sizes of int64, got ", describe(batch_sizes));
  const std::vector<int64_t> sizes = numbers_of(batch_sizes);
  const int64_t longest = static_cast<int64_t>(sizes.size()), batch = sizes.front();
  RL_CHECK(total_length <= 0 || total_length >= longest,
           "Expected total_length to be at least the length of the longest sequence in input, but got "
           "total_length=",
           total_length, " and max sequence length being ", longest);
  const int64_t time = std::max(total_length, longest);
  const Tensor padded = new_full(data, shape_of({time, batch}, data, 1), padding_value);
  const Tensor lengths = empty_tensor(Dims(&batch, 1), DType::Int64, Device());
  int64_t row = 0;
  for (int64_t t = 0, stop = 0; t < longest; t = stop) {
    const int64_t size = sizes[static_cast<size_t>(t)];
    while (stop < longest && sizes[static_cast<size_t>(stop)] == size) ++stop;
    RL_CHECK(size > 0 && size <= batch, "batch_sizes must be positive and must not grow, got ",
             Dims(sizes.data(), sizes.size()));
    const Tensor block =
        reshape(narrow(data, 0, row, (stop - t) * size), shape_of({stop - t, size}, data, 1));
    copy_(narrow(narrow(padded, 0, t, stop - t), 1, 0, size), block);
    std::fill_n(lengths.data<int64_t>(), size, stop);
    row += (stop - t) * size;
  }
  return {batch_first ? transpose(padded, 0, 1) : padded, lengths};
}

}  // namespace

void register_packed_sequence_operators(Table& t) {
  t.composite(pack_padded_sequence,
              "_pack_padded_sequence(Tensor input, Tensor lengths, bool batch_first) -> (Tensor, Tensor)",
              pack_body)
      .doc(
          "The steps of padded sequences that are within their lengths, in order of time, and how many "
          "sequences each step has.")
      .function_only()
      .any_device(kAllOperands)
      .no_meta("how many steps there are follows from the lengths' values");
  t.composite(pad_packed_sequence,
              "_pad_packed_sequence(Tensor data, Tensor batch_sizes, bool batch_first, Scalar padding_value, "
              "int total_length) -> (Tensor, Tensor)",
              pad_body)
      .doc("The padded sequences that were packed, and their lengths.")
      .function_only()
      .any_device(kAllOperands)
      .no_meta("the shape follows from the values of batch_sizes");
}

}  // namespace rushlight

// The index arithmetic of CUDA loops, run on the host.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "core/tensor.h"
#include "cuda/elements.h"
#include "cuda/formula_multi_tensor.h"
#include "cuda/operands.h"

namespace rushlight::cuda {
namespace {

TEST(CudaGeometry, DividesByMultiplying) {
  std::mt19937 random(1);
  for (uint32_t d : {1u, 2u, 3u, 7u, 64u, 1000u, 65537u, 0x7fffffffu}) {
    const Divider divider(d);
    for (uint32_t n : {0u, 1u, d - 1, d, d / 2 + 1, 0x7ffffffeu, 0x7fffffffu})
      EXPECT_EQ(divider.divide(n), n / d) << n << " / " << d;
    for (int i = 0; i < 2000; ++i) {
      const uint32_t n = random() >> 1;
      ASSERT_EQ(divider.divide(n), n / d) << n << " / " << d;
    }
  }
}

Tensor strided(IntList sizes, IntList strides, int64_t offset, int64_t room) {
  const Tensor memory = empty_tensor({room}, DType::Float32);
  return make_view(memory, sizes, strides, offset, false);
}

// Where element [i, j, ...] lies, by definition.
const char* address(const Tensor& t, IntList index) {
  int64_t at = 0;
  for (size_t d = 0; d < index.size(); ++d) at += index[d] * t->strides[d];
  return t.data<char>() + at * static_cast<int64_t>(t.itemsize());
}

// Every element of the result is visited once, together with the elements of the inputs that belong to it.
void expect_pairs(const Tensor& out, const Tensor& in) {
  std::map<const char*, const char*> expected;
  Dims index(static_cast<size_t>(out.dim()));
  for (int64_t i = 0; i < out.numel(); ++i) {
    int64_t rest = i;
    for (size_t d = index.size(); d-- > 0; rest /= out->sizes[d]) index[d] = rest % out->sizes[d];
    Dims in_index;
    for (int64_t d = 0; d < in.dim(); ++d) {
      const int64_t at = index[static_cast<size_t>(out.dim() - in.dim() + d)];
      in_index.push_back(in->sizes[d] == 1 ? 0 : at);
    }
    expected[address(out, index)] = address(in, in_index);
  }
  std::map<const char*, const char*> seen;
  const Tensor* inputs[] = {&in};
  const Device here = in.device();
  in->device = Device{DeviceType::CUDA, 0};  // no value: an operand in memory
  for_each_piece(out, inputs, [&](const Piece& piece) {
    for (uint32_t i = 0; i < piece.geometry.numel; ++i) {
      int32_t at[kMaxOperands];
      piece.geometry.locate(i, at);
      const bool fresh = seen.emplace(piece.operands[0].data + at[0], piece.operands[1].data + at[1]).second;
      EXPECT_TRUE(fresh);
    }
  });
  in->device = here;
  EXPECT_EQ(seen, expected);
}

TEST(CudaGeometry, FindsTheElementsOfAnyLayout) {
  expect_pairs(strided({4, 5, 6}, {30, 6, 1}, 0, 120), strided({4, 5, 6}, {1, 4, 20}, 0, 120));
  expect_pairs(strided({4, 5, 6}, {30, 6, 1}, 0, 120), strided({5, 1}, {1, 1}, 3, 20));
  expect_pairs(strided({7, 3}, {3, 1}, 0, 21), strided({7, 3}, {-3, -1}, 20, 21));
  expect_pairs(strided({2, 3, 4, 5}, {60, 1, 15, 3}, 0, 120),
               strided({2, 3, 4, 5}, {120, 40, 10, 2}, 1, 240));
  expect_pairs(strided({}, {}, 2, 4), strided({1}, {1}, 1, 4));
}

TEST(CudaGeometry, KnowsContiguousWork) {
  const Tensor a = empty_tensor({8, 16}, DType::Float32), number = scalar_tensor_of(2, DType::Float64);
  const Tensor* inputs[] = {&a, &number};
  int pieces = 0;
  for_each_piece(a, inputs, [&](const Piece& piece) {
    ++pieces;
    EXPECT_EQ(piece.geometry.numel, 128u);
    EXPECT_TRUE(piece.operands[1].is_value && piece.operands[2].is_value);  // both are on the CPU here
    EXPECT_EQ(*reinterpret_cast<const double*>(piece.operands[2].value), 2.0);
  });
  EXPECT_EQ(pieces, 1);
}

// Beyond 32 bits: without memory behind it, so addresses are compared and never read.
TEST(CudaGeometry, CutsWhatAnIndexCannotReach) {
  const auto fake = [](IntList sizes, IntList strides) {
    auto storage = StorageImpl::wrap(reinterpret_cast<void*>(0x1000), size_t{1} << 40,
                                     Device{DeviceType::CUDA, 0}, nullptr, nullptr);
    auto impl = Ref<TensorImpl>::adopt(
        new TensorImpl(std::move(storage), 0, DType::Float32, Device{DeviceType::CUDA, 0}));
    impl->set_layout(sizes, strides);
    return Tensor(std::move(impl));
  };
  const Tensor out = fake({3, int64_t{1} << 31}, {int64_t{1} << 31, 1});
  const Tensor in = fake({3, int64_t{1} << 31}, {1, 3});
  const Tensor* inputs[] = {&in};
  uint64_t total = 0;
  std::map<const char*, uint64_t> starts;
  for_each_piece(out, inputs, [&](const Piece& piece) {
    total += piece.geometry.numel;
    int32_t at[kMaxOperands];
    piece.geometry.locate(piece.geometry.numel - 1, at);
    EXPECT_GE(at[0], 0);
    EXPECT_GE(at[1], 0);
    starts[piece.operands[0].data] = piece.geometry.numel;
  });
  EXPECT_EQ(total, uint64_t{3} << 31);
  EXPECT_GT(starts.size(), 5u);
  EXPECT_EQ(starts.begin()->first, reinterpret_cast<const char*>(0x1000));
}

template <class T>
Tensor filled(IntList sizes, DType dtype, float value) {
  const Tensor t = empty_tensor(sizes, dtype);
  std::fill_n(t.data<T>(), t.numel(), T(value));
  return t;
}

// One launch for tensors of several lengths: sums of an operand and one element or number, times a parameter.
TEST(CudaGeometry, SharesOneLaunchAmongTensors) {
  const Tensor number = scalar_tensor_of(0.5, DType::Float64), one = filled<BFloat16>({}, DType::BFloat16, 2);
  std::vector<Tensor> outs, ins;
  FormulaMultiTensor many;
  for (int64_t n : {1, 5000, 1024, 3}) {
    outs.push_back(filled<float>({n}, DType::Float32, 0));
    ins.push_back(filled<BFloat16>({n}, DType::BFloat16, static_cast<float>(n)));
    const bool by_number = n == 1024;
    const Tensor* inputs[] = {&ins.back(), by_number ? &number : &one};
    const Device gpu{DeviceType::CUDA, 0};
    ins.back()->device = gpu, one->device = gpu;  // no numbers: operands in memory
    for_each_piece(outs.back(), inputs, [&](const Piece& piece) {
      ASSERT_TRUE(FormulaMultiTensor::fits(piece) && many.goes_with(piece));
      const Scalar factor(n == 3 ? 10.0 : 1.0);
      many.add<float>(piece, DType::Float32, std::span(&factor, 1));
    });
    ins.back()->device = Device{}, one->device = Device{};
  }
  EXPECT_EQ(many.tensor_blocks.blocks(), 1 + 5 + 1 + 1);
  for (int block = 0; block < many.tensor_blocks.blocks(); ++block) {
    const int k = many.tensor_blocks.owner(block);
    const FormulaMultiTensor::Entry& e = many.entries[k];
    const auto first =
        static_cast<uint32_t>(block - many.tensor_blocks.first_block[k]) * FormulaMultiTensor::kPerBlock;
    for (uint32_t i = first; i < std::min(first + FormulaMultiTensor::kPerBlock, e.numel); ++i)
      reinterpret_cast<float*>(e.out)[i] += (many.input<float>(e, 0, i) + many.input<float>(e, 1, i)) *
                                            FormulaMultiTensor::number_of<float>(e.parameters[0]);
  }
  for (const Tensor& out : outs) {
    const double n = static_cast<double>(out.numel()), rounded = n == 5000 ? 4992 : n;  // as bfloat16
    for (int64_t i = 0; i < out.numel(); ++i)
      ASSERT_EQ(out.data<float>()[i], (rounded + (n == 1024 ? 0.5 : 2)) * (n == 3 ? 10 : 1)) << n;
  }
}

Piece piece_of(const Tensor& out, const Tensor& in) {
  Piece found;
  const Tensor* inputs[] = {&in};
  in->device = Device{DeviceType::CUDA, 0};
  for_each_piece(out, inputs, [&](const Piece& piece) { found = piece; });
  in->device = Device{};
  return found;
}

TEST(CudaGeometry, TakesWideWordsWhereRowsAllow) {
  const Tensor out = empty_tensor({6, 8}, DType::Float32);
  auto word = [&](IntList strides, int64_t offset, uint32_t numel) {
    const Piece piece = piece_of(out, strided({6, 8}, strides, offset, 200));
    Geometry g = piece.geometry;
    const size_t size = widen(&g, piece.operands, {0, 1});
    EXPECT_EQ(g.numel, numel);
    for (uint32_t i = 0; i < g.numel; ++i) {  // still the same places
      int32_t wide[2], narrow[kMaxOperands];
      g.locate_few(i, wide);
      piece.geometry.locate(i * static_cast<uint32_t>(size / 4), narrow);
      EXPECT_EQ(wide[0], narrow[0]);
      EXPECT_EQ(wide[1], narrow[1]);
    }
    return size;
  };
  EXPECT_EQ(word({8, 1}, 0, 12), 16u);
  EXPECT_EQ(word({12, 1}, 0, 12), 16u);
  EXPECT_EQ(word({10, 1}, 2, 24), 8u);
  EXPECT_EQ(word({12, 1}, 1, 48), 4u);  // an address between words
  EXPECT_EQ(word({9, 1}, 0, 48), 4u);   // rows between words
  EXPECT_EQ(word({1, 6}, 0, 48), 4u);
}

TEST(CudaGeometry, PlansFourNeighbours) {
  auto plan = [](IntList sizes, IntList strides, int64_t offset) {
    NeighbourPlan found;
    const bool planned = plan_neighbours(
        piece_of(empty_tensor(sizes, DType::Float32), strided(sizes, strides, offset, 400)), &found);
    if (!planned) found.g.numel = 0;
    return found;
  };
  EXPECT_EQ(plan({6, 8}, {12, 1}, 0).g.numel, 12u);
  EXPECT_TRUE(plan({6, 8}, {12, 1}, 0).together[1]);
  EXPECT_FALSE(plan({6, 8}, {12, 1}, 1).together[1]);  // one by one
  EXPECT_EQ(plan({6, 8}, {12, 1}, 1).step[1], 4);
  EXPECT_EQ(plan({6, 8}, {1, 0}, 0).step[1], 0);
  EXPECT_EQ(plan({6, 8}, {16, 2}, 0).step[1], 8);
  EXPECT_EQ(plan({6, 7}, {12, 1}, 0).g.numel, 0u);  // a row is no multiple of four
  EXPECT_EQ(plan({6, 8}, {1, 40}, 0).g.numel, 0u);  // neighbours lie far apart
}

TEST(CudaGeometry, LeavesOtherTensorsAlone) {
  const Tensor plain = empty_tensor({40, 3}, DType::Float32),
               longer = empty_tensor({2 << 20}, DType::Float32);
  EXPECT_TRUE(FormulaMultiTensor::fits(piece_of(plain, empty_tensor({40, 3}, DType::Int16))));
  EXPECT_FALSE(FormulaMultiTensor::fits(piece_of(plain, strided({40, 3}, {1, 40}, 0, 120))));
  EXPECT_FALSE(FormulaMultiTensor::fits(piece_of(plain, empty_tensor({3}, DType::Float32))));
  EXPECT_FALSE(FormulaMultiTensor::fits(piece_of(longer, longer)));
  FormulaMultiTensor many;
  many.add<float>(piece_of(plain, plain), DType::Float32, {});
  EXPECT_TRUE(many.goes_with(piece_of(plain, plain)));
  EXPECT_FALSE(many.goes_with(piece_of(plain, empty_tensor({40, 3}, DType::Int16))));
}

}  // namespace
}  // namespace rushlight::cuda

// Copies between layouts and dtypes, and selection by a condition.
#include "cuda/check.h"
#include "cuda/device.h"
#include "cuda/kernels.h"
#include "cuda/memory.cuh"

namespace rushlight::cuda {
namespace {

// Elements of one size, moved as they are.
template <class Word>
__global__ void move_kernel(Geometry g, char* out, const char* in) {
  uint32_t i = blockIdx.x * (kThreads * kPerThread) + threadIdx.x;
  for (int k = 0; k < kPerThread && i < g.numel; ++k, i += kThreads) {
    int32_t at[kMaxOperands];
    g.locate(i, at);
    *reinterpret_cast<Word*>(out + at[0]) = *reinterpret_cast<const Word*>(in + at[1]);
  }
}

// By way of T, which holds what both dtypes can.
template <class T>
__global__ void convert_kernel(Geometry g, char* out, DType out_dtype, Source<T> in) {
  uint32_t i = blockIdx.x * (kThreads * kPerThread) + threadIdx.x;
  for (int k = 0; k < kPerThread && i < g.numel; ++k, i += kThreads) {
    int32_t at[kMaxOperands];
    g.locate(i, at);
    store(out_dtype, out + at[0], in(at[1]));
  }
}

struct alignas(16) SixteenBytes {
  uint64_t half[2];
};

template <class Word>
void move(const Piece& piece, cudaStream_t stream) {
  move_kernel<Word><<<blocks_for(piece.geometry.numel), kThreads, 0, stream>>>(
      piece.geometry, piece.operands[0].data, piece.operands[1].data);
}

template <class T>
void convert(const Piece& piece, cudaStream_t stream) {
  const Operand& out = piece.operands[0];
  convert_kernel<T><<<blocks_for(piece.geometry.numel), kThreads, 0, stream>>>(
      piece.geometry, out.data, out.dtype, source_of<T>(piece.operands[1]));
}

template <class T>
__global__ void where_kernel(Geometry g, char* out, DType out_dtype, Source<bool> condition, Source<T> a,
                             Source<T> b) {
  uint32_t i = blockIdx.x * (kThreads * kPerThread) + threadIdx.x;
  for (int k = 0; k < kPerThread && i < g.numel; ++k, i += kThreads) {
    int32_t at[kMaxOperands];
    g.locate(i, at);
    store(out_dtype, out + at[0], condition(at[1]) ? a(at[2]) : b(at[3]));
  }
}

}  // namespace

void run_copy(const Piece& piece, int device) {
  const DeviceScope scope(device);
  const cudaStream_t stream = current_stream(device);
  const Operand &out = piece.operands[0], &in = piece.operands[1];
  if (out.dtype == in.dtype && !in.is_value) {
    switch (element_size(out.dtype)) {
      case 1:
        move<uint8_t>(piece, stream);
        break;
      case 2:
        move<uint16_t>(piece, stream);
        break;
      case 4:
        move<uint32_t>(piece, stream);
        break;
      case 8:
        move<uint64_t>(piece, stream);
        break;
      default:
        move<SixteenBytes>(piece, stream);
        break;
    }
  } else {
    RL_CHECK_AS(NotImplemented, !is_complex(out.dtype) && !is_complex(in.dtype), "copies between ",
                dtype_name(in.dtype), " and ", dtype_name(out.dtype), " on CUDA");
    if (is_integral_or_bool(in.dtype) && is_integral_or_bool(out.dtype))
      convert<int64_t>(piece, stream);
    else
      convert<double>(piece, stream);
  }
  check_launch("copy");
}

void run_where(const Piece& piece, int device) {
  const DeviceScope scope(device);
  const cudaStream_t stream = current_stream(device);
  const Operand* o = piece.operands;
  const unsigned blocks = blocks_for(piece.geometry.numel);
  if (is_integral_or_bool(o[0].dtype))
    where_kernel<int64_t><<<blocks, kThreads, 0, stream>>>(piece.geometry, o[0].data, o[0].dtype,
                                                           source_of<bool>(o[1]), source_of<int64_t>(o[2]),
                                                           source_of<int64_t>(o[3]));
  else
    where_kernel<double><<<blocks, kThreads, 0, stream>>>(piece.geometry, o[0].data, o[0].dtype,
                                                          source_of<bool>(o[1]), source_of<double>(o[2]),
                                                          source_of<double>(o[3]));
  check_launch("where");
}

}  // namespace rushlight::cuda

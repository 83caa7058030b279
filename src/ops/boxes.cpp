// Boxes that detectors find: `torchvision::nms`, which is an operator so that exported programs and files
// hold it.
#include <algorithm>

#include "core/long_work.h"
#include "dispatch/table.h"
#include "ops/copy.h"
#include "ops/factory.h"
#include "ops/index.h"
#include "ops/sort.h"

namespace rushlight {
namespace {

using namespace ops;

// How much of two boxes they share, as a part of what they cover together; corners low, then high.
template <class T>
T overlap(const T* a, const T* b, T area_a, T area_b) {
  const T width = std::max(std::min(a[2], b[2]) - std::max(a[0], b[0]), T(0));
  const T height = std::max(std::min(a[3], b[3]) - std::max(a[1], b[1]), T(0));
  const T shared = width * height;
  return shared / (area_a + area_b - shared);
}

// The rows that no earlier kept one covers.
template <class T>
std::vector<int64_t> kept_rows(const T* boxes, int64_t count, double threshold) {
  std::vector<T> areas(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    const T* box = boxes + 4 * i;
    areas[static_cast<size_t>(i)] = (box[2] - box[0]) * (box[3] - box[1]);
  }
  std::vector<int64_t> kept;
  InterruptPoll poll;
  for (int64_t i = 0; i < count; ++i) {
    poll();
    const bool covered = std::ranges::any_of(kept, [&](int64_t k) {
      return overlap(boxes + 4 * k, boxes + 4 * i, areas[static_cast<size_t>(k)],
                     areas[static_cast<size_t>(i)]) > threshold;
    });
    if (!covered) kept.push_back(i);
  }
  return kept;
}

Fn<Tensor(const Tensor& dets, const Tensor& scores, double iou_threshold)> nms;

Tensor nms_kernel(const Call&, const Tensor& dets, const Tensor& scores, double iou_threshold) {
  RL_CHECK(dets.dim() == 2, "boxes should be a 2d tensor, got ", dets.dim(), "D");
  RL_CHECK(dets.size(1) == 4, "boxes should have 4 elements in dimension 1, got ", dets.size(1));
  RL_CHECK(scores.dim() == 1, "scores should be a 1d tensor, got ", scores.dim(), "D");
  RL_CHECK(dets.size(0) == scores.size(0),
           "boxes and scores should have same number of elements in dimension 0, got ", dets.size(0), " and ",
           scores.size(0));
  RL_CHECK(dets.dtype() == scores.dtype(), "dets should have the same type as scores");
  const Tensor order = argsort_stable(scores, true, 0, true);
  const DType computed = dets.dtype() == DType::Float64 ? DType::Float64 : DType::Float32;
  const Tensor boxes = contiguous(to_dtype(index_select(dets, 0, order), computed));
  const int64_t count = boxes.size(0);
  const std::vector<int64_t> rows = computed == DType::Float64
                                        ? kept_rows(boxes.data<double>(), count, iou_threshold)
                                        : kept_rows(boxes.data<float>(), count, iou_threshold);
  const Tensor found = empty_tensor({static_cast<int64_t>(rows.size())}, DType::Int64);
  std::ranges::copy(rows, found.data<int64_t>());
  return index_select(order, 0, found);
}

}  // namespace

void register_box_operators(Table& t) {
  t.op(nms, "torchvision::nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor", nms_kernel)
      .internal()
      .doc("Numbers of the boxes that no better one covers by more than the threshold, best first.")
      .no_meta("how many boxes are kept depends on their values")
      .family(Family::Index)
      .data_dependent_shape()
      .autocast(Cast::Float)
      .not_differentiable("integer output");
}

}  // namespace rushlight

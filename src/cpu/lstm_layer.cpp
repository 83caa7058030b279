#include "cpu/lstm_layer.h"

#include "core/constant_memory.h"
#include "core/host/processor.h"
#include "core/parallel.h"
#include "cpu/buffer.h"
#include "cpu/chain_product.h"
#include "cpu/isa_variant.h"

namespace rushlight::cpu {

RL_DECLARE_VARIANTS(LstmKernels lstm_kernels(); LstmBackwardKernels lstm_backward_kernels();)

namespace {

constexpr int64_t kRowGrain = 4;                   // sequences of a task
constexpr int64_t kPackGrain = int64_t{1} << 16;   // elements of the weight
constexpr int64_t kSharedWork = int64_t{1} << 18;  // multiplications that pay for threads once
constexpr int64_t kStepWork = int64_t{3} << 20;    // multiplications of one step that pay for them each time
constexpr int64_t kFewSequences = 4;               // below them tiles do not pay
constexpr int64_t kNearWeight = int64_t{1} << 20;  // bytes that each core may hold for itself

enum class Sharing { None, Sequences, Panels };

// What threads divide among themselves. A weight beyond a core's cache is read once a step and core, which
// only sharing its panels makes less.
Sharing sharing(const LstmSteps& s) {
  if (get_num_threads() == 1 || in_parallel_region()) return Sharing::None;
  const int64_t weight = 4 * s.hidden * s.hidden, step = s.batch * weight;
  const bool near = weight * 4 <= kNearWeight, many = s.batch >= 2 * kRowGrain;
  if ((!near || !many) && step >= kStepWork) return Sharing::Panels;
  return many && step * s.count >= kSharedWork ? Sharing::Sequences : Sharing::None;
}

int64_t up(int64_t n, int64_t unit) { return (n + unit - 1) / unit; }

// Runs all steps of some sequences; `step` is given the sequences and how to run over the panels.
template <class Visit>
void share(const LstmSteps& s, int64_t panels, Visit&& visit) {
  const auto alone = [&](auto&& f) { f(Span{0, panels}); };
  switch (sharing(s)) {
    case Sharing::Sequences:
      return parallel_for(0, s.batch, kRowGrain,
                          [&](int64_t begin, int64_t end) { visit(Span{begin, end}, alone); });
    case Sharing::Panels:
      return visit(Span{0, s.batch}, [&](auto&& f) {
        parallel_for(0, panels, 1, [&](int64_t begin, int64_t end) { f(Span{begin, end}); });
      });
    default:
      return visit(Span{0, s.batch}, alone);
  }
}

// The panels of a constant weight.
struct PackedRecurrence final : ConstantMemory::Made {
  PackedRecurrence(DType dtype, int64_t hidden, int64_t width, int64_t bytes)
      : dtype(dtype), hidden(hidden), width(width), bytes(bytes), data(bytes) {}
  size_t nbytes() const override { return static_cast<size_t>(bytes); }
  const DType dtype;
  const int64_t hidden, width, bytes;
  const Buffer data;
};

// The buffers behind a LstmScratch.
class Memory {
 public:
  // `products`: rows of a panel; `columns`: of all panels; `other`: elements of the second state, a sequence.
  // `packed`: panels that are there already, or null.
  Memory(const LstmSteps& s, bool pairs, int64_t width, int64_t columns, int64_t products, int64_t states,
         int64_t other, void* packed = nullptr)
      : pairs_(pairs && s.dtype == DType::BFloat16),
        // Not by how many sequences a thread has or are left: sums are the same for all.
        tiles_(pairs_ && s.batch >= kFewSequences && host::has_bfloat16_tiles() && !batch_invariant()),
        item_(s.dtype == DType::Float64 ? 8 : 4),
        panels_(up(columns, width)),
        weight_(packed ? 0 : panels_ * width * products * item_),
        state_(rows_read(s) * states * item_),
        other_(rows_read(s) * other * item_),
        cell_(s.batch * states * item_),
        view_{pairs_,
              tiles_,
              panels_,
              width,
              states,
              packed ? packed : weight_.as<void>(),
              {state_.as<void>(), other_.as<void>()},
              cell_.as<void>()} {}
  const LstmScratch& view() const { return view_; }

 private:
  int64_t rows_read(const LstmSteps& s) const { return s.batch + (tiles_ ? kLstmTileRows : 0); }

  bool pairs_, tiles_;
  int64_t item_, panels_;
  Buffer weight_, state_, other_, cell_;
  LstmScratch view_;
};

}  // namespace

void lstm_layer(const LstmLayer& s) {
  const LstmKernels f = RL_ISA_VARIANT(lstm_kernels());
  const int64_t width = f.forward_width(s.dtype, s.hidden), padded = up(s.hidden, width / 4) * (width / 4);
  std::shared_ptr<const PackedRecurrence> packed;
  const bool constant = ConstantMemory::contains(s.weight);
  if (constant)
    packed = ConstantMemory::find<PackedRecurrence>(s.weight, [&](const PackedRecurrence& p) {
      return p.dtype == s.dtype && p.hidden == s.hidden && p.width == width;
    });
  const bool found = packed != nullptr;
  if (constant && !found)
    packed = std::make_shared<const PackedRecurrence>(
        s.dtype, s.hidden, width, 4 * padded * s.hidden * (s.dtype == DType::Float64 ? 8 : 4));
  const Memory memory(s, f.pairs, width, 4 * padded, s.hidden, padded, padded,
                      packed ? packed->data.as<void>() : nullptr);
  const LstmScratch& m = memory.view();
  if (!found)
    parallel_for(0, m.panels, std::max<int64_t>(1, kPackGrain / (s.hidden * width)),
                 [&](int64_t begin, int64_t end) { f.pack_forward(s, m, {begin, end}); });
  if (constant && !found) ConstantMemory::keep(s.weight, packed);
  share(s, m.panels, [&](Span rows, auto&& over_panels) {
    for (int64_t k = 0; k < s.count; ++k) {
      f.enter_forward(s, m, k, rows);
      over_panels([&](Span panels) { f.forward(s, m, k, rows, panels); });
    }
    f.enter_forward(s, m, s.count, rows);
  });
}

void lstm_layer_backward(const LstmLayerGradients& s) {
  const LstmBackwardKernels f = RL_ISA_VARIANT(lstm_backward_kernels());
  const int64_t width = f.backward_width(s.dtype, s.hidden), padded = up(s.hidden, width) * width;
  const Memory memory(s, f.pairs, width, padded, 4 * s.hidden, padded, 4 * s.hidden);
  const LstmScratch& m = memory.view();
  parallel_for(0, m.panels, std::max<int64_t>(1, kPackGrain / (4 * s.hidden * width)),
               [&](int64_t begin, int64_t end) { f.pack_backward(s, m, {begin, end}); });
  share(s, m.panels, [&](Span rows, auto&& over_panels) {
    for (int64_t k = s.count - 1; k >= 0; --k) {
      f.enter_backward(s, m, k, rows);
      f.gates_backward(s, m, k, rows);
      over_panels([&](Span panels) { f.states_backward(s, m, k, rows, panels); });
    }
    f.enter_backward(s, m, -1, rows);
  });
}

}  // namespace rushlight::cpu

// Traits: what other layers must know of an operator besides its schema, kernels and derivative. They are
// declared on the record where the operator is registered; what is not declared follows from its family
// (`resolve_traits`). Note [Traits]
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "core/device.h"

namespace rushlight {

struct Op;

// Note [Traits]
// A fact about an operator stands on its record and nowhere else: whoever needs one reads `op.traits`, and
// adds a trait where there is none yet. A list of operator names in another file is a defect, because nothing
// notices when it goes stale. Rules that are functions (of vmap, of sparse operands) belong to the layer that
// owns them and bind by typed handle. Python sees the same as `torch.ops.aten.add.Tensor.traits`.

enum class Family : uint8_t {
  Pointwise,  // element by element, operands broadcast together
  Reduction,
  View,  // the results share memory with the first operand
  Index,
  Matmul,
  Factory,
  Random,
  Composite,      // written in public operators
  Copy,           // the operand's elements, perhaps of another type, layout or order
  Join,           // several tensors become one
  Scan,           // running sums and their like, sorting
  Window,         // convolution, pooling, padding, interpolation
  Normalization,  // softmax and layers that normalise
  Loss,
  Embedding,
  Attention,
  Recurrent,
  LinearAlgebra,  // factorisations and solvers
  Transform,      // Fourier transforms
  Gradient,       // what a derivative calls and programs do not
  MultiTensor,    // one operator over lists of tensors
  Sparse,         // makes sparse tensors or reads their parts
  Value,          // gives numbers or truth values, no tensors
  Other,
};
inline constexpr int kFamilyCount = static_cast<int>(Family::Other) + 1;
const char* family_name(Family family);

// How the tangents of results follow from those of operands. Note [Forward mode] in transform/forward.h
enum class Tangent : uint8_t {
  ByFamily,
  None,         // the results do not move with the operands
  Zero,         // they are differentiable, and do not move
  Linear,       // the operator itself, on tangents
  Product,      // the sum over its factors, each replaced by its tangent in turn
  Elementwise,  // what the derivative multiplies gradients by
  DoubleVjp,    // the derivative's derivative
};

// What becomes of the dimension of examples under vmap. Rules of single operators bind by handle in
// transform/.
enum class Batching : uint8_t {
  ByFamily,
  Loop,         // one call for each example
  Composite,    // what the body calls is batched
  Pointwise,    // ranks aligned, then plain broadcasting
  Dims,         // dimension arguments counted one further, sizes with one more
  Reduction,    // likewise, and no dimension means all of them
  Batch,        // examples join the batch, which is the first dimension of every operand
  Window,       // likewise, where one image may stand without a batch
  LeadingDims,  // the kernel takes any leading dimensions
  Loss,         // element by element, then reduced for each example
  Random,       // refused, the same, or others for each example, as the program chose
  RandomLike,   // likewise; the operand only tells the shape
  RandomEach,   // likewise, drawn one example after the other
  Geometry,     // rewrites how its operand lies
  Refused,      // the results' shapes depend on values
};

// What autocasting does to floating-point operands. Note [Autocast] in transform/autocast.cpp
enum class Cast : uint8_t {
  None,
  Half,     // the region's type
  Float,    // float32
  Widest,   // the widest type among them
  Refused,  // unsafe in half precision: an error
};

// What becomes of a call with quantised operands. Note [Quantised tensors] in core/quantizer.h
enum class OnQuantized : uint8_t {
  ByFamily,  // views are Integers, others are refused; rules of single operators bind by handle
  Refused,
  Integers,     // moves or orders elements: on the integers; results are quantised as the first operand is
  Numbers,      // on the numbers that they stand for: a comparison
  Requantized,  // likewise; results are quantised as the first operand is
};

// Whether results may share memory with operands.
enum class Aliasing : uint8_t {
  ByFamily,
  Fresh,
  View,
  MayReturnInput,
};

// What out= must be like.
enum class OutRule : uint8_t {
  Castable,      // of any type that the result's may be cast to
  SameCategory,  // another precision will do, but no complex tensor for real numbers
  SameType,      // of the result's type: rounded on the way out, a factorisation would no longer be one
  Disjoint,      // likewise, and apart from all operands: reads and writes are in no fixed order
};
// Operands that out= must not partly overlap where that is checked: a bit for each parameter.
struct OutOverlap {
  uint64_t apart = 0;
  bool strict = false;       // nor be the whole of them
  bool accumulates = false;  // the first operand may be the output: the kernel starts from it
};
inline constexpr uint64_t kFirst = 1, kSecond = 2, kThird = 4, kAllOperands = ~uint64_t{0};

// Which Tensor parameters take Python numbers: none, all but the first, all of them, or as many as leave one
// tensor. PyTorch's graphs show a number in its place where all may be numbers; else an overload for numbers.
enum class Numbers : uint8_t { None, Later, All, Mixed };

// The name of an operator's node where a parameter was given as a number. PyTorch numbers these derivatives.
struct NumberNode {
  int parameter;
  const char* name;
};

// What PyTorch calls the overloads of an operator, where that does not follow from the schema's (`own`, which
// is also `inplace`; `own_out`). Note [Overloads] in rushlight/_operators/overloads.py
struct OverloadNames {
  const char* own = nullptr;
  const char* inplace = nullptr;  // of `name_`
  const char* out = nullptr;      // "dim_max(max, max_values)" where its targets are not named as the results
};
// The overload with numbers in place of these tensors.
struct NumberOverload {
  uint64_t numbers;
  OverloadNames names;
};

// Whether PyTorch has such an operator, or its parser of Python's arguments alone takes such calls.
enum class Spelling : uint8_t {
  Operator,
  Python,      // torch.ops does not have it
  Deprecated,  // likewise, and nobody is told to write it
};

// Operands that a call writes to though the schema, which is PyTorch's, does not say so: running statistics.
struct UnmarkedWrites {
  uint64_t parameters = 0;
  int where = -1;  // a bool parameter: only where that is true
};

// What an in-place operator does to how its operand lies in memory.
enum class Reshaping : uint8_t {
  ByFamily,  // views written in place change the geometry
  None,
  Geometry,  // other sizes and strides of the same storage
  Storage,   // a storage of another size, if need be
};

// Where a layer has its weight, which is constant in an inference, and its bias; activations come before the
// weight.
struct LayerOperands {
  int8_t weight = -1, bias = -1;  // parameters; -1: none
  bool turned = false;            // the weight is [in, out], not [out, in]
  int input() const { return weight - 1; }
};

struct Traits {
  Tangent tangent = Tangent::ByFamily;
  Batching batching = Batching::ByFamily;
  Aliasing aliasing = Aliasing::ByFamily;
  Cast autocast_cpu = Cast::None, autocast_cuda = Cast::None;
  Numbers numbers = Numbers::None;
  OnQuantized on_quantized = OnQuantized::ByFamily;
  Spelling spelling = Spelling::Operator;
  OutRule out = OutRule::Castable;
  OutOverlap out_overlap;
  UnmarkedWrites unmarked_writes;
  bool random = false;         // equal calls may differ: it draws numbers or updates statistics, or may
  bool uninitialized = false;  // gives memory as it was found
  // Each element of the results comes from the elements at its place in the operands, broadcast together.
  bool elementwise = false;
  // The result has the first operand's elements in their order: reshape makes one of the other.
  bool same_elements = false;
  // A view, two elements of which may be one in memory.
  bool overlapping = false;
  // Elements are truth values whatever the operands are; an in-place form writes them as numbers.
  bool gives_bool = false;
  // What it returns is no tensor and depends on the operands' values.
  bool reads_values = false;
  // Each element of the result is the operand's, or a limit where that is beyond it.
  bool limits = false;
  // PyTorch has no operator of this name with these parameters: files for it cannot name this one.
  bool absent_in_pytorch = false;
  // A composite with a kernel of its own where no gradients are recorded: graphs do not take it apart.
  bool kept_whole = false;
  // Parameters whose first dimension counts examples, each of which alone gives its part of the results; the
  // other tensors are shared by all.
  uint64_t examples = 0;
  // The results' shapes depend on the operands' values.
  bool data_dependent_shape = false;
  // A composite that PyTorch differentiates as one operator: its last step bears its name.
  bool one_node = false;
  bool special_dtypes = false;  // its dtype parameter may name a type that no kernel knows
  // torch.name_(x) exists too, not only x.name_().
  bool inplace_function = false;
  Reshaping reshaping = Reshaping::ByFamily;
  LayerOperands layer;
  uint64_t any_device = 0;     // parameters whose tensors may lie on another device than the others
  const char* node = nullptr;  // the name of its node, where that does not follow from the operator's
  std::vector<NumberNode> number_nodes;  // the first that fits counts before `node`
  OverloadNames overloads;
  std::vector<NumberOverload> number_overloads;

  Cast autocast(DeviceType type) const { return type == DeviceType::CPU ? autocast_cpu : autocast_cuda; }
};

// Fills in what a record leaves to its family.
void resolve_traits(Op& op);

}  // namespace rushlight

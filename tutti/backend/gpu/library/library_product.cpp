#include "tutti/backend/gpu/library/library_product.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "tutti/backend/gpu/own/product_end.h"
#include "tutti/backend/gpu/own/strides.h"
#include "tutti/ops/conv.h"
#include "tutti/ops/conv_transpose.h"
#include "tutti/ops/dense.h"

namespace tutti::backend {
namespace {

using device::LayerProduct, device::LibraryConvolution, device::LibraryDense, device::LibraryType;

/// Returns the growth of an error that comes from `known` roundings when there are some more.
double error_of(int more, int known) { return std::sqrt(1.0 + more / static_cast<double>(known)); }

/// The error of a result that is rounded to 16 bits before its bias is added, as its factors are.
double error_with_bias_after() { return error_of(1, 3); }

/// Returns the type of factors that activations of this type have; nothing if there is none.
std::optional<LibraryType> factors_of(DType type, bool tf32) {
  if (type == DType::bf16) return LibraryType::bf16;
  if (type != DType::f32) return std::nullopt;
  return tf32 ? LibraryType::tf32 : LibraryType::f32;
}

bool has_strides(const TensorDesc& d) { return d.layout.num_blocks == 0 && !d.layout.mirrored; }

TensorDesc channels_last(DType type, const Shape& shape) {
  return {type, shape, Layout::channels_last(shape.rank())};
}

/// Takes operands from a request, and notes the first reason why that cannot be.
class OperandTaker {
 public:
  explicit OperandTaker(const KernelRequest& request) : r_(request) {}

  /// Takes the next input for a library that wants it as `wanted`. Others that the plan fixes are
  /// refused unless they may be copied.
  void input(const TensorDesc& wanted, bool may_copy) {
    const size_t i = made.in.size();
    const bool is_free = i < r_.in_free.size() && r_.in_free[i];
    const bool fits = same_memory(r_.in[i], wanted);
    made.in.push_back(is_free && !fits ? wanted : r_.in[i]);
    (i == 0 ? made.first : made.second) = wanted;
    check(made.in.back(), wanted, may_copy);
  }
  /// Takes the result; a gradient of weights keeps its type and may be copied.
  void output(const TensorDesc& wanted, bool may_copy) {
    TensorDesc taken = r_.out[0];
    if (!r_.out_free.empty() && r_.out_free[0]) taken.layout = wanted.layout;
    made.out.push_back(taken);
    made.result = wanted;
    check(taken, wanted, may_copy);
  }
  void bias() {
    const TensorDesc wanted{DType::f32, r_.in[2].shape, Layout::plain()};
    const bool is_free = 2 < r_.in_free.size() && r_.in_free[2];
    made.in.push_back(is_free ? wanted : r_.in[2]);
    check(made.in.back(), wanted, false);
  }
  void refuse(std::string reason) {
    if (made.refusal.empty()) made.refusal = std::move(reason);
  }

  LibraryProduct made;

 private:
  void check(const TensorDesc& taken, const TensorDesc& wanted, bool may_copy) {
    if (may_copy ? !has_strides(taken) : !same_memory(taken, wanted))
      refuse(
          fmt::format("{} is needed, and the plan has {}", wanted.to_string(), taken.to_string()));
  }
  const KernelRequest& r_;
};

/// A convolution x, w -> y, of which one operand is made.
struct Conv {
  ops::ConvAttributes attributes;
  LayerProduct makes;
  TensorDesc x, y;
  Shape w;
  bool bias = false;
  std::optional<ops::ActivationAttributes> activation{};
};

/// Returns `from` by spatial dimension, behind a first one of `missing` where there is one alone.
template <class Extents>
std::array<int64_t, 3> spatial_of(int spatial, const Extents& from, int64_t missing) {
  std::array<int64_t, 3> made{};
  size_t next = 0;
  if (spatial == 1) made[next++] = missing;
  for (int d = 0; d < spatial; ++d) made[next++] = from(d);
  return made;
}

LibraryConvolution asked_of(const Conv& c, LibraryType type) {
  const ops::ConvAttributes& a = c.attributes;
  const auto extents = [&](const Shape& shape) {
    return spatial_of(
        a.spatial, [&](int d) { return shape[d + 2]; }, 1);
  };
  const auto numbers = [&](const std::array<int64_t, 3>& from, int64_t missing) {
    return spatial_of(
        a.spatial, [&](int d) { return from[static_cast<size_t>(d)]; }, missing);
  };
  return {.makes = c.makes,
          .type = type,
          .spatial = std::max(a.spatial, 2),
          .samples = c.x.shape[0],
          .inputs = c.x.shape[1],
          .outputs = c.y.shape[1],
          .groups = a.groups,
          .in = extents(c.x.shape),
          .out = extents(c.y.shape),
          .window = extents(c.w),
          .stride = numbers(a.stride, 1),
          .dilation = numbers(a.dilation, 1),
          .pad_low = numbers(a.pad_low, 0),
          .pad_high = numbers(a.pad_high, 0)};
}

int64_t terms_of(const Conv& c) {
  switch (c.makes) {
    case LayerProduct::y: return c.w.elements_from(1);
    case LayerProduct::x: return c.w[0] / c.attributes.groups * c.w.elements_from(2);
    case LayerProduct::w: return c.y.shape[0] * c.y.shape.elements_from(2);
  }
  return 1;
}

/// Whether a position of y depends on the same position of x alone.
bool is_pointwise(const Conv& c) {
  const ops::ConvAttributes& a = c.attributes;
  bool steps = false;
  for (size_t d = 0; d < static_cast<size_t>(a.spatial); ++d)
    steps |= a.stride[d] != 1 || a.pad_low[d] != 0 || a.pad_high[d] != 0;
  return a.groups == 1 && c.w.elements_from(2) == 1 && !steps;
}

/// Returns the form for these factors; `dense`: as a dense layer over positions.
LibraryProduct conv_form(const KernelRequest& r, const Conv& c, LibraryType type, bool dense) {
  const DType stored = type == LibraryType::bf16 ? DType::bf16 : DType::f32;
  const bool is_w = c.makes == LayerProduct::w, halves = type == LibraryType::bf16;
  OperandTaker take(r);
  const TensorDesc x = channels_last(stored, c.x.shape), y = channels_last(stored, c.y.shape),
                   w = channels_last(is_w && dense ? DType::f32 : stored, c.w);
  take.input(c.makes == LayerProduct::x ? y : x, false);
  take.input(is_w ? y : w, false);
  if (c.bias) take.bias();
  take.output(is_w ? w : c.makes == LayerProduct::x ? x : y, is_w);
  LibraryProduct& made = take.made;
  made.terms = terms_of(c);
  if (is_w && halves && !dense) made.error = error_of(1, 2);  // the result has 16 bits on the way
  made.bias_in_call = c.bias && dense && c.makes == LayerProduct::y && !halves;
  made.bias_after = c.bias && !made.bias_in_call;
  if (made.bias_after && halves) made.error = error_with_bias_after();
  if (dense)
    made.asked = LibraryDense{.makes = c.makes,
                              .type = type,
                              .f32_result = is_w && halves,
                              .bias = made.bias_in_call,
                              .rows = c.x.shape[0] * c.x.shape.elements_from(2),
                              .inputs = c.x.shape[1],
                              .outputs = c.y.shape[1]};
  else
    made.asked = asked_of(c, type);
  if (const std::optional<ProductEnd> end = product_end_of(c.activation))
    made.end = *end;
  else
    take.refuse(fmt::format("no product ends in {}", c.activation->to_string()));
  if (c.activation) made.slope = c.activation->slope;
  return std::move(made);
}

/// A pointwise convolution may be a dense layer, too. That one makes gradients of weights as f32,
/// so it comes first there.
std::vector<LibraryProduct> conv_forms(const KernelRequest& r, const Conv& c, bool tf32) {
  const std::optional<LibraryType> type = factors_of(c.x.dtype, tf32);
  if (!type || c.x.dtype != c.y.dtype) return {};
  std::vector<LibraryProduct> forms{conv_form(r, c, *type, false)};
  if (is_pointwise(c))
    forms.insert(c.makes == LayerProduct::w ? forms.begin() : forms.end(),
                 conv_form(r, c, *type, true));
  return forms;
}

/// A dense layer between x [N, ...] and y [N, K] with w [K, F]. Its activations are copied where
/// they lie or are of another type than the library takes.
std::vector<LibraryProduct> dense_forms(const KernelRequest& r, LayerProduct makes,
                                        const TensorDesc& x, const TensorDesc& y, bool bias,
                                        bool tf32) {
  const std::optional<LibraryType> type = factors_of(x.dtype, tf32);
  if (!type) return {};
  const bool halves = *type == LibraryType::bf16, is_y = makes == LayerProduct::y;
  const bool f32_result = halves && (makes == LayerProduct::w || (is_y && y.dtype == DType::f32));
  const DType stored = halves ? DType::bf16 : DType::f32,
              result = halves && !f32_result ? DType::bf16 : DType::f32;
  const int64_t features = x.shape.elements_from(1), outputs = y.shape[1];
  const auto plain = [](DType dtype, const Shape& shape) {
    return TensorDesc{dtype, shape, Layout::plain()};
  };
  OperandTaker take(r);
  take.input(plain(stored, r.in[0].shape), true);
  take.input(plain(stored, r.in[1].shape), makes == LayerProduct::w);
  if (bias) take.bias();
  const bool bias_after = bias && result == DType::bf16;  // cuBLASLt adds one to f32 alone
  take.output(plain(result, r.out[0].shape), !bias_after);
  LibraryProduct& made = take.made;
  made.terms = is_y ? features : makes == LayerProduct::x ? outputs : x.shape[0];
  made.bias_in_call = bias && !bias_after;
  made.bias_after = bias_after;
  if (bias_after) made.error = error_with_bias_after();
  if (halves && !is_y && y.dtype == DType::f32)  // dy is rounded
    made.error = error_of(1, makes == LayerProduct::w ? 1 : 2);
  made.asked = LibraryDense{.makes = makes,
                            .type = *type,
                            .f32_result = f32_result,
                            .bias = made.bias_in_call,
                            .rows = x.shape[0],
                            .inputs = features,
                            .outputs = outputs};
  return {std::move(made)};
}

}  // namespace

bool same_memory(const TensorDesc& a, const TensorDesc& b) {
  if (a.dtype != b.dtype || !has_strides(a) || !has_strides(b)) return false;
  const Strides of_a = strides_of(a), of_b = strides_of(b);
  for (size_t d = 0; d < of_a.size(); ++d)
    if (a.shape[static_cast<int>(d)] > 1 && of_a[d] != of_b[d]) return false;
  return true;
}

LibraryType type_of(const LibraryAsked& asked) {
  return std::visit([](const auto& one) { return one.type; }, asked);
}

std::vector<LibraryProduct> library_products(const KernelRequest& r, bool tf32) {
  using enum LayerProduct;
  const graph::Op* const op = r.op;
  const auto is = [&]<class O>(const O*& as) { return (as = dynamic_cast<const O*>(op)); };
  if (const ops::Conv* conv = nullptr; is(conv))
    return conv_forms(
        r, {conv->conv(), y, r.in[0], r.out[0], r.in[1].shape, conv->bias(), conv->activation()},
        tf32);
  if (const ops::ConvBackwardData* data = nullptr; is(data))
    return conv_forms(r, {data->conv(), x, r.out[0], r.in[0], r.in[1].shape}, tf32);
  if (const ops::ConvTranspose* turned = nullptr; is(turned))
    return conv_forms(r, {turned->conv(), x, r.out[0], r.in[0], r.in[1].shape, turned->bias()},
                      tf32);
  if (const ops::ConvBackwardWeights* weights = nullptr; is(weights))
    return conv_forms(r, {weights->conv(), w, r.in[0], r.in[1], r.out[0].shape}, tf32);
  if (const ops::Dense* dense = nullptr; is(dense))
    return dense_forms(r, y, r.in[0], r.out[0], dense->bias(), tf32);
  if (const ops::DenseBackwardData* data = nullptr; is(data))
    return dense_forms(r, x, r.out[0], r.in[0], false, tf32);
  if (const ops::DenseBackwardWeights* weights = nullptr; is(weights))
    return dense_forms(r, w, r.in[0], r.in[1], false, tf32);
  return {};
}

}  // namespace tutti::backend

#pragma once
// The only header of oneDNN's C interface; onednn*.cpp know the differences between its versions 2
// and 3. It has memory descriptions to and from TensorDesc, the implementations that exist for a
// convolution, and one object that runs a chosen one. Everything is created for one thread, because
// a plan runs one kernel instance per thread.

#include <oneapi/dnnl/dnnl.h>

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "tutti/ops/conv.h"

namespace tutti::backend::onednn {

/// Frees a handle of the C interface.
struct Destroy {
  void operator()(dnnl_primitive_desc_t h) const { dnnl_primitive_desc_destroy(h); }
  void operator()(dnnl_primitive_t h) const { dnnl_primitive_destroy(h); }
  void operator()(dnnl_primitive_attr_t h) const { dnnl_primitive_attr_destroy(h); }
  void operator()(dnnl_post_ops_t h) const { dnnl_post_ops_destroy(h); }
  void operator()(dnnl_memory_t h) const { dnnl_memory_destroy(h); }
  void operator()(dnnl_stream_t h) const { dnnl_stream_destroy(h); }
#if DNNL_VERSION_MAJOR >= 3
  void operator()(dnnl_memory_desc_t h) const { dnnl_memory_desc_destroy(h); }
#endif
};
template <class T>
using Handle = std::unique_ptr<std::remove_pointer_t<T>, Destroy>;

/// oneDNN's description of one tensor. Default-constructed = absent.
class MemoryDesc {
 public:
#if DNNL_VERSION_MAJOR >= 3
  using View = const_dnnl_memory_desc_t;
#else
  using View = const dnnl_memory_desc_t*;
#endif
  MemoryDesc() = default;
  /// Copies a description that oneDNN owns.
  explicit MemoryDesc(View view);
  /// Describes `desc`; throws DeviceError if oneDNN has no name for its layout. groups > 1: weights
  /// [K, C/g, ...] seen as [g, K/g, C/g, ...].
  static MemoryDesc of(const TensorDesc& desc, int64_t groups = 1);
  /// Works like `of`, but oneDNN chooses the layout.
  static MemoryDesc any(const TensorDesc& desc, int64_t groups = 1);

  View view() const;
  size_t bytes() const { return dnnl_memory_desc_get_size(view()); }
  /// Returns the layout in our form, with grouped weights as [K, C/g, ...]; none if it has no such
  /// form (strides with gaps, extra data, blocks across groups).
  std::optional<Layout> layout(int64_t groups = 1) const;

 private:
  static MemoryDesc make(const TensorDesc& desc, int64_t groups, dnnl_format_tag_t tag);
#if DNNL_VERSION_MAJOR >= 3
  Handle<dnnl_memory_desc_t> desc_;
#else
  std::optional<dnnl_memory_desc_t> desc_;
#endif
};

/// Returns the oneDNN tag with this layout, dnnl_format_tag_undef if there is none.
dnnl_format_tag_t tag_of(const Layout& layout, int rank);

enum class ConvKind { forward, backward_data, backward_weights };

/// A convolution as oneDNN sees it. x and dx, w and dw, y and dy share a field.
struct ConvProblem {
  ConvKind kind = ConvKind::forward;
  ops::ConvAttributes attributes;
  TensorDesc x, w, y;
  bool any_w = true;  ///< the layout of w is free
  bool bias = false;
  std::optional<ops::ActivationAttributes>
      activation{};  ///< activation of the result, forward only
};

/// One implementation that oneDNN offers.
struct ConvImplementation {
  std::string name;  ///< oneDNN's own: "jit:avx512_core", "ref:any"
  Handle<dnnl_primitive_desc_t> desc;
  TensorDesc w;          ///< with the layout this implementation wants
  bool usable = true;    ///< false: w's layout has no form in Layout
  bool is_slow() const;  ///< reference loops, or im2col and matrix product
};

/// Returns all implementations, oneDNN's preference first, without duplicates; empty if the problem
/// is not supported. Throws DeviceError if an operand cannot be described.
std::vector<ConvImplementation> conv_implementations(const ConvProblem& problem);

/// A primitive with its operands' memory objects. Belongs to one thread.
class Primitive {
 public:
  struct Operand {
    int argument;        ///< DNNL_ARG_SRC ...
    dnnl_query_t which;  ///< dnnl_query_src_md ...
    int index = 0;
  };
  /// Takes at most five operands.
  Primitive(dnnl_primitive_desc_t desc, std::initializer_list<Operand> operands);

  size_t scratchpad_bytes() const { return scratchpad_bytes_; }
  size_t operand_bytes(size_t i) const { return bytes_[i]; }
  /// Runs on the given operands, in the constructor's order; scratchpad holds scratchpad_bytes(),
  /// 64-byte aligned.
  void run(std::initializer_list<void*> operands, void* scratchpad);

 private:
  void set(size_t slot, void* data);

  static constexpr size_t kMaxOperands = 6;
  Handle<dnnl_primitive_t> primitive_;
  Handle<dnnl_stream_t> stream_;
  std::array<Handle<dnnl_memory_t>, kMaxOperands> memory_;
  std::array<void*, kMaxOperands> data_{};
  std::array<size_t, kMaxOperands> bytes_{};
  std::array<dnnl_exec_arg_t, kMaxOperands> arguments_{};
  size_t count_ = 0;
  size_t scratchpad_bytes_ = 0;
};

}  // namespace tutti::backend::onednn

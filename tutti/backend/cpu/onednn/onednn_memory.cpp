// oneDNN's descriptions of tensors, to and from TensorDesc.

#include <oneapi/dnnl/dnnl_debug.h>

#include <algorithm>

#include "tutti/backend/cpu/onednn/onednn_call.h"
#include "tutti/base/error.h"

namespace tutti::backend::onednn {

void check(dnnl_status_t status, const char* call) {
  if (status != dnnl_success)
    throw DeviceError(fmt::format("oneDNN: {} failed: {}", call, dnnl_status2str(status)));
}
dnnl_engine_t cpu() {
  static const dnnl_engine_t the_cpu =
      [] {  // lives as long as the process: oneDNN's primitive cache refers to it
        dnnl_engine_t made = nullptr;
        TUTTI_DNNL(dnnl_engine_create(&made, dnnl_cpu, 0));
        return made;
      }();
  return the_cpu;
}

namespace {

dnnl_data_type_t type_of(DType type) {
  switch (type) {
    case DType::f32: return dnnl_f32;
    case DType::bf16: return dnnl_bf16;
    case DType::i32: return dnnl_s32;
    case DType::u8: return dnnl_u8;
  }
  return dnnl_data_type_undef;
}

struct Blocking {
  int rank = 0, blocks = 0;
  const dnnl_dim_t *dims = nullptr, *padded = nullptr, *strides = nullptr, *block_size = nullptr,
                   *block_dim = nullptr;
};

#if DNNL_VERSION_MAJOR >= 3
Blocking blocking_of(MemoryDesc::View view) {
  Blocking b;
  const auto list = [&](dnnl_query_t what) {
    const dnnl_dims_t* values = nullptr;
    TUTTI_DNNL(dnnl_memory_desc_query(view, what, &values));
    return *values;
  };
  TUTTI_DNNL(dnnl_memory_desc_query(view, dnnl_query_ndims_s32, &b.rank));
  TUTTI_DNNL(dnnl_memory_desc_query(view, dnnl_query_inner_nblks_s32, &b.blocks));
  b.dims = list(dnnl_query_dims);
  b.padded = list(dnnl_query_padded_dims);
  b.strides = list(dnnl_query_strides);
  b.block_size = list(dnnl_query_inner_blks);
  b.block_dim = list(dnnl_query_inner_idxs);
  return b;
}

bool is_blocked(MemoryDesc::View view) {
  dnnl_format_kind_t kind = dnnl_format_kind_undef;
  return dnnl_memory_desc_query(view, dnnl_query_format_kind, &kind) == dnnl_success &&
         kind == dnnl_blocked;
}
#else
Blocking blocking_of(MemoryDesc::View view) {
  const dnnl_blocking_desc_t& form = view->format_desc.blocking;
  return {view->ndims,  form.inner_nblks, view->dims,     view->padded_dims,
          form.strides, form.inner_blks,  form.inner_idxs};
}

bool is_blocked(MemoryDesc::View view) {
  return view->format_kind == dnnl_blocked && view->extra.flags == 0;
}
#endif

}  // namespace

dnnl_format_tag_t tag_of(const Layout& layout, int rank) {
  if (layout.mirrored) return dnnl_format_tag_undef;
  std::string name;
  for (int i = 0; i < rank; ++i) {
    const int dim = layout.order[static_cast<size_t>(i)];
    const bool blocked =
        std::any_of(layout.blocks.begin(), layout.blocks.begin() + layout.num_blocks,
                    [&](auto b) { return b.dim == dim; });
    name += static_cast<char>((blocked ? 'A' : 'a') + dim);
  }
  for (int b = 0; b < layout.num_blocks; ++b) {
    const auto [dim, size] = layout.blocks[static_cast<size_t>(b)];
    name += std::to_string(size) + static_cast<char>('a' + dim);
  }
  for (int tag = dnnl_format_tag_any + 1; tag < dnnl_format_tag_last; ++tag)
    if (name == dnnl_fmt_tag2str(static_cast<dnnl_format_tag_t>(tag)))
      return static_cast<dnnl_format_tag_t>(tag);
  return dnnl_format_tag_undef;
}

MemoryDesc MemoryDesc::make(const TensorDesc& desc, int64_t groups, dnnl_format_tag_t tag) {
  dnnl_dims_t dims{};
  int rank = 0;
  if (groups > 1) dims[rank++] = groups;
  for (int i = 0; i < desc.shape.rank(); ++i) dims[rank++] = desc.shape[i] / (i == 0 ? groups : 1);
  MemoryDesc made;
#if DNNL_VERSION_MAJOR >= 3
  dnnl_memory_desc_t raw = nullptr;
  TUTTI_DNNL(dnnl_memory_desc_create_with_tag(&raw, rank, dims, type_of(desc.dtype), tag));
  made.desc_.reset(raw);
#else
  TUTTI_DNNL(
      dnnl_memory_desc_init_by_tag(&made.desc_.emplace(), rank, dims, type_of(desc.dtype), tag));
#endif
  return made;
}

namespace {

/// Returns the layout of weights [K, C/g, ...] seen as [g, K/g, C/g, ...]. Memory is the same where
/// the blocks of K lie within a group, or where groups have one output each and the blocks are of
/// groups. A group's outputs come after the groups, or before them only where they are one block.
std::optional<Layout> with_groups(const TensorDesc& desc, int64_t groups, bool outputs_first) {
  const int rank = desc.shape.rank();
  const int64_t outputs = desc.shape[0] / groups;
  if (rank + 1 > Shape::kMaxRank) return std::nullopt;
  Layout grouped;
  size_t at = 0;
  for (int i = 0; i < rank; ++i) {
    const int8_t dim = desc.layout.order[static_cast<size_t>(i)];
    if (dim == 0 && !outputs_first) grouped.order[at++] = 0;
    grouped.order[at++] = static_cast<int8_t>(dim + 1);
    if (dim == 0 && outputs_first) grouped.order[at++] = 0;
  }
  int64_t block_of_outputs = 1;
  grouped.num_blocks = desc.layout.num_blocks;
  for (size_t b = 0; b < static_cast<size_t>(desc.layout.num_blocks); ++b) {
    const Layout::Block block = desc.layout.blocks[b];
    const bool of_groups = block.dim == 0 && outputs == 1;
    if (block.dim == 0 && !of_groups) block_of_outputs *= block.size;
    grouped.blocks[b] = {static_cast<int8_t>(of_groups ? 0 : block.dim + 1), block.size};
  }
  if (outputs % block_of_outputs != 0) return std::nullopt;
  if (outputs_first && outputs != block_of_outputs) return std::nullopt;
  return grouped;
}

/// Converts the other way round; outputs: the number in a group.
std::optional<Layout> without_groups(const Layout& grouped, int rank, int64_t outputs) {
  Layout layout;
  layout.num_blocks = grouped.num_blocks;
  int64_t block_of_outputs = 1;
  for (size_t b = 0; b < static_cast<size_t>(grouped.num_blocks); ++b) {
    const Layout::Block block = grouped.blocks[b];
    if (block.dim == 0 && outputs != 1) return std::nullopt;
    if (block.dim == 1) block_of_outputs *= block.size;
    layout.blocks[b] = {static_cast<int8_t>(block.dim == 0 ? 0 : block.dim - 1), block.size};
  }
  if (outputs % block_of_outputs != 0) return std::nullopt;
  const bool one_block = outputs == block_of_outputs;  // its place then does not matter
  size_t at = 0;
  for (int i = 0; i < rank; ++i) {
    const int8_t dim = grouped.order[static_cast<size_t>(i)];
    if (dim == 1) continue;
    layout.order[at++] = static_cast<int8_t>(dim == 0 ? 0 : dim - 1);
    if (dim == 0 && !one_block && (i + 1 == rank || grouped.order[static_cast<size_t>(i) + 1] != 1))
      return std::nullopt;
  }
  return layout;
}

}  // namespace

MemoryDesc MemoryDesc::of(const TensorDesc& desc, int64_t groups) {
  const int rank = desc.shape.rank() + (groups > 1 ? 1 : 0);
  dnnl_format_tag_t tag = groups > 1 ? dnnl_format_tag_undef : tag_of(desc.layout, rank);
  for (const bool outputs_first : {false, true})
    if (tag == dnnl_format_tag_undef && groups > 1)
      if (const auto layout = with_groups(desc, groups, outputs_first)) tag = tag_of(*layout, rank);
  if (tag == dnnl_format_tag_undef)
    throw DeviceError(
        fmt::format("oneDNN has no name for the layout of {} with {} groups: choose another layout",
                    desc.to_string(), groups));
  return make(desc, groups, tag);
}

MemoryDesc MemoryDesc::any(const TensorDesc& desc, int64_t groups) {
  return make(desc, groups, dnnl_format_tag_any);
}

#if DNNL_VERSION_MAJOR >= 3
MemoryDesc::MemoryDesc(View view) {
  dnnl_memory_desc_t copy = nullptr;
  TUTTI_DNNL(dnnl_memory_desc_clone(&copy, view));
  desc_.reset(copy);
}
MemoryDesc::View MemoryDesc::view() const { return desc_.get(); }
#else
MemoryDesc::MemoryDesc(View view) : desc_(*view) {}
MemoryDesc::View MemoryDesc::view() const { return desc_ ? &*desc_ : nullptr; }
#endif

std::optional<Layout> MemoryDesc::layout(int64_t groups) const {
  if (!is_blocked(view())) return std::nullopt;
  const Blocking b = blocking_of(view());
  if (b.rank > Shape::kMaxRank || b.blocks > Layout::kMaxBlocks) return std::nullopt;
  Layout layout;
  std::array<int64_t, Shape::kMaxRank> outer{};
  for (int i = 0; i < b.rank; ++i) outer[static_cast<size_t>(i)] = b.padded[i];
  int64_t stride = 1;
  for (int i = 0; i < b.blocks; ++i) {
    layout.blocks[static_cast<size_t>(i)] = {static_cast<int8_t>(b.block_dim[i]),
                                             static_cast<int16_t>(b.block_size[i])};
    outer[static_cast<size_t>(b.block_dim[i])] /= b.block_size[i];
    stride *= b.block_size[i];
  }
  layout.num_blocks = b.blocks;
  // Equal strides mean that one of the dimensions has one block only, and lies inside the other;
  // oneDNN's kernels compare strides, so the order must give back exactly these.
  const auto outside = [&](int i, int j) {
    if (b.strides[i] != b.strides[j]) return b.strides[i] > b.strides[j];
    return outer[static_cast<size_t>(i)] > 1 && outer[static_cast<size_t>(j)] == 1;
  };
  std::stable_sort(layout.order.begin(), layout.order.begin() + b.rank, outside);
  for (int i = b.rank - 1; i >= 0; --i) {
    const auto dim = static_cast<size_t>(layout.order[static_cast<size_t>(i)]);
    if (outer[dim] > 1 && b.strides[dim] != stride) return std::nullopt;
    stride *= outer[dim];
  }
  return groups > 1 ? without_groups(layout, b.rank, b.dims[1]) : layout;
}

}  // namespace tutti::backend::onednn

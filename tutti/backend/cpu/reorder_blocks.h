#pragma once
// Reorders weights between layouts that have 16 outputs or 16 channels side by side: blocks of 16 x
// 16 go through registers. Private to reorder.cpp.

#include <functional>
#include <memory>

#include "tutti/backend/backend.h"

namespace tutti::backend {

/// Returns the maker of the kernel for this reorder, f32 to f32 or to bf16 with pairs innermost
/// (8i16o2i); empty where the layouts have no such blocks.
std::function<std::unique_ptr<Kernel>()> maker_of_block_reorder(const TensorDesc& from,
                                                                const TensorDesc& to);

}  // namespace tutti::backend

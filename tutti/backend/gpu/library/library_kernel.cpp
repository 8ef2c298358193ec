#include "tutti/backend/gpu/library/library_kernel.h"

#include <utility>

namespace tutti::backend {

LibraryKernel::LibraryKernel(const LibraryProduct& p, std::unique_ptr<device::LibraryCall> call,
                             size_t workspace_bytes, const device::Device& device)
    : call_(std::move(call)), workspace_bytes_(workspace_bytes),
      first_(copy_of(device, p.in[0], p.first, p.first)),
      second_(copy_of(device, p.in[1], p.second, p.second)),
      result_(copy_of(device, p.result, p.out[0], p.result)), bias_in_call_(p.bias_in_call),
      bias_after_(p.bias_after) {
  if (p.bias_after || p.end != ProductEnd::none) end_.emplace(device, p.out[0], p.end, p.slope);
}

std::optional<LibraryKernel::Copy> LibraryKernel::copy_of(const device::Device& device,
                                                          const TensorDesc& from,
                                                          const TensorDesc& to,
                                                          const TensorDesc& copy) {
  if (same_memory(from, to)) return {};
  constexpr size_t kAlignment = 256;
  const size_t at = (workspace_bytes_ + kAlignment - 1) / kAlignment * kAlignment;
  workspace_bytes_ = at + copy.bytes();
  return Copy{move_all(device, from, to), at};
}

void LibraryKernel::run(const KernelArgs& args) {
  const auto place = [&](const Copy& copy) {
    return static_cast<std::byte*>(args.workspace) + copy.at;
  };
  const auto operand = [&](const std::optional<Copy>& copy, const void* in) -> const void* {
    if (!copy) return in;
    copy->move.run(*args.stream, in, place(*copy));
    return place(*copy);
  };
  const auto* const bias =
      bias_in_call_ || bias_after_ ? static_cast<const float*>(args.in[2]) : nullptr;
  const device::LibraryOperands operands{.first = operand(first_, args.in[0]),
                                         .second = operand(second_, args.in[1]),
                                         .bias = bias_in_call_ ? bias : nullptr,
                                         .result = result_ ? place(*result_) : args.out[0],
                                         .workspace = args.workspace};
  call_->put(*args.stream, operands);
  if (result_) result_->move.run(*args.stream, place(*result_), args.out[0]);
  if (end_) end_->run(*args.stream, args.out[0], bias_after_ ? bias : nullptr);
}

}  // namespace tutti::backend

#include "tutti/capi/remote/request.h"

#include <fmt/format.h>

#include <cstring>

#include "tutti/base/error.h"

namespace tutti::capi::remote {

std::string_view name_of(Access access) {
  static constexpr std::array<std::string_view, 5> kNames{"put", "get", "atomic get", "accumulate",
                                                          "fetch"};
  return kNames[static_cast<size_t>(access)];
}

std::string refusal_of(const Request& request, size_t exposed) {
  if (request.access > Access::fetch || static_cast<int>(request.element) >= comm::kElements ||
      static_cast<int>(request.op) >= comm::kReduceOps)
    return "it is no request";
  if (request.offset > exposed || request.bytes > exposed - request.offset)
    return fmt::format("{} bytes from byte {} on are not in the {} bytes that it exposes",
                       request.bytes, request.offset, exposed);
  if (!computes(request.access)) return {};
  const size_t size = comm::size_of(request.element);
  if (!comm::has_arithmetic(request.element)) return "bytes have no arithmetic";
  if (request.op == comm::ReduceOp::mean) return "there is no mean of what comes one by one";
  if (request.offset % size != 0)
    return fmt::format("no element of {0} bytes begins at byte {1}: offsets are multiples of {0}",
                       size, request.offset);
  if (request.bytes % size != 0)
    return fmt::format("{} bytes are not whole elements of {} bytes", request.bytes, size);
  return {};
}

void Note::write_bytes(const void* head, size_t head_bytes, const std::byte* data, size_t bytes) {
  CHECK(bytes <= kMessage - head_bytes);
  std::memcpy(bytes_.data(), head, head_bytes);
  if (bytes > 0) std::memcpy(bytes_.data() + head_bytes, data, bytes);
  size_ = head_bytes + bytes;
}

}  // namespace tutti::capi::remote

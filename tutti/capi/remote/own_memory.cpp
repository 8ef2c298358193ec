#include "tutti/capi/remote/own_memory.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "tutti/comm/communicator.h"

namespace tutti::capi::remote {
namespace {

constexpr size_t kShared = size_t{64} << 10;  // elements of a piece that another thread may take

}  // namespace

bool OwnMemory::apply(const Request& request, std::byte* data) {
  if (!free_.try_acquire()) return false;
  const std::span<std::byte> mine = part(request);
  if (computes(request.access)) {
    const size_t count = request.bytes / comm::size_of(request.element);
    const size_t pieces = (count + kShared - 1) / kShared;
    const auto piece = [&](size_t i) {
      compute(request, data, i * kShared, std::min(kShared, count - i * kShared));
    };
    if (pieces > 1)
      communicator_.work().run(pieces, piece);
    else if (pieces == 1)
      piece(0);
    accumulates_.fetch_add(1, std::memory_order_release);
  } else if (!mine.empty()) {
    const bool in = brings_data(request.access);
    std::memcpy(in ? mine.data() : data, in ? data : mine.data(), mine.size());
  }
  free_.release();
  return true;
}

void OwnMemory::compute(const Request& request, std::byte* data, size_t begin, size_t count) {
  const size_t size = comm::size_of(request.element);
  const size_t end = (begin + count) * size;
  // A fetch leaves the previous values in `data`, block by block.
  alignas(64) std::array<std::byte, size_t{16} << 10> before;
  for (size_t at = begin * size; at < end; at += before.size()) {
    const size_t bytes = std::min(before.size(), end - at);
    std::byte* const mine = part(request).data() + at;
    if (request.access == Access::fetch) std::memcpy(before.data(), mine, bytes);
    comm::combine(request.op, {mine, request.element}, {mine, request.element},
                  {data + at, request.element}, bytes / size);
    if (request.access == Access::fetch) std::memcpy(data + at, before.data(), bytes);
  }
}

}  // namespace tutti::capi::remote

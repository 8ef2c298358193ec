#include "tutti/comm/check/reference_result.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "tutti/comm/compress/codec/fp16.h"
#include "tutti/comm/run/collective.h"
#include "tutti/tensor/dtype.h"

namespace tutti::comm {
namespace {

constexpr size_t kAnswerBlock = 512;

// Halves are made from floats.
template <class T, class From = double>
void write(const double* from, size_t count, std::byte* to) {
  for (size_t i = 0; i < count; ++i) {
    const T value = static_cast<T>(static_cast<From>(from[i]));
    std::memcpy(to + i * sizeof(T), &value, sizeof(T));
  }
}

template <class Integer>
void wrap(double* values, size_t count) {
  for (size_t i = 0; i < count; ++i)
    values[i] = static_cast<double>(static_cast<Integer>(static_cast<int64_t>(values[i])));
}

// SplitMix64's finaliser.
uint64_t mixed(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

// MurmurHash3's finaliser: 32 bits wide, because it is done for every element of every rank.
uint32_t mixed(uint32_t x) {
  x = (x ^ (x >> 16)) * 0x85EBCA6Bu;
  x = (x ^ (x >> 13)) * 0xC2B2AE35u;
  return x ^ (x >> 16);
}

}  // namespace

ReferenceResult::ReferenceResult(Task task, Element element, ReduceOp op, uint64_t seed,
                                 std::vector<size_t> sources)
    : task_(std::move(task)), element_(element), op_(op), seed_(seed),
      sources_(std::move(sources)) {
  const auto around_zero = [&](int64_t most) {
    least_ = -most, range_ = static_cast<uint64_t>(2 * most + 1);
  };
  const int64_t f32 = std::max(1, (1 << 24) / task_.ranks);  // whole numbers up to 2^24 are exact
  if (op_ == ReduceOp::product && reduces(task_.kind)) {     // products are exact in every type
    least_ = element_ == Element::u8 ? 0 : -1, range_ = 3;
    return;
  }
  switch (element_) {
    case Element::f32: around_zero(f32); return;
    case Element::i64:
    case Element::f64: around_zero((int64_t{1} << 31) - 1); return;
    case Element::bf16: around_zero(std::min<int64_t>(256, f32)); return;
    case Element::f16:
      around_zero(std::clamp(65504 / task_.ranks, 1, 2048));
      return;  // sums stay finite
    case Element::i8:
    case Element::byte: least_ = -128, range_ = 256; return;
    case Element::u8: least_ = 0, range_ = 256; return;
    case Element::i32: least_ = INT32_MIN, range_ = uint64_t{1} << 32; return;
  }
}

void ReferenceResult::values(int rank, Slice elements, double* to) const {
  const auto key = static_cast<uint32_t>(mixed(mixed(seed_ + 1) + static_cast<uint64_t>(rank)));
  for (size_t i = 0; i < elements.count; ++i) {
    const uint32_t x = mixed(static_cast<uint32_t>(elements.begin + i) * 0x9E3779B1u + key);
    to[i] = static_cast<double>(least_ + static_cast<int64_t>(x * range_ >> 32));
  }
}

void ReferenceResult::store(const double* from, size_t count, std::byte* to) const {
  switch (element_) {
    case Element::f32: return write<float>(from, count, to);
    case Element::f64: return write<double>(from, count, to);
    case Element::bf16: return write<bf16, float>(from, count, to);
    case Element::f16: return write<fp16, float>(from, count, to);
    case Element::i8:
    case Element::byte: return write<int8_t>(from, count, to);
    case Element::i32: return write<int32_t>(from, count, to);
    case Element::i64: return write<int64_t>(from, count, to);
    case Element::u8: return write<uint8_t>(from, count, to);
  }
}

void ReferenceResult::fill(std::byte* input) const {
  const size_t count = extent_of(task_).input;
  std::array<double, kAnswerBlock> block;
  for (size_t i = 0; i < count; i += kAnswerBlock) {
    const Slice slice{i, std::min(kAnswerBlock, count - i)};
    values(task_.rank, slice, block.data());
    store(block.data(), slice.count, input + i * size_of(element_));
  }
}

void ReferenceResult::reduced(Slice elements, double* to) const {
  values(0, elements, to);
  std::array<double, kAnswerBlock> other;
  for (int p = 1; p < task_.ranks; ++p) {
    values(p, elements, other.data());
    for (size_t i = 0; i < elements.count; ++i)
      to[i] = op_ == ReduceOp::min       ? std::min(to[i], other[i])
              : op_ == ReduceOp::max     ? std::max(to[i], other[i])
              : op_ == ReduceOp::product ? to[i] * other[i]
                                         : to[i] + other[i];
    if (element_ == Element::u8) wrap<uint8_t>(to, elements.count);
  }
  if (element_ == Element::i8) wrap<int8_t>(to, elements.count);
  if (element_ == Element::i32) wrap<int32_t>(to, elements.count);
  if (op_ != ReduceOp::mean) return;
  for (size_t i = 0; i < elements.count; ++i)
    to[i] = is_whole(element_) ? std::trunc(to[i] / task_.ranks) : to[i] / task_.ranks;
}

// Computes a vector in which parts[p] holds rank p's values from begins[p] on.
void ReferenceResult::pieces(const std::vector<Slice>& parts, const std::vector<size_t>& begins,
                             Slice elements, double* to) const {
  for (size_t p = 0; p < parts.size(); ++p) {
    const size_t from = std::max(parts[p].begin, elements.begin),
                 end = std::min(parts[p].end(), elements.end());
    if (from < end)
      values(static_cast<int>(p), {begins[p] + from - parts[p].begin, end - from},
             to + (from - elements.begin));
  }
}

void ReferenceResult::expected(Slice elements, double* to) const {
  const auto n = static_cast<size_t>(task_.ranks);
  const auto behind_my_part = [&] {
    return Slice{task_.part().begin + elements.begin, elements.count};
  };
  switch (task_.kind) {
    case Collective::barrier: return;
    case Collective::broadcast: return values(task_.root, elements, to);
    case Collective::scatter: return values(task_.root, behind_my_part(), to);
    case Collective::reduce:
    case Collective::allreduce: return reduced(elements, to);
    case Collective::reduce_scatter: return reduced(behind_my_part(), to);
    case Collective::gather:
    case Collective::allgather: return pieces(task_.parts, std::vector<size_t>(n), elements, to);
    case Collective::all_to_all:
      return pieces(task_.receives,
                    sources_.empty()
                        ? std::vector<size_t>(n, task_.sends[static_cast<size_t>(task_.rank)].begin)
                        : sources_,
                    elements, to);
  }
}

void ReferenceResult::write_right(std::byte* output) const {
  const size_t count = extent_of(task_).output;
  std::array<double, kAnswerBlock> block;
  for (size_t i = 0; i < count; i += kAnswerBlock) {
    const Slice slice{i, std::min(kAnswerBlock, count - i)};
    expected(slice, block.data());
    store(block.data(), slice.count, output + i * size_of(element_));
  }
}

size_t ReferenceResult::count_wrong(const std::byte* output) const {
  const size_t count = extent_of(task_).output, bytes = size_of(element_);
  std::array<double, kAnswerBlock> block;
  std::array<std::byte, kAnswerBlock * sizeof(double)> right;
  size_t wrong = 0;
  for (size_t i = 0; i < count; i += kAnswerBlock) {
    const Slice slice{i, std::min(kAnswerBlock, count - i)};
    expected(slice, block.data());
    store(block.data(), slice.count, right.data());
    const std::byte* const got = output + i * bytes;
    if (std::memcmp(got, right.data(), slice.count * bytes) == 0) continue;
    for (size_t k = 0; k < slice.count; ++k)
      wrong += std::memcmp(got + k * bytes, right.data() + k * bytes, bytes) == 0 ? 0 : 1;
  }
  return wrong;
}

}  // namespace tutti::comm

#include "tutti/backend/gpu/own/box_move.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <utility>

#include "tutti/backend/gpu/own/strides.h"
#include "tutti/device/launch.h"

namespace tutti::backend {

uint32_t repeated_bits(DType type, float value) {
  switch (type) {
    case DType::f32: return std::bit_cast<uint32_t>(value);
    case DType::bf16: return bf16(value).bits * 0x10001u;
    case DType::i32: return static_cast<uint32_t>(static_cast<int32_t>(value));
    case DType::u8: return static_cast<uint8_t>(value) * 0x01010101u;
  }
  return 0;
}

namespace {

/// Returns the same elements in fewer loops, in the order of memory of what is written.
std::vector<BoxLoop> merged_box(std::vector<BoxLoop> loops) {
  std::erase_if(loops, [](const BoxLoop& loop) { return loop.count == 1 && loop.is_whole(); });
  std::ranges::stable_sort(loops, std::greater(), &BoxLoop::to);
  std::vector<BoxLoop> merged;
  for (const BoxLoop& inner : loops) {
    BoxLoop* const outer = merged.empty() ? nullptr : &merged.back();
    if (outer && outer->gap == 1 && inner.is_whole() && outer->to == inner.to * inner.count &&
        outer->from == inner.from * inner.count)
      *outer = {.count = outer->count * inner.count,
                .to = inner.to,
                .from = inner.from,
                .first = outer->first * inner.count,
                .gap = 1,
                .inside = outer->inside * inner.count};
    else
      merged.push_back(inner);
  }
  if (merged.empty()) merged.push_back({.count = 1, .to = 1, .from = 1});
  return merged;
}

/// Whether there are kernels that convert several elements at once, and in tiles.
bool is_made_often(BoxTypes t) {
  return t.from == t.to || (t.from == DType::f32 && t.to == DType::bf16) ||
         (t.from == DType::bf16 && t.to == DType::f32) ||
         (t.from == DType::u8 && (t.to == DType::f32 || t.to == DType::bf16));
}

/// Returns the largest number of elements in an access.
int64_t most_in_pack(BoxTypes types) {
  return types.from == types.to ? 16 / static_cast<int64_t>(size_of(types.to)) : 4;
}

/// Returns the end of a kernel's name: elements that keep their type are moved by size, in bytes.
std::string box_name(BoxTypes types, size_t bytes) {
  return types.from == types.to ? fmt::to_string(bytes)
                                : fmt::format("{}.{}", name_of(types.from), name_of(types.to));
}

/// Whether the loops are such over packs of `pack` elements.
bool fits_packs(const std::vector<BoxLoop>& loops, int64_t pack) {
  const BoxLoop& last = loops.back();
  return last.to == 1 && last.from == 1 && last.gap == 1 && last.count % pack == 0 &&
         last.first % pack == 0 && last.inside % pack == 0 &&
         std::all_of(loops.begin(), loops.end() - 1, [&](const BoxLoop& loop) {
           return loop.to % pack == 0 && loop.from % pack == 0;
         });
}

}  // namespace

std::vector<BoxLoop> box_over(const TensorDesc& from, const TensorDesc& to) {
  const Strides read = strides_of(from), write = strides_of(to);
  std::vector<BoxLoop> loops;
  for (size_t d = 0; d < read.size(); ++d)
    loops.push_back({.count = to.shape[static_cast<int>(d)], .to = write[d], .from = read[d]});
  return loops;
}

BoxMove move_all(const device::Device& device, const TensorDesc& from, const TensorDesc& to) {
  return BoxMove(device, {from.dtype, to.dtype}, box_over(from, to), 0, 0);
}

BoxMove::BoxMove(const device::Device& device, BoxTypes types, std::vector<BoxLoop> loops,
                 int64_t from_start, int64_t to_start, std::optional<uint32_t> fill)
    : from_start_(from_start * static_cast<int64_t>(size_of(types.from))),
      to_start_(to_start * static_cast<int64_t>(size_of(types.to))), filled_(fill.has_value()) {
  loops = merged_box(std::move(loops));
  const bool often = is_made_often(types);
  if (often && !filled_) prepare_turn(device, types, loops);
  if (turn_) return;
  narrow_ = prepare(device, types, loops, 1);
  if (const int64_t pack = most_in_pack(types); often && fits_packs(loops, pack))
    wide_ = prepare(device, types, loops, pack);
  narrow_.args.fill = wide_.args.fill = fill.value_or(0);
}

void BoxMove::run(device::Stream& stream, const void* from, void* to) const {
  const std::byte* const source = static_cast<const std::byte*>(from) + from_start_;
  std::byte* const target = static_cast<std::byte*>(to) + to_start_;
  if (turn_) {
    TurnArgs args = turn_args_;
    args.from = source;
    args.to = target;
    return device::launch(stream, *turn_, {blocks_}, args);
  }
  const bool aligned = reinterpret_cast<uintptr_t>(source) % wide_.from_bytes == 0 &&
                       reinterpret_cast<uintptr_t>(target) % wide_.to_bytes == 0;
  const Form& form = wide_.function && aligned ? wide_ : narrow_;
  FillBoxArgs args = form.args;
  args.box.from = source;
  args.box.to = target;
  const device::Dim3 grid{blocks_for(args.box.packs, form.function->threads)};
  if (filled_)
    device::launch(stream, *form.function, grid, args);
  else
    device::launch(stream, *form.function, grid, args.box);
}

BoxMove::Form BoxMove::prepare(const device::Device& device, BoxTypes types,
                               const std::vector<BoxLoop>& loops, int64_t pack) const {
  Form form;
  form.from_bytes = static_cast<size_t>(pack) * size_of(types.from);
  form.to_bytes = static_cast<size_t>(pack) * size_of(types.to);
  const bool by_fours = types.from != types.to && pack > 1;
  form.function = &device::function_named(
      device, fmt::format("{}{}.{}", filled_ ? "fill" : "copy", by_fours ? "4" : "",
                          box_name(types, form.to_bytes)));
  form.args.box.packs = 1;
  std::vector<StridedLoop<2>> packs;
  for (const BoxLoop& loop : loops) {
    const bool last = &loop == &loops.back();
    const int64_t of_step = last ? 1 : pack, of_index = last ? pack : 1;  // elements in one
    const size_t d = packs.size();
    packs.push_back({loop.count / of_index, {loop.to / of_step, loop.from / of_step}});
    form.args.first[d] = loop.first / of_index;
    form.args.gap[d] = divisor(loop.gap);
    form.args.inside[d] = loop.inside / of_index;
    form.args.box.packs *= packs.back().count;
  }
  form.args.box.loops = kernel_loops(packs);
  return form;
}

/// Chooses tiles in shared memory where neighbours of both operands lie in different dimensions, of
/// some extent each.
void BoxMove::prepare_turn(const device::Device& device, BoxTypes types,
                           const std::vector<BoxLoop>& loops) {
  constexpr int64_t kLeast = 8;
  const BoxLoop& a = loops.back();
  const auto b = std::ranges::find(loops, 1, &BoxLoop::from);
  if (b == loops.end() || &*b == &a || a.to != 1 || a.count < kLeast || b->count < kLeast) return;
  std::vector<StridedLoop<2>> others;
  int64_t elements = 1;
  for (const BoxLoop& loop : loops) {
    if (&loop == &a || &loop == &*b) continue;
    others.push_back({loop.count, {loop.to, loop.from}});
    elements *= loop.count;
  }
  if (others.empty()) others.emplace_back();
  turn_ =
      &device::function_named(device, fmt::format("turn.{}", box_name(types, size_of(types.to))));
  turn_args_ = {.to = nullptr,
                .from = nullptr,
                .a = a.count,
                .b = b->count,
                .to_step = b->to,
                .from_step = a.from,
                .a_tiles = divisor((a.count + kTurnTile - 1) / kTurnTile),
                .b_tiles = divisor((b->count + kTurnTile - 1) / kTurnTile),
                .loops = kernel_loops(others)};
  blocks_ = static_cast<unsigned>(turn_args_.a_tiles.value * turn_args_.b_tiles.value * elements);
}

}  // namespace tutti::backend

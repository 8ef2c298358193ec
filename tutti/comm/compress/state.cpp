#include "tutti/comm/compress/state.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "tutti/base/error.h"
#include "tutti/base/number.h"

namespace tutti::comm {
namespace {

using Kind = StatePiece::Kind;
constexpr std::array<std::string_view, 3> kKinds = {"gradient", "sum", "basis"};
constexpr std::string_view kPrefix = "compression.rank";

// What a name says.
struct Label {
  int rank = 0;
  Kind kind = Kind::gradient;
  size_t begin = 0;
};

// Nothing when it is no piece of this bucket.
std::optional<Label> parse_label(std::string_view name, std::string_view bucket) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  const size_t dot = name.find('.'), last = name.rfind('.'), at = name.rfind('@');
  if (dot == std::string_view::npos || last <= dot || at == std::string_view::npos || at < last)
    return std::nullopt;
  if (name.substr(dot + 1, last - dot - 1) != bucket) return std::nullopt;
  const auto kind = std::ranges::find(kKinds, name.substr(last + 1, at - last - 1));
  Label label;
  if (kind == kKinds.end() || !read_number(name.substr(0, dot), label.rank) ||
      !read_number(name.substr(at + 1), label.begin))
    return std::nullopt;
  label.kind = static_cast<Kind>(kind - kKinds.begin());
  return label;
}

struct Found {
  Label label;
  std::span<const float> values;
};

std::vector<Found> pieces_of(std::span<const SavedPiece> saved, std::string_view bucket,
                             size_t count) {
  std::vector<Found> all;
  for (const SavedPiece& piece : saved)
    if (const auto label = parse_label(piece.name, bucket)) {
      if (label->kind != Kind::basis &&
          (label->begin > count || piece.values.size() > count - label->begin))
        throw ConfigError(
            fmt::format("'{}' has {} floats, the bucket {}: the checkpoint is of another network "
                        "or of another comm.bucket_bytes",
                        piece.name, piece.values.size(), count));
      all.push_back({*label, piece.values});
    }
  // By rank, so that sums do not depend on the order in the file.
  std::ranges::stable_sort(all, {}, [](const Found& f) { return f.label.rank; });
  return all;
}

// Whether this rank finds exactly its own. When all ranks do, and no other rank saved anything,
// nothing has changed.
bool finds_its_own(const std::vector<Found>& found, const StateLayout& layout, int rank,
                   int ranks) {
  size_t saved = 0, kept = 0;
  for (const Found& f : found) {
    if (f.label.rank >= ranks) return false;
    saved += f.label.rank == rank ? 1 : 0;
  }
  for (const StatePiece& piece : layout.pieces) {
    if (piece.covers.count == 0) continue;
    ++kept;
    const auto mine = [&](const Found& f) {
      return f.label.rank == rank && f.label.kind == piece.kind &&
             f.label.begin == piece.covers.begin && f.values.size() == piece.covers.count;
    };
    if (!std::ranges::any_of(found, mine)) return false;
  }
  return saved == kept;
}

void take_own(const std::vector<Found>& found, const StateLayout& layout, int rank,
              std::span<float> state) {
  for (const StatePiece& piece : layout.pieces)
    for (const Found& f : found)
      if (f.label.rank == rank && f.label.kind == piece.kind)
        std::ranges::copy(f.values, state.begin() + static_cast<std::ptrdiff_t>(piece.at));
}

// The sum of all residuals, the equal share of each holder into the first residual of every rank.
void take_share(const std::vector<Found>& found, const StateLayout& layout, size_t count,
                std::span<float> state) {
  std::vector<double> total(count, 0.0);
  for (const Found& f : found)
    if (f.label.kind != Kind::basis)
      for (size_t i = 0; i < f.values.size(); ++i) total[f.label.begin + i] += f.values[i];
  bool dealt = false;
  for (const StatePiece& piece : layout.pieces) {
    if (piece.kind == Kind::basis) {
      const auto same = [&](const Found& f) {
        return f.label.kind == Kind::basis && f.values.size() == piece.covers.count;
      };
      const auto basis = std::ranges::find_if(found, same);
      if (basis != found.end())
        std::ranges::copy(basis->values, state.begin() + static_cast<std::ptrdiff_t>(piece.at));
    } else if (!std::exchange(dealt, true)) {
      for (size_t i = 0; i < piece.covers.count; ++i)
        state[piece.at + i] = static_cast<float>(total[piece.covers.begin + i] / piece.holders);
    }
  }
}

}  // namespace

void StateLayout::add(StatePiece::Kind kind, Slice covers, int holders) {
  pieces.push_back({.kind = kind, .covers = covers, .holders = holders, .at = floats});
  floats += covers.count;
}

std::string piece_name(int rank, std::string_view bucket, const StatePiece& piece) {
  return fmt::format("{}{}.{}.{}@{}", kPrefix, rank, bucket,
                     kKinds[static_cast<size_t>(piece.kind)], piece.covers.begin);
}

std::vector<SavedPiece> save_state(const StateLayout& layout, int rank, std::string_view bucket,
                                   std::span<const float> state) {
  CHECK(state.size() == layout.floats, "a state of {} floats, the layout has {}", state.size(),
        layout.floats);
  std::vector<SavedPiece> all;
  for (const StatePiece& piece : layout.pieces)
    if (piece.covers.count > 0)
      all.push_back({piece_name(rank, bucket, piece), state.subspan(piece.at, piece.covers.count)});
  return all;
}

Restored restore_state(Communicator& communicator, std::span<const SavedPiece> saved,
                       const StateLayout& layout, std::string_view bucket, size_t count,
                       std::span<float> state) {
  CHECK(state.size() == layout.floats, "a state of {} floats, the layout has {}", state.size(),
        layout.floats);
  std::ranges::fill(state, 0.0f);
  const std::vector<Found> found = pieces_of(saved, bucket, count);
  bool exact = finds_its_own(found, layout, communicator.rank(), communicator.size());
  exact = communicator.least(static_cast<uint8_t>(exact)) != 0;
  if (found.empty()) return Restored::nothing;
  if (exact)
    take_own(found, layout, communicator.rank(), state);
  else
    take_share(found, layout, count, state);
  return exact ? Restored::exact : Restored::dealt;
}

void release_residuals(const StateLayout& layout, std::span<float> state,
                       std::span<float> gradient) {
  CHECK(state.size() == layout.floats, "a state of {} floats, the layout has {}", state.size(),
        layout.floats);
  for (const StatePiece& piece : layout.pieces) {
    if (piece.kind == Kind::basis) continue;
    CHECK(piece.covers.end() <= gradient.size(), "a residual of [{}, {}) in a bucket of {}",
          piece.covers.begin, piece.covers.end(), gradient.size());
    for (size_t i = 0; i < piece.covers.count; ++i)
      gradient[piece.covers.begin + i] += std::exchange(state[piece.at + i], 0.0f);
  }
}

}  // namespace tutti::comm

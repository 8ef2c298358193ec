#include "tutti/comm/compress/state.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <utility>

#include "tutti/base/error.h"
#include "tutti/base/number.h"
#include "tutti/comm/control/agree.h"
#include "tutti/comm/run/collective.h"

namespace tutti::comm {
namespace {

using Kind = StatePiece::Kind;
constexpr std::array<std::string_view, 3> kKinds = {"gradient", "sum", "basis"};
constexpr std::string_view kPrefix = "compression.rank";

// The fields of a tensor's name.
struct Label {
  int rank = 0;
  Kind kind = Kind::gradient;
  size_t begin = 0;
};

// Returns nothing when the name is no piece of this bucket.
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

// A piece of one bucket, not yet read.
struct Found {
  std::string name;
  Label label;
  size_t floats = 0;
};

std::vector<Found> saved_pieces(SavedState& saved, int rank, std::string_view bucket,
                                size_t count) {
  std::vector<Found> all;
  for (std::string& name : saved.names(rank)) {
    const auto label = parse_label(name, bucket);
    if (!label || label->rank != rank) continue;
    const size_t floats = saved.floats(rank, name);
    if (label->kind != Kind::basis && (label->begin > count || floats > count - label->begin))
      throw ConfigError(
          fmt::format("'{}' has {} floats, the bucket {}: the checkpoint is of another network "
                      "or of another comm.bucket_bytes",
                      name, floats, count));
    all.push_back({std::move(name), *label, floats});
  }
  return all;
}

// Returns the saved ranks whose state this rank reads.
std::vector<int> share_of(const SavedState& saved, const Communicator& c) {
  std::vector<int> ranks;
  for (int rank = c.rank(); rank < saved.ranks(); rank += c.size()) ranks.push_back(rank);
  return ranks;
}

const Found* find(const std::vector<Found>& found, const StatePiece& piece) {
  const auto at = std::ranges::find_if(found, [&](const Found& f) {
    return f.label.kind == piece.kind && f.label.begin == piece.covers.begin &&
           f.floats == piece.covers.count;
  });
  return at == found.end() ? nullptr : &*at;
}

// Whether `found` has exactly this rank's pieces.
bool is_own(const std::vector<Found>& found, const StateLayout& layout) {
  size_t kept = 0;
  for (const StatePiece& piece : layout.pieces) {
    if (piece.covers.count == 0) continue;
    ++kept;
    if (find(found, piece) == nullptr) return false;
  }
  return found.size() == kept;
}

// The pieces of a bucket that this rank finds in its share of the saved state.
struct Share {
  std::vector<Found> pieces;
  bool own = false;  // they are exactly this rank's own
};

Share look(SavedState& saved, const Communicator& c, const StateLayout& layout,
           std::string_view bucket, size_t count) {
  Share share;
  for (const int rank : share_of(saved, c))
    std::ranges::move(saved_pieces(saved, rank, bucket, count), std::back_inserter(share.pieces));
  share.own = saved.ranks() == c.size() && is_own(share.pieces, layout);
  return share;
}

void take_own(SavedState& saved, int rank, const std::vector<Found>& found,
              const StateLayout& layout, std::span<float> state) {
  for (const StatePiece& piece : layout.pieces)
    if (const Found* own = piece.covers.count > 0 ? find(found, piece) : nullptr)
      std::ranges::copy(saved.read(rank, own->name),
                        state.begin() + static_cast<std::ptrdiff_t>(piece.at));
}

// Sums `total` over all ranks, on every rank.
void sum_everywhere(Communicator& c, std::string_view bucket, std::span<double> total) {
  if (c.size() == 1 || total.empty()) return;
  c.plan({.name = fmt::format("what was not sent of {}", bucket),
          .kind = Collective::allreduce,
          .element = Element::f64,
          .count = total.size(),
          .output = total.data(),
          .reproducible = true})
      ->run();
}

// Puts each holder's equal share of the sum of all residuals into the first residual of every rank.
void take_sum(const StateLayout& layout, std::span<const double> total, std::span<float> state) {
  for (const StatePiece& piece : layout.pieces) {
    if (piece.kind == Kind::basis) continue;
    for (size_t i = 0; i < piece.covers.count; ++i)
      state[piece.at + i] = static_cast<float>(total[piece.covers.begin + i] / piece.holders);
    return;
  }
}

// Takes the basis of the first rank that has found one of the right size.
void take_basis(Communicator& c, SavedState& saved, const std::vector<Found>& found,
                const StateLayout& layout, std::span<float> state) {
  for (const StatePiece& piece : layout.pieces) {
    if (piece.kind != Kind::basis) continue;
    const auto fits = [&](const Found& f) {
      return f.label.kind == Kind::basis && f.floats == piece.covers.count;
    };
    const auto mine = std::ranges::find_if(found, fits);
    const int owner = c.least(mine == found.end() ? c.size() : c.rank());
    if (owner == c.size()) continue;
    const std::span<float> basis = state.subspan(piece.at, piece.covers.count);
    on_each(c, "reading compression state", [&] {
      if (owner == c.rank())
        std::ranges::copy(saved.read(mine->label.rank, mine->name), basis.begin());
    });
    c.broadcast(std::as_writable_bytes(basis), owner);
  }
}

}  // namespace

void StateLayout::add(StatePiece::Kind kind, Slice covers, int holders) {
  pieces.push_back({.kind = kind, .covers = covers, .holders = holders, .at = floats});
  floats += covers.count;
}

bool is_piece(std::string_view name) { return name.starts_with(kPrefix); }

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

Restored restore_state(Communicator& communicator, SavedState& saved, const StateLayout& layout,
                       std::string_view bucket, size_t count, std::span<float> state) {
  CHECK(state.size() == layout.floats, "a state of {} floats, the layout has {}", state.size(),
        layout.floats);
  std::ranges::fill(state, 0.0f);
  Communicator& c = communicator;
  constexpr const char* kReading = "reading compression state";
  Share share;
  on_each(c, kReading, [&] { share = look(saved, c, layout, bucket, count); });
  if (c.most(share.pieces.size()) == 0) return Restored::nothing;
  if (c.least(static_cast<uint8_t>(share.own)) != 0) {
    on_each(c, kReading, [&] { take_own(saved, c.rank(), share.pieces, layout, state); });
    return Restored::exact;
  }
  std::vector<double> total(count, 0.0);
  on_each(c, kReading, [&] {
    for (const Found& f : share.pieces) {
      if (f.label.kind == Kind::basis) continue;
      const std::vector<float> values = saved.read(f.label.rank, f.name);
      for (size_t i = 0; i < values.size(); ++i) total[f.label.begin + i] += values[i];
    }
  });
  sum_everywhere(c, bucket, total);
  take_sum(layout, total, state);
  take_basis(c, saved, share.pieces, layout, state);
  return Restored::dealt;
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

#include "tutti/mlsl/layout/distribution.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "tutti/base/error.h"

namespace tutti::mlsl::layout {
namespace {

std::vector<Colours> colours_of(int world, Parts parts) {
  // Divides instead of multiplying, so that no product of two large numbers overflows.
  if (world < 1 || parts.data < 1 || parts.model < 1 || world % parts.model != 0 ||
      world / parts.model % parts.data != 0) {
    throw ConfigError(
        fmt::format("{} data x {} model parts do not divide {} ranks; data parts times model parts "
                    "must divide the number of ranks",
                    parts.data, parts.model, world));
  }
  const int size = parts.data * parts.model;
  std::vector<Colours> colours;
  for (int rank = 0; rank < world; ++rank) {
    const int before = rank / size * size;  // ranks of the replicas before this one
    const int local = rank % size;
    colours.push_back({before + local % parts.model, before + local / parts.model});
  }
  return colours;
}

}  // namespace

Distribution::Distribution(int world, Parts parts) : Distribution(colours_of(world, parts)) {}

Distribution::Distribution(std::span<const Colours> colours) {
  if (colours.empty()) throw ConfigError("a distribution needs the colours of at least one rank");
  groups_ = {gather(colours, &Colours::data), gather(colours, &Colours::model), Groups{}};
  Groups& world = groups_[static_cast<size_t>(GroupKind::global)];
  world.number.assign(colours.size(), 0);
  world.index.resize(colours.size());
  std::iota(world.index.begin(), world.index.end(), 0);
  world.members = {world.index};

  std::map<std::pair<int, int>, int> seen;  // ranks by data and model index
  for (size_t r = 0; r < colours.size(); ++r)
    replica_.push_back(seen[{of(GroupKind::data).index[r], of(GroupKind::model).index[r]}]++);
  grid_ = is_grid();
}

Distribution::Groups Distribution::gather(std::span<const Colours> colours, int Colours::*colour) {
  Groups groups;
  std::map<int, int> numbers;  // by colour
  for (size_t r = 0; r < colours.size(); ++r) {
    const auto [entry, first] =
        numbers.try_emplace(colours[r].*colour, static_cast<int>(groups.members.size()));
    if (first) groups.members.emplace_back();
    std::vector<int>& members = groups.members[static_cast<size_t>(entry->second)];
    groups.number.push_back(entry->second);
    groups.index.push_back(static_cast<int>(members.size()));
    members.push_back(static_cast<int>(r));
  }
  return groups;
}

const std::vector<int>& Distribution::group(GroupKind kind, int rank) const {
  return of(kind).members[static_cast<size_t>(colour(kind, rank))];
}
int Distribution::index(GroupKind kind, int rank) const {
  return of(kind).index.at(static_cast<size_t>(rank));
}
int Distribution::colour(GroupKind kind, int rank) const {
  return of(kind).number.at(static_cast<size_t>(rank));
}

bool Distribution::is_grid() const {
  // Whether groups of `kind` have one size, and members of each share the other index.
  const auto regular = [&](GroupKind kind, GroupKind other) {
    const auto& groups = of(kind).members;
    return std::ranges::all_of(groups, [&](const std::vector<int>& members) {
      return members.size() == groups[0].size() && std::ranges::all_of(members, [&](int rank) {
               return index(other, rank) == index(other, members[0]);
             });
    });
  };
  return regular(GroupKind::data, GroupKind::model) && regular(GroupKind::model, GroupKind::data);
}

int Distribution::parts(GroupKind kind) const {
  if (!grid_) {
    throw ConfigError(
        fmt::format("layers cannot be laid out on {}: groups of a kind need one size, ranks of a "
                    "model group one data index, and ranks "
                    "of a data group one model index",
                    to_string()));
  }
  return static_cast<int>(of(kind).members[0].size());
}

std::string Distribution::to_string() const {
  if (grid_) {
    const Parts sizes{parts(GroupKind::data), parts(GroupKind::model)};
    const int world_size = world();
    if (world_size % (sizes.data * sizes.model) == 0 && *this == Distribution(world_size, sizes))
      return fmt::format("{} data x {} model parts of {} ranks", sizes.data, sizes.model,
                         world_size);
  }
  return fmt::format("data groups {} and model groups {}", of(GroupKind::data).members,
                     of(GroupKind::model).members);
}

}  // namespace tutti::mlsl::layout

#pragma once
// Distribution: a layout of the job's ranks, its groups, and collectives within these.

#include <array>

#include "tutti/mlsl/request.h"

namespace tutti::mlsl {

/// Shared by the program and the operations that use it: either may release it first.
class Distribution final : public api::Distribution,
                           public std::enable_shared_from_this<Distribution> {
 public:
  /// Collective over the world. `requests` outlives the distribution.
  Distribution(RequestTable& requests, std::shared_ptr<Group> world, layout::Distribution layout);

  const layout::Distribution& layout() const { return layout_; }
  int rank() const { return rank_; }  ///< in the world
  Group& group(layout::GroupKind kind) const { return cache(kind).group(); }

  /// The public calls of the same names. Errors are thrown on all ranks of the group, or on none,
  /// if all ranks pass the same arguments.
  size_t process_index(api::GroupType type) const {
    return static_cast<size_t>(group(group_kind_of(type)).index());
  }
  size_t process_count(api::GroupType type) const {
    return static_cast<size_t>(group(group_kind_of(type)).size());
  }
  api::CommReq* broadcast(void* buffer, size_t count, api::DataType data, size_t root,
                          api::GroupType type);
  /// Any other collective with equal counts on all ranks. `count` is that of the long vector.
  struct Collective {
    comm::Collective kind;
    size_t count = 0;
    api::DataType data = api::DT_FLOAT;
    api::GroupType group = api::GT_GLOBAL;
    api::ReductionType reduction = api::RT_SUM;
    size_t root = 0;
    std::vector<size_t> parts = {};  ///< elements per rank; empty: equal parts
  };
  api::CommReq* start(const Collective& collective, const void* send, void* receive);
  /// `count` is the number of elements of each rank.
  api::CommReq* start_equal(Collective collective, const void* send, void* receive);
  /// `counts` holds the number of elements of each rank, the same on all ranks.
  api::CommReq* allgather_parts(const void* send, size_t count, void* receive, const size_t* counts,
                                api::DataType data, api::GroupType type);
  /// Counts and offsets for each rank of the group.
  struct Blocks {
    const size_t* counts = nullptr;
    const size_t* offsets = nullptr;
  };
  api::CommReq* all_to_all_blocks(const void* send, const Blocks& sends, void* receive,
                                  const Blocks& receives, api::DataType data, api::GroupType type);
  void barrier(api::GroupType type) { group(group_kind_of(type)).barrier(); }

 private:
  PlanCache& cache(layout::GroupKind kind) const { return *caches_[static_cast<size_t>(kind)]; }
  std::shared_ptr<Group> make_group(const std::shared_ptr<Group>& world,
                                    layout::GroupKind kind) const;

  RequestTable& requests_;
  layout::Distribution layout_;
  int rank_;
  std::array<std::shared_ptr<PlanCache>, 3> caches_;  // by kind
};

/// Returns a shared pointer; null for null.
inline std::shared_ptr<Distribution> shared(Distribution* distribution) {
  return distribution == nullptr ? nullptr : distribution->shared_from_this();
}

}  // namespace tutti::mlsl

#include <algorithm>
#include <span>

#include "tutti/base/error.h"
#include "tutti/comm/algorithm/node_sums.h"
#include "tutti/comm/algorithm/tree_steps.h"
#include "tutti/comm/algorithm/two_level.h"

namespace tutti::comm {
namespace {

// This rank's place on its node, and its workers on the others.
struct NodePlace {
  NodePlace(const Task& task, const NodeTable& table, std::span<const Slice> blocks)
      : table(table), node(table.node(task.rank)), local(table.ranks_of(node)),
        place(static_cast<size_t>(std::ranges::lower_bound(local, task.rank) - local.begin())),
        dealt(dealt_on(table, blocks, node)), workers(workers_of(table, blocks, task.rank)) {}

  // Calls body(place) for each other rank of the node. Each rank begins with its right neighbour,
  // so that the first targets differ.
  template <class Body>
  void for_each_local_peer(Body body) const {
    for (size_t k = 1; k < local.size(); ++k) body((place + k) % local.size());
  }
  // Calls body(node, worker there) for each other node.
  template <class Body>
  void for_each_worker(Body body) const {
    const int nodes = table.nodes();
    for (int k = 1; k < nodes; ++k) {
      const int other = (node + k) % nodes;
      body(other, workers[static_cast<size_t>(other)]);
    }
  }
  // Calls body(rank, index in dealt[place]) for each rank of another node that this one works for.
  template <class Body>
  void for_each_served(Body body) const {
    const std::vector<int>& all = dealt[place];
    const auto begin =
        static_cast<size_t>(std::ranges::upper_bound(all, local[place]) - all.begin());
    for (size_t k = 0; k < all.size(); ++k) {
      const size_t i = (begin + k) % all.size();
      body(all[i], i);
    }
  }

  const NodeTable& table;
  int node;
  std::span<const int> local;
  size_t place;
  std::vector<std::vector<int>> dealt;
  std::vector<int> workers;
};

// Returns the slices that a worker adds: its own part and the parts of the ranks that it works for.
std::vector<Slice> work_of(const Task& task, const NodePlace& at, size_t place) {
  std::vector<int> ranks = at.dealt[place];
  ranks.insert(std::ranges::upper_bound(ranks, at.local[place]), at.local[place]);
  return joined(task.parts, ranks);
}

size_t total_size(const std::vector<Slice>& slices) {
  size_t count = 0;
  for (const Slice& slice : slices) count += slice.count;
  return count;
}

// Some slices of the long vector: one after another in `base`, or in place in a part of the input.
class Copy {
 public:
  Copy(Block base, const std::vector<Slice>& slices) : base_(base), slices_(&slices) {}
  static Copy of_input(const Task& task, size_t part) {
    return Copy(input({part * task.leaves.stride, task.count}));
  }

  Block at(Slice slice) const {
    if (slices_ == nullptr || slice.count == 0) return within(base_, slice);
    size_t before = 0;
    for (const Slice& s : *slices_) {
      if (slice.begin < s.end())
        return within(base_, {before + slice.begin - s.begin, slice.count});
      before += s.count;
    }
    throw InternalError("a slice that a worker has not");
  }

 private:
  explicit Copy(Block base) : base_(base) {}
  Block base_;
  const std::vector<Slice>* slices_ = nullptr;
};

class NodeReduction {
 public:
  NodeReduction(ScheduleBuilder& builder, const Task& task, const NodeTable& table, bool ordered)
      : builder_(builder), task_(task), table_(table), ordered_(ordered),
        at_(task, table, task.parts), work_(work_of(task, at_, at_.place)),
        addends_(addends_of(task, table, at_.node)),
        sums_(sums_of(task, table, at_.node, ordered)) {}

  // Inside the node: all ranks send their addends to the workers, which add them.
  void add_inside() {
    std::vector<Copy> copies;
    for (const Addend& addend : addends_)
      copies.push_back(addend.rank == task_.rank
                           ? Copy::of_input(task_, addend.number)
                           : Copy(builder_.staging_for(total_size(work_)), work_));
    at_.for_each_local_peer([&](size_t p) {
      const int peer = at_.local[p];
      for (size_t i = 0; i < addends_.size(); ++i)
        if (addends_[i].rank == peer)
          for (const Slice& slice : work_) builder_.receive(peer, copies[i].at(slice));
      const std::vector<Slice> theirs = work_of(task_, at_, p);
      for (const Addend& addend : addends_)
        if (addend.rank == task_.rank)
          for (const Slice& slice : theirs)
            builder_.send(peer, Copy::of_input(task_, addend.number).at(slice));
    });
    size_t begin = 0;  // index of the sum's first addend
    for (const NodeSum& sum : sums_) {
      size_t end = begin + 1;
      while (end < addends_.size() && (!ordered_ || addends_[end].node.hi <= sum.node.hi)) ++end;
      added_.push_back(add(sum, std::span(copies).subspan(begin, end - begin), begin));
      begin = end;
    }
  }

  // Between nodes: sends the sums to their owners, which add them.
  void add_between(Block to) {
    const Slice mine = task_.part();
    at_.for_each_served([&](int peer, size_t) {
      for (const Copy& sum : added_) builder_.send(peer, sum.at(task_.part(peer)));
    });
    std::vector<TreeLeaf> leaves;
    for (size_t i = 0; i < sums_.size(); ++i) leaves.push_back({sums_[i].node, added_[i].at(mine)});
    at_.for_each_worker([&](int node, int worker) {
      for (const NodeSum& sum : sums_of(task_, table_, node, ordered_)) {
        // A single addend travels as it is.
        const Block arriving =
            sum.single ? builder_.staging_for(mine.count) : builder_.accumulator_for(mine.count);
        builder_.receive(worker, arriving);
        leaves.push_back({sum.node, arriving});
      }
    });
    std::ranges::sort(leaves, {}, [](const TreeLeaf& leaf) { return leaf.node.lo; });
    const Block sum = builder_.sum_for(to);
    add_tree(builder_, leaves, sum);
    builder_.finish(to, sum);
  }

 private:
  Copy add(const NodeSum& sum, std::span<const Copy> copies, size_t first) {
    if (sum.single && addends_[first].rank == task_.rank) return copies[0];
    // Copied, so that a peer's memory is not needed any more when the round ends.
    const Block base = sum.single ? builder_.staging_for(total_size(work_))
                                  : builder_.accumulator_for(total_size(work_));
    const Copy added(base, work_);
    for (const Slice& slice : work_) {
      std::vector<TreeLeaf> leaves;
      for (size_t i = 0; i < copies.size(); ++i) {
        const auto number = static_cast<int>(i);
        leaves.push_back(
            {ordered_ ? addends_[first + i].node : Range{number, number + 1}, copies[i].at(slice)});
      }
      add_tree(builder_, leaves, added.at(slice));
    }
    return added;
  }

  ScheduleBuilder& builder_;
  const Task& task_;
  const NodeTable& table_;
  bool ordered_;
  NodePlace at_;
  std::vector<Slice> work_;
  std::vector<Addend> addends_;
  std::vector<NodeSum> sums_;
  std::vector<Copy> added_;  // the sums, on the node's part of the work
};

}  // namespace

void reduce_by_nodes(ScheduleBuilder& builder, const Task& task, const NodeTable& table,
                     bool ordered, Block to) {
  NodeReduction reduction(builder, task, table, ordered);
  reduction.add_inside();
  builder.round();
  reduction.add_between(to);
}

void gather_by_nodes(ScheduleBuilder& builder, const Task& task, const NodeTable& table,
                     Block mine) {
  const NodePlace at(task, table, task.parts);
  const auto part = [&](int rank) { return output(task.part(rank)); };
  at.for_each_worker([&](int, int worker) { builder.send(worker, mine); });
  at.for_each_served([&](int peer, size_t) { builder.receive(peer, part(peer)); });
  if (!task.shared_output) {
    at.for_each_local_peer([&](size_t p) {
      builder.receive(at.local[p], part(at.local[p]));
      builder.send(at.local[p], mine);
    });
    builder.copy(output(task.part()), mine);
  }
  builder.round();
  const std::vector<Slice> served = joined(task.parts, at.dealt[at.place]);
  at.for_each_local_peer([&](size_t p) {
    if (task.shared_output) return builder.await(at.local[p]), builder.signal(at.local[p]);
    for (const Slice& slice : joined(task.parts, at.dealt[p]))
      builder.receive(at.local[p], output(slice));
    for (const Slice& slice : served) builder.send(at.local[p], output(slice));
  });
}

void exchange_by_nodes(ScheduleBuilder& builder, const Task& task, const NodeTable& table) {
  const NodePlace at(task, table, task.sends);
  const std::vector<int>& served = at.dealt[at.place];
  const size_t locals = at.local.size(), block = task.sends[0].count;
  const auto send = [&](int rank) { return input(task.sent_to(rank)); };
  const auto receive = [&](int rank) { return output(task.received_from(rank)); };

  // Blocks of all ranks of the node for one rank of another: together, in the order of the ranks.
  Slice bundles{};
  if (locals > 1) {
    bundles = builder.take_staging(served.size() * locals * block);
    const auto bundled = [&](size_t i, size_t p) {
      return staging({bundles.begin + (i * locals + p) * block, block});
    };
    at.for_each_local_peer([&](size_t p) {
      const Slice theirs = builder.take_staging(served.size() * block);
      size_t begin = theirs.begin;
      for (const Slice& slice : joined(task.sends, served)) {
        builder.receive(at.local[p], staging({begin, slice.count}));
        begin += slice.count;
      }
      for (const Slice& slice : joined(task.sends, at.dealt[p]))
        builder.send(at.local[p], input(slice));
      for (size_t i = 0; i < served.size(); ++i)
        builder.copy(bundled(i, p), staging({theirs.begin + i * block, block}));
    });
    for (size_t i = 0; i < served.size(); ++i) builder.copy(bundled(i, at.place), send(served[i]));
    builder.round();
  }

  at.for_each_served([&](int peer, size_t i) {
    builder.send(peer, locals > 1 ? staging({bundles.begin + i * locals * block, locals * block})
                                  : send(peer));
  });
  at.for_each_worker([&](int node, int worker) {
    const std::span<const int> there = table.ranks_of(node);
    if (table.contiguous(node)) {
      const size_t first = task.received_from(there.front()).begin;
      return builder.receive(worker, output({first, there.size() * block}));
    }
    const Slice bundle = builder.take_staging(there.size() * block);
    builder.receive(worker, staging(bundle));
    for (size_t p = 0; p < there.size(); ++p)
      builder.copy(receive(there[p]), staging({bundle.begin + p * block, block}));
  });
  at.for_each_local_peer([&](size_t p) {
    builder.receive(at.local[p], receive(at.local[p]));
    builder.send(at.local[p], send(at.local[p]));
  });
  builder.copy(receive(task.rank), send(task.rank));
}

}  // namespace tutti::comm

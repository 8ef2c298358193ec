// Double binary tree: two trees over all ranks, each for one half of the vector. An inner node of
// one tree is a leaf of the other, so every rank's link works in both directions all the time. Each
// half is cut into segments that follow each other through the tree.
//
//   allreduce  2 (h + k) rounds or fewer,  sent at most 2 S + S/2,  reduced S
//              h = height of a tree, at most ceil(log2 (n+1)); k = segments
//
// This gives nearly the ring's bandwidth at logarithmic latency. Sums follow the order of these two
// trees, not of comm/schedule/tree.h. S = elements of the vector, n = ranks. After Sanders, Speck
// and Traff, Two-tree algorithms for full bandwidth broadcast, reduction and scan (2009).

#include <algorithm>
#include <bit>
#include <utility>

#include "tutti/comm/algorithm/algorithm.h"

namespace tutti::comm {
namespace {

constexpr size_t kSegment =
    16384;  // elements: 64 KiB of floats, enough to hide a message's latency behind its bytes
constexpr size_t kMaxSegments = 32;

// The in-order binary tree over positions 1..n: the height of a position is its number of trailing
// zero bits, so odd positions are leaves.
struct InOrder {
  int n;
  static int height(int q) { return std::countr_zero(static_cast<unsigned>(q)); }
  int root() const { return static_cast<int>(std::bit_floor(static_cast<unsigned>(n))); }
  int parent(int q) const {
    if (q == root()) return 0;
    const int bit = 1 << height(q);
    const int up = (q - bit) | (bit << 1);
    return up <= n ? up
                   : q - bit;  // the right edge is cut off: its parent is the next one to the left
  }
  std::vector<int> children(int q) const {
    std::vector<int> all;
    for (int h = height(q) - 1; h >= 0; --h)
      if (parent(q - (1 << h)) == q) {
        all.push_back(q - (1 << h));
        break;
      }
    for (int h = height(q) - 1; h >= 0; --h)
      if (const int right = q + (1 << h); right <= n && parent(right) == q) {
        all.push_back(right);
        break;
      }
    return all;
  }
  int depth(int q) const {
    int steps = 0;
    for (; q != root(); q = parent(q)) ++steps;
    return steps;
  }
  // The longest way down from q: to the left nothing is cut off.
  static int levels(int q) { return height(q); }
};

// Positions of the second tree: mirrored for even n, shifted by one for odd n; both turn odd
// positions into even ones (but for one rank).
struct Tree {
  InOrder shape;
  bool second;
  int position(int rank) const {
    if (!second) return rank + 1;
    return shape.n % 2 == 0 ? shape.n - rank : (rank + 1) % shape.n + 1;
  }
  int rank(int position) const {
    if (!second) return position - 1;
    return shape.n % 2 == 0 ? shape.n - position : (position - 2 + shape.n) % shape.n;
  }
};

// A message in one round of the common clock of all ranks.
struct Event {
  size_t time;
  size_t order;  // among events of one time: the same on both sides
  bool up;
  bool sends;
  int peer;
  size_t tree;
  size_t segment;
};

class DoubleTree {
 public:
  explicit DoubleTree(const Task& task)
      : task_(task), trees_{Tree{{task.ranks}, false}, Tree{{task.ranks}, true}} {
    for (const Slice& half : balanced_parts(task.count, 2)) {
      const size_t segments = std::clamp<size_t>(half.count / kSegment, 1, kMaxSegments);
      std::vector<Slice> cut = balanced_parts(half.count, static_cast<int>(segments));
      for (Slice& slice : cut) slice.begin += half.begin;
      segments_.push_back(std::move(cut));
    }
  }

  Schedule schedule() {
    ScheduleBuilder builder(task_, "double_tree");
    const Slice all{0, task_.count};
    if (task_.ranks == 1) {
      builder.finish(output(all), input(all));
      return builder.build();
    }
    collect();
    std::ranges::sort(events_, [](const Event& a, const Event& b) {
      return std::pair(a.time, a.order) < std::pair(b.time, b.order);
    });
    sum_ = builder.sum_for(output(all));
    for (Slice& slice : arrivals_) slice = builder.take_staging(widest());
    for (Slice& slice : sums_) slice = builder.take_accumulator(widest());
    for (size_t i = 0; i < events_.size();) {
      builder.round();
      arrivals_in_round_ = 0;
      const size_t now = events_[i].time;
      while (i < events_.size() && events_[i].time == now) add(builder, events_[i++]);
    }
    return builder.build();
  }

 private:
  size_t widest() const {
    size_t most = 0;
    for (const auto& half : segments_)
      for (const Slice& slice : half) most = std::max(most, slice.count);
    return most;
  }

  void collect() {
    for (size_t t = 0; t < 2; ++t) {
      const Tree& tree = trees_[t];
      const int me = tree.position(task_.rank);
      const auto height = static_cast<size_t>(tree.shape.levels(tree.shape.root()));
      const auto my_levels = static_cast<size_t>(tree.shape.levels(me));
      const auto my_depth = static_cast<size_t>(tree.shape.depth(me));
      const std::vector<int> children = tree.shape.children(me);
      for (size_t s = 0; s < segments_[t].size(); ++s) {
        for (const int child : children) {
          events_.push_back({static_cast<size_t>(tree.shape.levels(child)) + s, order(t, child),
                             true, false, tree.rank(child), t, s});
          events_.push_back(
              {height + s + my_depth, order(t, child), false, true, tree.rank(child), t, s});
        }
        if (me == tree.shape.root()) continue;
        events_.push_back(
            {my_levels + s, order(t, me), true, true, tree.rank(tree.shape.parent(me)), t, s});
        events_.push_back({height + s + my_depth - 1, order(t, me), false, false,
                           tree.rank(tree.shape.parent(me)), t, s});
      }
    }
  }
  static size_t order(size_t tree, int child) { return static_cast<size_t>(child) * 2 + tree; }

  bool leaf(size_t tree, int rank) const {
    return trees_[tree].shape.children(trees_[tree].position(rank)).empty();
  }

  void add(ScheduleBuilder& builder, const Event& event) {
    const Slice slice = segments_[event.tree][event.segment];
    const bool root = trees_[event.tree].position(task_.rank) == trees_[event.tree].shape.root();
    const bool inner = !leaf(event.tree, task_.rank);
    if (event.up && event.sends) {
      builder.send(event.peer, inner ? within(sum_, slice) : input(slice));
    } else if (event.up) {
      const bool plain = leaf(event.tree, event.peer);
      const size_t number = arrivals_in_round_++;
      const Block arriving = plain ? staging({arrivals_[number].begin, slice.count})
                                   : accumulator({sums_[number].begin, slice.count});
      builder.receive(event.peer, arriving);
      Block known = within(sum_, slice);
      if (first_arrival(event)) known = input(slice);
      builder.reduce(within(sum_, slice), known, arriving);
      if (root &&
          ++root_arrivals_[event.tree * kMaxSegments + event.segment] == children(event.tree))
        builder.finish(output(slice), within(sum_, slice));
    } else if (event.sends) {
      builder.send(event.peer, output(slice));
    } else {
      builder.receive(event.peer, output(slice));
    }
  }
  size_t children(size_t tree) const {
    return trees_[tree].shape.children(trees_[tree].position(task_.rank)).size();
  }
  bool first_arrival(const Event& event) {
    const size_t at = event.tree * kMaxSegments + event.segment;
    return std::exchange(touched_[at], true) == false;
  }

  const Task& task_;
  Tree trees_[2];
  std::vector<std::vector<Slice>> segments_;
  std::vector<Event> events_;
  Block sum_;
  Slice arrivals_[4], sums_[4];  // two children in each tree: at most four arrivals a round
  size_t arrivals_in_round_ = 0;
  bool touched_[2 * kMaxSegments] = {};
  size_t root_arrivals_[2 * kMaxSegments] = {};
};

Schedule double_tree_schedule(const Task& task) { return DoubleTree(task).schedule(); }

// Counted, because the closed form above is only a bound.
Steps double_tree_steps(const Task& task) { return count_busiest(double_tree_schedule, task); }

std::string double_tree_refusal(const Task& task) {
  return task.kind == Collective::allreduce ? "" : does_not_do("double_tree", task);
}

bool double_tree_reproducible(const Task& task) { return task.ranks <= 2; }

}  // namespace

const Algorithm double_tree{"double_tree", double_tree_refusal, double_tree_schedule,
                            double_tree_steps, double_tree_reproducible};

}  // namespace tutti::comm

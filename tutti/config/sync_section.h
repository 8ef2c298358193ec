#pragma once
// The keys of [sync] and [replay]: values, and the rows that describe them (config_table.h).

#include <cstdint>
#include <string>

#include "tutti/config/config_words.h"

namespace tutti::config {

struct SyncSection {
  std::string scheme = "step";  ///< parse_sync()
  int64_t first_steps = 0;
  int64_t fragments = 1;
  sync::MetState state = sync::MetState::keep;
  sync::OuterStep outer = sync::OuterStep::none;
  double outer_lr = 1;
  double outer_momentum = 0.9;
  int64_t delay = 0;    ///< meetings
  double alpha = 0;     ///< 0: 0.9 / replicas; with a tree, 0.9 / tree
  int64_t tree = 0;     ///< children of a node; 0: one centre
  int64_t tree_up = 0;  ///< steps; 0: 4 times K
  sync::MixingGraph graph = sync::MixingGraph::ring;
  int64_t servers = 1;
  int64_t server_ranks = 0;  ///< the last ranks of the job; 0: servers are beside workers
  int64_t quorum = 0;
  double delay_compensation = 0;
  double stale_rate = 0;

  template <class Keys>
  static void keys(Keys& t) {
    using S = SyncSection;

    t.key(
        &S::scheme, "scheme",
        "step: their gradients are averaged in every step. Otherwise each trains weights of its "
        "own, and they meet every K steps, every epoch or never, as in local:8, local:epoch, "
        "local:never: local averages the weights, easgd:K draws them to a centre, dpsgd:K averages "
        "those of neighbours (K is 1 where it is left out). gossip:P sends them to one other after "
        "each step with probability P. Or servers hold the weights: ps:sync, ps:async, ps:ssp:S, "
        "groups:G");
    t.rest_only_with("sync.scheme");
    t.key(&S::first_steps, "first_steps",
          "local: in so many steps at the beginning replicas meet at every step, and average the "
          "optimizer's state too")
        .at_least(0);
    t.key(
         &S::fragments, "fragments",
         "local: the weights meet in so many pieces, one after another between two meetings of the "
         "same one")
        .between(1, 4096);
    t.key(&S::state, "state",
          "local: what becomes of the optimizer's state at a meeting: each keeps its own, they "
          "average it, or it is 0 again");
    t.key(&S::outer, "outer",
          "local: what is done with the average change of the weights since the last meeting: none "
          "takes the average, momentum is SlowMo, nesterov is DiLoCo");
    t.key(&S::outer_lr, "outer_lr", "Learning rate of that step")
        .at_least(0)
        .only_with("sync.outer", {"momentum", "nesterov"});
    t.key(&S::outer_momentum, "outer_momentum", "Its momentum")
        .between(0, 1)
        .only_with("sync.outer", {"momentum", "nesterov"});
    t.key(&S::delay, "delay",
          "local: 1 applies an average one meeting late, so that it travels while training goes on")
        .between(0, 1);
    t.key(&S::alpha, "alpha",
          "easgd: which part of its way to the centre a replica goes at a meeting. 0: 0.9 / "
          "replicas, with sync.tree 0.9 / tree")
        .between(0, 1);
    t.key(&S::tree, "tree",
          "easgd: so many replicas share a centre, so many of these one above them, and so on to "
          "one. 0: all share one")
        .between(0, 1 << 20);
    t.key(&S::tree_up, "tree_up",
          "Steps between meetings of a centre with the one above it, a multiple of K. 0: 4 K")
        .at_least(0)
        .only_with("sync.tree");
    t.key(&S::graph, "graph",
          "dpsgd: who are neighbours: ring (two), torus (four), exponential (one at distance 1, 2, "
          "4, ... in turn)");
    t.key(&S::servers, "servers",
          "ps, groups: so many servers share the weights, each with buckets of its own. On real "
          "ranks they are beside the first workers")
        .between(1, 65536);
    t.key(&S::server_ranks, "server_ranks",
          "ps, groups: the last N ranks of the job are servers and nothing else. 0: none is")
        .between(0, 65536)
        .may_change();
    t.key(&S::quorum, "quorum",
          "ps:sync: a step takes the first N gradients of run.replicas workers; later ones are "
          "dropped, and their samples go to the next worker that is free. 0: all")
        .at_least(0);
    t.key(&S::delay_compensation, "delay_compensation",
          "ps, groups, where gradients are applied one by one: lambda of g + lambda g g (w_now - "
          "w_then), which brings a gradient to the weights that it is applied to (DC-ASGD). 0: it "
          "is applied as it is")
        .at_least(0);
    t.key(
         &S::stale_rate, "stale_rate",
         "ps, groups, where gradients are applied one by one: the learning rate is divided by this "
         "power of the number of updates since the gradient's weights were taken. 0: it is not")
        .between(0, 2);
  }
};

struct ReplaySection {
  std::string machine{};  ///< path of a file that describes it; empty: no replay
  std::string spill{};    ///< folder for the replicas' own weights and state; empty: memory

  template <class Keys>
  static void keys(Keys& t) {
    using S = ReplaySection;

    t.key(&S::machine, "machine",
          "File that describes a machine: the record also tells when the run's replicas, each on a "
          "device of it, would have come as far. Empty: no replay")
        .path(PathKind::read)
        .may_change();
    t.key(&S::spill, "spill",
          "Folder on a disk of this node for the weights that replicas have each of their own, or "
          "servers' workers each a version of (not with ps:sync), and for their optimizer's state, "
          "where memory is short for them. Empty: memory")
        .path(PathKind::written)
        .only_with("sync.scheme")
        .may_change();
  }
};

}  // namespace tutti::config

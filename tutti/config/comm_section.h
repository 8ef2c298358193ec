#pragma once
// The keys of [comm]: values, and the rows that describe them (config_table.h).

#include <cstdint>
#include <string>
#include <vector>

#include "tutti/config/config_words.h"

namespace tutti::config {

struct CommSection {
  int64_t bucket_bytes = 0;
  bool priority = true;
  int64_t chunk_bytes = 0;
  bool reproducible = true;
  bool sharded_update = false;
  std::string algorithm{};  ///< empty: chosen
  std::string shape{};      ///< the network to imitate; empty: full speed
  double timeout_s = 60;
  std::string progress_threads = "auto";  ///< or a whole number
  comm::OnTimeout on_timeout = comm::OnTimeout::abort;
  bool check = false;
  std::string nodes = "auto";        ///< or "hostname"
  std::string wire = "auto";         ///< or "mpi", "tcp"
  std::string address{};             ///< for comm::own_address(); empty: all addresses of each host
  std::string selection{};           ///< path of a table of algorithms; empty: built-in
  std::string compression = "none";  ///< parse_compression_policy()
  int64_t compression_min_bytes = 64 << 10;
  int64_t compression_warmup_steps = 0;
  int64_t compression_ramp_steps = 0;  ///< 0: no ramp
  std::vector<std::string> compression_exclude{};

  template <class Keys>
  static void keys(Keys& t) {
    using S = CommSection;

    t.key(&S::bucket_bytes, "bucket_bytes",
          "Gradients are exchanged in pieces of about this size; 0: as large as a measurement at "
          "the start says")
        .unit("bytes")
        .at_least(0)
        .may_change();
    t.key(&S::priority, "priority",
          "A piece that the next step needs earlier overtakes others. false: first come, first "
          "served")
        .may_change();
    t.key(
         &S::chunk_bytes, "chunk_bytes",
         "Larger pieces run in parts, so that they can be overtaken; a sharded update of more than "
         "32 ranks does not. 0: whole in shared memory, elsewhere 512 KiB, or 4 KiB a rank where "
         "that is more")
        .unit("bytes")
        .at_least(0)
        .may_change();
    t.key(&S::reproducible, "reproducible",
          "Sums have the same bits on any number of ranks. false: whatever algorithm is fastest");
    t.key(&S::sharded_update, "sharded_update",
          "Each rank updates its share of the weights, and keeps the optimizer's state for it "
          "alone; the same bits. false: every rank updates all")
        .may_change();
    t.key(&S::algorithm, "algorithm",
          "How gradients are summed: pairwise, ring, recursive_doubling, recursive_halving, "
          "double_tree, two_level, ring_2d. Empty: chosen by size, ranks and nodes")
        .may_change();
    t.key(&S::shape, "shape",
          "Slow down the exchange to that of a network, to see one on a single node: "
          "\"10gbit,50us\" is rate and delay of each rank's link. Empty: no")
        .may_change();
    t.key(&S::timeout_s, "timeout_s",
          "A wait for another rank that takes longer is reported with the rank's name")
        .unit("s")
        .at_least(0.1)
        .no_matter();
    t.key(&S::on_timeout, "on_timeout",
          "After that report: abort ends the job, continue waits on and reports again, each time "
          "after twice as long")
        .no_matter();
    t.key(&S::check, "check",
          "Send a checksum with every message and compare every sum among ranks, to find the rank "
          "or link that changes data; slower")
        .may_change();
    t.key(
         &S::progress_threads, "progress_threads",
         "Threads of a rank that move communication forward while it computes, each on a core of "
         "its own. auto: one where the rank "
         "has a core more than run.threads, else none; without one, the rank polls between kernels")
        .or_count(64)
        .may_change();
    t.key(&S::nodes, "nodes",
          "Which ranks are on one node and share its memory. auto: those under one running kernel; "
          "hostname: of these, those with the same host name, so that containers or network "
          "namespaces of one machine count as nodes")
        .one_of({"auto", "hostname"})
        .may_change();
    t.key(&S::wire, "wire",
          "What carries messages between hosts: MPI, or the library's own TCP connections. auto: "
          "tcp where MPI itself would use TCP between the hosts of this job, else mpi")
        .one_of({"auto", "mpi", "tcp"})
        .no_matter();
    t.key(&S::address, "address",
          "What each host listens on for other ranks, with comm.wire = \"tcp\" and for "
          "data.cache.exchange: an interface (\"ib0\"), a network that one of its addresses is in "
          "(\"10.1.0.0/16\"), or, where all ranks are on one host, an address or a name of it. "
          "Empty: all its addresses")
        .no_matter()
        .may_differ();
    t.key(&S::selection, "selection",
          "File that says which algorithm a collective takes, as `tutti bench comm --tune` writes "
          "it. Empty: built-in")
        .path(PathKind::read)
        .may_change();

    t.key(&S::compression, "compression",
          "How gradients travel between ranks: none, bf16, fp16, int8, onebit, topk:RATIO, "
          "hitopk:RATIO (dense inside a node), powersgd:RANK; what a step leaves out is sent in "
          "later ones. With auto: in front, as in auto:topk:0.01, the run first measures whether "
          "this saves time here, and leaves it off if not. Compressed training depends on the "
          "number of ranks");
    t.rest_only_with("comm.compression");
    t.key(&S::compression_min_bytes, "compression_min_bytes",
          "Gradients of smaller parameters, and of those with one dimension, stay dense")
        .unit("bytes")
        .at_least(0);
    t.key(&S::compression_warmup_steps, "compression_warmup_steps",
          "Dense steps before the first compressed one")
        .at_least(0);
    t.key(&S::compression_ramp_steps, "compression_ramp_steps",
          "Then steps at each of the densities 1/4, 1/16, 1/64, ... above the final one (topk, "
          "hitopk). 0: the final one at once")
        .at_least(0);
    t.key(&S::compression_exclude, "compression_exclude",
          "Parameters that stay dense, as patterns over their names: fc.*, *.weight");
  }
};

}  // namespace tutti::config

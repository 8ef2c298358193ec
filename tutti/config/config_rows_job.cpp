#include "tutti/config/config_table.h"

namespace tutti {

void write_checkpoint_rows(ConfigTableWriter& t) {
  using S = CheckpointSection;
  constexpr auto s = &RunConfig::checkpoint;
  t.section("checkpoint", s, "What survives the run.");
  t.key(s, &S::every_steps, "every_steps", "Steps between checkpoints. 0: not by steps")
      .at_least(0)
      .may_change();
  t.key(s, &S::every_epochs, "every_epochs", "Epochs between checkpoints. 0: not by epochs")
      .at_least(0)
      .may_change();
  t.key(s, &S::keep, "keep", "How many of the newest to keep. 0: all")
      .between(0, 1 << 24)
      .no_matter();
  t.key(s, &S::best, "best",
        "Also write one after each evaluation that is better than all before it, and keep the "
        "last of these as best beside the others")
      .may_change();
  t.key(s, &S::memory, "memory",
        "What a rank may hold of a copy of its state, which is written while training goes on; "
        "training stands still until all of the state is in it or written. 0: as much as the state "
        "takes, at most a quarter of the node's free memory for each of its ranks, or, with "
        "plan.memory, what that leaves")
      .unit("bytes")
      .at_least(0)
      .no_matter();
  t.key(s, &S::dir, "dir",
        "Their folder; {output_dir}/NAME lies in the run's. Empty: checkpoints in run.output_dir")
      .path(PathKind::written)
      .no_matter();
  t.key(s, &S::resume, "resume",
        "Continue from \"latest\" (the newest valid one in checkpoint.dir), from a run's folder "
        "or from one checkpoint. Empty: a new run")
      .path(PathKind::read, "latest")
      .no_matter();
}

namespace {

void write_compression_rows(ConfigTableWriter& t) {
  using S = CommSection;
  constexpr auto s = &RunConfig::comm;
  t.key(s, &S::compression, "compression",
        "How gradients travel between ranks: none, bf16, fp16, int8, onebit, topk:RATIO, "
        "hitopk:RATIO (dense inside a node), powersgd:RANK; what a step leaves out is sent in "
        "later ones. With auto: in front, as in auto:topk:0.01, the run first measures whether "
        "this saves time here, and leaves it off if not. Compressed training depends on the "
        "number of ranks");
  t.key(s, &S::compression_min_bytes, "compression_min_bytes",
        "Gradients of smaller parameters, and of those with one dimension, stay dense")
      .unit("bytes")
      .at_least(0)
      .only_with("comm.compression");
  t.key(s, &S::compression_warmup_steps, "compression_warmup_steps",
        "Dense steps before the first compressed one")
      .at_least(0)
      .only_with("comm.compression");
  t.key(s, &S::compression_ramp_steps, "compression_ramp_steps",
        "Then steps at each of the densities 1/4, 1/16, 1/64, ... above the final one (topk, "
        "hitopk). 0: the final one at once")
      .at_least(0)
      .only_with("comm.compression");
  t.key(s, &S::compression_exclude, "compression_exclude",
        "Parameters that stay dense, as patterns over their names: fc.*, *.weight")
      .only_with("comm.compression");
}

}  // namespace

void write_comm_rows(ConfigTableWriter& t) {
  using S = CommSection;
  constexpr auto s = &RunConfig::comm;
  t.section("comm", s, "The exchange between ranks.");
  t.key(s, &S::bucket_bytes, "bucket_bytes",
        "Gradients are exchanged in pieces of about this size; 0: as large as a measurement at "
        "the start says")
      .unit("bytes")
      .at_least(0)
      .may_change();
  t.key(s, &S::priority, "priority",
        "A piece that the next step needs earlier overtakes others. false: first come, first "
        "served")
      .may_change();
  t.key(s, &S::chunk_bytes, "chunk_bytes",
        "Larger pieces run in parts, so that they can be overtaken; a sharded update of more than "
        "32 ranks does not. 0: whole in shared memory, elsewhere 512 KiB, or 4 KiB a rank where "
        "that is more")
      .unit("bytes")
      .at_least(0)
      .may_change();
  t.key(s, &S::reproducible, "reproducible",
        "Sums have the same bits on any number of ranks. false: whatever algorithm is fastest");
  t.key(s, &S::sharded_update, "sharded_update",
        "Each rank updates its share of the weights, and keeps the optimizer's state for it "
        "alone; the same bits. false: every rank updates all")
      .may_change();
  t.key(s, &S::algorithm, "algorithm",
        "How gradients are summed: pairwise, ring, recursive_doubling, recursive_halving, "
        "double_tree, two_level, ring_2d. Empty: chosen by size, ranks and nodes")
      .may_change();
  t.key(s, &S::shape, "shape",
        "Slow down the exchange to that of a network, to see one on a single node: "
        "\"10gbit,50us\" is rate and delay of each rank's link. Empty: no")
      .may_change();
  t.key(s, &S::timeout_s, "timeout_s",
        "A wait for another rank that takes longer is reported with the rank's name")
      .unit("s")
      .at_least(0.1)
      .no_matter();
  t.key(s, &S::on_timeout, "on_timeout",
        "After that report: abort ends the job, continue waits on and reports again, each time "
        "after "
        "twice as long")
      .no_matter();
  t.key(s, &S::check, "check",
        "Send a checksum with every message and compare every sum among ranks, to find the rank "
        "or link that changes data; slower")
      .may_change();
  t.key(s, &S::progress_threads, "progress_threads",
        "Threads of a rank that move communication forward while it computes, each on a core of "
        "its own. auto: one where the rank "
        "has a core more than run.threads, else none; without one, the rank polls between kernels")
      .or_count(64)
      .may_change();
  t.key(s, &S::nodes, "nodes",
        "Which ranks are on one node and share its memory. auto: those under one running kernel; "
        "hostname: of these, those with the same host name, so that containers or network "
        "namespaces of one machine count as nodes")
      .one_of({"auto", "hostname"})
      .may_change();
  t.key(s, &S::wire, "wire",
        "What carries messages between hosts: MPI, or the library's own TCP connections. auto: tcp "
        "where MPI itself would use TCP between the hosts of this job, else mpi")
      .one_of({"auto", "mpi", "tcp"})
      .no_matter();
  t.key(
       s, &S::address, "address",
       "What each host listens on for other ranks, with comm.wire = \"tcp\" and for "
       "data.cache.exchange: an interface (\"ib0\"), a network that one of its addresses is in "
       "(\"10.1.0.0/16\"), or, where all ranks are on one host, an address or a name of it. Empty: "
       "all its addresses")
      .no_matter()
      .may_differ();
  t.key(s, &S::selection, "selection",
        "File that says which algorithm a collective takes, as `tutti bench comm --tune` writes "
        "it. Empty: built-in")
      .path(PathKind::read)
      .may_change();
  write_compression_rows(t);
}

}  // namespace tutti

#pragma once
// TuttiBackend: the process group of torch.distributed over libtutticomm.
//
// Collective calls come in the same order on all ranks, as c10d requires; they plan and start on
// the calling thread, one at a time. That is sufficient for exchanges of blocks, which match by the
// order of their starts. Functions that are not overridden here report that they are not supported.
// The functions are in backend.cpp and, by subject, in sums.cpp, gathers.cpp, rooted.cpp and
// blocks.cpp.

#include <c10/util/FunctionRef.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "group.h"
#include "plan_cache.h"
#include "work.h"

namespace tutti_torch {

class TuttiBackend final : public c10d::Backend {
 public:
  using Tensors = std::vector<at::Tensor>;
  using WorkPtr = c10::intrusive_ptr<c10d::Work>;

  /// Collective.
  explicit TuttiBackend(const Group::Options& options);
  ~TuttiBackend() override;

  const std::string getBackendName() const override { return "tutti"; }
  void setTimeout(std::chrono::milliseconds timeout) override { group().set_timeout(timeout); }
  void setSequenceNumberForGroup() override {}
  uint64_t getSequenceNumberForGroup() override { return sequence_; }
  void shutdown() override;
  void abort() override { shutdown(); }

  WorkPtr barrier(const c10d::BarrierOptions& opts) override;
  WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& opts) override;
  WorkPtr reduce(Tensors& tensors, const c10d::ReduceOptions& opts) override;
  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& opts) override;
  WorkPtr allreduce_coalesced(Tensors& tensors,
                              const c10d::AllreduceCoalescedOptions& opts) override;
  WorkPtr allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                    const c10d::AllgatherOptions& opts) override;
  WorkPtr allgather_coalesced(std::vector<Tensors>& outputs, Tensors& inputs,
                              const c10d::AllgatherOptions& opts) override;
  WorkPtr _allgather_base(at::Tensor& output, at::Tensor& input,
                          const c10d::AllgatherOptions& opts) override;
  WorkPtr allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::AllgatherOptions& opts) override;
  WorkPtr gather(std::vector<Tensors>& outputs, Tensors& inputs,
                 const c10d::GatherOptions& opts) override;
  WorkPtr scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                  const c10d::ScatterOptions& opts) override;
  WorkPtr reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                         const c10d::ReduceScatterOptions& opts) override;
  WorkPtr _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                               const c10d::ReduceScatterOptions& opts) override;
  WorkPtr reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::ReduceScatterOptions& opts) override;
  WorkPtr alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<int64_t>& output_sizes,
                        std::vector<int64_t>& input_sizes,
                        const c10d::AllToAllOptions& opts) override;
  WorkPtr alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& opts) override;
  WorkPtr send(Tensors& tensors, int peer, int tag) override;
  WorkPtr recv(Tensors& tensors, int peer, int tag) override;
  WorkPtr recvAnysource(Tensors& tensors, int tag) override;

 private:
  /// Description of a call.
  struct Call {
    template <class Given>
    Call(c10d::OpType type, const char* title, const Given& options)
        : type(type), title(title), timeout(options.timeout) {
      if constexpr (requires { options.asyncOp; }) later = options.asyncOp;  // some PyTorch lack it
    }
    Call(c10d::OpType type, const char* title) : type(type), title(title) {}  // for messages
    c10d::OpType type;
    const char* title;  ///< name in PyTorch's profiler
    std::chrono::milliseconds timeout{};
    bool later = true;  ///< the caller does not wait at once
  };
  /// Makes a work, calls `fill` to start its plans, and returns it. `inputs` are for the profiler.
  WorkPtr issue(const Call& call, const Tensors& inputs, Tensors result,
                c10::function_ref<void(TuttiWork&)> fill);
  /// Gives the work to the progress thread, unless it is complete within a short wait.
  void advance(const Call& call, const c10::intrusive_ptr<TuttiWork>& work);
  Group& group() const;
  void check_root(const char* call, int64_t root) const;
  /// Checks the root's list: it must hold a tensor of x's type and size for each rank.
  void check_list(const char* call, std::vector<Tensors>& lists, const at::Tensor& x) const;

  // Starts one of the collectives of a work. An undefined tensor has no buffer on this rank.
  void start(TuttiWork& work, const Signature& signature, const at::Tensor& input,
             const at::Tensor& output);
  void start(TuttiWork& work, const Blocks& blocks, const at::Tensor& input,
             const at::Tensor& output);
  void start(TuttiWork& work, const Message& message, const at::Tensor& x);
  void start_allreduce(TuttiWork& work, const at::Tensor& x, const c10d::ReduceOp& op);
  void start_reduce_scatter(TuttiWork& work, const at::Tensor& output, const at::Tensor& input,
                            const c10d::ReduceOp& op);
  void start_allgather(TuttiWork& work, const at::Tensor& output, const at::Tensor& input);
  void start_allgather(TuttiWork& work, const Tensors& outputs, const at::Tensor& input);

  std::mutex mutex_;              // guards the members below
  std::shared_ptr<Group> group_;  // shared with works in flight; null after shutdown
  std::unique_ptr<PlanCache> plans_;
  uint64_t sequence_ = 0;
  // Time that a call waits for peers: halved after a wait in vain, otherwise doubled.
  std::chrono::microseconds patience_{1000};
};

}  // namespace tutti_torch

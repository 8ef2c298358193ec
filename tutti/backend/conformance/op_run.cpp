#include "tutti/backend/conformance/op_run.h"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "tutti/backend/conformance/device_run.h"
#include "tutti/backend/conformance/guarded_operand.h"
#include "tutti/backend/reference/plain_tensor.h"
#include "tutti/base/error.h"

namespace tutti::backend {
namespace {

Layout layout_named(const Backend& backend, const graph::ValueType& type, const std::string& name) {
  const Shape& shape = type.desc.shape;
  if (type.batched && shape.rank() >= 3)
    for (const Layout& layout : backend.activation_layouts(shape, type.desc.dtype))
      if (layout.to_string(shape.rank()) == name) return layout;
  return Layout::plain();
}

const KernelCandidate& choose(const std::vector<KernelCandidate>& candidates,
                              const std::string& name, const graph::Op& op) {
  std::string refusals;
  for (const KernelCandidate& c : candidates) {
    if (c.refusal.empty() && (name.empty() || name == c.name)) return c;
    refusals += fmt::format("; {}: {}", c.name, c.refusal.empty() ? "not asked for" : c.refusal);
  }
  throw DeviceError(fmt::format("no kernel for {} {{{}}}{}", op.name(), op.attributes(), refusals));
}

/// The threads of a parallel region.
class ParallelTeam final : public Team {
 public:
  explicit ParallelTeam(std::vector<void*> workspaces) : workspaces_(std::move(workspaces)) {}
  void meet() override {
    order_.fetch_add(1);  // as in OpRun::run
#pragma omp barrier
    order_.fetch_add(1);
  }
  void* workspace(int part) const override { return workspaces_[static_cast<size_t>(part)]; }

 private:
  std::vector<void*> workspaces_;
  std::atomic<int> order_{0};
};

}  // namespace

/// The data of one thread.
struct OpRun::Worker {
  struct Tile {
    int64_t first, size;
    Kernel* kernel;
  };
  std::vector<std::pair<int64_t, std::unique_ptr<Kernel>>> kernels;  ///< by tile size
  std::vector<Tile> tiles;
  device::Buffer workspace, state;
  void* accumulator = nullptr;
  std::vector<void*> in, out;

  Kernel* kernel_for(int64_t size) const {
    for (const auto& [n, kernel] : kernels)
      if (n == size) return kernel.get();
    return nullptr;
  }
};

OpRun::OpRun(OpRun&&) noexcept = default;
OpRun::~OpRun() = default;

OpRun::OpRun(OpProblem problem, const Backend& backend, const OpRunOptions& options)
    : problem_(std::move(problem)), out_types_(problem_.out()), options_(options),
      walk_(problem_.op->walk(problem_.in)) {
  const auto add = [&](const std::vector<graph::ValueType>& types, std::vector<TensorDesc>& descs) {
    for (const graph::ValueType& type : types) {
      descs.push_back(type.desc);
      descs.back().layout = layout_named(backend, type, options_.layout);
      if (type.batched && batch_ == 0) batch_ = type.desc.shape[0];
    }
  };
  request_.op = problem_.op.get();
  request_.team = options_.threads;
  add(problem_.in, request_.in);
  if (walk_ == graph::Walk::across) batch_ = 0;  // the batch size of its outputs
  add(out_types_, request_.out);
  request_.in_free = problem_.in_free;
  request_.out_free = problem_.out_free;
  request_.in_free.resize(request_.in.size());
  request_.out_free.resize(request_.out.size());
  options_.step.batch = batch_;
  if (walk_ == graph::Walk::whole || options_.tile == 0) options_.tile = batch_;

  const std::vector<KernelCandidate> candidates = backend.candidates(request_for(options_.tile));
  const KernelCandidate& chosen = choose(candidates, options_.kernel, *problem_.op);
  kernel_name_ = chosen.name;
  error_ = chosen.error;
  for (const KernelCandidate& c : candidates) {
    if (c.refusal.empty()) accepted_.push_back(c.name);
    if (c.refusal.empty() && c.speed != KernelSpeed::fast) slow_.push_back(c.name);
  }
  for (size_t i = 0; i < request_.in.size(); ++i)
    if (request_.in_free[i]) request_.in[i] = chosen.in[i];
  for (size_t i = 0; i < request_.out.size(); ++i)
    if (request_.out_free[i]) request_.out[i].layout = chosen.out[i].layout;
  request_.in_free.assign(request_.in.size(), false);
  request_.out_free.assign(request_.out.size(), false);
  for (size_t i = 0; i < request_.in.size(); ++i)
    in_.emplace_back(request_.in[i], problem_.in[i].batched);
  for (size_t i = 0; i < request_.out.size(); ++i)
    out_.emplace_back(request_.out[i], out_types_[i].batched);

  if (backend.device()) {
    CHECK(options_.threads == 1 && options_.tile == batch_,
          "a device takes the whole batch at once");
    on_device_ = std::make_unique<DeviceRun>(backend, chosen.make(), in_, out_, options_);
    return;
  }

  // Tiles are dealt to the threads round-robin; whole ops have one "tile", which all threads share.
  for (int t = 0; t < options_.threads; ++t) {
    Worker& worker = *workers_.emplace_back(std::make_unique<Worker>());
    worker.in.resize(in_.size());
    worker.out.resize(out_.size());
    if (walk_ == graph::Walk::whole) {
      worker.tiles.push_back({0, 0, nullptr});
    } else {
      for (int64_t first = t * options_.tile; first < batch_;
           first += options_.threads * options_.tile)
        worker.tiles.push_back({first, std::min(options_.tile, batch_ - first), nullptr});
    }
    size_t workspace = 0;
    for (Worker::Tile& tile : worker.tiles) {
      if (!worker.kernel_for(tile.size)) {
        const std::vector<KernelCandidate> offered = backend.candidates(request_for(tile.size));
        const std::string name = tile.size == options_.tile || walk_ == graph::Walk::whole
                                     ? kernel_name_
                                     : std::string();
        worker.kernels.emplace_back(tile.size, choose(offered, name, *problem_.op).make());
      }
      tile.kernel = worker.kernel_for(tile.size);
      workspace = std::max(workspace, tile.kernel->workspace_bytes());
    }
    worker.workspace = device::Buffer(workspace);
    if (workspace > 0) std::memset(worker.workspace.data(), 0xFF, workspace);
    if (worker.tiles.empty()) continue;
    const Kernel& kernel = *worker.tiles.front().kernel;
    if (t == 0 && kernel.state_output() >= 0) {
      worker.accumulator = out_[static_cast<size_t>(kernel.state_output())].data();
    } else if (kernel.state_bytes() > 0) {
      worker.state = device::Buffer(kernel.state_bytes());
      std::memset(worker.state.data(), 0xFF, kernel.state_bytes());
      worker.accumulator = worker.state.data();
    }
  }
}

KernelRequest OpRun::request_for(int64_t tile) const {
  KernelRequest request = request_;
  if (walk_ == graph::Walk::whole) return request;
  for (size_t i = 0; i < request.in.size(); ++i)
    if (problem_.in[i].batched && walk_ != graph::Walk::across) request.in[i].shape[0] = tile;
  for (size_t i = 0; i < request.out.size(); ++i)
    if (out_types_[i].batched) request.out[i].shape[0] = tile;
  return request;
}

size_t OpRun::bytes() const {
  size_t bytes = 0;
  for (const GuardedOperand& operand : in_) bytes += operand.desc.bytes();
  for (const GuardedOperand& operand : out_) bytes += operand.desc.bytes();
  return bytes;
}

void OpRun::set_in(size_t i, const Values& values) {
  PlainTensor plain(in_[i].desc);
  CHECK(static_cast<int64_t>(values.size()) == plain.size(), "operand {} takes {} values, {} given",
        i, plain.size(), values.size());
  for (int64_t k = 0; k < plain.size(); ++k) plain[k] = values[static_cast<size_t>(k)];
  plain.store(in_[i].data());
}

namespace {

Values values_of(const TensorDesc& desc, const void* memory) {
  PlainTensor plain(desc);
  plain.load(memory);
  Values values(static_cast<size_t>(plain.size()));
  for (int64_t k = 0; k < plain.size(); ++k) values[static_cast<size_t>(k)] = plain[k];
  return values;
}

}  // namespace

Values OpRun::in(size_t i) const { return values_of(in_[i].desc, in_[i].data()); }
Values OpRun::out(size_t i) const { return values_of(out_[i].desc, out_[i].data()); }

void OpRun::spoil_outputs() {
  for (const GuardedOperand& operand : out_)
    std::memset(operand.data(), 0xFF, operand.desc.bytes());
}

void OpRun::work(Worker& worker, Team& team) {
  for (const Worker::Tile& tile : worker.tiles) {
    for (size_t i = 0; i < in_.size(); ++i)
      worker.in[i] = in_[i].at_sample(walk_ == graph::Walk::across ? 0 : tile.first);
    for (size_t i = 0; i < out_.size(); ++i) worker.out[i] = out_[i].at_sample(tile.first);
    KernelArgs args{.in = worker.in.data(),
                    .out = worker.out.data(),
                    .workspace = worker.workspace.data(),
                    .state = worker.accumulator,
                    .first = &tile == worker.tiles.data(),
                    .first_sample = tile.first,
                    .thread = 0,
                    .threads = 1,
                    .step = &options_.step};
    if (walk_ == graph::Walk::whole) {
      args.thread = omp_get_thread_num();
      args.threads = options_.threads;
      args.team = &team;
    }
    tile.kernel->run(args);
  }
}

void OpRun::run() {
  if (on_device_) return on_device_->run(in_, out_);
  std::vector<void*> in, out, states;
  for (size_t i = 0; i < in_.size(); ++i)
    in.push_back(problem_.in[i].batched ? nullptr : in_[i].data());
  for (size_t i = 0; i < out_.size(); ++i)
    out.push_back(out_types_[i].batched ? nullptr : out_[i].data());
  for (const auto& worker : workers_)
    if (!worker->tiles.empty()) states.push_back(worker->accumulator);
  std::vector<void*> workspaces;
  for (const auto& worker : workers_) workspaces.push_back(worker->workspace.data());
  ParallelTeam team(std::move(workspaces));
  // OpenMP orders the threads. The thread sanitizer cannot see this, so the counter states it
  // again.
  std::atomic<int> order{0};
#pragma omp parallel num_threads(options_.threads)
  {
    order.fetch_add(1);
    const int t = omp_get_thread_num();
    Worker& worker = *workers_[static_cast<size_t>(t)];
    omp_set_num_threads(1);
    work(worker, team);
    if (walk_ == graph::Walk::reduce) {
      order.fetch_add(1);
#pragma omp barrier
      order.fetch_add(1);
      // Tiles are dealt round-robin, so the first threads are those that have one.
      const int parts = static_cast<int>(states.size());
      if (!worker.tiles.empty())
        worker.tiles.front().kernel->finish(
            {in.data(), out.data(), states, t, parts, &options_.step});
    }
    order.fetch_add(1);
  }
  order.fetch_add(1);
}

std::string OpRun::broken_guard() const {
  if (on_device_ && !on_device_->workspace_intact())
    return "the workspace was written beyond its end";
  for (size_t i = 0; i < in_.size(); ++i)
    if (!in_[i].intact()) return fmt::format("input {} was written beyond its end", i);
  for (size_t i = 0; i < out_.size(); ++i)
    if (!out_[i].intact()) return fmt::format("output {} was written beyond its end", i);
  return {};
}

}  // namespace tutti::backend

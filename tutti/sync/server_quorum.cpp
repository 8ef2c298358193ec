// The part of WeightServer for steps that take a quorum of gradients.
#include <algorithm>

#include "tutti/base/error.h"
#include "tutti/comm/schedule/element.h"
#include "tutti/comm/schedule/tree.h"
#include "tutti/sync/weight_server.h"

namespace tutti::sync {

void WeightServer::plan_verdicts(const exchange::BucketLayout& layout) {
  CHECK(spec_.codecs == nullptr || spec_.codecs->encoded_buckets() == 0,
        "what a gradient that is dropped has not sent would be lost");
  spare_ = device::Buffer(layout.bytes);
  const std::vector<int>& servers = spec_.ranks.servers;
  followers_.resize(dealer_ ? servers.size() - 1 : 1);
  for (size_t f = 0; f < followers_.size(); ++f) {
    Follower& follower = followers_[f];
    const comm::MessageSpec message{.name = "verdict on a gradient",
                                    .peer = dealer_ ? servers[f + 1] : servers.front(),
                                    .tag = served_tags::kVerdict,
                                    .data = bytes_of_value(follower.verdict),
                                    .patient = true};
    follower.message =
        dealer_ ? communicator().plan_send(message) : communicator().plan_receive(message);
    if (!dealer_) follower.message->start();
  }
}

/// On the first server: decides whether received gradients are part of the step, or too late for
/// it.
void WeightServer::judge() {
  for (size_t w = 0; w < workers_.size(); ++w) {
    Worker& worker = workers_[w];
    if (worker.judged || !gradient_there(worker)) continue;
    worker.judged = true;
    const BatchDealer::Arrival arrival = dealer_->arrived(static_cast<int>(w));
    say(worker, arrival.taken ? Verdict::What::taken : Verdict::What::dropped, arrival.ticket);
  }
}

void WeightServer::say(const Worker& worker, Verdict::What what, int64_t ticket) {
  const Verdict verdict{static_cast<int32_t>(&worker - workers_.data()), what, ticket};
  verdicts_.push_back(verdict);
  for (Follower& follower : followers_) follower.verdicts.push_back(verdict);
}

/// Returns whether nothing is left to do or to send.
bool WeightServer::follow() {
  if (dealer_) judge();
  for (Follower& follower : followers_) {
    if (!dealer_)
      while (follower.message->test()) {
        verdicts_.push_back(follower.verdict);
        follower.message->start();
      }
    else if (!follower.verdicts.empty() && follower.message->test()) {
      follower.verdict = follower.verdicts.front();
      follower.verdicts.pop_front();
      follower.message->start();
    }
  }
  while (!verdicts_.empty() && done(verdicts_.front())) verdicts_.pop_front();
  const auto idle = [this](Follower& follower) {
    return follower.verdicts.empty() && (!dealer_ || follower.message->test());
  };
  return verdicts_.empty() && std::ranges::all_of(followers_, idle);
}

/// Returns whether it could be carried out: its gradient or question may still be in flight to this
/// server.
bool WeightServer::done(const Verdict& verdict) {
  Worker& worker = workers_[static_cast<size_t>(verdict.worker)];
  if (verdict.what == Verdict::What::served) {
    if (!question(worker)) return false;
    worker.serving = false;
    serve(worker);
    return true;
  }
  if (!gradient_there(worker)) return false;
  if (verdict.what == Verdict::What::dropped) {
    ++counts_.dropped;
    release(worker);
    return true;
  }
  CHECK(worker.version == version_, "a gradient of the weights {} in a step that begins with {}",
        worker.version, version_);
  step_.push_back({verdict.ticket, &worker});
  if (std::ssize(step_) == spec_.tickets.together) apply_step();
  return true;
}

void WeightServer::apply_step() {
  std::ranges::sort(step_, {}, &Held::ticket);
  std::vector<const float*> sums(begins_.size());
  for (const size_t p : own_) {
    const ServedPart& part = spec_.parts[p];
    sums[static_cast<size_t>(part.bucket)] = sum_of(0, step_.size(), part.bucket, part.range);
  }
  update({.number = version_, .stale = 0, .buckets = sums, .then = nullptr});
  counts_.add_gradients(0, std::ssize(step_));
  for (const Held& held : step_) release(*held.worker);
  step_.clear();
}

/// Adds in the tree over the step's gradients, in the order of their tickets: the bits equal
/// those of a sum over as many replicas. A sum is stored in its first gradient's place, except
/// where that belongs to this rank's worker: a server must not change it.
const float* WeightServer::sum_of(size_t lo, size_t hi, int bucket, const exchange::Shard& range) {
  Worker& first = *step_[lo].worker;
  const float* const own = first.buckets[static_cast<size_t>(bucket)];
  if (hi - lo == 1) return own;
  const int middle = comm::split_point({static_cast<int>(lo), static_cast<int>(hi)});
  const float* const left = sum_of(lo, static_cast<size_t>(middle), bucket, range);
  const float* const right = sum_of(static_cast<size_t>(middle), hi, bucket, range);
  device::Buffer& buffer = is_here(first) ? spare_ : first.gradient;
  auto* const sum = reinterpret_cast<float*>(buffer.data() + begins_[static_cast<size_t>(bucket)]);
  const size_t at = range.begin / sizeof(float);
  const auto run = [at](const float* begin) {
    return comm::Run{reinterpret_cast<std::byte*>(const_cast<float*>(begin + at)),
                     comm::Element::f32};
  };
  comm::combine(comm::ReduceOp::sum, run(sum), run(left), run(right),
                range.bytes() / sizeof(float));
  return sum;
}

}  // namespace tutti::sync

// Gloo over TCP (the loopback device where all ranks are on one node), with its own choice of
// algorithms.

#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/gather.h>
#include <gloo/math.h>
#include <gloo/reduce.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/scatter.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <map>
#include <span>

#include "tutti/base/error.h"
#include "tutti/cli/peers/peer.h"

namespace tutti::cli {
namespace {

using comm::Collective;
using comm::Element;
using comm::ReduceOp;

// The store in which Gloo's ranks find each other. connectFullMesh() sets one key on every rank
// before it asks for the others' keys: so set() is collective.
class AllgatherStore final : public gloo::rendezvous::Store {
 public:
  explicit AllgatherStore(comm::Communicator& communicator) : communicator_(communicator) {}

  void set(const std::string& key, const std::vector<char>& data) override {
    struct Sizes {
      uint64_t key, data;
    };
    const std::vector<Sizes> sizes = communicator_.allgather_value(Sizes{key.size(), data.size()});
    size_t slot = 0;
    for (const Sizes& s : sizes) slot = std::max(slot, static_cast<size_t>(s.key + s.data));
    std::vector<char> mine(slot), all(slot * sizes.size());
    std::ranges::copy(key, mine.begin());
    std::ranges::copy(data, mine.begin() + static_cast<std::ptrdiff_t>(key.size()));
    communicator_.allgather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)));
    for (size_t p = 0; p < sizes.size(); ++p) {
      const char* begin = all.data() + p * slot;
      values_[std::string(begin, sizes[p].key)] =
          std::vector<char>(begin + sizes[p].key, begin + sizes[p].key + sizes[p].data);
    }
  }
  std::vector<char> get(const std::string& key) override { return values_.at(key); }
  void wait(const std::vector<std::string>& keys) override {
    for (const std::string& key : keys)
      CHECK(values_.contains(key), "Gloo asks for '{}', which no rank has set", key);
  }

 private:
  comm::Communicator& communicator_;
  std::map<std::string, std::vector<char>> values_;
};

using Add = void (*)(void*, const void*, const void*, size_t);

template <class T>
Add add_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum: return &gloo::sum<T>;
    case ReduceOp::min: return &gloo::min<T>;
    case ReduceOp::max: return &gloo::max<T>;
    case ReduceOp::product: return &gloo::product<T>;
    case ReduceOp::mean: break;
  }
  return nullptr;
}

// Gloo's errors are exceptions of its own kinds.
template <class Call>
std::function<void()> wrapped(Call call) {
  return [call = std::move(call)]() mutable {
    try {
      call();
    } catch (const std::exception& error) {
      throw CommError(fmt::format("Gloo: {}", error.what()));
    }
  };
}

class GlooPeer final : public Peer {
 public:
  explicit GlooPeer(comm::Communicator& communicator) {
    try {
      gloo::transport::tcp::attr attributes;
      if (communicator.one_node()) attributes.hostname = "127.0.0.1";
      auto device = gloo::transport::tcp::CreateDevice(attributes);
      auto context =
          std::make_shared<gloo::rendezvous::Context>(communicator.rank(), communicator.size());
      context->setTimeout(
          std::chrono::milliseconds(static_cast<int64_t>(communicator.timeout() * 1e3)));
      AllgatherStore store(communicator);
      context->connectFullMesh(store, device);
      context_ = context;
    } catch (const std::exception& error) {
      throw CommError(fmt::format("Gloo cannot connect its ranks: {}", error.what()));
    }
  }

  std::function<void()> collective(const comm::Task& task, Element element, ReduceOp op,
                                   std::byte* input, std::byte* output) override {
    const size_t bytes = comm::size_of(element);
    if (!comm::reduces(task.kind)) return moving(task, bytes, input, output);
    switch (element) {
      case Element::f32: return adding<float>(task, op, input, output);
      case Element::f64: return adding<double>(task, op, input, output);
      case Element::f16: return adding<gloo::float16>(task, op, input, output);
      case Element::i8: return adding<int8_t>(task, op, input, output);
      case Element::i32: return adding<int32_t>(task, op, input, output);
      case Element::i64: return adding<int64_t>(task, op, input, output);
      case Element::u8: return adding<uint8_t>(task, op, input, output);
      case Element::bf16:
      case Element::byte: break;
    }
    return {};
  }

 private:
  // Its reduce-scatter works in place and destroys its input: not the same task.
  template <class T>
  std::function<void()> adding(const comm::Task& task, ReduceOp op, std::byte* input,
                               std::byte* output) {
    const Add add = add_of<T>(op);
    if (add == nullptr || task.count == 0) return {};
    if (task.kind == Collective::allreduce) {
      auto options = std::make_shared<gloo::AllreduceOptions>(context_);
      options->setInput(reinterpret_cast<T*>(input), task.count);
      options->setOutput(reinterpret_cast<T*>(output), task.count);
      options->setReduceFunction(add);
      return wrapped([options] { gloo::allreduce(*options); });
    }
    if (task.kind != Collective::reduce) return {};
    auto options = std::make_shared<gloo::ReduceOptions>(context_);
    options->setInput(reinterpret_cast<T*>(input), task.count);
    options->setOutput(reinterpret_cast<T*>(output), task.count);
    options->setRoot(task.root);
    options->setReduceFunction(add);
    return wrapped([options] { gloo::reduce(*options); });
  }

  std::function<void()> moving(const comm::Task& task, size_t element_bytes, std::byte* input,
                               std::byte* output) {
    auto* const in = reinterpret_cast<char*>(input);
    auto* const out = reinterpret_cast<char*>(output);
    const size_t all = task.count * element_bytes, part = all / static_cast<size_t>(task.ranks);
    if (all == 0 && task.kind != Collective::barrier) return {};
    switch (task.kind) {
      case Collective::barrier: {
        auto options = std::make_shared<gloo::BarrierOptions>(context_);
        return wrapped([options] { gloo::barrier(*options); });
      }
      case Collective::broadcast: {
        auto options = std::make_shared<gloo::BroadcastOptions>(context_);
        options->setOutput(out, all);
        options->setRoot(task.root);
        return wrapped([options] { gloo::broadcast(*options); });
      }
      case Collective::allgather: {
        auto options = std::make_shared<gloo::AllgatherOptions>(context_);
        options->setInput(in, part);
        options->setOutput(out, all);
        return wrapped([options] { gloo::allgather(*options); });
      }
      case Collective::gather: {
        auto options = std::make_shared<gloo::GatherOptions>(context_);
        options->setInput(in, part);
        if (task.rank == task.root) options->setOutput(out, all);
        options->setRoot(task.root);
        return wrapped([options] { gloo::gather(*options); });
      }
      case Collective::scatter: {
        auto options = std::make_shared<gloo::ScatterOptions>(context_);
        std::vector<char*> parts;
        for (size_t p = 0; p < static_cast<size_t>(task.ranks); ++p) parts.push_back(in + p * part);
        if (task.rank == task.root) options->setInputs(parts, part);
        options->setOutput(out, part);
        options->setRoot(task.root);
        return wrapped([options] { gloo::scatter(*options); });
      }
      case Collective::all_to_all: {
        auto options = std::make_shared<gloo::AlltoallOptions>(context_);
        options->setInput(in, all);
        options->setOutput(out, all);
        return wrapped([options] { gloo::alltoall(*options); });
      }
      case Collective::reduce:
      case Collective::allreduce:
      case Collective::reduce_scatter: break;
    }
    return {};
  }

  std::shared_ptr<gloo::Context> context_;
};

}  // namespace

const PeerKind gloo_peer{.name = "Gloo",
                         .absent = {},
                         .processes = true,
                         .open = [](comm::Communicator& communicator) -> std::unique_ptr<Peer> {
                           return std::make_unique<GlooPeer>(communicator);
                         }};

}  // namespace tutti::cli

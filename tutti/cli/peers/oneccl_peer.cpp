// oneCCL: its library for processors without SYCL, over libfabric, with shared memory on a node.
//
// The environment variables that it reads are set here before its first call, unless the user has
// set them. By default it starts a thread a rank that spins beside the computing one, and looks for
// an MPI of its own: both would make it slower here, or fail.

#include <cstdlib>
#include <oneapi/ccl.hpp>
#include <optional>

#include "tutti/base/error.h"
#include "tutti/cli/peers/peer.h"

namespace tutti::cli {
namespace {

using comm::Collective;
using comm::Element;
using comm::ReduceOp;

void set_default(const char* name, const std::string& value) { setenv(name, value.c_str(), 0); }

void set_environment(const comm::Communicator& communicator) {
  set_default("CCL_LOG_LEVEL", "error");
  set_default("CCL_ATL_TRANSPORT", "ofi");
  set_default("CCL_ATL_SHM", "1");
  set_default("CCL_WORKER_OFFLOAD", "0");  // the caller makes progress on its messages
  set_default("CCL_PROCESS_LAUNCHER", "none");
  set_default("CCL_LOCAL_RANK", std::to_string(communicator.local_rank()));
  set_default("CCL_LOCAL_SIZE", std::to_string(communicator.local_size()));
}

ccl::datatype ccl_type_of(Element element) {
  switch (element) {
    case Element::f32: return ccl::datatype::float32;
    case Element::f64: return ccl::datatype::float64;
    case Element::bf16: return ccl::datatype::bfloat16;
    case Element::f16: return ccl::datatype::float16;
    case Element::i8: return ccl::datatype::int8;
    case Element::i32: return ccl::datatype::int32;
    case Element::i64: return ccl::datatype::int64;
    case Element::u8:
    case Element::byte: break;
  }
  return ccl::datatype::uint8;
}

std::optional<ccl::reduction> reduction_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum: return ccl::reduction::sum;
    case ReduceOp::min: return ccl::reduction::min;
    case ReduceOp::max: return ccl::reduction::max;
    case ReduceOp::product: return ccl::reduction::prod;
    case ReduceOp::mean: break;
  }
  return std::nullopt;
}

// oneCCL's errors are exceptions of its own kinds.
template <class Call>
auto wrapped(Call call) {
  return [call = std::move(call)] {
    try {
      call();
    } catch (const std::exception& error) {
      throw CommError(fmt::format("oneCCL: {}", error.what()));
    }
  };
}

class OneCclPeer final : public Peer {
 public:
  explicit OneCclPeer(comm::Communicator& communicator) {
    set_environment(communicator);
    wrapped([&] {
      ccl::init();
      ccl::kvs::address_type address{};
      if (communicator.rank() == 0) {
        store_ = ccl::create_main_kvs();
        address = store_->get_address();
      }
      communicator.broadcast(std::as_writable_bytes(std::span(address)), 0);
      if (communicator.rank() != 0) store_ = ccl::create_kvs(address);
      ranks_.emplace(ccl::create_communicator(communicator.size(), communicator.rank(), store_));
    })();
  }

  std::function<void()> collective(const comm::Task& task, Element element, ReduceOp op,
                                   std::byte* in, std::byte* out) override {
    const auto with = reduction_of(op);
    if (task.kind != Collective::barrier && task.count == 0) return {};
    if (comm::reduces(task.kind) && !with) return {};
    const size_t count = task.count, part = task.count / static_cast<size_t>(task.ranks);
    const int root = task.root;
    const ccl::datatype t = ccl_type_of(element);
    const ccl::reduction o = with.value_or(ccl::reduction::sum);
    const ccl::communicator& ranks = *ranks_;
    switch (task.kind) {
      case Collective::barrier: return wrapped([=, &ranks] { ccl::barrier(ranks).wait(); });
      case Collective::broadcast:
        return wrapped([=, &ranks] { ccl::broadcast(out, count, t, root, ranks).wait(); });
      case Collective::reduce:
        return wrapped([=, &ranks] { ccl::reduce(in, out, count, t, o, root, ranks).wait(); });
      case Collective::allreduce:
        return wrapped([=, &ranks] { ccl::allreduce(in, out, count, t, o, ranks).wait(); });
      case Collective::reduce_scatter:
        return wrapped([=, &ranks] { ccl::reduce_scatter(in, out, part, t, o, ranks).wait(); });
      case Collective::allgather:
        return wrapped([=, &ranks] { ccl::allgather(in, out, part, t, ranks).wait(); });
      case Collective::all_to_all:
        return wrapped([=, &ranks] { ccl::alltoall(in, out, part, t, ranks).wait(); });
      case Collective::gather:
      case Collective::scatter: break;
    }
    return {};
  }

 private:
  ccl::shared_ptr_class<ccl::kvs> store_;  // outlives the communicator
  std::optional<ccl::communicator> ranks_;
};

}  // namespace

const PeerKind oneccl_peer{.name = "oneCCL",
                           .absent = {},
                           .processes = true,
                           .open = [](comm::Communicator& communicator) -> std::unique_ptr<Peer> {
                             return std::make_unique<OneCclPeer>(communicator);
                           }};

}  // namespace tutti::cli

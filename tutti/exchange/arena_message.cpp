#include "tutti/exchange/arena_message.h"

#include <algorithm>

#include "tutti/base/error.h"

namespace tutti::exchange {
namespace {

constexpr size_t kPieceBytes = size_t{1} << 26;

template <class Plan>
void in_pieces(const std::string& name, int peer, int tag, std::span<std::byte> data, Plan plan) {
  for (size_t begin = 0; begin < data.size(); begin += kPieceBytes) {
    const auto message = plan(
        comm::MessageSpec{.name = name,
                          .peer = peer,
                          .tag = tag,
                          .data = data.subspan(begin, std::min(kPieceBytes, data.size() - begin)),
                          .patient = true});
    message->start();
    message->wait();
  }
}

}  // namespace

void send_arena(comm::Communicator& communicator, const std::string& name, int peer, int tag,
                std::span<std::byte> data) {
  in_pieces(name, peer, tag, data,
            [&](const comm::MessageSpec& spec) { return communicator.plan_send(spec); });
}

void receive_arena(comm::Communicator& communicator, const std::string& name, int peer, int tag,
                   std::span<std::byte> data) {
  in_pieces(name, peer, tag, data,
            [&](const comm::MessageSpec& spec) { return communicator.plan_receive(spec); });
}

void broadcast_arena(comm::Communicator& communicator, const std::string& name, int root,
                     std::span<std::byte> data) {
  CHECK(data.size() % sizeof(float) == 0, "{} bytes are no floats", data.size());
  if (communicator.size() == 1 || data.empty()) return;
  const auto all = communicator.plan({.name = name,
                                      .kind = comm::Collective::broadcast,
                                      .count = data.size() / sizeof(float),
                                      .root = root,
                                      .output = data.data()});
  all->start();
  all->wait();
}

}  // namespace tutti::exchange

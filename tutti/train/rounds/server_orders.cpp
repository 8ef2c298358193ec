#include "tutti/train/rounds/server_orders.h"

#include <cstdint>
#include <span>
#include <string>

#include "tutti/sync/served_parts.h"

namespace tutti::train {
namespace {

// Follow the tags of gradients and weights (sync/served_parts.h).
constexpr int kSizeTag = sync::served_tags::kVerdict + 1, kBytesTag = kSizeTag + 1;

}  // namespace

void tell_server(comm::Communicator& job, int server, std::vector<std::byte> bytes) {
  uint64_t size = bytes.size();
  const auto head = job.plan_send({.name = "order to a server",
                                   .peer = server,
                                   .tag = kSizeTag,
                                   .data = std::as_writable_bytes(std::span(&size, 1))});
  head->start();
  head->wait();
  const auto body =
      job.plan_send({.name = "order to a server", .peer = server, .tag = kBytesTag, .data = bytes});
  body->start();
  body->wait();
}

std::vector<std::byte> hear_first_worker(comm::Communicator& job) {
  uint64_t size = 0;
  const auto head = job.plan_receive({.name = "order of the first worker",
                                      .peer = 0,
                                      .tag = kSizeTag,
                                      .data = std::as_writable_bytes(std::span(&size, 1)),
                                      .patient = true});
  head->start();
  head->wait();
  std::vector<std::byte> bytes(size);
  const auto body = job.plan_receive(
      {.name = "order of the first worker", .peer = 0, .tag = kBytesTag, .data = bytes});
  body->start();
  body->wait();
  return bytes;
}

void tell_choices(comm::Communicator& job, int workers, const plan::Choices& choices) {
  const std::string text = choices.to_string();
  const auto bytes = std::as_bytes(std::span(text));
  for (int server = workers; server < job.size(); ++server)
    tell_server(job, server, {bytes.begin(), bytes.end()});
}

}  // namespace tutti::train

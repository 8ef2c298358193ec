#include "tutti/comm/transport/tcp/store_communicator.h"

#include <fmt/format.h>

#include "tutti/base/error.h"
#include "tutti/comm/transport/process_communicator.h"
#include "tutti/comm/transport/tcp/tcp_wire.h"

namespace tutti::comm {
namespace {

std::string secret_of(Store& store, const std::string& prefix, int rank,
                      const StoreOptions& options) {
  if (!options.secret.empty()) return options.secret;
  const std::string key = prefix + "/secret";
  if (rank == 0) {
    const std::string secret(text_of(fresh_nonce()));
    store.set(key, secret);
    return secret;
  }
  const auto secret = store.get(key, options.process.timeout);
  if (!secret || secret->empty())
    throw CommError(fmt::format("rank {}: rank 0 of '{}' has not come to the store within {:g} s",
                                rank, prefix, options.process.timeout));
  return *secret;
}

}  // namespace

std::unique_ptr<Communicator> make_store_communicator(Store& store, const std::string& prefix,
                                                      int rank, int size,
                                                      const StoreOptions& options) {
  if (size < 1 || rank < 0 || rank >= size)
    throw ConfigError(fmt::format("rank {} of {}", rank, size));
  constexpr size_t kLongestPrefix = 512;
  if (prefix.empty() || prefix.size() > kLongestPrefix)
    throw ConfigError(
        fmt::format("a prefix of {} bytes: 1 to {} are possible", prefix.size(), kLongestPrefix));
  const tcp::Switchboard::Options listen{.secret = secret_of(store, prefix, rank, options),
                                         .address = options.process.address};
  auto board = std::make_shared<tcp::Switchboard>(store, prefix, rank, size, listen);
  return std::make_unique<ProcessCommunicator>(
      std::make_unique<TcpWire>(std::move(board), rank, size), options.process);
}

}  // namespace tutti::comm

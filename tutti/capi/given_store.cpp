#include "tutti/capi/given_store.h"

#include <fmt/format.h>

#include "tutti/capi/options.h"
#include "tutti/capi/status.h"

namespace tutti::capi {

GivenStore::GivenStore(const tutti_comm_store* store)
    : functions_(read_options(&given(store, "store"), sizeof(tutti_comm_store))) {
  if (functions_.set == nullptr || functions_.get == nullptr)
    throw ConfigError("store: `set` or `get` is NULL");
}

void GivenStore::set(const std::string& key, const std::string& value) {
  if (const int code = functions_.set(functions_.context, key.c_str(), value.data(), value.size());
      code != 0)
    throw CommError(fmt::format("the program's store has not set '{}': code {}", key, code));
}

std::optional<std::string> GivenStore::get(const std::string& key, double seconds) {
  std::string value(kLongestValue, 0);
  size_t bytes = 0;
  const int code =
      functions_.get(functions_.context, key.c_str(), value.data(), value.size(), &bytes, seconds);
  if (code == 1) return std::nullopt;
  if (code != 0 || bytes > value.size())
    throw CommError(fmt::format("the program's store has not given '{}': code {}", key, code));
  value.resize(bytes);
  return value;
}

}  // namespace tutti::capi

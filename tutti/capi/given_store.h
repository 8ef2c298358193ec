#pragma once
// A store that the caller implements by functions.

#include <optional>
#include <string>

#include "tutti/capi/tutti_comm.h"
#include "tutti/comm/bootstrap/store.h"

namespace tutti::capi {

class GivenStore final : public comm::Store {
 public:
  /// Throws ConfigError for an incomplete struct.
  explicit GivenStore(const tutti_comm_store* given);

  void set(const std::string& key, const std::string& value) override;
  std::optional<std::string> get(const std::string& key, double seconds) override;

 private:
  tutti_comm_store functions_;
};

}  // namespace tutti::capi

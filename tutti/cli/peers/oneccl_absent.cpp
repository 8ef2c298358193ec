// Replaces oneccl_peer.cpp where oneCCL was not found.
#include "tutti/cli/peers/peer.h"

namespace tutti::cli {

const PeerKind oneccl_peer{.name = "oneCCL",
                           .absent =
                               "this build has no oneCCL: configure with "
                               "-DTUTTI_ONECCL_ROOT=FOLDER, which holds include/oneapi/ccl.hpp",
                           .processes = true,
                           .open = nullptr};

}  // namespace tutti::cli

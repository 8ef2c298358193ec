// Replaces gloo_peer.cpp where Gloo was not found.
#include "tutti/cli/peers/peer.h"

namespace tutti::cli {

const PeerKind gloo_peer{
    .name = "Gloo",
    .absent = "this build has no Gloo: install libgloo-dev and configure again",
    .processes = true,
    .open = nullptr};

}  // namespace tutti::cli

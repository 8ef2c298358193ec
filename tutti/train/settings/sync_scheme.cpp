#include "tutti/train/settings/sync_scheme.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "tutti/base/error.h"
#include "tutti/base/spelling.h"
#include "tutti/train/settings/server_settings.h"

namespace tutti::train {
namespace {

constexpr std::array<std::string_view, 5> kSchemes{"step", "local", "easgd", "dpsgd", "gossip"};

[[noreturn]] void refuse_scheme(const std::string& text, std::string_view why) {
  throw ConfigError(fmt::format(
      "sync.scheme = \"{}\": {}; schemes are step, local:K, local:epoch, local:never, easgd:K and "
      "dpsgd:K, with K steps between meetings, gossip:P with a probability, and with servers "
      "ps:sync, ps:async, ps:ssp:S and groups:G",
      text, why));
}

bool meets_once_a_step(const SyncScheme& scheme, const config::SyncSection& sync) {
  return scheme.name == SyncScheme::Name::step ||
         (scheme.name == SyncScheme::Name::local && scheme.every == 1 && !scheme.epochs &&
          sync.outer == sync::OuterStep::none && sync.state != sync::MetState::reset &&
          sync.delay == 0);
}

/// Returns NaN for a text that is not a number.
double probability_of(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size()
             ? value
             : std::numeric_limits<double>::quiet_NaN();
}

void check_tree(const config::SyncSection& sync, const SyncScheme& scheme) {
  if (sync.tree == 1)
    throw ConfigError("sync.tree = 1: a centre of one replica is no centre; 2 or more, or 0");
  if (sync.tree_up > 0 && scheme.epochs)
    throw ConfigError(fmt::format(
        "sync.tree_up = {} counts steps, and is not for sync.scheme = \"easgd:epoch\": leave it "
        "out, and centres meet every four epochs; or say the steps with easgd:K",
        sync.tree_up));
  if (sync.tree_up > 0 && sync.tree_up % scheme.every != 0)
    throw ConfigError(fmt::format(
        "sync.tree_up = {} is no multiple of the steps between two meetings of sync.scheme = "
        "\"{}\"",
        sync.tree_up, sync.scheme));
}

/// Checks settings that go with an average which is applied late.
void check_delay(const config::SyncSection& sync, const SyncScheme& scheme) {
  const auto refuse = [&](bool given, std::string_view key, std::string_view why) {
    if (given) throw ConfigError(fmt::format("sync.delay = 1 goes without {}: {}", key, why));
  };
  refuse(scheme.every == 0, "local:never", "there are no meetings");
  refuse(sync.fragments > 1, "sync.fragments", "pieces that travel are not built to be late");
  refuse(sync.first_steps > 0, "sync.first_steps", "the first steps would be late as well");
  refuse(sync.state != sync::MetState::keep, "sync.state",
         "the optimizer's state at a meeting is of weights that the average does not know");
}

/// Whether the average of updates equals the update by the average of gradients.
bool linear(const config::OptimizerSection& optimizer) {
  return optimizer.name == config::OptimizerKind::sgd && optimizer.clip_norm == 0 &&
         optimizer.clip_value == 0;
}

}  // namespace

SyncScheme parse_sync(const std::string& text) {
  if (parse_servers(text)) return {SyncScheme::Name::servers};
  const size_t colon = text.find(':');
  const auto name = std::ranges::find(kSchemes, text.substr(0, colon));
  if (name == kSchemes.end())
    refuse_scheme(text, "there is no such scheme" +
                            did_you_mean(nearest_spelling(text.substr(0, colon),
                                                          {kSchemes.begin(), kSchemes.end()})));
  SyncScheme scheme{static_cast<SyncScheme::Name>(name - kSchemes.begin())};
  if (colon == std::string::npos) {
    if (scheme.name == SyncScheme::Name::local || scheme.name == SyncScheme::Name::gossip)
      refuse_scheme(text, "it does not say how often");
    return scheme;
  }
  if (scheme.name == SyncScheme::Name::step) refuse_scheme(text, "step is every step");
  const std::string every = text.substr(colon + 1);
  if (scheme.name == SyncScheme::Name::gossip) {
    scheme.probability = probability_of(every);
    if (!(scheme.probability > 0 && scheme.probability <= 1))
      refuse_scheme(text, fmt::format("'{}' is no probability above 0 and up to 1", every));
    return scheme;
  }
  scheme.epochs = every == "epoch";
  if (scheme.epochs) return scheme;
  if (every == "never") {
    if (scheme.name != SyncScheme::Name::local) refuse_scheme(text, "it never meets: local:never");
    scheme.every = 0;
    return scheme;
  }
  const auto [end, error] =
      std::from_chars(every.data(), every.data() + every.size(), scheme.every);
  if (error != std::errc() || end != every.data() + every.size() || scheme.every < 1)
    refuse_scheme(text, fmt::format("'{}' is no number of steps", every));
  return scheme;
}

void check_sync(const config::RunConfig& config) {
  const config::SyncSection& sync = config.sync;
  const SyncScheme scheme = parse_sync(sync.scheme);
  (void)server_settings(config);
  const auto only = [&](bool given, std::string_view key, SyncScheme::Name name) {
    if (given && scheme.name != name && scheme.name != SyncScheme::Name::step)
      throw ConfigError(fmt::format("sync.{} is of sync.scheme = \"{}\", not of \"{}\"", key,
                                    kSchemes[static_cast<size_t>(name)], sync.scheme));
  };
  only(sync.first_steps > 0, "first_steps", SyncScheme::Name::local);
  only(sync.fragments > 1, "fragments", SyncScheme::Name::local);
  only(sync.state != sync::MetState::keep, "state", SyncScheme::Name::local);
  only(sync.outer != sync::OuterStep::none, "outer", SyncScheme::Name::local);
  only(sync.delay > 0, "delay", SyncScheme::Name::local);
  if (sync.delay > 0) check_delay(sync, scheme);
  only(sync.alpha > 0, "alpha", SyncScheme::Name::easgd);
  only(sync.tree > 0, "tree", SyncScheme::Name::easgd);
  if (sync.tree > 0) check_tree(sync, scheme);
  only(sync.graph != sync::MixingGraph::ring, "graph", SyncScheme::Name::dpsgd);
  if (scheme.every == 0 &&
      (sync.first_steps > 0 || sync.fragments > 1 || sync.state != sync::MetState::keep ||
       sync.outer != sync::OuterStep::none))
    throw ConfigError(
        "sync.scheme = \"local:never\" has no meetings, and so neither sync.first_steps, "
        "sync.fragments, sync.state nor sync.outer");
  if (scheme.name == SyncScheme::Name::local && scheme.every > 0 && !scheme.epochs &&
      sync.fragments > scheme.every)
    throw ConfigError(fmt::format(
        "sync.fragments = {}: there are fewer steps between two meetings of sync.scheme = \"{}\"",
        sync.fragments, sync.scheme));
  if (sync.state == sync::MetState::reset &&
      (config.optimizer.name == config::OptimizerKind::adam ||
       config.optimizer.name == config::OptimizerKind::adamw ||
       config.optimizer.name == config::OptimizerKind::lamb))
    throw ConfigError(
        "sync.state = \"reset\" is not for adam, adamw and lamb: they count steps from the first "
        "one, and the first after a meeting would be several times too large");
  if (meets_once_a_step(scheme, sync) && linear(config.optimizer)) return;
  if (scheme.name == SyncScheme::Name::step || scheme.name == SyncScheme::Name::servers) return;
  const auto refuse = [&](bool given, std::string_view what, std::string_view why) {
    if (given)
      throw ConfigError(
          fmt::format("sync.scheme = \"{}\" goes without {}: {}", sync.scheme, what, why));
  };
  refuse(std::ranges::any_of(config.parallel.spatial, [](int64_t parts) { return parts > 1; }),
         "parallel.spatial", "replicas that share samples are not built to train apart");
  refuse(config.parallel.tensor > 1, "parallel.tensor",
         "replicas whose layers ranks share are not built to train apart");
  refuse(config.parallel.batchnorm_group_size > 1, "parallel.batchnorm_group_size",
         "its sums would make the replicas wait for each other in every step");
  refuse(config.comm.sharded_update, "comm.sharded_update",
         "each replica has a whole optimizer of its own");
  refuse(config.comm.compression != "none", "comm.compression",
         "it compresses gradients, and weights are what is sent");
  refuse(config.optimizer.ema > 0, "optimizer.ema",
         "what is evaluated is the average over replicas, not over steps");
}

std::optional<sync::MeetingSettings> meeting_settings(const config::RunConfig& config,
                                                      int64_t steps_per_epoch) {
  const config::SyncSection& sync = config.sync;
  const SyncScheme scheme = parse_sync(sync.scheme);
  if (scheme.name == SyncScheme::Name::step || scheme.name == SyncScheme::Name::servers ||
      (meets_once_a_step(scheme, sync) && linear(config.optimizer)))
    return std::nullopt;
  sync::MeetingSettings settings{.kind = sync::MeetingKind::average,
                                 .every = scheme.epochs ? std::max<int64_t>(steps_per_epoch, 1)
                                                        : std::max<int64_t>(scheme.every, 1),
                                 .first_steps = sync.first_steps,
                                 .fragments = static_cast<int>(sync.fragments),
                                 .state = sync.state,
                                 .outer = sync.outer,
                                 .outer_lr = sync.outer_lr,
                                 .outer_momentum = sync.outer_momentum,
                                 .delay = static_cast<int>(sync.delay),
                                 .alpha = sync.alpha,
                                 .children = static_cast<int>(sync.tree),
                                 .probability = scheme.probability,
                                 .seed = static_cast<uint64_t>(config.run.seed),
                                 .graph = sync.graph,
                                 .spill = config.replay.spill};
  settings.up = sync.tree_up > 0 ? sync.tree_up : 4 * settings.every;
  if (scheme.name == SyncScheme::Name::easgd)
    settings.kind = sync.tree > 0 ? sync::MeetingKind::tree : sync::MeetingKind::elastic;
  if (scheme.name == SyncScheme::Name::gossip) settings.kind = sync::MeetingKind::gossip;
  if (scheme.name == SyncScheme::Name::dpsgd) settings.kind = sync::MeetingKind::neighbours;
  if (scheme.every == 0) settings.kind = sync::MeetingKind::never;
  return settings;
}

}  // namespace tutti::train

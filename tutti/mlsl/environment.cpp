#include "tutti/mlsl/environment.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <string_view>

#include "tutti/base/log.h"
#include "tutti/comm/transport/shm/segment.h"

namespace tutti::mlsl {
namespace {

int as_int(size_t number, const char* what) {
  demand(number >= 1 && number <= static_cast<size_t>(std::numeric_limits<int>::max()),
         "CreateDistribution: {} {} parts", number, what);
  return static_cast<int>(number);
}

// Removes the object at this address from the list and returns it.
template <class List, class T>
auto take_off(List& list, const T* object, const char* call) {
  const auto at = std::ranges::find(list, object, [](const auto& own) { return own.get(); });
  demand(at != list.end(), "{}: there is no such object (any more)", call);
  auto taken = std::move(*at);
  list.erase(at);
  return taken;
}

}  // namespace

Environment::~Environment() = default;

void Environment::configure(const char* text) {
  if (text == nullptr || *text == '\0') return;
  demand(!initialized(), "Configure comes before Init");
  const std::string_view view = text;
  constexpr std::string_view kKey = "color=";
  int colour = 0;
  const auto [end, error] =
      view.starts_with(kKey)
          ? std::from_chars(view.data() + kKey.size(), view.data() + view.size(), colour)
          : std::from_chars_result{view.data(), std::errc::invalid_argument};
  demand(error == std::errc{} && end == view.data() + view.size() && colour >= 0,
         "Configure: '{}' is not color=N with a number N from 0 on", text);
  colour_ = colour;
}

void Environment::init() {
  demand(!initialized(), "Init: it has been called already");
  using Threads = comm::MpiSession::Threads;
  const Settings settings = read_settings(variables_);
  if (!mpi_)  // kept if an earlier Init failed after this line
    mpi_ = std::make_unique<comm::MpiSession>(
        settings.servers > 0 ? Threads::multiple : Threads::funneled, nullptr, nullptr,
        std::max(settings.timeout, comm::MpiSession::kStartSeconds));
  const std::unique_ptr<comm::Communicator> all = mpi_->communicator({.timeout = settings.timeout});
  init(*all);
}

void Environment::init(comm::Communicator& ranks) {
  demand(!initialized(), "Init: it has been called already");
  Settings settings = read_settings(variables_);
  world_.reset();  // left by an Init that failed
  job_.reset();
  own_world_ = ranks.split(colour_.value_or(0), ranks.rank());
  own_world_->set_timeout(settings.timeout);
  log::configure(settings.log_level, own_world_->rank(), own_world_->size());
  // All ranks use the smallest free memory of any rank, read before any of them allocates its heap.
  const std::vector<int64_t> available = own_world_->allgather_value(comm::available_memory());
  check_heap(settings.heap_bytes, own_world_->local_size(), std::ranges::min(available));
  job_.emplace(*own_world_, std::move(settings));
  start_servers(ranks.local_rank());
  world_ = std::make_shared<Group>(*job_);
  heap_ = std::make_unique<Heap>(own_world_->allocate(job_->settings().heap_bytes));
  tell_ignored_settings();
}

// `local_rank` counts all processes of this node, of any colour. All ranks use the same MPI
// library, so rank 0 warns for all.
void Environment::start_servers(int local_rank) {
  const Settings& settings = job_->settings();
  if (settings.servers == 0) return;
  if (const std::string refusal = own_world_->progress_refusal(); !refusal.empty()) {
    if (own_world_->rank() == 0)
      log::warn("MLSL_NUM_SERVERS={}: exchanges move on in the program's own calls only: {}",
                settings.servers, refusal);
    return;
  }
  own_world_->set_progress(
      std::make_shared<comm::Progress>(cores_of_servers(settings, local_rank)));
}

void Environment::tell_ignored_settings() const {
  const std::vector<std::string>& ignored = job_->settings().ignored;
  if (!ignored.empty() && own_world_->rank() == 0)
    log::warn("set, but without a meaning to this library: {}", fmt::join(ignored, ", "));
}

void Environment::finalize() {
  demand(initialized(), "Finalize without Init");
  requests_.wait_for_all();
  for (const auto& session : sessions_) session->complete();
  sessions_.clear();
  distributions_.clear();
  heap_.reset();
  world_.reset();
  job_.reset();
  own_world_.reset();
  mpi_.reset();
  quantizer_.reset();
  colour_.reset();
}

Job& Environment::job() {
  demand(initialized(), "this comes between Init and Finalize");
  return *job_;
}

Session& Environment::create_session(api::PhaseType phase) {
  demand(phase == api::PT_TRAIN || phase == api::PT_TEST, "{} is no phase",
         static_cast<int>(phase));
  return *sessions_.emplace_back(std::make_unique<Session>(
      job(), [this] { return quantizer(); }, phase));
}

void Environment::remove_session(const Session* session) {
  take_off(sessions_, session, "DeleteSession")->complete();
}

Distribution& Environment::add(layout::Distribution layout) {
  return *distributions_.emplace_back(
      std::make_shared<Distribution>(requests_, world_, std::move(layout)));
}

Distribution& Environment::create_distribution(size_t data_parts, size_t model_parts) {
  return add(layout::Distribution(
      job().world().size(),
      layout::Parts{as_int(data_parts, "data"), as_int(model_parts, "model")}));
}

Distribution& Environment::create_distribution(const layout::Colours& colours) {
  const std::vector<layout::Colours> all = job().world().allgather_value(colours);
  return add(layout::Distribution(all));
}

void Environment::remove_distribution(const Distribution* distribution) {
  take_off(distributions_, distribution, "DeleteDistribution");
}

void* Environment::allocate(size_t bytes, size_t alignment) {
  demand(initialized(), "Alloc comes between Init and Finalize");
  return heap_->allocate(bytes, alignment);
}

void Environment::free(void* memory) {
  demand(initialized(), "Free comes between Init and Finalize");
  heap_->free(memory);
}

void Environment::set_quantization(const api::QuantParams* params) {
  demand(params != nullptr, "SetQuantizationParams without parameters");
  demand(quantizer_ == nullptr, "SetQuantizationParams may be called once");
  quantizer_ = std::make_unique<Quantizer>(*params);
}

std::string Environment::who() const {
  return initialized() ? fmt::format(" rank {}:", own_world_->rank()) : "";
}

}  // namespace tutti::mlsl

#include "group.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "plan.h"

namespace tutti_torch {
namespace {

using Clock = std::chrono::steady_clock;

int set_value(void* context, const char* key, const void* value, size_t bytes) {
  const auto* const begin = static_cast<const uint8_t*>(value);
  try {
    static_cast<c10d::Store*>(context)->set(key, std::vector<uint8_t>(begin, begin + bytes));
    return 0;
  } catch (...) {
    return 2;
  }
}

// Polls instead of calling Store::wait, which keeps all others from the store meanwhile.
int get_value(void* context, const char* key, void* value, size_t capacity, size_t* bytes,
              double seconds) {
  constexpr std::chrono::milliseconds kLongestNap(16);
  try {
    auto& store = *static_cast<c10d::Store*>(context);
    const auto begin = Clock::now();
    for (auto nap = std::chrono::milliseconds(1); !store.check({key});
         nap = std::min(2 * nap, kLongestNap)) {
      if (std::chrono::duration<double>(Clock::now() - begin).count() >= seconds) return 1;
      std::this_thread::sleep_for(nap);
    }
    const std::vector<uint8_t> found = store.get(key);
    if (found.size() > capacity) return 3;
    std::memcpy(value, found.data(), found.size());
    *bytes = found.size();
    return 0;
  } catch (...) {
    return 2;
  }
}

// A store may outlive its group and serve the next one, as torchrun's does. No rank asks for the
// next name before all have met in this group.
std::string name_of_next(c10d::Store& store, int size) {
  return "tutti" + std::to_string((store.add("tutti/ranks", 1) - 1) / size);
}

}  // namespace

Group::Group(const Options& options)
    : store_(options.store), rank_(options.rank), size_(options.size), timeout_(options.timeout) {
  tutti_comm_store store{};
  store.size = sizeof store;
  store.context = store_.get();
  store.set = set_value;
  store.get = get_value;
  tutti_comm_init_options how{};
  how.size = sizeof how;
  how.timeout = seconds(options.timeout);
  how.address = std::getenv("TUTTI_TORCH_ADDRESS");
  const std::string name = name_of_next(*store_, size_);
  check(tutti_comm_create(&store, rank_, size_, name.c_str(), &how, &comm_));
  try {
    meet();
  } catch (...) {
    tutti_comm_destroy(comm_);
    throw;
  }
}

Group::~Group() { tutti_comm_destroy(comm_); }

// Ranks look each other up in the store with their first message, and the rank that serves the
// store may leave before the others.
void Group::meet() {
  std::vector<char> from(static_cast<size_t>(size_)), to(from.size());
  tutti_comm_plan* made = nullptr;
  check(tutti_comm_plan_all_to_all(comm_, from.data(), to.data(), 1, TUTTI_COMM_BYTE, nullptr,
                                   &made));
  const Plan plan(made);
  check(tutti_comm_start(plan.get()));
  check(tutti_comm_wait(plan.get()));
}

void Group::set_timeout(std::chrono::milliseconds timeout) {
  check(tutti_comm_set_timeout(comm_, seconds(timeout)));
  timeout_ = timeout;
}

}  // namespace tutti_torch

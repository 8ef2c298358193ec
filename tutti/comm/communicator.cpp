#include "tutti/comm/communicator.h"

#include <fmt/format.h>

#include <array>
#include <numeric>

#include "tutti/base/error.h"
#include "tutti/comm/check/checked_channel.h"

namespace tutti::comm {

Communicator::Communicator(int rank, int size, Group group)
    : rank_(rank), size_(size), name_(std::move(group.name)),
      job_ranks_(std::move(group.job_ranks)), job_size_(group.job_size),
      places_(std::vector<Place>(static_cast<size_t>(size)), rank), channels_(*this, *this),
      planner_(*this) {
  if (!job_ranks_.empty()) return;
  job_size_ = size;
  job_ranks_.resize(static_cast<size_t>(size));
  std::iota(job_ranks_.begin(), job_ranks_.end(), 0);
}

Communicator::~Communicator() = default;

std::unique_ptr<Communicator> Communicator::split(int color, int key, std::string name) {
  const auto all = allgather_value(std::array<int, 2>{color, key});
  for (int p = 0; p < size_; ++p)
    if (const int given = all[static_cast<size_t>(p)][0]; given < 0)
      throw ConfigError(fmt::format("rank {} gives color {}: it must be 0 or more", p, given));
  std::vector<int> members;
  for (int p = 0; p < size_; ++p)
    if (all[static_cast<size_t>(p)][0] == color) members.push_back(p);
  std::ranges::stable_sort(members, {}, [&](int p) { return all[static_cast<size_t>(p)][1]; });
  Group group{.name = name.empty() ? fmt::format("{}/{}", name_, color) : std::move(name),
              .job_ranks = {},
              .job_size = job_size_};
  for (const int p : members) group.job_ranks.push_back(job_rank(p));
  auto part = do_split(members, std::move(group));
  part->timeout_ = timeout_;
  part->on_timeout_ = on_timeout_;
  part->planner_.set_selection(planner_.selection());
  part->channels_.decorate_as(channels_);
  part->shaped_ = shaped_;
  part->checked_ = checked_;
  part->progress_ = progress_;
  return part;
}

void Communicator::set_places(std::vector<Place> places) {
  CHECK(places.size() == static_cast<size_t>(size_));
  places_ = Places(std::move(places), rank_);
}

int Communicator::nodes() const { return count_nodes(node_of()); }

std::string Communicator::signed_message(const std::string& message) const {
  return message.starts_with(who()) ? message : who() + ": " + message;
}

void Communicator::barrier() { do_allgather(Control::barrier, {}, {}); }

void Communicator::broadcast(std::span<std::byte> data, int root) {
  CHECK(0 <= root && root < size_, "root {} of {}", root, size_);
  if (size_ > 1) do_broadcast(data, root);
}

void Communicator::allgather(std::span<const std::byte> mine, std::span<std::byte> all) {
  CHECK(all.size() == mine.size() * static_cast<size_t>(size_), "{} bytes of room for {} x {}",
        all.size(), size_, mine.size());
  do_allgather(Control::allgather, mine, all);
}

void Communicator::sum(std::span<double> values) {
  constexpr size_t kPiece = kMostCombined / sizeof(double);
  for (size_t begin = 0; begin < values.size(); begin += kPiece) {
    const auto piece = values.subspan(begin, std::min(kPiece, values.size() - begin));
    combine(std::as_writable_bytes(piece), [&piece](std::byte* mine, const std::byte* theirs) {
      std::array<double, kPiece> a, b;  // because bytes of messages are not aligned
      std::memcpy(a.data(), mine, piece.size_bytes());
      std::memcpy(b.data(), theirs, piece.size_bytes());
      for (size_t i = 0; i < piece.size(); ++i) a[i] += b[i];
      std::memcpy(mine, a.data(), piece.size_bytes());
    });
  }
}

void Communicator::combine(std::span<std::byte> value, const Fold& fold) {
  CHECK(value.size() <= kMostCombined, "{} bytes are too many to combine", value.size());
  if (size_ > 1) do_combine(value, fold);
}

void Communicator::set_shape(const LinkShape& shape) {
  if (places_.sharing_cores() != size_)
    throw CommError("a shaped link needs all ranks on one machine");
  shaped_ = true;
  channels_.decorate(
      [link = std::make_shared<ShapedLink>(shape)](
          Communicator&, std::vector<RoundOfMessages> rounds, const OpenChannel& inner) {
        return std::make_unique<ShapedChannel>(std::move(rounds), inner, *link);
      });
}

void Communicator::set_check() {
  if (std::exchange(checked_, true)) return;
  channels_.decorate([](Communicator& communicator, std::vector<RoundOfMessages> rounds,
                        const OpenChannel& inner) {
    return std::make_unique<CheckedChannel>(communicator, std::move(rounds), inner);
  });
}

void Communicator::set_progress(std::shared_ptr<Progress> progress) {
  CHECK(progress_->empty(), "operations are in flight");
  if (const std::string refusal = progress_refusal(); progress->threads() > 0 && !refusal.empty())
    throw CommError("no progress threads: " + refusal);
  progress_ = std::move(progress);
}

}  // namespace tutti::comm

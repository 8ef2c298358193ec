#include "tutti/comm/run/message.h"

#include <fmt/format.h>

#include "tutti/comm/communicator.h"
#include "tutti/comm/run/plan_error.h"

namespace tutti::comm {

MessageOperation::MessageOperation(Communicator& communicator, Way way, const MessageSpec& spec)
    : Operation(communicator,
                spec.name.empty()
                    ? fmt::format("message {} {}", spec.tag, way == Way::send ? "sent" : "received")
                    : fmt::format("message '{}'", spec.name)),
      way_(way), spec_(spec) {
  if (spec.tag < 0 || spec.tag > MessageSpec::kMostTag)
    throw PlanError(fmt::format("a message with tag {}: the tag must be 0 to {}", spec.tag,
                                MessageSpec::kMostTag));
  if (spec.peer == communicator.rank())
    throw PlanError(fmt::format("{}: rank {} cannot {} itself: the peer is another rank", name(),
                                communicator.rank(),
                                way == Way::send ? "send to" : "receive from"));
  if (spec.peer < 0 || spec.peer >= communicator.size())
    throw PlanError(fmt::format("{}: rank {} has no peer {} among {} ranks", name(),
                                communicator.rank(), spec.peer, communicator.size()));
  if (spec.data.size() > Wire::kLongestMessage)
    throw PlanError(fmt::format("{}: {} bytes are more than the {} of one message", name(),
                                spec.data.size(), Wire::kLongestMessage));
  set_priority(spec.priority);
  set_patient(spec.patient);
}

MessageOperation::~MessageOperation() { withdraw(); }

void MessageOperation::rebind(std::span<std::byte> data) {
  CHECK(!in_flight(), "{}: another buffer while in flight", name());
  spec_.data = data;
}

void MessageOperation::begin() {
  message_ = communicator().messages();
  if (way_ == Way::send)
    message_->send_taken(spec_.data.data(), spec_.data.size(), spec_.peer,
                         Wire::tag_of_user(spec_.tag));
  else
    message_->receive_up_to(spec_.data.data(), spec_.data.size(), spec_.peer,
                            Wire::tag_of_user(spec_.tag));
}

bool MessageOperation::advance() {
  if (!message_->test()) return false;
  arrived_ = way_ == Way::receive ? message_->arrived(0) : 0;
  message_.reset();
  return true;
}

Pending MessageOperation::describe() const {
  return {.operation = name(),
          .sequence = sequence(),
          .arrived = {communicator().rank()},
          .missing = {spec_.peer}};
}

}  // namespace tutti::comm

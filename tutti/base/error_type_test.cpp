#include "tutti/base/error_type.h"

#include <gtest/gtest.h>

#include <set>

#include "tutti/base/error.h"

namespace tutti {
namespace {

TEST(ErrorType, EveryTypeComesBackAsItself) {
  std::set<std::string_view> names;
  for (uint32_t value = 0; value <= static_cast<uint32_t>(ErrorType::other); ++value) {
    const auto type = static_cast<ErrorType>(value);
    try {
      throw_error(type, "why");
    } catch (const Error& error) {
      EXPECT_EQ(type_of(error), type) << name(type);
      EXPECT_STREQ(error.what(), "why");
    }
    EXPECT_TRUE(names.insert(name(type)).second) << name(type);
  }
  EXPECT_EQ(name(type_of(NumericError("x"))), "NumericError");
  EXPECT_EQ(type_of(std::runtime_error("x")), ErrorType::other);
}

}  // namespace
}  // namespace tutti

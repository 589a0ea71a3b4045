// Rules by age decide which snapshots stay.
#include <gtest/gtest.h>

#include <algorithm>
#include <vellum/retention.hpp>

#include "base/clock.hpp"
#include "base/expect_error.hpp"

namespace vellum::test {
namespace {

constexpr std::int64_t kHour = 3600LL * 1000 * 1000 * 1000;
constexpr std::int64_t kDay = 24 * kHour;
constexpr std::int64_t k2024 = 19723 * kDay;  // 2024-01-01, a Monday

VersionInfo snapshot(const std::string& name, std::int64_t time_ns,
                     const std::string& on = "main") {
  VersionInfo v;
  v.name = name;
  v.branch = on;
  v.created_at = v.committed_at = base::time_point_of(time_ns);
  v.order = static_cast<std::uint64_t>(time_ns + 1000 * kDay);
  return v;
}

// "name:rule,rule" of each, in the order of the answer.
std::vector<std::string> decide(const std::vector<VersionInfo>& versions,
                                const RetentionPolicy& policy) {
  std::vector<std::string> out;
  for (const auto& d : decide_retention(versions, policy)) {
    std::string text = d.version.name + ":";
    for (const auto& rule : d.kept_by) text += (text.back() == ':' ? "" : ",") + rule;
    out.push_back(text);
  }
  return out;
}

using Lines = std::vector<std::string>;

RetentionPolicy policy(std::uint32_t last, std::uint32_t daily = 0, std::uint32_t weekly = 0,
                       std::uint32_t monthly = 0, std::uint32_t yearly = 0) {
  return {last, daily, weekly, monthly, yearly};
}

TEST(Retention, LastKeepsTheNewest) {
  const std::vector<VersionInfo> versions{snapshot("a", 1), snapshot("c", 3), snapshot("b", 2)};
  EXPECT_EQ(decide(versions, policy(2)), (Lines{"c:last", "b:last", "a:"}));
  EXPECT_EQ(decide(versions, policy(9)), (Lines{"c:last", "b:last", "a:last"}));
  EXPECT_EQ(decide({}, policy(1)), Lines{});
}

// A set over midnight: its members are of two days.
TEST(Retention, ASetStaysOrGoesAsOne) {
  const std::vector<VersionInfo> versions{
      snapshot("s+2+a", k2024 - 1, "a"),     snapshot("s+2+b", k2024, "b"),
      snapshot("later", k2024 + kHour, "b"), snapshot("t+2+a", k2024 - kDay, "a"),
      snapshot("t+2+b", k2024 - kDay, "b"),  snapshot("2+b", 0, "b")};
  EXPECT_EQ(decide(versions, policy(0, 1)),
            (Lines{"s+2+a:daily", "t+2+a:", "later:daily", "s+2+b:daily", "t+2+b:", "2+b:"}));
}

TEST(Retention, ARuleIsRequired) { EXPECT_ERRC(decide({}, policy(0)), Errc::invalid_argument); }

TEST(Retention, DailyKeepsTheNewestOfEachDayThatHasAny) {
  const std::vector<VersionInfo> versions{
      snapshot("mon-early", k2024), snapshot("mon-late", k2024 + kDay - 1),
      snapshot("tue", k2024 + kDay), snapshot("fri", k2024 + 4 * kDay + kHour)};
  EXPECT_EQ(decide(versions, policy(0, 2)),
            (Lines{"fri:daily", "tue:daily", "mon-late:", "mon-early:"}));
  EXPECT_EQ(decide(versions, policy(0, 3)),
            (Lines{"fri:daily", "tue:daily", "mon-late:daily", "mon-early:"}));
}

TEST(Retention, WeeksBeginOnMonday) {
  const std::vector<VersionInfo> versions{snapshot("sat", k2024 - 2 * kDay),
                                          snapshot("sun", k2024 - 1), snapshot("mon", k2024)};
  EXPECT_EQ(decide(versions, policy(0, 0, 5)), (Lines{"mon:weekly", "sun:weekly", "sat:"}));
}

TEST(Retention, MonthsAndYearsOfTheCalendar) {
  const std::vector<VersionInfo> versions{snapshot("dec", k2024 - 1), snapshot("jan-1", k2024),
                                          snapshot("jan-31", k2024 + 31 * kDay - 1),
                                          snapshot("feb-29", k2024 + 59 * kDay),
                                          snapshot("mar-1", k2024 + 60 * kDay)};
  EXPECT_EQ(decide(versions, policy(0, 0, 0, 9)),
            (Lines{"mar-1:monthly", "feb-29:monthly", "jan-31:monthly", "jan-1:", "dec:monthly"}));
  EXPECT_EQ(decide(versions, policy(0, 0, 0, 0, 9)),
            (Lines{"mar-1:yearly", "feb-29:", "jan-31:", "jan-1:", "dec:yearly"}));
}

TEST(Retention, TimesBefore1970) {
  const std::vector<VersionInfo> versions{snapshot("wed", -kDay), snapshot("thu", 0),
                                          snapshot("sun", -4 * kDay), snapshot("mon", -3 * kDay)};
  EXPECT_EQ(decide(versions, policy(0, 0, 9)), (Lines{"thu:weekly", "wed:", "mon:", "sun:weekly"}));
  EXPECT_EQ(decide(versions, policy(0, 0, 0, 0, 9)),
            (Lines{"thu:yearly", "wed:yearly", "mon:", "sun:"}));
}

TEST(Retention, RulesAddUp) {
  const std::vector<VersionInfo> versions{snapshot("a", k2024 - 400 * kDay), snapshot("b", k2024),
                                          snapshot("c", k2024 + kHour)};
  EXPECT_EQ(decide(versions, policy(1, 1, 0, 0, 2)),
            (Lines{"c:last,daily,yearly", "b:", "a:yearly"}));
}

TEST(Retention, BranchesCountSeparatelyAndStay) {
  VersionInfo head = snapshot("main", 9);
  head.is_branch = true;
  const std::vector<VersionInfo> versions{snapshot("x", 1, "other"), snapshot("a", 2), head,
                                          snapshot("y", 3, "other"), snapshot("b", 4)};
  EXPECT_EQ(decide(versions, policy(1)), (Lines{"b:last", "a:", "y:last", "x:"}));
}

TEST(Retention, TheOrderDecidesWhatIsNewerNotTheClock) {
  auto first = snapshot("a", k2024 + kDay), second = snapshot("z", k2024), third = second;
  third.name = "b";
  first.order = 1, second.order = 2, third.order = 3;
  EXPECT_EQ(decide({first, second, third}, policy(1)), (Lines{"b:last", "z:", "a:"}));
  EXPECT_EQ(decide({first, second, third}, policy(0, 1)), (Lines{"b:daily", "z:", "a:"}));
}

TEST(Retention, TheAgeOfASnapshotIsNotThatOfItsCommit) {
  auto old = snapshot("old", k2024 + 3 * kDay), young = snapshot("young", k2024 + 4 * kDay);
  old.committed_at = young.committed_at = base::time_point_of(k2024);
  EXPECT_EQ(decide({old, young}, policy(0, 9)), (Lines{"young:daily", "old:daily"}));
}

// A day that occurs twice, because the clock was set back, is one day.
TEST(Retention, ADayCountsOnce) {
  auto a = snapshot("a", k2024 + kDay), b = snapshot("b", k2024), c = snapshot("c", k2024 + kDay);
  a.order = 1, b.order = 2, c.order = 3;
  EXPECT_EQ(decide({a, b, c}, policy(0, 9)), (Lines{"c:daily", "b:daily", "a:"}));
}

}  // namespace
}  // namespace vellum::test

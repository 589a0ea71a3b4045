#include "cli/terminal/retention_arguments.hpp"

namespace vellum::cli {

void add_retention_options(CLI::App& command, RetentionPolicy& policy) {
  command.add_option("--keep-last", policy.keep_last, "Keep the newest N snapshots")
      ->type_name("N");
  command
      .add_option("--keep-daily", policy.keep_daily, "Keep the newest snapshot of each of N days")
      ->type_name("N");
  command
      .add_option("--keep-weekly", policy.keep_weekly,
                  "Keep the newest snapshot of each of N weeks")
      ->type_name("N");
  command
      .add_option("--keep-monthly", policy.keep_monthly,
                  "Keep the newest snapshot of each of N months")
      ->type_name("N");
  command
      .add_option("--keep-yearly", policy.keep_yearly,
                  "Keep the newest snapshot of each of N years")
      ->type_name("N");
}

bool has_rule(const RetentionPolicy& policy) {
  return policy.keep_last != 0 || policy.keep_daily != 0 || policy.keep_weekly != 0 ||
         policy.keep_monthly != 0 || policy.keep_yearly != 0;
}

}  // namespace vellum::cli

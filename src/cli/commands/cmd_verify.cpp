// cli/commands/cmd_verify.cpp: vellum verify: checks for damage, and names the affected versions.
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/bytes/hex.hpp"
#include "base/fail.hpp"
#include "cli/remote/remote_commands.hpp"
#include "cli/terminal/command.hpp"
#include "cli/terminal/exit_status.hpp"
#include "cli/terminal/progress.hpp"
#include "remote/engine/url.hpp"

namespace vellum::cli {
namespace {

struct VerifyArguments {
  std::string store, from, at;
  bool read_data = false;
  std::vector<std::string> versions;
  std::vector<std::string> signers;  // files
};

VerifyReport verify(Context& context, const Store& store, bool read_data) {
  ProgressMeter meter("verify", context.progress_wanted());
  return store.verify({read_data}, meter.callback());
}

std::set<std::string> versions_hurt(const VerifyReport& report) {
  std::set<std::string> hurt;
  for (const Damage& damage : report.damages) {
    hurt.insert(damage.versions.begin(), damage.versions.end());
  }
  return hurt;
}

Json report_json(const Store& store, const VerifyReport& report, bool read_data) {
  Json damages = Json::array();
  for (const Damage& damage : report.damages) {
    damages.push_back(
        Json{{"object", damage.object}, {"reason", damage.reason}, {"versions", damage.versions}});
  }
  return Json{{"store", store.path()},           {"ok", report.damages.empty()},
              {"read_data", read_data},          {"versions", report.versions},
              {"packs", report.packs},           {"records", report.records},
              {"bytes_read", report.bytes_read}, {"damages", std::move(damages)}};
}

void print_damage(Output& out, const Damage& damage) {
  out.print_text("corrupted  {}: {}\n", printable(damage.object), printable(damage.reason));
  std::string versions;
  for (const std::string& version : damage.versions) {
    versions += (versions.empty() ? "" : ", ") + printable(version);
  }
  out.print_text("  affects  {}\n", versions.empty() ? "no version" : versions);
}

void print_text(Context& context, const VerifyReport& report) {
  if (context.quiet) {
    return;
  }
  for (const Damage& damage : report.damages) {
    print_damage(context.out, damage);
  }
  context.out.print_text("checked {}, {}, {}; read {}\n", counted(report.versions, "version"),
                         counted(report.packs, "pack"), counted(report.records, "record"),
                         human_bytes(report.bytes_read));
}

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json check_json(const SignatureCheck& check) {
  return Json{{"name", check.name},
              {"ok", check.problem.empty()},
              {"problem", text_or_null(check.problem)},
              {"signature", check.is_signed ? signature_json(check.signature) : Json(nullptr)},
              {"chain_ends_before", text_or_null(check.chain_ends_before)},
              {"note", text_or_null(check.note)}};
}

void print_check(Output& out, const SignatureCheck& check) {
  const std::string name = printable(check.name);
  if (!check.problem.empty()) {
    out.print_text("untrusted  '{}': {}\n", name, printable(check.problem));
    return;
  }
  std::string more;
  if (!check.chain_ends_before.empty()) {
    more = fmt::format("; '{}', which it was signed on, is not here",
                       printable(check.chain_ends_before));
  }
  if (!check.note.empty()) more += "; " + printable(check.note);
  out.print_text("signed     '{}', number {}, by {}{}\n", name, check.signature.number,
                 base::hex(std::span(check.signature.key).first(8)), more);
}

void print_head(Output& out, const HeadCheck& head) {
  const std::string branch = printable(head.branch);
  if (head.same_as.empty()) {
    out.print_text("not signed: the head of branch '{}'\n", branch);
  } else {
    out.print_text("the head of branch '{}' is '{}'\n", branch, printable(head.same_as));
  }
}

// Of a store, or of a remote that is given by its URL: both are read whole.
int verify_signatures(Context& context, const VerifyArguments& arguments) {
  if (arguments.read_data || !arguments.from.empty()) {
    fail(Errc::invalid_argument, "--signed-by excludes --read-data and --from");
  }
  std::vector<PublicKey> keys;
  for (const std::string& file : arguments.signers) keys.push_back(read_public_key(file));
  const Store store = Store::open(arguments.store);
  const SignatureReport report = store.check_signatures(keys, arguments.versions);
  std::size_t bad = 0;
  Json list = Json::array(), heads = Json::array();
  const bool prints = !context.json && !context.quiet;
  for (const SignatureCheck& check : report.snapshots) {
    bad += check.problem.empty() ? 0 : 1;
    list.push_back(check_json(check));
    if (prints) print_check(context.out, check);
  }
  for (const HeadCheck& head : report.heads) {
    heads.push_back(Json{{"branch", head.branch}, {"same_as", text_or_null(head.same_as)}});
    if (prints) print_head(context.out, head);
  }
  const bool is_good = bad == 0 && !report.snapshots.empty();
  const Json object{{"store", store.path()},
                    {"ok", is_good},
                    {"versions", std::move(list)},
                    {"heads", std::move(heads)}};
  if (is_good) {
    if (context.json) context.out.print_json(object);
    return kExitOk;
  }
  if (context.json) context.begin_object(object);
  if (report.snapshots.empty())
    fail(Errc::untrusted, "{}: it has no snapshot, so that nothing there is signed", store.path());
  fail(Errc::untrusted, "{}: {} of {} not to be trusted", store.path(), bad,
       counted(report.snapshots.size(), "version"));
}

int run_verify(Context& context, const VerifyArguments& arguments) {
  if (!arguments.signers.empty()) return verify_signatures(context, arguments);
  if (!arguments.versions.empty()) {
    fail(Errc::invalid_argument,
         "VERSION is for --signed-by: without it, the whole store is checked");
  }
  if (remote::is_remote_url(arguments.store)) {
    return verify_remote(context, url_at_time(arguments.store, arguments.at), arguments.read_data,
                         arguments.from);
  }
  if (!arguments.from.empty()) {
    fail(Errc::invalid_argument, "--from is for a remote, given by its URL, and not for a store");
  }
  url_at_time(arguments.store, arguments.at);
  const Store store = Store::open(arguments.store);
  const VerifyReport report = verify(context, store, arguments.read_data);
  if (!context.json) {
    print_text(context, report);
  } else if (report.damages.empty()) {
    context.out.print_json(report_json(store, report, arguments.read_data));
  } else {
    context.begin_object(report_json(store, report, arguments.read_data));
  }
  if (!report.damages.empty()) {
    fail(Errc::corrupted, "{}: {}, {} affected", store.path(),
         counted(report.damages.size(), "corrupted object"),
         counted(versions_hurt(report).size(), "version"));
  }
  return kExitOk;
}

}  // namespace

void add_verify(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<VerifyArguments>();
  CLI::App* command = add_command(
      app, context, "verify", "Check for damage, and name the affected versions", arguments->store,
      [&context, arguments] { return run_verify(context, *arguments); });
  command->add_option("VERSION", arguments->versions,
                      "With --signed-by: the snapshots to check (default: all)");
  command
      ->add_option("--signed-by", arguments->signers,
                   "Check that snapshots are signed by a key of these files, and are what was "
                   "signed: public keys of Ed25519, in PEM or OpenSSH's format")
      ->type_name("FILE")
      ->expected(1)
      ->take_all();
  command->add_flag("--read-data", arguments->read_data,
                    "Read and check every byte that a version needs, not only the structure");
  command
      ->add_option("--from", arguments->from,
                   "For a remote, given by its URL: say what this store could mend")
      ->type_name("STORE");
  command
      ->add_option("--at", arguments->at,
                   "Of a remote in a bucket with versions: check it as it was at this time")
      ->type_name("TIME");
}

}  // namespace vellum::cli

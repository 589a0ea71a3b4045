// cli/web/cmd_web.cpp: vellum web: pages about a store, for a browser on this machine.
#include <pthread.h>

#include <csignal>
#include <memory>

#include "cli/terminal/command.hpp"
#include "cli/terminal/exit_status.hpp"
#include "cli/web/server.hpp"
#include "cli/web/site.hpp"

namespace vellum::cli {
namespace {

struct WebArguments {
  std::string store;
  std::uint16_t port = 0;
};

// Blocked before the server's thread begins, so that this thread gets them.
sigset_t block_end_signals() {
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGINT);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  return ends;
}

int run_web(Context& context, const WebArguments& arguments) {
  const Site site(Store::open(arguments.store));
  const sigset_t ends = block_end_signals();
  const Server server(site, arguments.port);
  const std::string url = site.url(server.port());
  if (context.json) {
    context.out.print_json(Json{{"store", arguments.store}, {"url", url}, {"port", server.port()}});
  } else {
    context.out.write(url + "\n");
  }
  context.out.flush();
  context.explain("anyone with this address may read the store; Ctrl-C ends");
  int signal_number = 0;
  sigwait(&ends, &signal_number);
  return kExitOk;
}

}  // namespace

void add_web(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<WebArguments>();
  CLI::App* command =
      add_command(app, context, "web", "Serve pages about a store to a browser on this machine",
                  arguments->store, [&context, arguments] { return run_web(context, *arguments); });
  command->add_option("--port", arguments->port, "The port of 127.0.0.1 (default: a free one)")
      ->type_name("PORT");
}

}  // namespace vellum::cli

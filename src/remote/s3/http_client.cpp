#include "remote/s3/http_client.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cassert>
#include <cctype>
#include <charconv>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>

#include "base/fail.hpp"
#include "base/threads/start_thread.hpp"
#include "remote/s3/kept_multi.hpp"
#include "remote/s3/libcurl.hpp"

namespace vellum::remote {
namespace {

using Clock = std::chrono::steady_clock;

struct HeaderList {
  curl_slist* list = nullptr;
  HeaderList() = default;
  ~HeaderList() { libcurl().slist_free_all(list); }
  HeaderList(const HeaderList&) = delete;
  HeaderList& operator=(const HeaderList&) = delete;
  void add(const std::string& line) {
    curl_slist* const longer = libcurl().slist_append(list, line.c_str());
    if (longer == nullptr) fail(Errc::out_of_memory, "out of memory for a header");
    list = longer;
  }
};

// An active request. The caller's thread waits; the transfer thread fills in the response.
struct Transfer {
  const HttpRequest& request;
  HttpResponse response;
  HeaderList headers;
  std::size_t sent = 0;
  char error[CURL_ERROR_SIZE] = {};
  CURL* easy = nullptr;
  Clock::time_point last_progress = Clock::now();
  std::uint64_t moved = 0;  // bytes in either direction, at last_progress
  bool done = false;        // guarded by the client's mutex

  explicit Transfer(const HttpRequest& r) : request(r) {}
};

std::size_t receive_body(char* data, std::size_t size, std::size_t count, void* context) {
  auto& transfer = *static_cast<Transfer*>(context);
  auto& body = transfer.response.body;
  const std::size_t bytes = size * count;
  if (bytes > transfer.request.limit_bytes -
                  std::min<std::uint64_t>(body.size(), transfer.request.limit_bytes)) {
    transfer.response.too_large = true;
    return 0;
  }
  try {
    const auto* from = reinterpret_cast<const std::byte*>(data);
    body.insert(body.end(), from, from + bytes);
  } catch (const std::bad_alloc&) {
    return 0;
  }
  return bytes;
}

std::size_t send_body(char* out, std::size_t size, std::size_t count, void* context) {
  auto& transfer = *static_cast<Transfer*>(context);
  const auto body = transfer.request.body;
  const std::size_t bytes = std::min(size * count, body.size() - transfer.sent);
  std::memcpy(out, body.data() + transfer.sent, bytes);
  transfer.sent += bytes;
  return bytes;
}

// A program that the process starts does not get the connection.
curl_socket_t open_socket(void*, curlsocktype, curl_sockaddr* address) {
  return ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

// libcurl sends a body again if a reused connection turns out to be closed.
int rewind_body(void* context, curl_off_t offset, int origin) {
  auto& transfer = *static_cast<Transfer*>(context);
  if (origin != SEEK_SET || offset < 0 ||
      static_cast<std::uint64_t>(offset) > transfer.request.body.size()) {
    return CURL_SEEKFUNC_FAIL;
  }
  transfer.sent = static_cast<std::size_t>(offset);
  return CURL_SEEKFUNC_OK;
}

// The stated length saves copies. It may be false: never reserve more than the limit.
void reserve_body(Transfer& transfer, const std::string& length) {
  std::uint64_t bytes = 0;
  std::from_chars(length.data(), length.data() + length.size(), bytes);
  transfer.response.body.reserve(
      static_cast<std::size_t>(std::min(bytes, transfer.request.limit_bytes)));
}

std::size_t receive_header(char* data, std::size_t size, std::size_t count, void* context) {
  constexpr std::size_t kMaxHeaders = 100, kMaxHeaderBytes = 8192;
  auto& transfer = *static_cast<Transfer*>(context);
  auto& headers = transfer.response.headers;
  const std::size_t bytes = size * count;
  try {
    const std::string line(data, bytes);
    if (line.starts_with("HTTP/")) headers.clear();  // drops the headers of "100 Continue"
    const auto colon = line.find(':');
    if (colon == std::string::npos || bytes > kMaxHeaderBytes || headers.size() >= kMaxHeaders) {
      return bytes;
    }
    std::string name = line.substr(0, colon);
    for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    const auto first = line.find_first_not_of(" \t", colon + 1);
    const auto last = line.find_last_not_of(" \t\r\n");
    const bool is_empty = first == std::string::npos || last < first;
    const std::string& value = headers[name] = is_empty ? "" : line.substr(first, last - first + 1);
    if (name == "content-length") reserve_body(transfer, value);
  } catch (const std::bad_alloc&) {
    return 0;
  }
  return bytes;
}

}  // namespace

struct HttpClient::Impl {
  const HttpOptions options;
  std::unique_ptr<Multi> connections;
  CURLM* const multi;
  std::mutex mutex;  // guards `waiting`, `stopping`, `stopped`, `thread` and each Transfer::done
  std::condition_variable finished;
  std::deque<Transfer*> waiting;
  bool stopping = false;
  bool stopped = false;  // requests end at once
  std::thread thread;
  std::vector<Transfer*> active;  // used only by the thread, like `idle`
  std::vector<CURL*> idle;
  std::size_t easy_handles = 0;  // as many connections at most

  explicit Impl(HttpOptions o)
      : options(std::move(o)), connections(take_multi(options)), multi(connections->get()) {}

  ~Impl() {
    {
      const std::lock_guard lock(mutex);
      stopping = true;
    }
    libcurl().multi_wakeup(multi);
    if (thread.joinable()) thread.join();
    for (CURL* easy : idle) libcurl().easy_cleanup(easy);
    keep_multi(std::move(connections), easy_handles);
  }

  void prepare(Transfer& transfer);
  void begin_waiting();
  void end(Transfer& transfer, CURLcode code);
  void end_finished();
  void end_stalled();
  void end_all();
  bool run_once();
  void run() {
    while (run_once()) {
    }
  }
};

void HttpClient::Impl::prepare(Transfer& transfer) {
  const HttpRequest& request = transfer.request;
  CURL* const easy = transfer.easy;
  for (const auto& [name, value] : request.headers) transfer.headers.add(name + ": " + value);
  transfer.headers.add("Expect:");  // suppresses a useless round trip
  libcurl().easy_setopt(easy, CURLOPT_PRIVATE, &transfer);
  libcurl().easy_setopt(easy, CURLOPT_URL, request.url.c_str());
  libcurl().easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  libcurl().easy_setopt(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  libcurl().easy_setopt(easy, CURLOPT_HTTPHEADER, transfer.headers.list);
  libcurl().easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer.error);
  libcurl().easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  libcurl().easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
  libcurl().easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
  libcurl().easy_setopt(easy, CURLOPT_FRESH_CONNECT, request.connects_anew ? 1L : 0L);
  libcurl().easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
  libcurl().easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L);
  libcurl().easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L);
  if (!options.ca_bundle.empty())
    libcurl().easy_setopt(easy, CURLOPT_CAINFO, options.ca_bundle.c_str());
  libcurl().easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
                        static_cast<long>(options.connect_timeout.count()));
  libcurl().easy_setopt(easy, CURLOPT_WRITEFUNCTION, receive_body);
  libcurl().easy_setopt(easy, CURLOPT_WRITEDATA, &transfer);
  libcurl().easy_setopt(easy, CURLOPT_HEADERFUNCTION, receive_header);
  libcurl().easy_setopt(easy, CURLOPT_HEADERDATA, &transfer);
  if (request.method == "PUT" || request.method == "POST") {
    libcurl().easy_setopt(easy, CURLOPT_UPLOAD, 1L);
    libcurl().easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, 512L << 10);
    libcurl().easy_setopt(easy, CURLOPT_READFUNCTION, send_body);
    libcurl().easy_setopt(easy, CURLOPT_READDATA, &transfer);
    libcurl().easy_setopt(easy, CURLOPT_SEEKFUNCTION, rewind_body);
    libcurl().easy_setopt(easy, CURLOPT_SEEKDATA, &transfer);
    libcurl().easy_setopt(easy, CURLOPT_INFILESIZE_LARGE,
                          static_cast<curl_off_t>(request.body.size()));
  } else {
    libcurl().easy_setopt(easy, CURLOPT_BUFFERSIZE, 512L << 10);
  }
  if (request.method != "GET" && request.method != "PUT")
    libcurl().easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request.method.c_str());
}

// Starts the new requests.
void HttpClient::Impl::begin_waiting() {
  std::deque<Transfer*> fresh;
  {
    const std::lock_guard lock(mutex);
    fresh.swap(waiting);
  }
  for (Transfer* transfer : fresh) {
    try {
      if (!idle.empty()) {
        transfer->easy = idle.back();
        idle.pop_back();
        libcurl().easy_reset(transfer->easy);
      } else {
        transfer->easy = libcurl().easy_init();
        ++easy_handles;
      }
      if (transfer->easy == nullptr) fail(Errc::out_of_memory, "libcurl: out of memory");
      active.push_back(transfer);
      prepare(*transfer);
      transfer->last_progress = Clock::now();
      if (libcurl().multi_add_handle(multi, transfer->easy) != CURLM_OK) {
        fail(Errc::out_of_memory, "libcurl refuses another transfer");
      }
    } catch (const std::exception&) {
      end(*transfer, CURLE_OUT_OF_MEMORY);
    }
  }
}

void HttpClient::Impl::end(Transfer& transfer, CURLcode code) {
  assert(!transfer.done);
  if (transfer.easy != nullptr) {
    libcurl().multi_remove_handle(multi, transfer.easy);
    libcurl().easy_getinfo(transfer.easy, CURLINFO_RESPONSE_CODE, &transfer.response.status);
    idle.push_back(transfer.easy);
  }
  if (code != CURLE_OK) {
    transfer.response.failure = transfer.response.stopped ? "no answer when the command was to end"
                                : transfer.error[0] != '\0' ? transfer.error
                                                            : libcurl().easy_strerror(code);
    transfer.response.untrusted =
        code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE;
  }
  std::erase(active, &transfer);
  const std::lock_guard lock(mutex);
  transfer.done = true;
  finished.notify_all();
}

void HttpClient::Impl::end_finished() {
  int left = 0;
  while (const CURLMsg* message = libcurl().multi_info_read(multi, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    const CURLcode code = message->data.result;
    Transfer* transfer = nullptr;
    libcurl().easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &transfer);
    end(*transfer, code);
  }
}

// libcurl's own limits are for the total time or the speed; a slow server with progress is no
// error.
void HttpClient::Impl::end_stalled() {
  const auto now = Clock::now();
  const std::vector<Transfer*> all = active;
  for (Transfer* transfer : all) {
    curl_off_t up = 0, down = 0;
    libcurl().easy_getinfo(transfer->easy, CURLINFO_SIZE_UPLOAD_T, &up);
    libcurl().easy_getinfo(transfer->easy, CURLINFO_SIZE_DOWNLOAD_T, &down);
    const auto moved = static_cast<std::uint64_t>(up) + static_cast<std::uint64_t>(down);
    if (moved != transfer->moved) {
      transfer->moved = moved;
      transfer->last_progress = now;
    } else if (now - transfer->last_progress > options.stall_timeout) {
      end(*transfer, CURLE_OPERATION_TIMEDOUT);
    }
  }
}

void HttpClient::Impl::end_all() {
  const std::vector<Transfer*> all = active;
  for (Transfer* transfer : all) {
    transfer->response.stopped = true;
    end(*transfer, CURLE_ABORTED_BY_CALLBACK);
  }
}

bool HttpClient::Impl::run_once() {
  bool ends_all = false;
  {
    const std::lock_guard lock(mutex);
    if (stopping) return false;
    ends_all = stopped;
  }
  begin_waiting();
  if (ends_all) end_all();  // before anything is sent
  int running = 0;
  libcurl().multi_perform(multi, &running);
  end_finished();
  end_stalled();
  // A new request has already called multi_wakeup(), so this does not miss it.
  libcurl().multi_poll(multi, nullptr, 0, active.empty() ? 10'000 : 100, nullptr);
  return true;
}

HttpClient::HttpClient(HttpOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
HttpClient::~HttpClient() = default;

void HttpClient::stop() noexcept {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stopped = true;
  }
  libcurl().multi_wakeup(impl_->multi);
}

HttpResponse HttpClient::perform(const HttpRequest& request) {
  assert(!request.method.empty() && !request.url.empty());
  Transfer transfer(request);
  std::unique_lock lock(impl_->mutex);
  if (!impl_->thread.joinable()) {
    impl_->thread = base::start_thread("talks to servers", [impl = impl_.get()] { impl->run(); });
  }
  impl_->waiting.push_back(&transfer);
  libcurl().multi_wakeup(impl_->multi);
  impl_->finished.wait(lock, [&] { return transfer.done; });
  return std::move(transfer.response);
}

}  // namespace vellum::remote

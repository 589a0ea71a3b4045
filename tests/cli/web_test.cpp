// vellum web: pages about a store, over HTTP, and in a browser if there is one.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <set>

#include "format/wire/types.hpp"
#include "run/run_lib.hpp"

namespace vellum::cli_test {
namespace {

using format::kPageBytes;

struct Answer {
  int status = 0;
  std::string head, body;
};

class Web : public CliTest {
 protected:
  // v2 changes 8 bytes at 5000 to the double 2.5, and all of page 3.
  Web() {
    const std::string v1 = noise(8, 1);
    std::string v2 = v1;
    const double value = 2.5;
    std::memcpy(&v2[5000], &value, sizeof value);
    for (std::size_t i = 3 * kPageBytes; i < 4 * kPageBytes; ++i) v2[i] = static_cast<char>(~v1[i]);
    store_ = make_store_with({v1, v2});
    must({"snapshot", store_, "escaped", "v1", "-m", "<script>alert(1)</script> & \"more\""});
    begin();
  }
  ~Web() override { end(); }

  void begin() {
    int ends[2];
    if (::pipe(ends) != 0) throw std::runtime_error("pipe");
    server_ = ::fork();
    if (server_ == 0) {
      ::dup2(ends[1], STDOUT_FILENO);
      ::close(ends[0]);
      ::close(ends[1]);
      become_vellum({"web", store_, "--json"});
    }
    ::close(ends[1]);
    std::string line;
    for (char c; ::read(ends[0], &c, 1) == 1 && c != '\n';) line += c;
    ::close(ends[0]);
    is_built_ = !contains(line, "\"error\"");
    if (!is_built_) return;
    const auto said = nlohmann::json::parse(line);
    url_ = said.at("url");
    port_ = said.at("port");
    token_ = url_.substr(url_.size() - 65, 64);
  }

  int end() {
    if (server_ <= 0) return 0;
    int status = 0;
    ::kill(server_, SIGTERM);
    ::waitpid(server_, &status, 0);
    server_ = 0;
    return status;
  }

  // A connection; -1: there is none.
  int connected(in_addr_t to = INADDR_LOOPBACK) const {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(to);
    address.sin_port = htons(port_);
    if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return fd;
    ::close(fd);
    return -1;
  }

  // The server's complete response to these bytes.
  std::string exchange(const std::string& request, in_addr_t to = INADDR_LOOPBACK) const {
    const int fd = connected(to);
    std::string got;
    if (fd >= 0 && ::send(fd, request.data(), request.size(), MSG_NOSIGNAL) ==
                       static_cast<ssize_t>(request.size())) {
      char some[4096];
      for (ssize_t n = 0; (n = ::read(fd, some, sizeof some)) > 0;)
        got.append(some, static_cast<std::size_t>(n));
    }
    ::close(fd);
    return got;
  }

  Answer ask(const std::string& path, const std::string& host, const char* method = "GET") const {
    const std::string got =
        exchange(std::string(method) + " " + path + " HTTP/1.1\r\n" +
                 (host.empty() ? "" : "Host: " + host + "\r\n") + "Connection: close\r\n\r\n");
    Answer answer;
    const std::size_t end = got.find("\r\n\r\n");
    if (got.size() < 12 || end == std::string::npos) return answer;
    answer.status = std::stoi(got.substr(9, 3));
    answer.head = got.substr(0, end);
    answer.body = got.substr(end + 4);
    return answer;
  }
  std::string own_host() const { return "127.0.0.1:" + std::to_string(port_); }
  Answer page(const std::string& name) const { return ask("/" + token_ + "/" + name, own_host()); }
  std::string body(const std::string& name) const {
    const Answer answer = page(name);
    EXPECT_EQ(answer.status, 200) << name << ": " << answer.body;
    return answer.body;
  }

  std::string store_, url_, token_;
  pid_t server_ = 0;
  std::uint16_t port_ = 0;
  bool is_built_ = false;
};

#define SKIP_WITHOUT_SERVER() \
  if (!is_built_) GTEST_SKIP() << "built without libmicrohttpd"

TEST_F(Web, EachPageHasTheOutputOfItsCommand) {
  SKIP_WITHOUT_SERVER();
  const std::string versions = body("");
  for (const char* name : {">main</a>", ">v1</a>", ">v2</a>", ">escaped</a>"})
    EXPECT_TRUE(contains(versions, name)) << name;
  EXPECT_TRUE(contains(body("sizes"), "<meter"));
  EXPECT_TRUE(contains(body("version?name=v2"), "4104 bytes in 2 ranges on 2 pages"));
  EXPECT_TRUE(contains(body("version?name=v1"), "No earlier version"));
  EXPECT_TRUE(contains(body("diff?a=v1&b=v2"), ">0x3000 (12288)</a>"));
  EXPECT_TRUE(contains(body("diff?a=v2&b=main"), "No difference"));
  EXPECT_TRUE(contains(body("diff?a=main~2&b=latest"), "No difference")) << "both are v1's";
  EXPECT_TRUE(contains(body("heat?versions=v1..v2"), "<title>v2: 4.0 KiB"));
  EXPECT_TRUE(contains(body("style.css"), "body {"));
  EXPECT_EQ(page("nothing").status, 404);
  EXPECT_EQ(page("version?name=gone").status, 404);
  EXPECT_EQ(page("diff?a=v1").status, 404);
}

TEST_F(Web, IdleConnectionsDoNotBlockOthers) {
  SKIP_WITHOUT_SERVER();
  std::vector<int> idle;
  for (int i = 0; i < 300; ++i) {
    idle.push_back(connected());
    // Half of them begin a request.
    if (i % 2 == 0) {
      EXPECT_GE(::send(idle.back(), "GET /", 5, MSG_NOSIGNAL), -1);
    }
  }
  EXPECT_EQ(page("").status, 200);
  // Those that are still open get an answer when they finally send a request.
  const std::string rest = token_ + "/ HTTP/1.1\r\nHost: " + own_host() + "\r\n\r\n";
  const int last = idle[298];
  EXPECT_EQ(::send(last, rest.data(), rest.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(rest.size()));
  char status[12] = {};
  EXPECT_EQ(::recv(last, status, sizeof status, MSG_WAITALL), 12);
  EXPECT_EQ(std::string_view(status, 12), "HTTP/1.1 200");
  for (const int fd : idle) ::close(fd);
}

// The text between each of these and the next one.
std::vector<std::string> parts_after(const std::string& text, const std::string& mark) {
  std::vector<std::string> out;
  for (std::size_t at = text.find(mark); at != std::string::npos;) {
    const std::size_t next = text.find(mark, at + mark.size());
    out.push_back(text.substr(at, next - at));
    at = next;
  }
  return out;
}

TEST_F(Web, TheGraphHasALaneForEachBranchAndALineToEachParent) {
  SKIP_WITHOUT_SERVER();
  must({"branch", store_, "side", "v1"});
  must({"import", store_, "side", file("side", noise(8, 3)), "--snapshot", "s1"});
  const std::string page = body("");
  const auto dots = parts_after(page, "<circle ");
  ASSERT_EQ(dots.size(), 6U) << page;  // main, side, v1, v2, escaped, s1
  std::set<std::string> lanes[2];
  for (const std::string& dot : dots) {
    const bool on_side = contains(dot, "<title>side:") || contains(dot, "<title>s1:");
    const std::size_t x = dot.find(" cx=");
    lanes[on_side].insert(dot.substr(x, dot.find(' ', x + 1) - x));
    const bool is_head = contains(dot, "<title>side:") || contains(dot, "<title>main:");
    EXPECT_EQ(is_head, contains(dot, " head\"")) << dot;
  }
  EXPECT_EQ(lanes[0].size(), 1U);
  EXPECT_EQ(lanes[1].size(), 1U);
  EXPECT_NE(lanes[0], lanes[1]);
  EXPECT_EQ(parts_after(page, "<path ").size(), 4U) << page;   // v1 and escaped came from none
  EXPECT_EQ(parts_after(page, "<li id=").size(), 6U) << page;  // a row beside each dot
  EXPECT_TRUE(contains(page, "diff?a=v1&amp;b=v2")) << page;
  EXPECT_TRUE(contains(page, "diff?a=v1&amp;b=s1")) << page;
  EXPECT_EQ(parts_after(page, "<span class=\"lane").size(), 2U) << page;
}

TEST_F(Web, BytesAreShownAsHexAndAsValues) {
  SKIP_WITHOUT_SERVER();
  const std::string hex = body("bytes?version=v2&offset=4992&against=v1");
  EXPECT_TRUE(contains(hex, "offset=0x138e&amp;length=1\"><mark>04</mark></a>")) << hex;
  EXPECT_TRUE(contains(hex, "offset=0x138f&amp;length=1\"><mark>40</mark></a>")) << hex;
  EXPECT_FALSE(contains(body("bytes?version=v2&offset=4992"), "<mark>"));
  const std::string values = body("bytes?version=v2&offset=5000&as=f64&against=v1");
  EXPECT_TRUE(contains(values, "length=8\"><mark>2.5</mark></a>")) << values;
  EXPECT_EQ(body("bytes?version=v2&offset=0x1388&as=f64&against=v1"), values);
  EXPECT_TRUE(contains(body("bytes?version=v1"), ">After</a>"));
  EXPECT_FALSE(contains(body("bytes?version=v1&offset=28K"), ">After</a>"));
  EXPECT_EQ(page("bytes?version=v1&offset=32K").status, 400);
  EXPECT_EQ(page("bytes?version=v1&offset=x").status, 400);
  EXPECT_EQ(page("bytes?version=v1&as=f16").status, 400);
  EXPECT_EQ(page("bytes?version=v1&offset=0x").status, 400);
}

TEST_F(Web, TwoVersionsAreChosenByTwoLinksAndComparedFromTheOlderToTheNewer) {
  SKIP_WITHOUT_SERVER();
  EXPECT_TRUE(contains(body(""), "<a href=\".?from=v2#v2\">compare</a>"));
  for (const char* first : {"?from=v1", "?from=v2"}) {
    const std::string page = body(first);
    EXPECT_TRUE(contains(page, "<a href=\"diff?a=v1&amp;b=v2\">v1 → v2</a>")) << page;
    EXPECT_FALSE(contains(page, ">compare</a>")) << page;
  }
  EXPECT_TRUE(contains(body("diff?a=v1&b=v2"), "<h1>v1 → v2</h1>"));
  EXPECT_TRUE(contains(body("diff?a=v2&b=v1"), "<h1>v2 → v1</h1>")) << "in the order asked for";
  EXPECT_EQ(page("?from=gone").status, 404);
}

// A file that changes at many single bytes which are close, and at one that is far from them.
TEST_F(Web, CloseRangesAreOneChangeWithTheBytesBeforeAndAfter) {
  SKIP_WITHOUT_SERVER();
  std::string content(8 * kPageBytes, 'a');
  must({"import", store_, "many", file("before", content), "--snapshot", "m1"});
  for (std::size_t i = 0; i < 100; i += 2) content[4096 + i] = 'b';
  content[20'000] = 'c';
  must({"import", store_, "many", file("after", content), "--snapshot", "m2"});
  const std::string page = body("diff?a=m1&b=m2");
  EXPECT_TRUE(contains(page, "51 bytes in 51 ranges")) << page;
  EXPECT_EQ(parts_after(page, "<li>").size(), 2U) << page;
  EXPECT_TRUE(contains(page, "0x1000 (4096)</a>, 50 bytes")) << page;
  EXPECT_TRUE(contains(page, "- <mark>61</mark> 61 <mark>61</mark>")) << page;
  EXPECT_TRUE(contains(page, "+ <mark>62</mark> 61 <mark>62</mark>")) << page;
  EXPECT_TRUE(contains(page, "babababa")) << page;
  // From an offset on, as the table of parts and the heat link to it.
  EXPECT_EQ(parts_after(body("diff?a=m1&b=m2&from=0x4000"), "<li>").size(), 1U);
}

TEST_F(Web, ManyChangesAreOnPagesWithLinksToThePreviousAndTheNext) {
  SKIP_WITHOUT_SERVER();
  std::string content(64 * kPageBytes, 'a');
  must({"import", store_, "many", file("before", content), "--snapshot", "m1"});
  for (std::size_t i = 0; i < 250; ++i) content[i * 1024] = 'b';
  must({"import", store_, "many", file("after", content), "--snapshot", "m2"});
  const std::string first = body("diff?a=m1&b=m2");
  EXPECT_EQ(parts_after(first, "<li>").size(), 100U);
  EXPECT_FALSE(contains(first, "Previous changes"));
  EXPECT_TRUE(contains(first, "from=0x19000\">Next changes</a>")) << first;  // 100 * 1024
  const std::string last = body("diff?a=m1&b=m2&from=0x32000");
  EXPECT_EQ(parts_after(last, "<li>").size(), 50U);
  EXPECT_TRUE(contains(last, "from=0x19000\">Previous changes</a>")) << last;
  EXPECT_FALSE(contains(last, "Next changes"));
  // In the bytes: the nearest changes outside of the 4096 that are shown.
  const std::string bytes = body("bytes?version=m2&against=m1&offset=0x2000");
  EXPECT_TRUE(contains(bytes, "offset=0x1c00&amp;as=hex\">Previous change</a>")) << bytes;
  EXPECT_TRUE(contains(bytes, "offset=0x3000&amp;as=hex\">Next change</a>")) << bytes;
}

TEST_F(Web, ThePastTheEndOfASmallerVersionHasNoBytes) {
  SKIP_WITHOUT_SERVER();
  must({"import", store_, "grown", file("before", std::string(kPageBytes, 'a')), "--snapshot",
        "g1"});
  must({"import", store_, "grown", file("after", std::string(2 * kPageBytes, 'a')), "--snapshot",
        "g2"});
  const std::string page = body("diff?a=g1&b=g2");
  EXPECT_TRUE(contains(page, "- past the end")) << page;
  EXPECT_TRUE(contains(page, "+ <mark>61</mark>")) << page;
}

TEST_F(Web, AByteLeadsToTheVersionThatChangedIt) {
  SKIP_WITHOUT_SERVER();
  const std::string changed = body("blame?version=v2&offset=0x1388");
  EXPECT_TRUE(contains(changed, "changed in <a href=\"version?name=v2\">")) << changed;
  EXPECT_TRUE(contains(changed, "blame?version=v1&amp;offset=0x1388&amp;length=1\">the one before"))
      << changed;
  EXPECT_TRUE(
      contains(body("blame?version=v2&offset=0"), "not changed since <a href=\"version?name=v1"));
  const std::string line = body("blame?version=main&offset=0x1380&length=16");
  EXPECT_EQ(parts_after(line, "<li>").size(), 2U) << line;  // 8 bytes of v1, 8 of v2
  for (const char* bad :
       {"blame?version=v2&offset=0x8000", "blame?version=v2", "blame?version=v2&offset=0&length=0",
        "blame?version=v2&offset=0&length=1M"})
    EXPECT_EQ(page(bad).status, 400) << bad;
}

TEST_F(Web, AVersionIsDownloadedAndItsRestoreCommandIsShown) {
  SKIP_WITHOUT_SERVER();
  const std::string content = noise(700, 7) + "and a part of a page";
  must({"import", store_, "file", file("content", content), "--snapshot", "é"});
  const Answer answer = page("download?version=%C3%A9");
  EXPECT_EQ(answer.status, 200);
  EXPECT_TRUE(answer.body == content) << answer.body.size();
  EXPECT_TRUE(contains(answer.head, "attachment; filename*=UTF-8''%C3%A9")) << answer.head;
  EXPECT_TRUE(contains(answer.head, "nosniff")) << answer.head;
  EXPECT_EQ(page("download?version=gone").status, 404);
  EXPECT_TRUE(contains(body("version?name=v1"), "value=\"vellum restore " + store_ + " v1 FILE\""));
}

TEST_F(Web, AVersionHasTheSizeOfItsFile) {
  must({"import", store_, "file", file("f", std::string(5000, 'x')), "--snapshot", "odd"});
  const std::string odd = body("version?name=odd"), even = body("version?name=v1");
  EXPECT_TRUE(contains(odd, "4.9 KiB (5000 bytes)")) << odd;
  EXPECT_TRUE(contains(odd, "8.0 KiB (8192 bytes)")) << "of the region: " << odd;
  EXPECT_TRUE(contains(even, "32.0 KiB (32768 bytes)")) << even;
}

TEST_F(Web, LineBreaksOfAMessageAreShown) {
  SKIP_WITHOUT_SERVER();
  must({"snapshot", store_, "lines", "v1", "-m", "one\ntwo <b>\nthree"});
  EXPECT_TRUE(contains(body("version?name=lines"), "<td>one<br>two &lt;b&gt;<br>three</td>"));
  EXPECT_TRUE(contains(body(""), ">lines</a> <span>one ...</span>"));
}

TEST_F(Web, TheHeatHasALegendAnAxisAndLinks) {
  SKIP_WITHOUT_SERVER();
  const std::string heat = body("heat");
  EXPECT_TRUE(contains(heat, ">below 1 %</text>")) << heat;
  EXPECT_TRUE(contains(heat, ">0x0</text>")) << heat;
  EXPECT_TRUE(contains(heat, "<a href=\"diff?a=v1&amp;b=v2\"><text")) << heat;
  EXPECT_TRUE(contains(heat, "<a href=\"diff?a=v1&amp;b=v2&amp;from=0x3000\" tabindex")) << heat;
}

TEST_F(Web, RequestsWithoutTheTokenAreRefused) {
  SKIP_WITHOUT_SERVER();
  std::string wrong = token_;
  wrong.back() = wrong.back() == '0' ? '1' : '0';
  for (const std::string& path :
       {std::string("/"), "/" + wrong + "/", "/" + token_.substr(1) + "/", "/" + token_,
        "/" + token_ + "0/", std::string("//"), "/" + wrong + "/style.css"}) {
    const Answer answer = ask(path, own_host());
    EXPECT_EQ(answer.status, 404) << path;
    EXPECT_FALSE(contains(answer.body, "v1")) << path;
  }
}

TEST_F(Web, AnotherHostsNameIsRefused) {
  SKIP_WITHOUT_SERVER();
  const std::string path = "/" + token_ + "/", port = ":" + std::to_string(port_);
  for (const std::string& host :
       {std::string(""), "attacker.example" + port, std::string("127.0.0.1"),
        std::string("localhost:1"), "127.0.0.1.attacker.example" + port})
    EXPECT_NE(ask(path, host).status, 200) << host;
  EXPECT_EQ(ask(path, "localhost" + port).status, 200);
  EXPECT_EQ(ask(path, own_host(), "POST").status, 405);
  EXPECT_EQ(ask(path, own_host(), "HEAD").status, 200);
}

TEST_F(Web, MarkupInNamesAndMessagesIsEscaped) {
  SKIP_WITHOUT_SERVER();
  const std::string path = "version?name=%3Cscript%3Ealert(2)%3C/script%3E";
  for (const std::string& markup : {body(""), body("version?name=escaped"), page(path).body}) {
    EXPECT_FALSE(contains(markup, "<script")) << markup;
    EXPECT_TRUE(contains(markup, "&lt;script&gt;")) << markup;
  }
  const std::string heat = body("heat?versions=");
  EXPECT_FALSE(contains(heat, "http://") && !contains(heat, "www.w3.org")) << heat;
  const Answer answer = page("");
  EXPECT_TRUE(contains(answer.head, "default-src 'none'")) << answer.head;
  EXPECT_TRUE(contains(answer.head, "no-referrer"));
  EXPECT_TRUE(contains(answer.head, "no-store"));
}

TEST_F(Web, TheServerListensOnlyOnTheLoopbackAndEndsOnASignal) {
  SKIP_WITHOUT_SERVER();
  EXPECT_FALSE(exchange("GET / HTTP/1.0\r\n\r\n").empty());
  bool is_loopback = false;
  for (const std::string& line : lines_of(read_file("/proc/net/tcp"))) {
    char port[8];
    std::snprintf(port, sizeof port, ":%04X", static_cast<unsigned>(port_));
    if (!contains(line, std::string(port) + " 00000000:0000 0A")) continue;
    EXPECT_TRUE(contains(line, "0100007F" + std::string(port))) << line;
    is_loopback = true;
  }
  EXPECT_TRUE(is_loopback);
  const int status = end();
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(exchange("GET / HTTP/1.0\r\n\r\n"), "");
}

TEST_F(Web, TheServerHandlesManyAndIdleClients) {
  SKIP_WITHOUT_SERVER();
  std::vector<int> silent;
  for (int i = 0; i < 20; ++i) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port_);
    EXPECT_EQ(::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    silent.push_back(fd);
  }
  EXPECT_EQ(page("").status, 200);
  for (const int fd : silent) ::close(fd);
  EXPECT_NE(ask("/" + std::string(100'000, 'a'), own_host()).status, 200);
  EXPECT_EQ(page("").status, 200) << "a request that is too long does no harm";
}

// tests/cli/browser/check_pages.py: at two widths and in two schemes, no page is wider than its
// window, every text has a contrast of 4.5:1, and the keyboard alone compares two versions.
TEST_F(Web, ABrowserShowsThePagesAtTwoWidths) {
  SKIP_WITHOUT_SERVER();
  for (const char* program : {"chromium", "python3"})
    if (run_program({program, "--version"}).status != 0) GTEST_SKIP() << "no " << program;
  const std::string long_text(150, 'm');
  must({"snapshot", store_, "a-name-of-" + long_text, "v2", "-m", long_text + " " + long_text});
  must({"branch", store_, "side", "v1"});
  const Result result =
      run_program({"python3", std::string(VELLUM_SOURCE_DIR) + "/tests/cli/browser/check_pages.py",
                   "chromium", url_, directory_.string(), "", "?from=v2", "sizes", "heat",
                   "version?name=v2", "diff?a=v1&b=v2", "bytes?version=v2&against=v1&offset=0x1380",
                   "blame?version=v2&offset=0x1380&length=16", "version?name=gone"});
  EXPECT_EQ(result.status, 0) << result.out << result.err;
  for (const char* shot : {"0-390-light.png", "0-1280-dark.png", "3-390-light.png"})
    EXPECT_GT(read_file(path(shot)).size(), 5000U) << shot;
}

}  // namespace
}  // namespace vellum::cli_test

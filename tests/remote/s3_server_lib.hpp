// An S3 server in the test's own process, on a port of the loopback, with faults on request.
//
// It keeps objects in memory, checks every signature and the hash of every body, and implements the
// requests that Vellum uses: GET with and without a range, PUT with and without If-None-Match,
// DELETE, DeleteObjects, and ListObjectsV2 in pages. A thread serves each connection.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "remote/s3/s3_engine.hpp"

namespace vellum::remote::test {

struct S3Request {
  std::uint64_t number = 0;  // 1 for the first request
  std::string method, target, path;
  std::map<std::string, std::string> query, headers;  // names of headers in lower case
  std::string body;
  std::string key;  // without bucket
};

enum class Fault {
  none,
  reset_before,  // closes the connection before the work
  lost_reply,    // closes the connection after the work
  error_500,
  error_503,     // "SlowDown"
  cut_body,      // half of the reply
  flipped_body,  // a bit of the reply
  twice,         // does the work twice; the reply is the second one
  late,          // a pause of 20 ms
  wrong_clock,   // reports a skewed request time, and its own time
};

class S3Server {
 public:
  S3Server();
  ~S3Server();
  S3Server(const S3Server&) = delete;
  S3Server& operator=(const S3Server&) = delete;

  // Options of an engine for this server, with short pauses.
  S3Options options(const std::string& prefix = "pre/fix") const;
  std::string endpoint() const;

  struct Answer {
    int status = 200;
    std::string body;
    std::string headers;  // each with its end of line
  };
  // Replaces the server's reply; it may wait. Set it while no request is active.
  std::function<std::optional<Answer>(const S3Request&)> answer;
  // Called for each request. Set it while no request is active.
  std::function<Fault(const S3Request&)> fault;
  // Like some servers: check whether the object exists, wait, and then write it.
  std::atomic<bool> conditional_writes_race{false};
  std::atomic<std::size_t> most_listed{1000};  // by one reply
  std::atomic<bool> deletes_many{true};        // false: 405 for DeleteObjects
  // DeleteObjects reports an error for this key and keeps it. Set it while no request is active.
  std::string undeletable;

  std::uint64_t requests() const { return requests_.load(); }
  std::map<std::string, std::string> objects() const;  // by key in the bucket
  void set(const std::string& key, const std::string& body);
  void erase(const std::string& key);

 private:
  using Reply = Answer;
  void accept_all();
  void serve(int connection);
  bool serve_one(int connection, std::string& buffer);
  bool send_reply(int connection, const S3Request& request, Fault fault, Reply reply);
  Reply handle(const S3Request& request);
  Reply get(const S3Request& request);
  Reply put(const S3Request& request);
  Reply list(const S3Request& request);
  Reply delete_many(const S3Request& request);
  std::string signature_problem(const S3Request& request) const;

  int listener_ = -1;
  int port_ = 0;
  std::atomic<std::uint64_t> requests_{0};
  mutable std::mutex mutex_;  // guards the members below
  std::map<std::string, std::string> objects_;
  std::vector<int> connections_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
  std::thread acceptor_;
};

}  // namespace vellum::remote::test

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace xylem {

struct HttpOptions {
  // Attempts after the first of a request that failed in a way that may pass: no connection, a
  // timeout, a cut body, status 408, 429 or 5xx. Waits of backoff_ms, doubled each time, or as long
  // as the server's Retry-After says (at most a minute).
  int retries = 5;
  std::int64_t backoff_ms = 200;
  std::int64_t connect_timeout_ms = 10000;
  std::int64_t stall_timeout_ms = 30000;  // without a byte
  // Files are read and kept in blocks.
  std::uint64_t block_bytes = std::uint64_t{1} << 20;
  std::uint64_t memory_bytes = std::uint64_t{64} << 20;  // blocks kept in memory
  // Where blocks are kept between runs; empty: nowhere. Any number of processes may share it, and
  // it may be removed at any time. Only files that the server gives an ETag or a time are kept.
  std::string cache_directory;
  std::vector<std::string> headers;  // "Authorization: Bearer ..."

  // The defaults, with the cache directory that the variable XYLEM_HTTP_CACHE names, and the
  // backoff_ms of XYLEM_HTTP_BACKOFF_MS.
  static HttpOptions from_environment();
};

bool is_http_address(std::string_view text);

// A file behind an http:// or https:// address, read by ranges (RFC 9110, section 14). From a
// server that knows no ranges the whole file is fetched once, to a temporary file. Redirections are
// followed. Certificates are held against the system's, or those of CURL_CA_BUNDLE or
// SSL_CERT_FILE. EnvironmentError for what the network or the server fails at, and if the file
// changes while it is read. Thread-safe; transfers of several threads run at the same time. Needs
// libcurl 7.85 or newer when the first file is opened.
class HttpFile {
 public:
  explicit HttpFile(std::string address, HttpOptions options = HttpOptions::from_environment());
  ~HttpFile();
  HttpFile(const HttpFile&) = delete;
  HttpFile& operator=(const HttpFile&) = delete;

  const std::string& address() const;
  std::uint64_t size() const;
  // Fills `out` from `offset`; EnvironmentError if the file ends before.
  void read(std::uint64_t offset, std::span<std::byte> out) const;

  struct Counts {
    std::int64_t requests = 0, retries = 0, bytes = 0;  // of the network
    std::int64_t memory_hits = 0, disk_hits = 0;        // blocks
  };
  Counts counts() const;

 private:
  struct State;
  std::unique_ptr<State> s_;
};

}  // namespace xylem

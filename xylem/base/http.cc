#include "xylem/base/http.h"

#include <curl/curl.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <optional>

#include "xylem/base/bytes.h"
#include "xylem/base/error.h"
#include "xylem/base/file.h"

namespace xylem {
namespace {

// ---- libcurl, loaded when it is first needed: it brings thirty libraries with it, which a program
// that reads local files need not start with

struct Curl {
  decltype(&curl_global_init) global_init = nullptr;
  decltype(&curl_easy_init) easy_init = nullptr;
  decltype(&curl_easy_cleanup) easy_cleanup = nullptr;
  decltype(&curl_easy_reset) easy_reset = nullptr;
  decltype(&curl_easy_setopt) easy_setopt = nullptr;
  decltype(&curl_easy_perform) easy_perform = nullptr;
  decltype(&curl_easy_getinfo) easy_getinfo = nullptr;
  decltype(&curl_easy_strerror) easy_strerror = nullptr;
  decltype(&curl_slist_append) slist_append = nullptr;
  decltype(&curl_slist_free_all) slist_free_all = nullptr;
  std::string fault;
};

const Curl& curl() {
  static const Curl* loaded = [] {
    auto* c = new Curl;
    void* handle = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      const char* why = dlerror();
      c->fault = why != nullptr ? why : "unknown";
      return c;
    }
    const auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, name));
      if (function == nullptr) c->fault = fmt::format("it has no {}", name);
    };
    find(c->global_init, "curl_global_init");
    find(c->easy_init, "curl_easy_init");
    find(c->easy_cleanup, "curl_easy_cleanup");
    find(c->easy_reset, "curl_easy_reset");
    find(c->easy_setopt, "curl_easy_setopt");
    find(c->easy_perform, "curl_easy_perform");
    find(c->easy_getinfo, "curl_easy_getinfo");
    find(c->easy_strerror, "curl_easy_strerror");
    find(c->slist_append, "curl_slist_append");
    find(c->slist_free_all, "curl_slist_free_all");
    if (c->fault.empty() && c->global_init(CURL_GLOBAL_DEFAULT) != 0)
      c->fault = "it cannot be initialised";
    return c;
  }();
  if (!loaded->fault.empty())
    throw EnvironmentError(ErrorParts{"open an http address", "libcurl.so.4 must load",
                                      loaded->fault, "Install the Debian package libcurl4"});
  return *loaded;
}

// ---- one request

struct Range {
  std::uint64_t begin = 0, end = 0;
};

struct Response {
  long status = 0;
  std::string body;
  std::string etag, modified;
  std::optional<Range> range;          // of Content-Range
  std::optional<std::uint64_t> total;  // of Content-Range or Content-Length
  std::int64_t retry_after_s = -1;
  // Where the body goes if it is no range: the whole file, as the server gives it.
  AtomicFile* file = nullptr;
  std::uint64_t most = 0;  // bytes of a range that are wanted
  std::string problem;
  bool passing = false;  // the problem may pass

  void clear() {
    Response fresh;
    fresh.file = file;
    fresh.most = most;
    *this = std::move(fresh);
  }
};

std::optional<std::uint64_t> number(std::string_view s) {
  std::uint64_t v = 0;
  const auto r = std::from_chars(s.data(), s.data() + s.size(), v);
  if (r.ec != std::errc() || r.ptr != s.data() + s.size()) return std::nullopt;
  return v;
}

// "bytes 0-99/1234", "bytes */1234"
void parse_content_range(std::string_view v, Response& r) {
  if (!v.starts_with("bytes ")) return;
  v.remove_prefix(6);
  const std::size_t slash = v.find('/');
  if (slash == v.npos) return;
  r.total = number(v.substr(slash + 1));
  v = v.substr(0, slash);
  const std::size_t dash = v.find('-');
  if (dash == v.npos) return;
  const auto a = number(v.substr(0, dash)), b = number(v.substr(dash + 1));
  if (a && b && *a <= *b && *b < UINT64_MAX) r.range = Range{*a, *b + 1};
}

std::size_t on_header(char* data, std::size_t size, std::size_t n, void* to) {
  auto& r = *static_cast<Response*>(to);
  const std::string_view line(data, size * n);
  if (line.starts_with("HTTP/")) {  // of a redirection, or what follows it
    r.clear();
    const std::size_t space = line.find(' ');
    if (space != line.npos) r.status = std::atol(data + space);
    return size * n;
  }
  const std::size_t colon = line.find(':');
  if (colon == line.npos) return size * n;
  std::string_view value = line.substr(colon + 1);
  while (!value.empty() && (value.front() == ' ' || value.front() == '\t')) value.remove_prefix(1);
  while (!value.empty() && (value.back() == '\r' || value.back() == '\n' || value.back() == ' '))
    value.remove_suffix(1);
  const auto is = [&](std::string_view name) {
    return colon == name.size() && ::strncasecmp(data, name.data(), colon) == 0;
  };
  if (is("etag")) r.etag = value;
  if (is("last-modified")) r.modified = value;
  if (is("content-range")) parse_content_range(value, r);
  if (is("content-length") && r.status == 200) r.total = number(value);
  if (is("retry-after"))
    if (const auto s = number(value))
      r.retry_after_s = static_cast<std::int64_t>(std::min<std::uint64_t>(*s, 60));
  return size * n;
}

std::size_t on_body(char* data, std::size_t size, std::size_t n, void* to) {
  auto& r = *static_cast<Response*>(to);
  n *= size;
  if (r.status == 200 && r.file != nullptr) {
    try {
      r.file->write(std::string_view(data, n));
    } catch (const Error& e) {
      r.problem = e.message();
      return 0;
    }
    return n;
  }
  // Of other answers (a page that explains an error) a little is enough.
  const std::uint64_t most = r.status == 206 ? r.most : 200;
  if (r.status == 206 && r.body.size() + n > most) {
    r.problem = fmt::format("more than the {} bytes that were asked for", most);
    return 0;
  }
  r.body.append(data,
                std::min<std::uint64_t>(n, most - std::min<std::uint64_t>(most, r.body.size())));
  return n;
}

void sleep_ms(std::int64_t ms) {
  timespec t{ms / 1000, ms % 1000 * 1000000};
  while (::nanosleep(&t, &t) != 0) {
  }
}

bool may_pass(CURLcode code) {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_PARTIAL_FILE:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
    case CURLE_SSL_CONNECT_ERROR: return true;
    default: return false;
  }
}

struct Block {
  std::uint64_t index;
  std::shared_ptr<const std::string> data;
};

}  // namespace

HttpOptions HttpOptions::from_environment() {
  HttpOptions o;
  if (const char* directory = std::getenv("XYLEM_HTTP_CACHE")) o.cache_directory = directory;
  if (const char* ms = std::getenv("XYLEM_HTTP_BACKOFF_MS"))
    if (const auto n = number(ms))
      o.backoff_ms = static_cast<std::int64_t>(std::min<std::uint64_t>(*n, 60000));
  return o;
}

bool is_http_address(std::string_view text) {
  const auto starts = [&](std::string_view scheme) {
    return text.size() > scheme.size() &&
           ::strncasecmp(text.data(), scheme.data(), scheme.size()) == 0;
  };
  return starts("http://") || starts("https://");
}

struct HttpFile::State {
  std::string address;
  HttpOptions options;
  std::uint64_t size = 0;
  std::string etag, modified;
  std::unique_ptr<RandomAccessFile> whole;  // from servers without ranges
  std::string folder;                       // of the blocks on disk; empty: none

  std::mutex mutex;
  std::vector<CURL*> idle;  // connections
  std::list<Block> blocks;  // the last used first
  std::map<std::uint64_t, std::list<Block>::iterator> by_index;
  Counts counts;

  ~State() {
    for (CURL* c : idle) curl().easy_cleanup(c);
  }

  [[noreturn]] void fail(std::string_view given, std::string_view advice) const {
    throw EnvironmentError(
        ErrorParts{"read " + address, "the server must give the file", given, advice});
  }

  // One request without another try.
  Response attempt(const std::optional<Range>& range, AtomicFile* file) {
    const Curl& c = curl();
    CURL* easy = nullptr;
    {
      const std::lock_guard lock(mutex);
      ++counts.requests;
      if (!idle.empty()) {
        easy = idle.back();
        idle.pop_back();
      }
    }
    if (easy == nullptr) easy = c.easy_init();
    if (easy == nullptr) throw std::bad_alloc();
    Response r;
    r.file = file;
    r.most = range ? range->end - range->begin : 0;
    c.easy_setopt(easy, CURLOPT_URL, address.c_str());
    c.easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    c.easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 1L);
    c.easy_setopt(easy, CURLOPT_MAXREDIRS, 10L);
    c.easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    c.easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
    c.easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(options.connect_timeout_ms));
    c.easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
    c.easy_setopt(easy, CURLOPT_LOW_SPEED_TIME,
                  static_cast<long>(std::max<std::int64_t>(1, options.stall_timeout_ms / 1000)));
    c.easy_setopt(easy, CURLOPT_USERAGENT, "xylem");
    for (const char* name : {"SSL_CERT_FILE", "CURL_CA_BUNDLE"})
      if (const char* path = std::getenv(name); path != nullptr && *path != '\0')
        c.easy_setopt(easy, CURLOPT_CAINFO, path);
    c.easy_setopt(easy, CURLOPT_HEADERFUNCTION, &on_header);
    c.easy_setopt(easy, CURLOPT_HEADERDATA, &r);
    c.easy_setopt(easy, CURLOPT_WRITEFUNCTION, &on_body);
    c.easy_setopt(easy, CURLOPT_WRITEDATA, &r);
    char words[CURL_ERROR_SIZE] = "";
    c.easy_setopt(easy, CURLOPT_ERRORBUFFER, words);
    const std::string text =
        range ? fmt::format("{}-{}", range->begin, range->end - 1) : std::string();
    if (range) c.easy_setopt(easy, CURLOPT_RANGE, text.c_str());
    curl_slist* list = nullptr;
    for (const std::string& h : options.headers) list = c.slist_append(list, h.c_str());
    if (list != nullptr) c.easy_setopt(easy, CURLOPT_HTTPHEADER, list);
    const CURLcode code = c.easy_perform(easy);
    if (list != nullptr) c.slist_free_all(list);
    c.easy_reset(easy);  // options go, the connection stays
    {
      const std::lock_guard lock(mutex);
      idle.push_back(easy);
      counts.bytes += static_cast<std::int64_t>(r.body.size());
    }
    if (code != CURLE_OK) {
      if (r.problem.empty()) r.problem = *words != '\0' ? words : c.easy_strerror(code);
      r.passing = may_pass(code);
    } else if (r.status == 206 && range) {
      if (!r.range || !r.total || r.range->begin != range->begin ||
          r.range->end - r.range->begin != r.body.size())
        r.problem = "an answer that does not say which bytes it holds";
    } else if (r.status == 416 && r.total) {
      // Nothing there: the file is shorter.
    } else if (r.status != 200) {
      r.problem = fmt::format("status {}{}", r.status,
                              r.body.empty() ? "" : fmt::format(" ({:.80})", r.body));
      r.passing = r.status == 408 || r.status == 429 || r.status >= 500;
    }
    return r;
  }

  // `make_file` gives a fresh file for the body of an answer without ranges.
  Response request(const std::optional<Range>& range,
                   const std::function<AtomicFile*()>& make_file = {}) {
    std::int64_t wait = std::max<std::int64_t>(1, options.backoff_ms);
    for (int tried = 0;; ++tried) {
      Response r = attempt(range, make_file ? make_file() : nullptr);
      if (r.problem.empty()) return r;
      if (!r.passing || tried >= options.retries)
        fail(fmt::format("{}{}", r.problem,
                         tried > 0 ? fmt::format(", after {} attempts", tried + 1) : ""),
             r.status == 401 || r.status == 403
                 ? "Give the request what the server wants for authorisation"
             : r.status == 404 ? "Check the address"
                               : "Check the address and the network, and try again");
      sleep_ms(r.retry_after_s >= 0 ? r.retry_after_s * 1000 : wait);
      wait = std::min<std::int64_t>(wait * 2, 60000);
      const std::lock_guard lock(mutex);
      ++counts.retries;
    }
  }

  void check_same(const Response& r) const {
    if ((r.total && *r.total != size) || r.etag != etag || r.modified != modified)
      fail(fmt::format("another file than before ({} bytes, ETag {}; then {} bytes, ETag {})", size,
                       etag, r.total.value_or(0), r.etag),
           "It was replaced while it was read: read it again");
  }

  // The first request tells the size and whether there are ranges, and brings the first block.
  void open() {
    if (options.block_bytes == 0) options.block_bytes = HttpOptions().block_bytes;
    std::unique_ptr<AtomicFile> file;
    std::string directory;
    const auto forget = [&] {
      file.reset();
      if (!directory.empty()) remove_tree(directory);
      directory.clear();
    };
    try {
      Response r = request(Range{0, options.block_bytes}, [&] {
        forget();
        directory = make_temporary_directory("xylem-http");
        file = std::make_unique<AtomicFile>(join_path(directory, "file"));
        return file.get();
      });
      etag = r.etag;
      modified = r.modified;
      if (r.status == 200) {
        size = file->size();
        if (r.total && *r.total != size)
          fail(fmt::format("{} of {} bytes", size, *r.total), "Try again");
        file->commit();
        whole = std::make_unique<RandomAccessFile>(file->path());  // lives on without its name
        const std::lock_guard lock(mutex);
        counts.bytes += static_cast<std::int64_t>(size);
      } else {
        size = r.total.value_or(0);
        open_folder();
        if (r.status == 206) keep(0, std::make_shared<const std::string>(std::move(r.body)), true);
      }
    } catch (...) {
      forget();
      throw;
    }
    forget();
  }

  // ---- blocks

  std::uint64_t block_size(std::uint64_t index) const {
    const std::uint64_t begin = index * options.block_bytes;
    return std::min(options.block_bytes, size - begin);
  }

  void open_folder() {
    if (options.cache_directory.empty() || (etag.empty() && modified.empty())) return;
    const std::string identity =
        fmt::format("{}\n{}\n{}\n{}\n{}", address, etag, modified, size, options.block_bytes);
    folder = join_path(options.cache_directory,
                       fmt::format("{:016x}{:016x}", hash64(identity), hash64(identity, 1)));
    make_directories(folder);
  }
  std::string block_path(std::uint64_t index) const {
    return join_path(folder, fmt::format("{:08x}", index));
  }

  // Blocks on disk end with their checksum, so that a damaged one is fetched again.
  std::shared_ptr<const std::string> from_disk(std::uint64_t index) {
    if (folder.empty() || !path_exists(block_path(index))) return nullptr;
    try {
      std::string data = read_file(block_path(index));
      if (data.size() != block_size(index) + 4) return nullptr;
      std::uint32_t crc;
      std::memcpy(&crc, data.data() + data.size() - 4, 4);
      data.resize(data.size() - 4);
      if (crc != crc32c(data)) return nullptr;
      return std::make_shared<const std::string>(std::move(data));
    } catch (const EnvironmentError&) {
      return nullptr;
    }
  }

  void keep(std::uint64_t index, const std::shared_ptr<const std::string>& data, bool fetched) {
    if (fetched && !folder.empty()) {
      try {
        const std::uint32_t crc = crc32c(*data);
        std::string with = *data;
        with.append(reinterpret_cast<const char*>(&crc), 4);
        write_file_atomic(block_path(index), with);
      } catch (const EnvironmentError&) {
        // A full or vanished cache is no reason to stop.
      }
    }
    const std::lock_guard lock(mutex);
    if (by_index.contains(index)) return;
    blocks.push_front({index, data});
    by_index[index] = blocks.begin();
    const std::uint64_t most =
        std::max<std::uint64_t>(1, options.memory_bytes / options.block_bytes);
    while (blocks.size() > most) {
      by_index.erase(blocks.back().index);
      blocks.pop_back();
    }
  }

  std::shared_ptr<const std::string> find(std::uint64_t index) {
    {
      const std::lock_guard lock(mutex);
      if (const auto i = by_index.find(index); i != by_index.end()) {
        blocks.splice(blocks.begin(), blocks, i->second);
        ++counts.memory_hits;
        return i->second->data;
      }
    }
    auto data = from_disk(index);
    if (data == nullptr) return nullptr;
    keep(index, data, false);
    const std::lock_guard lock(mutex);
    ++counts.disk_hits;
    return data;
  }

  // Blocks first … last in one request.
  std::vector<std::shared_ptr<const std::string>> fetch(std::uint64_t first, std::uint64_t last) {
    const Range range{first * options.block_bytes, last * options.block_bytes + block_size(last)};
    const Response r = request(range);
    check_same(r);
    if (r.status != 206 || r.body.size() != range.end - range.begin)
      fail(fmt::format("status {} and {} bytes for {} bytes at {}", r.status, r.body.size(),
                       range.end - range.begin, range.begin),
           "It was replaced while it was read: read it again");
    std::vector<std::shared_ptr<const std::string>> out;
    for (std::uint64_t b = first; b <= last; ++b) {
      out.push_back(std::make_shared<const std::string>(
          r.body.substr((b - first) * options.block_bytes, block_size(b))));
      keep(b, out.back(), true);
    }
    return out;
  }

  void read(std::uint64_t offset, std::span<std::byte> out) {
    if (offset > size || out.size() > size - offset)
      throw EnvironmentError(ErrorParts{
          "read " + address, fmt::format("{} bytes at {}", out.size(), offset),
          fmt::format("the file has {}", size), "The file ends before what it announces"});
    if (out.empty()) return;
    if (whole) return whole->read(offset, out);
    const std::uint64_t first = offset / options.block_bytes;
    const std::uint64_t last = (offset + out.size() - 1) / options.block_bytes;
    const auto copy = [&](std::uint64_t index, const std::string& data) {
      const std::uint64_t begin = index * options.block_bytes;
      const std::uint64_t from = std::max(begin, offset);
      const std::uint64_t to = std::min(begin + data.size(), offset + out.size());
      std::memcpy(out.data() + (from - offset), data.data() + (from - begin), to - from);
    };
    // Blocks that are missing side by side come together, at most 16 MiB at a time.
    const std::uint64_t most =
        std::max<std::uint64_t>(1, (std::uint64_t{16} << 20) / options.block_bytes);
    for (std::uint64_t b = first; b <= last;) {
      if (const auto data = find(b)) {
        copy(b++, *data);
        continue;
      }
      std::uint64_t end = b + 1;
      std::shared_ptr<const std::string> next;
      while (end <= last && end - b < most && !(next = find(end))) ++end;
      const auto fetched = fetch(b, end - 1);
      for (const auto& data : fetched) copy(b++, *data);
      if (next) copy(b++, *next);
    }
  }
};

HttpFile::HttpFile(std::string address, HttpOptions options) : s_(std::make_unique<State>()) {
  if (!is_http_address(address))
    throw_user_error({"read " + address, "an address that begins with http:// or https://",
                      "another one", "Copy the file here, or serve it over HTTP"});
  s_->address = std::move(address);
  s_->options = std::move(options);
  s_->open();
}
HttpFile::~HttpFile() = default;
const std::string& HttpFile::address() const { return s_->address; }
std::uint64_t HttpFile::size() const { return s_->size; }
void HttpFile::read(std::uint64_t offset, std::span<std::byte> out) const { s_->read(offset, out); }
HttpFile::Counts HttpFile::counts() const {
  const std::lock_guard lock(s_->mutex);
  return s_->counts;
}

}  // namespace xylem

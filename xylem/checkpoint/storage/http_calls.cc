#include "xylem/checkpoint/storage/http_calls.h"

#include <curl/curl.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <type_traits>

#include "xylem/base/error.h"

namespace xylem::checkpoint {
namespace {

// Of a listing, and of the answer to a range that a server ignored.
constexpr std::size_t kMaxPage = std::size_t{16} << 20;

// libcurl, loaded when it is first needed: it brings many libraries with it, which a program that
// reads only files should not load.
struct Curl {
  decltype(&curl_global_init) global_init = nullptr;
  decltype(&curl_easy_init) easy_init = nullptr;
  decltype(&curl_easy_cleanup) easy_cleanup = nullptr;
  decltype(&curl_easy_reset) easy_reset = nullptr;
  decltype(&curl_easy_setopt) easy_setopt = nullptr;
  decltype(&curl_easy_perform) easy_perform = nullptr;
  decltype(&curl_easy_getinfo) easy_getinfo = nullptr;

  Curl() {
    void* library = ::dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
    const auto load = [&](auto& f, const char* name) {
      if (library != nullptr)
        f = reinterpret_cast<std::remove_reference_t<decltype(f)>>(::dlsym(library, name));
      if (f == nullptr)
        throw EnvironmentError(ErrorParts{"read over HTTP", "the library libcurl.so.4",
                                          "it cannot be loaded", "Install libcurl4"});
    };
    load(global_init, "curl_global_init");
    load(easy_init, "curl_easy_init");
    load(easy_cleanup, "curl_easy_cleanup");
    load(easy_reset, "curl_easy_reset");
    load(easy_setopt, "curl_easy_setopt");
    load(easy_perform, "curl_easy_perform");
    load(easy_getinfo, "curl_easy_getinfo");
    global_init(CURL_GLOBAL_DEFAULT);
  }
};
const Curl& curl() {
  static const Curl library;
  return library;
}

std::string encode_url(std::string_view path) {
  std::string out;
  for (const char c : path) {
    const auto u = static_cast<unsigned char>(c);
    if (std::isalnum(u) != 0 || std::strchr("-._~/:@!$&'()*+,;=[]", c) != nullptr)
      out += c;
    else
      out += fmt::format("%{:02X}", u);
  }
  return out;
}

std::string decode_url(std::string_view s) {
  std::string out;
  for (std::size_t i = 0; i < s.size(); ++i) {
    unsigned v = 0;
    if (s[i] == '%' && i + 2 < s.size() &&
        std::from_chars(s.data() + i + 1, s.data() + i + 3, v, 16).ptr == s.data() + i + 3) {
      out += static_cast<char>(v);
      i += 2;
    } else {
      out += s[i];
    }
  }
  return out;
}

struct Answer {
  int error = 0;  // a negative errno, if there was no answer
  long code = 0;
  std::uint64_t size = 0;  // as stated
  bool html = false;
};

struct Sink {
  std::string* page = nullptr;
  std::span<std::byte> range;
  std::size_t have = 0;
};

std::size_t take(char* data, std::size_t, std::size_t n, void* user) {
  auto& sink = *static_cast<Sink*>(user);
  if (sink.page != nullptr) {
    if (sink.page->size() + n > kMaxPage) return 0;
    sink.page->append(data, n);
  } else {
    // More than was asked for: the server does not know ranges.
    if (n > sink.range.size() - sink.have) return 0;
    std::memcpy(sink.range.data() + sink.have, data, n);
    sink.have += n;
  }
  return n;
}

class HttpCalls final : public SystemCalls {
 public:
  explicit HttpCalls(const HttpOptions& options) : options_(options) { curl(); }

  int open(const std::string& path, OpenMode mode) override {
    if (mode != OpenMode::kRead) return -EROFS;
    FileStatus s;
    if (const int r = status(path, true, s); r < 0) return r;
    if (s.directory) return -EISDIR;
    const std::lock_guard lock(mutex_);
    files_[next_] = {path, s};
    return next_++;
  }
  int close(int file) override {
    const std::lock_guard lock(mutex_);
    return files_.erase(file) == 1 ? 0 : -EBADF;
  }

  std::int64_t read(int file, std::span<const MutablePiece> pieces, std::uint64_t offset) override {
    File f;
    {
      const std::lock_guard lock(mutex_);
      const auto it = files_.find(file);
      if (it == files_.end()) return -EBADF;
      f = it->second;
    }
    std::uint64_t wanted = 0;
    for (const MutablePiece& p : pieces) wanted += p.size;
    if (offset >= f.status.size || wanted == 0) return 0;
    wanted = std::min(wanted, f.status.size - offset);
    // One request for all pieces, straight into the only one.
    std::string held;
    std::span<std::byte> out;
    if (pieces.size() == 1) {
      out = {static_cast<std::byte*>(pieces[0].data), static_cast<std::size_t>(wanted)};
    } else {
      held.resize(static_cast<std::size_t>(wanted));
      out = std::as_writable_bytes(std::span<char>(held));
    }
    Sink sink;
    sink.range = out;
    const Answer a =
        request(f.path, false, fmt::format("{}-{}", offset, offset + wanted - 1), sink);
    if (a.error < 0) return a.error;
    if (a.code == 200 && wanted < f.status.size) return -ENOTSUP;
    if (const int e = error_of(a.code); e < 0) return e;
    std::size_t at = 0;
    if (!held.empty())
      for (const MutablePiece& p : pieces) {
        const std::size_t n = std::min(p.size, sink.have - at);
        std::memcpy(p.data, held.data() + at, n);
        at += n;
      }
    return static_cast<std::int64_t>(sink.have);
  }

  int status(int file, FileStatus& out) override {
    const std::lock_guard lock(mutex_);
    const auto it = files_.find(file);
    if (it == files_.end()) return -EBADF;
    out = it->second.status;
    return 0;
  }
  int status(const std::string& path, bool, FileStatus& out) override {
    {
      const std::lock_guard lock(mutex_);
      if (const auto it = known_.find(path); it != known_.end()) {
        out = it->second;
        return 0;
      }
      // A parent that was listed knows its children.
      const std::size_t slash = path.rfind('/');
      if (slash != std::string::npos && slash > 8) {
        const auto it = listed_.find(path.substr(0, slash));
        if (it != listed_.end()) {
          const std::string name = path.substr(slash + 1);
          if (!it->second.contains(name)) return -ENOENT;
        }
      }
    }
    FileStatus s;
    Sink none;
    std::string page;
    none.page = &page;
    Answer a;
    std::vector<DirectoryEntry> entries;
    if (path.back() != '/') a = request(path, true, "", none);
    if (a.error < 0) return a.error;
    if (a.code == 200) {
      s.regular = true;
      s.size = a.size;
    } else if (const int r = read_listing(path, entries); r == 0) {
      s.directory = true;
    } else {
      return a.code != 0 && error_of(a.code) < 0 ? error_of(a.code) : r;
    }
    const std::lock_guard lock(mutex_);
    known_[path] = s;
    out = s;
    return 0;
  }
  int list(const std::string& path, std::vector<DirectoryEntry>& out) override {
    out.clear();
    const int r = read_listing(path, out);
    if (r < 0) return r;
    const std::lock_guard lock(mutex_);
    std::set<std::string>& names = listed_[path];
    for (const DirectoryEntry& e : out) {
      names.insert(e.name);
      if (e.is_directory) known_[path + "/" + e.name].directory = true;
    }
    return 0;
  }

  std::int64_t write(int, std::span<const ConstPiece>, std::uint64_t) override { return -EROFS; }
  int sync(int) override { return -EROFS; }
  int sync_directory(const std::string&) override { return -EROFS; }
  int make_directory(const std::string&) override { return -EROFS; }
  int remove_file(const std::string&) override { return -EROFS; }
  int remove_directory(const std::string&) override { return -EROFS; }
  int rename(const std::string&, const std::string&, bool) override { return -EROFS; }
  int link(const std::string&, const std::string&) override { return -EROFS; }

 private:
  struct File {
    std::string path;
    FileStatus status;
  };

  static int error_of(long code) {
    if (code == 200 || code == 206) return 0;
    if (code == 404 || code == 410) return -ENOENT;
    if (code == 401 || code == 403) return -EACCES;
    return -EIO;
  }

  Answer request(const std::string& path, bool head, const std::string& range, Sink& sink) {
    struct Handle {
      CURL* h = curl().easy_init();
      ~Handle() { curl().easy_cleanup(h); }
    };
    thread_local Handle handle;  // keeps connections open
    CURL* h = handle.h;
    Answer a;
    for (int attempt = 0; attempt <= options_.retries; ++attempt) {
      a = {};
      sink.have = 0;
      if (sink.page != nullptr) sink.page->clear();
      curl().easy_reset(h);
      const std::string url = encode_url(path);
      curl().easy_setopt(h, CURLOPT_URL, url.c_str());
      curl().easy_setopt(h, CURLOPT_PROTOCOLS_STR, "http,https");
      curl().easy_setopt(h, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
      curl().easy_setopt(h, CURLOPT_FOLLOWLOCATION, 0L);
      curl().easy_setopt(h, CURLOPT_NOSIGNAL, 1L);
      curl().easy_setopt(h, CURLOPT_NOBODY, head ? 1L : 0L);
      if (!range.empty()) curl().easy_setopt(h, CURLOPT_RANGE, range.c_str());
      curl().easy_setopt(h, CURLOPT_WRITEFUNCTION, take);
      curl().easy_setopt(h, CURLOPT_WRITEDATA, &sink);
      curl().easy_setopt(h, CURLOPT_CONNECTTIMEOUT_MS,
                         static_cast<long>(options_.timeout_seconds * 1000));
      curl().easy_setopt(h, CURLOPT_LOW_SPEED_LIMIT, 1L);
      curl().easy_setopt(h, CURLOPT_LOW_SPEED_TIME,
                         std::max(1L, static_cast<long>(options_.timeout_seconds)));
      const CURLcode r = curl().easy_perform(h);
      curl().easy_getinfo(h, CURLINFO_RESPONSE_CODE, &a.code);
      if (r == CURLE_OK) {
        curl_off_t size = 0;
        char* type = nullptr;
        curl().easy_getinfo(h, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &size);
        curl().easy_getinfo(h, CURLINFO_CONTENT_TYPE, &type);
        if (size > 0) a.size = static_cast<std::uint64_t>(size);
        a.html = type != nullptr && std::string_view(type).starts_with("text/html");
        if (a.code < 500) return a;
        continue;
      }
      switch (r) {
        case CURLE_WRITE_ERROR: a.error = -ENOTSUP; return a;
        case CURLE_OPERATION_TIMEDOUT: a.error = -ETIMEDOUT; break;
        case CURLE_COULDNT_CONNECT: a.error = -ECONNREFUSED; break;
        case CURLE_COULDNT_RESOLVE_HOST: a.error = -EHOSTUNREACH; return a;
        case CURLE_UNSUPPORTED_PROTOCOL:
        case CURLE_URL_MALFORMAT: a.error = -EINVAL; return a;
        default: a.error = -EIO;
      }
    }
    return a;
  }

  // The names that a page of links leads to, one level below.
  int read_listing(const std::string& path, std::vector<DirectoryEntry>& out) {
    std::string page;
    Sink sink;
    sink.page = &page;
    const Answer a = request(path.back() == '/' ? path : path + "/", false, "", sink);
    if (a.error < 0) return a.error;
    if (const int e = error_of(a.code); e < 0) return e;
    if (!a.html) return -ENOTDIR;
    std::set<std::string> seen;
    for (std::size_t at = page.find("href=\""); at != std::string::npos;
         at = page.find("href=\"", at)) {
      at += 6;
      const std::size_t end = page.find('"', at);
      if (end == std::string::npos) break;
      std::string name = decode_url(std::string_view(page).substr(at, end - at));
      for (const auto& [entity, c] : {std::pair{"&amp;", "&"}, {"&#x27;", "'"}, {"&quot;", "\""}})
        for (std::size_t i = name.find(entity); i != std::string::npos;
             i = name.find(entity, i + 1))
          name.replace(i, std::strlen(entity), c);
      const bool directory = name.ends_with('/');
      if (directory) name.pop_back();
      if (name.starts_with("./")) name.erase(0, 2);
      if (name.empty() || name == "." || name == ".." || name[0] == '?' ||
          name.find('/') != std::string::npos)
        continue;
      if (seen.insert(name).second) out.push_back({name, directory});
    }
    return 0;
  }

  HttpOptions options_;
  std::mutex mutex_;
  std::map<int, File> files_;
  int next_ = 1;
  // What a checkpoint is asked for again and again; it does not change.
  std::map<std::string, FileStatus> known_;
  std::map<std::string, std::set<std::string>> listed_;
};

}  // namespace

std::shared_ptr<SystemCalls> http_calls(const HttpOptions& options) {
  return std::make_shared<HttpCalls>(options);
}

bool is_http_url(std::string_view path) {
  return path.starts_with("http://") || path.starts_with("https://");
}

}  // namespace xylem::checkpoint

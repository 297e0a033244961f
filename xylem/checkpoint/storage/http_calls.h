#pragma once

#include <memory>
#include <string_view>

#include "xylem/checkpoint/storage/system_calls.h"

namespace xylem::checkpoint {

struct HttpOptions {
  double timeout_seconds = 30;  // without any progress
  int retries = 2;              // of requests that fail for want of a connection or with 5xx
};

// Files behind http:// and https:// URLs as paths, for reading: sizes by HEAD, bytes by ranges.
// Names are plain, not percent-encoded. A directory is what answers with a page of links at its URL
// with a final slash, as web servers list directories. Servers without ranges are refused with
// -ENOTSUP; everything that writes answers -EROFS.
std::shared_ptr<SystemCalls> http_calls(const HttpOptions& options = {});

// Whether a path is such a URL.
bool is_http_url(std::string_view path);

}  // namespace xylem::checkpoint

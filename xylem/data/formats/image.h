#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "xylem/base/host_array.h"

namespace xylem::data {

// Decodes a JPEG or PNG image to u8[height, width, channels]: 1 channel (grey), 2 (grey and alpha),
// 3 (RGB), 4 (RGBA). Palettes become RGB, 16 bits become 8, CMYK becomes RGB. UserError, opened by
// `name`, for other data, damaged images, and images of more than `max_bytes` decoded bytes.
HostArray decode_image(std::string_view data, std::string_view name,
                       std::uint64_t max_bytes = std::uint64_t{256} << 20);

// "jpeg", "png", or "" for anything else.
std::string_view image_format(std::string_view data);

// PNG of u8[height, width, channels] with 1 to 4 channels.
std::string encode_png(const HostArray& image);

}  // namespace xylem::data

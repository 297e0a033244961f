#include "xylem/data/formats/image.h"

#include <fmt/format.h>
#include <png.h>
#include <stdio.h>

#include <csetjmp>
#include <cstring>
#include <memory>
#include <vector>

#include <jpeglib.h>

#include "xylem/base/error.h"

namespace xylem::data {
namespace {

[[noreturn]] void malformed(std::string_view name, std::string_view reason) {
  throw_user_error({name, "a whole JPEG or PNG image", reason, "The image is damaged"});
}

void check_size(std::string_view name, std::uint64_t width, std::uint64_t height,
                std::uint64_t channels, std::uint64_t max_bytes) {
  if (width == 0 || height == 0) malformed(name, "it has no pixels");
  if (width > max_bytes / height / channels)
    throw_user_error({name, fmt::format("at most {} decoded bytes", max_bytes),
                      fmt::format("{} x {} pixels of {} channels", width, height, channels),
                      "If the image is meant to be so, raise the limit (--max-record-bytes)"});
}

Dims dims_of(std::uint64_t height, std::uint64_t width, std::uint64_t channels) {
  return Dims{static_cast<std::int64_t>(height), static_cast<std::int64_t>(width),
              static_cast<std::int64_t>(channels)};
}

// ---- JPEG. The library reports errors by a jump: what lives across it is plain data.

struct JpegError {
  jpeg_error_mgr base;
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX];
};
void jpeg_fail(j_common_ptr info) {
  auto* error = reinterpret_cast<JpegError*>(info->err);
  info->err->format_message(info, error->message);
  std::longjmp(error->jump, 1);
}
// Warnings mean damaged data that the library papers over.
void jpeg_message(j_common_ptr info, int level) {
  if (level < 0) jpeg_fail(info);
}

struct JpegSteps {
  jpeg_decompress_struct info;
  JpegError error;
};

bool jpeg_header(JpegSteps& s, std::string_view data) {
  s.info.err = jpeg_std_error(&s.error.base);
  s.error.base.error_exit = jpeg_fail;
  s.error.base.emit_message = jpeg_message;
  if (setjmp(s.error.jump) != 0) return false;
  jpeg_create_decompress(&s.info);
  jpeg_mem_src(&s.info, reinterpret_cast<const unsigned char*>(data.data()),
               static_cast<unsigned long>(data.size()));
  jpeg_read_header(&s.info, TRUE);
  // Scans cost time, however small they are.
  if (s.info.jpeg_color_space == JCS_CMYK || s.info.jpeg_color_space == JCS_YCCK)
    s.info.out_color_space = JCS_CMYK;
  return true;
}

bool jpeg_pixels(JpegSteps& s, unsigned char* out, std::size_t row_bytes) {
  if (setjmp(s.error.jump) != 0) return false;
  jpeg_start_decompress(&s.info);
  while (s.info.output_scanline < s.info.output_height) {
    JSAMPROW row = out + s.info.output_scanline * row_bytes;
    jpeg_read_scanlines(&s.info, &row, 1);
  }
  jpeg_finish_decompress(&s.info);
  return true;
}

HostArray decode_jpeg(std::string_view data, std::string_view name, std::uint64_t max_bytes) {
  const auto steps = std::make_unique<JpegSteps>();
  std::memset(steps.get(), 0, sizeof(JpegSteps));
  struct Guard {
    jpeg_decompress_struct* info;
    ~Guard() { jpeg_destroy_decompress(info); }
  } guard{&steps->info};
  if (!jpeg_header(*steps, data)) malformed(name, steps->error.message);
  jpeg_decompress_struct& info = steps->info;
  const bool cmyk = info.out_color_space == JCS_CMYK;
  const std::size_t channels = cmyk ? 4 : info.out_color_space == JCS_GRAYSCALE ? 1 : 3;
  check_size(name, info.image_width, info.image_height, channels, max_bytes);
  HostArray image(DType::kU8, dims_of(info.image_height, info.image_width, channels));
  auto* pixels = reinterpret_cast<unsigned char*>(image.data());
  if (!jpeg_pixels(*steps, pixels, info.image_width * channels))
    malformed(name, steps->error.message);
  if (!cmyk) return image;
  HostArray rgb(DType::kU8, dims_of(info.image_height, info.image_width, 3));
  auto* out = reinterpret_cast<unsigned char*>(rgb.data());
  // Adobe's files hold the inks inverted.
  const unsigned flip = info.saw_Adobe_marker ? 0 : 255;
  for (std::int64_t i = 0; i < image.size() / 4; ++i)
    for (int c = 0; c < 3; ++c)
      out[3 * i + c] =
          static_cast<unsigned char>((pixels[4 * i + c] ^ flip) * (pixels[4 * i + 3] ^ flip) / 255);
  return rgb;
}

// ---- PNG

struct PngSource {
  std::string_view left;
  char message[200] = {};
};

void png_fail(png_structp png, png_const_charp message) {
  auto* source = static_cast<PngSource*>(png_get_error_ptr(png));
  std::strncpy(source->message, message, sizeof source->message - 1);
  png_longjmp(png, 1);
}
void png_warn(png_structp, png_const_charp) {}
void png_take(png_structp png, png_bytep out, std::size_t n) {
  auto* source = static_cast<PngSource*>(png_get_io_ptr(png));
  if (n > source->left.size()) png_error(png, "the data end in the middle");
  std::memcpy(out, source->left.data(), n);
  source->left.remove_prefix(n);
}

bool png_header(png_structp png, png_infop info) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  png_set_user_limits(png, 1 << 24, 1 << 24);
  png_set_chunk_malloc_max(png, 1 << 24);
  png_set_chunk_cache_max(png, 128);
  png_read_info(png, info);
  png_set_expand(png);
  png_set_scale_16(png);
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
  return true;
}
bool png_pixels(png_structp png, png_infop info, png_bytep* rows) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  png_read_image(png, rows);
  png_read_end(png, info);
  return true;
}

HostArray decode_png(std::string_view data, std::string_view name, std::uint64_t max_bytes) {
  PngSource source{data};
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &source, png_fail, png_warn);
  png_infop info = png == nullptr ? nullptr : png_create_info_struct(png);
  struct Guard {
    png_structp* png;
    png_infop* info;
    ~Guard() { png_destroy_read_struct(png, info, nullptr); }
  } guard{&png, &info};
  if (info == nullptr) throw std::bad_alloc();
  png_set_read_fn(png, &source, png_take);
  if (!png_header(png, info)) malformed(name, source.message);
  const std::size_t width = png_get_image_width(png, info);
  const std::size_t height = png_get_image_height(png, info);
  const std::size_t channels = png_get_channels(png, info);
  check_size(name, width, height, channels, max_bytes);
  if (png_get_rowbytes(png, info) != width * channels)
    malformed(name, "its rows have another size");
  HostArray image(DType::kU8, dims_of(height, width, channels));
  std::vector<png_bytep> rows(height);
  for (std::size_t y = 0; y < height; ++y)
    rows[y] = reinterpret_cast<png_bytep>(image.data()) + y * width * channels;
  if (!png_pixels(png, info, rows.data())) malformed(name, source.message);
  return image;
}

}  // namespace

std::string_view image_format(std::string_view data) {
  if (data.starts_with("\xff\xd8\xff")) return "jpeg";
  if (data.starts_with("\x89PNG\r\n\x1a\n")) return "png";
  return {};
}

HostArray decode_image(std::string_view data, std::string_view name, std::uint64_t max_bytes) {
  const std::string_view format = image_format(data);
  if (format == "jpeg") return decode_jpeg(data, name, max_bytes);
  if (format == "png") return decode_png(data, name, max_bytes);
  throw_user_error({name, "a JPEG or PNG image", "its first bytes are of neither",
                    "Convert the image to one of them"});
}

std::string encode_png(const HostArray& image) {
  const bool fits = image.dtype() == DType::kU8 && image.rank() == 3 && image.dims()[2] >= 1 &&
                    image.dims()[2] <= 4 && image.size() > 0 && image.dims()[0] < (1 << 24) &&
                    image.dims()[1] < (1 << 24);
  if (!fits)
    throw_user_error({"encode png", "u8[height, width, 1 to 4]", image.type_string(),
                      "Convert the array first"});
  static constexpr png_uint_32 kFormats[] = {PNG_FORMAT_GRAY, PNG_FORMAT_GA, PNG_FORMAT_RGB,
                                             PNG_FORMAT_RGBA};
  png_image header;
  std::memset(&header, 0, sizeof header);
  header.version = PNG_IMAGE_VERSION;
  header.width = static_cast<png_uint_32>(image.dims()[1]);
  header.height = static_cast<png_uint_32>(image.dims()[0]);
  header.format = kFormats[image.dims()[2] - 1];
  const HostArray pixels = image.to_contiguous();
  png_alloc_size_t size = 0;
  std::string out;
  bool good = png_image_write_to_memory(&header, nullptr, &size, 0, pixels.data(), 0, nullptr) != 0;
  if (good) {
    out.resize(size);
    good = png_image_write_to_memory(&header, out.data(), &size, 0, pixels.data(), 0, nullptr) != 0;
  }
  if (!good)
    throw_user_error({"encode png", "an image that PNG can hold", header.message, "Shrink it"});
  out.resize(size);
  return out;
}

}  // namespace xylem::data

#include "xylem/ir/bytecode/frame.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <optional>

// Sections, strings, dialects and the tables of attributes, types, properties and resources.

namespace xylem::ir::bytecode {
namespace {

enum SectionId : std::size_t {
  kString,
  kDialect,
  kAttrType,
  kAttrTypeOffset,
  kIr,
  kResource,
  kResourceOffset,
  kDialectVersions,
  kProperties,
  kNumSections,
};

constexpr const char* kSectionNames[] = {
    "string section",  "dialect section",  "attribute section",       "attribute offset section",
    "IR section",      "resource section", "resource offset section", "dialect version section",
    "property section"};

constexpr std::uint64_t kNewestFormat = 6;
constexpr const char* kDamaged = "The file is damaged: write it again";

Dialect dialect_of(std::string_view name) {
  if (name == "builtin") return Dialect::kBuiltin;
  if (name == "func") return Dialect::kFunc;
  if (name == "vhlo") return Dialect::kVhlo;
  if (name == "stablehlo") return Dialect::kStablehlo;
  if (name == "chlo") return Dialect::kChlo;
  if (name == "sdy") return Dialect::kSdy;
  return Dialect::kOther;
}

class FrameReader {
 public:
  explicit FrameReader(const Source& source) : source_(source) {}

  Frame read() {
    ByteCursor c(source_, 0, source_.bytes.size());
    if (c.remaining() < kMagic.size() || c.bytes("magic", kMagic.size()) != kMagic)
      source_.fail(0, "bytecode", "the file starts with the bytes 4d 4c ef 52", "it does not",
                   "Give MLIR bytecode or a portable artifact");
    std::size_t at = c.pos();
    frame_.format = c.varint("bytecode version");
    if (frame_.format > kNewestFormat)
      source_.fail(at, "bytecode", fmt::format("a format version of at most {}", kNewestFormat),
                   fmt::format("version {}", frame_.format),
                   "Write it for an older version of StableHLO");
    frame_.producer = c.c_string("producer");
    read_sections(c);
    read_strings();
    read_dialects();
    read_offsets();
    read_properties();
    read_resources();
    frame_.ir = *sections_[kIr];
    return std::move(frame_);
  }

 private:
  void read_sections(ByteCursor& c) {
    while (!c.done()) {
      std::size_t at = c.pos();
      std::uint8_t id = c.byte("section");
      bool aligned = id & 0x80;
      id &= 0x7F;
      std::uint64_t size = c.varint("section length");
      if (id >= kNumSections)
        source_.fail(at, "section", fmt::format("an id below {}", std::size_t{kNumSections}),
                     fmt::format("id {}", id), kDamaged);
      if (aligned) {
        std::uint64_t alignment = c.varint("section alignment");
        if (!std::has_single_bit(alignment))
          source_.fail(at, kSectionNames[id], "an alignment that is a power of two",
                       fmt::format("{}", alignment), kDamaged);
        while (c.pos() % alignment != 0)
          if (c.byte("filler") != 0xCB)
            source_.fail(c.pos() - 1, kSectionNames[id], "filler bytes cb up to the alignment",
                         "another byte", kDamaged);
      }
      std::size_t begin = c.pos();
      c.bytes(kSectionNames[id], size);
      if (sections_[id])
        source_.fail(at, kSectionNames[id], "every section stands once", "it is repeated",
                     kDamaged);
      sections_[id] = Part{begin, c.pos()};
    }
    for (SectionId id : {kString, kDialect, kAttrType, kAttrTypeOffset, kIr})
      if (!sections_[id])
        source_.fail(source_.bytes.size(), kSectionNames[id], "it is in the file", "it is absent",
                     "The file is cut off or damaged: write it again");
  }

  ByteCursor cursor(SectionId id) const {
    return ByteCursor(source_, sections_[id]->begin, sections_[id]->end);
  }

  void read_strings() {
    ByteCursor c = cursor(kString);
    std::size_t n = c.count("strings");
    std::vector<std::size_t> sizes(n);
    // Lengths stand in reverse order.
    for (std::size_t i = n; i-- > 0;) {
      sizes[i] = static_cast<std::size_t>(c.varint("string length"));
      if (sizes[i] == 0)
        c.fail("string", "a length that counts the zero byte at the end", "length 0", kDamaged);
    }
    frame_.strings.reserve(n);
    for (std::size_t size : sizes) {
      std::string_view s = c.bytes("string", size);
      if (s.back() != '\0') c.fail("string", "a zero byte at the end", "another byte", kDamaged);
      frame_.strings.push_back(s.substr(0, s.size() - 1));
    }
    if (!c.done())
      c.fail("string section", "it ends with the last string", "more bytes follow", kDamaged);
  }

  std::string_view string(ByteCursor& c, std::uint64_t index) const {
    if (index >= frame_.strings.size())
      c.fail("string", fmt::format("a number below {}", frame_.strings.size()),
             fmt::format("{}", index), kDamaged);
    return frame_.strings[static_cast<std::size_t>(index)];
  }

  void read_dialects() {
    ByteCursor c = cursor(kDialect);
    std::size_t n = c.count("dialects");
    for (std::size_t i = 0; i < n; ++i) {
      std::uint64_t v = c.varint("dialect name");
      bool versioned = frame_.format >= 1 && (v & 1);
      frame_.dialects.push_back(string(c, frame_.format >= 1 ? v >> 1 : v));
      if (!versioned) continue;
      // What the versions of func, sdy and others change is told by the encodings themselves.
      c.byte("dialect version");
      c.bytes("dialect version", c.varint("dialect version"));
    }
    if (frame_.format >= 4) c.varint("number of op names");
    while (!c.done()) {
      std::size_t dialect = c.index("dialect", frame_.dialects.size());
      std::size_t count = c.count("op names");
      for (std::size_t i = 0; i < count; ++i) {
        std::uint64_t v = c.varint("op name");
        frame_.op_names.push_back({dialect_of(frame_.dialects[dialect]),
                                   static_cast<std::uint32_t>(dialect),
                                   string(c, frame_.format >= 5 ? v >> 1 : v)});
      }
    }
  }

  void read_offsets() {
    ByteCursor c = cursor(kAttrTypeOffset);
    const Part& data = *sections_[kAttrType];
    std::size_t attrs = c.count("attributes");
    std::size_t types = c.count("types");
    std::size_t at = data.begin;
    auto read_group = [&](std::vector<Entry>& out, std::size_t total) {
      while (out.size() < total) {
        std::size_t dialect = c.index("dialect", frame_.dialects.size());
        std::size_t count = c.count("entries");
        if (count > total - out.size())
          c.fail("attribute offsets", fmt::format("{} entries at most", total - out.size()),
                 fmt::format("a group of {}", count), kDamaged);
        for (std::size_t i = 0; i < count; ++i) {
          std::uint64_t v = c.varint("entry");
          if (v >> 1 > data.end - at)
            c.fail("attribute offsets", fmt::format("{} bytes at most", data.end - at),
                   fmt::format("an entry of {}", v >> 1), kDamaged);
          auto size = static_cast<std::size_t>(v >> 1);
          out.push_back({{at, at + size},
                         dialect_of(frame_.dialects[dialect]),
                         static_cast<std::uint32_t>(dialect),
                         (v & 1) != 0});
          at += size;
        }
      }
    };
    frame_.attrs.reserve(attrs);
    frame_.types.reserve(types);
    read_group(frame_.attrs, attrs);
    read_group(frame_.types, types);
    if (!c.done() || at != data.end)
      c.fail("attribute offsets", "the entries fill their section", "bytes are left", kDamaged);
  }

  void read_properties() {
    if (!sections_[kProperties]) return;
    ByteCursor c = cursor(kProperties);
    std::size_t n = c.count("properties");
    frame_.properties.reserve(n);
    for (std::size_t i = 0; i < n; ++i) {
      std::uint64_t size = c.varint("property record");
      std::size_t begin = c.pos();
      c.bytes("property record", size);
      frame_.properties.push_back({begin, c.pos()});
    }
  }

  // Groups of resources by dialect or external provider; handles count the dialects' ones.
  void read_resources() {
    if (!sections_[kResourceOffset] || !sections_[kResource]) return;
    ByteCursor c = cursor(kResourceOffset);
    ByteCursor data = cursor(kResource);
    std::uint64_t external = c.varint("resource groups");
    std::uint64_t group = 0;
    for (; !c.done(); ++group) {
      if (group < external) {
        string(c, c.varint("resource provider"));
      } else {
        c.index("dialect", frame_.dialects.size());
      }
      std::size_t n = c.count("resources", 3);
      for (std::size_t i = 0; i < n; ++i) {
        std::string_view key = string(c, c.varint("resource key"));
        std::uint64_t size = c.varint("resource size");
        std::uint8_t kind = c.byte("resource kind");
        std::size_t begin = data.pos();
        data.bytes("resource", size);
        if (group >= external) frame_.resources.push_back({key, {begin, data.pos()}, kind == 0});
      }
    }
  }

  const Source& source_;
  Frame frame_;
  std::array<std::optional<Part>, kNumSections> sections_;
};

}  // namespace

Frame read_frame(const Source& source) { return FrameReader(source).read(); }

}  // namespace xylem::ir::bytecode

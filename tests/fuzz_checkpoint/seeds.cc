#include "tests/fuzz_checkpoint/seeds.h"

#include "xylem/base/bytes.h"
#include "xylem/base/file.h"
#include "xylem/checkpoint/npz.h"
#include "xylem/checkpoint/ocdbt/writer.h"
#include "xylem/checkpoint/orbax/writer.h"
#include "xylem/checkpoint/safetensors.h"
#include "xylem/checkpoint/zarr/array.h"

namespace xylem::fuzz {
namespace {

using namespace checkpoint;

HostArray numbers(DType t, Dims dims) {
  HostArray a = HostArray::zeros(t, std::move(dims));
  for (std::size_t i = 0; i < a.nbytes(); ++i) a.data()[i] = static_cast<std::byte>(i % 2);
  return a;
}

LeafTree tree() {
  LeafTree t{array_leaf(parse_path_text("a.w"), numbers(DType::kF32, {3, 4}), LeafKind::kArray),
             array_leaf(parse_path_text("l[0]"), numbers(DType::kBF16, {5})),
             array_leaf(parse_path_text("l[1]"), HostArray::scalar(7.5), LeafKind::kScalar),
             string_leaf(parse_path_text("s"), "text"),
             empty_leaf(parse_path_text("n"), LeafKind::kNone)};
  t[0].prng = "threefry2x32";
  return t;
}

}  // namespace

std::vector<std::string> ocdbt_databases() {
  std::vector<std::string> out;
  for (const int keys : {0, 1, 5, 200})
    for (const bool compressed : {false, true}) {
      const FileSystem fs = FileSystem::memory();
      ocdbt::Config c = ocdbt::default_config();
      c.compressed = compressed;
      c.max_decoded_node_bytes = 600;
      std::vector<ocdbt::KeyValue> all;
      ocdbt::DataFileWriter data(fs, "/");
      for (int i = 0; i < keys; ++i) {
        ocdbt::KeyValue k;
        k.key = "w" + std::to_string(i) + (i % 2 == 0 ? "/.zarray" : "/0.0");
        k.inlined = i % 3 != 0;
        if (k.inlined)
          k.value = "value " + std::to_string(i);
        else
          k.reference = data.append("indirect value");
        all.push_back(std::move(k));
      }
      data.close();
      ocdbt::write_database(fs, "/", all, c);
      // All data files under one name, as far as that goes.
      const std::string manifest = fs.read_file("/manifest.ocdbt");
      std::string files;
      if (fs.is_directory("/d"))
        for (const DirectoryEntry& e : fs.list("/d")) files += fs.read_file("/d/" + e.name);
      std::string seed(1, '\3');
      seed += static_cast<char>(manifest.size() & 0xff);
      seed += static_cast<char>(manifest.size() >> 8);
      out.push_back(seed + manifest + files);
    }
  return out;
}

std::vector<std::string> zarr_arrays() {
  std::vector<std::string> out;
  for (const int format : {2, 3})
    for (const DType t : {DType::kF32, DType::kBool, DType::kI4, DType::kC64, DType::kBF16})
      for (const bool compressed : {false, true}) {
        const HostArray a = numbers(t, {4, 6});
        std::optional<Codec> codec;
        if (compressed) codec = Codec{CodecKind::kZstd, 3, true};
        const zarr::Metadata m = zarr::make_metadata(format, t, {4, 6}, {2, 3}, codec);
        out.push_back((format == 2 ? '\0' : '\1') +
                      (format == 2 ? zarr::format_v2(m) : zarr::format_v3(m)) + '\0' +
                      zarr::encode_chunk(m, a, {0, 0}));
      }
  for (const char* text :
       {R"({"chunks":[2],"compressor":{"id":"blosc","cname":"lz4","clevel":5,"shuffle":1},)"
        R"("dtype":">i4","fill_value":3,"filters":null,"order":"F","shape":[3],"zarr_format":2,)"
        R"("dimension_separator":"/"})",
        R"({"chunks":[2],"compressor":{"id":"zlib","level":1},"dtype":[["a","<f4"],["b","|S3"]],)"
        R"("fill_value":null,"filters":null,"order":"C","shape":[3],"zarr_format":2})"})
    out.push_back(std::string(1, '\0') + text + '\0' + std::string(8, 'x'));
  out.push_back(
      std::string(1, '\1') +
      R"({"zarr_format":3,"node_type":"array","data_type":"float32","shape":[4,4],"fill_value":)"
      R"("0x7fc00001","chunk_grid":{"name":"regular","configuration":{"chunk_shape":[4,4]}},)"
      R"("chunk_key_encoding":{"name":"v2"},"codecs":[{"name":"transpose","configuration":)"
      R"({"order":[1,0]}},{"name":"sharding_indexed","configuration":{"chunk_shape":[2,2],)"
      R"("index_location":"start","codecs":["bytes","crc32c"]}}]})" +
      '\0' + std::string(148, '\0'));
  return out;
}

std::vector<std::vector<Codec>> codec_chains() {
  const Codec stored{CodecKind::kZstd, kStoredLevel, true}, zstd{CodecKind::kZstd, 3, true},
      gzip{CodecKind::kGzip, 6, false}, zlib{CodecKind::kZlib, 1, false},
      crc{CodecKind::kCrc32c, 0, true}, blosc{CodecKind::kBlosc, 5, false},
      bz2{CodecKind::kBz2, 5, false};
  return {{stored}, {zstd}, {gzip}, {zlib}, {crc}, {blosc}, {zstd, crc}, {crc, gzip}, {bz2}};
}

std::vector<std::string> encoded_chunks() {
  std::vector<std::string> out;
  const auto chains = codec_chains();
  for (std::size_t i = 0; i < chains.size(); ++i)
    for (const std::size_t size : {0, 5, 300}) {
      std::string data(size, '\0');
      for (std::size_t k = 0; k < size; ++k) data[k] = static_cast<char>(k % 7);
      const std::string name(1, static_cast<char>(i));
      if (chains[i][0].kind != CodecKind::kBlosc) {
        out.push_back(name + encode(chains[i], as_byte_span(data)));
        continue;
      }
      // Blosc's header, and its data as they are, or one block of each of its codecs.
      for (const int inner : {0, 1, 2, 3, 4}) {
        ByteWriter w;
        w.write(std::uint8_t{2});
        w.write(std::uint8_t{1});
        w.write(static_cast<std::uint8_t>(inner << 5 | (size == 5 ? 2 : 1)));
        w.write(std::uint8_t{4});
        w.write(static_cast<std::uint32_t>(size));
        w.write(static_cast<std::uint32_t>(size));
        w.write(static_cast<std::uint32_t>(24 + size));
        w.write(std::uint32_t{20});
        w.write(static_cast<std::uint32_t>(size));
        w.write_string(data);
        out.push_back(name + w.take());
      }
    }
  return out;
}

std::vector<std::string> orbax_json_files() {
  const FileSystem fs = FileSystem::memory();
  std::map<std::string, orbax::StepItem> items;
  items["t"].tree = tree();
  items["j"].kind = orbax::StepItem::Kind::kJson;
  items["j"].json = R"({"a": [1, "é", null]})";
  fs.make_directories("/3");
  orbax::write_step(fs, "/3", "/3", items);
  const std::vector<std::string> names{"t/_METADATA",     "_CHECKPOINT_METADATA",
                                       "t/_sharding",     "t/array_metadatas/process_0",
                                       "t/_strings.json", orbax::kChecksumFile};
  std::vector<std::string> out;
  for (std::size_t i = 0; i < names.size(); ++i)
    out.push_back(static_cast<char>(i) + fs.read_file("/3/" + names[i]));
  return out;
}

std::vector<std::string> safetensors_files() {
  const std::string dir = make_temporary_directory("seeds"), path = join_path(dir, "x.safetensors");
  std::vector<std::string> out;
  for (const bool several : {false, true}) {
    NamedArrays arrays{{"a", numbers(DType::kF32, {2, 3})}};
    if (several) {
      arrays.push_back({"b", numbers(DType::kBool, {4})});
      arrays.push_back({"f4", numbers(DType::kF4E2M1FN, {4})});
      arrays.push_back({"e", numbers(DType::kI64, {0, 2})});
    }
    write_safetensors(path, arrays, {{"format", "pt"}});
    out.push_back(read_file(path));
  }
  remove_tree(dir);
  return out;
}

std::vector<std::string> npz_files() {
  const FileSystem fs = FileSystem::memory();
  write_npz(fs, "/x.npz", {{"a", numbers(DType::kF32, {2, 3})}, {"b", numbers(DType::kBool, {4})}});
  return {fs.read_file("/x.npz")};
}

std::vector<std::string> msgpack_files() {
  // {"a": ndarray float32[2], "t": (1, 2), "c": 1j, "s": "x", "n": nil}
  std::string out;
  out += '\x85';
  out +=
      "\xa1"
      "a";
  const std::string array = std::string(
                                "\x93\x91\x02\xa7"
                                "float32\xc4\x08",
                                13) +
                            std::string(8, '\1');
  out += std::string("\xc7", 1) + static_cast<char>(array.size()) + '\1' + array;
  out +=
      "\xa1"
      "t"
      "\x82\xa1"
      "0\x01\xa1"
      "1\x02";
  out +=
      "\xa1"
      "c";
  const std::string complex = std::string("\x92\xca\x00\x00\x00\x00\xca\x3f\x80\x00\x00", 11);
  out += std::string("\xc7", 1) + static_cast<char>(complex.size()) + '\2' + complex;
  out +=
      "\xa1"
      "s"
      "\xa1"
      "x"
      "\xa1"
      "n"
      "\xc0";
  return {out, "\x80",
          "\x81\xa1"
          "a\x01"};
}

}  // namespace xylem::fuzz

// Codecs: conversions of bytes in memory.
//
// Digests (BLAKE2b-256 of libsodium), zstd frames and their seek table, content-defined chunking
// ("gear-1"), tar members (libarchive), deterministic CBOR, JSON, YAML, property lists,
// Base64.
//
// Nothing here opens a file, reads a clock or depends on the repository. Input is untrusted:
// readers never trap on it, check each claimed length against the input or the caller's limit
// before they allocate memory, and limit the depth.
//
// Not guaranteed: identical compressed bytes with different versions of libzstd, and use of a value
// by two threads at once (each thread creates its own).

/// A format that this module reads or writes, by its name in messages.
package enum CodecFormat: String, Sendable, Hashable, CaseIterable {
  case digest
  case json = "JSON"
  case propertyList = "property list"
  case yaml = "YAML"
  case cbor = "CBOR"
  case zstd = "zstd frame"
  case seekTable = "zstd seek table"
  case tar = "tar archive"
}

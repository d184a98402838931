// Codecs: bytes in, bytes out.
//
// Digests (BLAKE2b-256 of libsodium), zstd frames and their seek table, content-defined cutting
// ("gear-1"), tar members (libarchive), deterministic CBOR, JSON, YAML, Base64.
//
// Nothing here opens a file, reads a clock or knows what a repository is. Every reader takes bytes
// that a stranger may have written: it never traps on them, checks each claimed length against
// what is there or against the caller's limit before memory is reserved, and bounds its depth.
//
// Not guaranteed: that equal input gives equal compressed bytes under another version of libzstd;
// that a type may be used by two threads at once (each thread makes its own).

/// A format that this module reads or writes, as messages name it.
public enum CodecFormat: String, Sendable, Hashable, CaseIterable {
  case digest
  case json = "JSON"
  case yaml = "YAML"
  case cbor = "CBOR"
  case zstd = "zstd frame"
  case seekTable = "zstd seek table"
  case tar = "tar archive"
}

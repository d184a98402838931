package import Codecs

/// An entry of a forged tree, as CBOR: its keys are in the order of the format, with any values.
package enum ForgedEntry {
  /// A piece of content: a blob, or a hole if it has no hash.
  package typealias Piece = (length: UInt64, digest: Digest?)

  /// A file of one blob, or an empty one.
  package static func file(
    _ name: [UInt8], _ bytes: [UInt8] = [], linkGroup: [UInt8]? = nil
  ) -> [UInt8] {
    let pieces: [Piece] = bytes.isEmpty ? [] : [(UInt64(bytes.count), Blake2b.hash(bytes))]
    return content(name, size: UInt64(bytes.count), pieces, linkGroup: linkGroup)
  }

  /// A file with any pieces.
  package static func content(
    _ name: [UInt8], size: UInt64, _ pieces: [Piece], level: UInt64 = 0,
    linkGroup: [UInt8]? = nil
  ) -> [UInt8] {
    entry(name) { encoder in
      add(7, size, to: &encoder)
      if !pieces.isEmpty {
        encoder.key(8)
        append(pieces, to: &encoder)
      }
      add(9, level, to: &encoder)
      if let linkGroup {
        encoder.key(16)
        encoder.bytes(linkGroup)
      }
    }
  }

  /// A directory.
  package static func directory(_ name: [UInt8], _ tree: Digest) -> [UInt8] {
    entry(name, type: 1) { encoder in
      encoder.key(10)
      encoder.digest(tree)
    }
  }

  /// A symbolic link.
  package static func link(_ name: [UInt8], to target: [UInt8]) -> [UInt8] {
    entry(name, type: 2) { encoder in
      encoder.key(11)
      encoder.bytes(target)
    }
  }

  /// An entry whose keys from 2 on are written by `body`.
  package static func entry(
    _ name: [UInt8], type: UInt64 = 0, _ body: (inout CBOREncoder) -> Void
  ) -> [UInt8] {
    var encoder = CBOREncoder()
    encoder.beginMap()
    encoder.key(0)
    encoder.bytes(name)
    add(1, type, to: &encoder)
    body(&encoder)
    encoder.endMap()
    return encoder.finish()
  }

  /// A list blob.
  package static func list(level: UInt64, _ pieces: [Piece]) -> [UInt8] {
    var encoder = CBOREncoder()
    encoder.beginMap()
    add(0, level, to: &encoder)
    encoder.key(1)
    append(pieces, to: &encoder)
    encoder.endMap()
    return encoder.finish()
  }

  private static func add(_ key: Int64, _ value: UInt64, to encoder: inout CBOREncoder) {
    guard value != 0 else { return }
    encoder.key(key)
    encoder.unsigned(value)
  }

  private static func append(_ pieces: [Piece], to encoder: inout CBOREncoder) {
    encoder.beginArray(count: pieces.count)
    for piece in pieces {
      guard let digest = piece.digest else {
        encoder.unsigned(piece.length)
        continue
      }
      encoder.beginArray(count: 2)
      encoder.unsigned(piece.length)
      encoder.digest(digest)
      encoder.endArray()
    }
    encoder.endArray()
  }
}

/// The first bytes by which files of a format are recognized.
package struct FileSignature: Sendable, Hashable {
  package let type: TypeIdentifier
  /// The patterns, which must all match.
  package let patterns: [Pattern]
  /// Whether formats that are built on this one begin in the same way, so that the signature does
  /// not contradict another type.
  package let isGeneric: Bool

  /// Bytes at an offset from the beginning of the file.
  package struct Pattern: Sendable, Hashable {
    package let offset: Int
    package let bytes: [UInt8]
  }

  /// The number of bytes at the beginning of a file that signatures can examine.
  package static let headLength = 512

  /// Whether a file that begins with `head` has the signature.
  func matches(_ head: [UInt8]) -> Bool {
    patterns.allSatisfy { pattern in
      head.count >= pattern.offset + pattern.bytes.count
        && head[pattern.offset...].starts(with: pattern.bytes)
    }
  }
}

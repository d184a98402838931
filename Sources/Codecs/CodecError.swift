// Codecs: conversions of bytes in memory.
//
// Digests (BLAKE2b-256 of libsodium), zstd frames and their seek table, content-defined chunking
// ("gear-1"), tar members and other archives (libarchive), deterministic CBOR, JSON, YAML, property
// lists, XML, Base64, and encryption: age files of version 1 (libsodium, and ChaCha20-Poly1305 of
// libcrypto), signatures: Ed25519 (libsodium), and the ciphers of other programs' backups
// (libcrypto).
//
// Nothing here opens a file, reads a clock or depends on the repository; random bytes come from
// libsodium. Input is untrusted: readers never trap on it, check each claimed length against the
// input or the caller's limit before they allocate memory, and limit the depth.
//
// Not guaranteed: identical compressed bytes with different versions of libzstd, and use of a value
// by two threads at once (each thread creates its own).

/// Input that could not be read or a value that could not be written: the format, the reason and
/// the position.
public struct CodecError: Error, Hashable, Sendable {
  /// The kind of failure.
  public let kind: Kind
  /// The format that was read or written.
  public let format: Format
  /// The reason in plain words, without a full stop.
  public let reason: String
  /// The position in the input, if it is known.
  public let position: Position?

  /// Creates an error from its parts.
  public init(
    _ kind: Kind, in format: Format, reason: String, at position: Position? = nil
  ) {
    self.kind = kind
    self.format = format
    self.reason = reason
    self.position = position
  }

  /// A format that this module reads or writes, by its name in messages.
  public enum Format: String, Sendable, Hashable, CaseIterable {
    case digest
    case json = "JSON"
    case propertyList = "property list"
    case yaml = "YAML"
    case cbor = "CBOR"
    case androidXML = "Android XML"
    case zlib = "zlib stream"
    case zstd = "zstd frame"
    case seekTable = "zstd seek table"
    case tar = "tar archive"
    case archive
    case androidResources = "Android resource table"
    case xml = "XML"
  }

  /// The kinds of failure, which determine the hint and the handling by callers.
  public enum Kind: String, Sendable, Hashable, CaseIterable {
    /// The input violates the rules of the format.
    case malformed
    /// The input is incomplete.
    case truncated
    /// The input is valid but uses a feature that is not accepted here.
    case unsupported
    /// The input exceeds a limit of the caller.
    case limit
    /// The value cannot be represented in the format.
    case unrepresentable
    /// The C library failed for a reason of its own, such as lack of memory.
    case library
  }

  /// A position in the input.
  public enum Position: Sendable, Hashable {
    /// A line and a column of text.
    case mark(Mark)
    /// A byte offset of binary input.
    case offset(Int)
  }

  /// The line and column, or nil if the input is binary.
  public var mark: Mark? {
    if case .mark(let mark) = position { mark } else { nil }
  }

  /// The byte offset, or nil if the input is text.
  public var offset: Int? {
    if case .offset(let offset) = position { offset } else { nil }
  }
}

/// A position in a text: line and column, both from 1. A column is a Unicode scalar.
public struct Mark: Sendable, Hashable, Comparable, CustomStringConvertible {
  /// The line, from 1.
  public let line: Int
  /// The column, from 1.
  public let column: Int

  /// Creates a mark from a line and a column, both from 1.
  public init(line: Int, column: Int) {
    self.line = line
    self.column = column
  }

  /// Computes the line and column of a byte offset in UTF-8 text.
  public init(of offset: Int, in text: Span<UInt8>) {
    var line = 1
    var column = 1
    for index in 0..<min(offset, text.count) {
      let byte = text[index]
      if byte == UInt8(ascii: "\n") {
        line += 1
        column = 1
      } else if byte & 0xC0 != 0x80 {
        column += 1
      }
    }
    self.init(line: line, column: column)
  }

  /// The mark as `3:14`.
  public var description: String { "\(line):\(column)" }

  public static func < (left: Mark, right: Mark) -> Bool {
    (left.line, left.column) < (right.line, right.column)
  }
}

extension CodecError: CustomStringConvertible {
  /// The whole message: "cannot read JSON: a comma is missing, at line 3, column 14".
  public var description: String {
    let verb = kind == .unrepresentable ? "write" : "read"
    let suffix =
      switch position {
      case .mark(let mark): ", at line \(mark.line), column \(mark.column)"
      case .offset(let offset): ", at byte \(offset)"
      case nil: ""
      }
    return "cannot \(verb) \(format.rawValue): \(reason)\(suffix)"
  }

  /// The remedy, or nil if there is none to suggest.
  public var hint: String? {
    switch (kind, format) {
    case (.malformed, .json), (.truncated, .json), (.malformed, .yaml), (.truncated, .yaml):
      "correct the text at that position"
    case (.unsupported, .yaml): "write it without that YAML feature"
    case (.malformed, _), (.truncated, _):
      "the data is damaged: check the storage, or use another copy"
    case (.unsupported, _): "it was written by another program or a newer version"
    case (.limit, _): "check that it is the right file: it exceeds the expected size"
    case (.unrepresentable, _): nil
    case (.library, _): "check that enough memory is free"
    }
  }
}

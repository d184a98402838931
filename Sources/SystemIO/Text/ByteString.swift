/// The bytes of a file name, a path or a link target, exactly as the kernel returned them.
///
/// Two Linux names can be equal as Swift strings (composed and decomposed é), so names are
/// compared, hashed and sorted by their bytes. `description` is for display and escapes unprintable
/// characters.
public struct ByteString: Hashable, Sendable {
  /// The bytes and a terminating NUL, so that system calls need no copy.
  @usableFromInline let storage: [UInt8]

  /// Hashes all bytes at once; an array hashes one after another, at many times the cost.
  @inlinable public func hash(into hasher: inout Hasher) {
    unsafe storage.withUnsafeBytes { unsafe hasher.combine(bytes: $0) }
  }

  /// Creates a name from bytes.
  @inlinable public init(_ bytes: some Sequence<UInt8>) {
    var storage: [UInt8] = []
    storage.reserveCapacity(bytes.underestimatedCount + 1)
    storage.append(contentsOf: bytes)
    storage.append(0)
    self.storage = storage
  }

  /// Creates a name from bytes.
  public init(_ bytes: Span<UInt8>) {
    self.init(unsafe bytes.withUnsafeBufferPointer { unsafe Array($0) })
  }

  /// Takes over bytes that already end with a NUL.
  private init(terminated storage: [UInt8]) { self.storage = storage }

  /// Creates a name from a string's UTF-8.
  public init(_ string: String) { self.init(string.utf8) }

  /// The number of bytes.
  @inlinable public var count: Int { storage.count - 1 }

  /// Whether the name has no bytes.
  @inlinable public var isEmpty: Bool { storage.count == 1 }

  /// The bytes without the terminating NUL.
  @inlinable public var bytes: ArraySlice<UInt8> { storage[..<(storage.count - 1)] }

  /// Whether the bytes contain a NUL, which is not valid in a file name.
  public var hasNUL: Bool { withSpan { $0.contains(0) } }

  /// Calls `body` with the bytes without the terminating NUL.
  @inlinable public func withSpan<Result, Failure: Error>(
    _ body: (Span<UInt8>) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try body(storage.span.extracting(0..<(storage.count - 1)))
  }

  /// Calls `body` with the bytes as a C string. A NUL inside would truncate the name, so such a
  /// name is passed as an empty one, which the kernel refuses.
  func withCString<Result>(_ body: (UnsafePointer<CChar>) -> Result) -> Result {
    unsafe storage.withUnsafeBytes {
      guard !hasNUL, let first = $0.baseAddress else { return unsafe body("") }
      return unsafe body(first.assumingMemoryBound(to: CChar.self))
    }
  }

  /// The text, or nil if the bytes are not valid UTF-8.
  public var utf8: String? { String(validating: bytes, as: UTF8.self) }
}

extension ByteString: Comparable {
  public static func < (left: Self, right: Self) -> Bool {
    left.withSpan { own in right.withSpan { own.precedes($0) } }
  }
}

extension ByteString: ExpressibleByStringLiteral {
  public init(stringLiteral value: String) { self.init(value) }
}

// MARK: - Paths

extension ByteString {
  /// The separator of components.
  public static let slash = UInt8(ascii: "/")

  /// Joins components with slashes; an absolute path begins with another one.
  public init(joining components: some Sequence<ByteString>, isAbsolute: Bool = false) {
    var path = isAbsolute ? [Self.slash] : []
    var isFirst = true
    for component in components {
      if !isFirst { path.append(Self.slash) }
      path.append(contentsOf: component.bytes)
      isFirst = false
    }
    path.append(0)
    self.init(terminated: path)
  }

  /// Whether the bytes end with those of a text.
  public func hasSuffix(_ text: String) -> Bool {
    bytes.suffix(text.utf8.count).elementsEqual(text.utf8)
  }

  /// Whether the path begins with a slash.
  public var isAbsolute: Bool { storage[0] == Self.slash }

  /// The components between slashes. Empty ones, from leading or repeated slashes, are omitted.
  public var components: [ByteString] {
    bytes.split(separator: Self.slash).map { ByteString($0) }
  }

  /// The last component, or nil for `/` and the empty path.
  public var lastComponent: ByteString? {
    bytes.split(separator: Self.slash).last.map { ByteString($0) }
  }

  /// The reason why these bytes are not a valid directory entry name, or nil if they are: one
  /// component that is not empty, `.` or `..`, without `/` and NUL, of at most 255 bytes
  /// (NAME_MAX).
  public var nameFault: String? {
    if isEmpty { return "it is empty" }
    if self == "." || self == ".." { return "it is '\(self)'" }
    if bytes.contains(Self.slash) { return "it contains a '/'" }
    if hasNUL { return "it contains a NUL byte" }
    return count > 255 ? "it has \(count) bytes, and at most 255 are allowed" : nil
  }

  /// Whether the name is the text form of a UUID (RFC 9562, section 4), in upper or lower case.
  public var isUUID: Bool {
    let bytes = bytes
    return count == 36
      && bytes.enumerated().allSatisfy { index, byte in
        [8, 13, 18, 23].contains(index)
          ? byte == UInt8(ascii: "-") : Character(UnicodeScalar(byte)).isHexDigit && byte < 0x80
      }
  }

  /// The path of the parent directory: empty for a relative path of one component and for the empty
  /// path, `/` for an absolute path of one component.
  public var parent: ByteString {
    let (bytes, first) = (bytes, bytes.startIndex + (isAbsolute ? 1 : 0))
    var end = bytes.endIndex
    while end > first, bytes[end - 1] == Self.slash { end -= 1 }
    while end > first, bytes[end - 1] != Self.slash { end -= 1 }
    while end > first, bytes[end - 1] == Self.slash { end -= 1 }
    return ByteString(bytes[..<end])
  }

  /// The path of the parent directory for opening it, as POSIX `dirname` returns it: `parent`, or
  /// `.` instead of an empty path.
  public var dirname: ByteString {
    let parent = parent
    return parent.isEmpty ? "." : parent
  }

  /// Joins two paths with one slash. If one is empty, returns the other.
  public func appending(_ other: ByteString) -> ByteString {
    if isEmpty { return other }
    if other.isEmpty { return self }
    var joined: [UInt8] = []
    joined.reserveCapacity(count + other.count + 2)
    joined.append(contentsOf: bytes)
    if joined.last != Self.slash { joined.append(Self.slash) }
    // Including the terminating NUL, which saves another copy.
    joined.append(contentsOf: other.storage[(other.isAbsolute ? 1 : 0)...])
    return ByteString(terminated: joined)
  }

  /// Returns these bytes followed by others, without a separator.
  public func concatenating(_ other: ByteString) -> ByteString {
    ByteString(terminated: bytes + other.storage)
  }

  /// Whether the path equals `prefix` or is below it, compared by components.
  public func isWithin(_ prefix: ByteString) -> Bool {
    guard bytes.starts(with: prefix.bytes) else { return false }
    return count == prefix.count || prefix.isEmpty || prefix.bytes.last == Self.slash
      || storage[prefix.count] == Self.slash
  }

  /// Returns the path relative to `prefix`, in which it must be (`isWithin(_:)`); empty for
  /// `prefix` itself.
  public func relative(to prefix: ByteString) -> ByteString {
    ByteString(bytes.dropFirst(prefix.count).drop { $0 == Self.slash })
  }
}

// MARK: - Display

extension ByteString: CustomStringConvertible {
  /// The name for display: control characters, bidirectional marks, other characters without a
  /// glyph, backslashes and bytes that are not UTF-8 are escaped (`\n`, `\u{202e}`, `\u{3164}`,
  /// `\\`, `\xff`). A name can neither break a line of output nor look like another name.
  public var description: String {
    if bytes.allSatisfy(Self.isPlain) { return String(decoding: bytes, as: UTF8.self) }
    var shown: [UInt8] = []
    appendShown(to: &shown)
    return String(decoding: shown, as: UTF8.self)
  }

  /// Appends the UTF-8 of `description`. Bytes that need no escape are copied unchanged.
  public func appendShown(to buffer: inout [UInt8]) {
    var rest = bytes
    var previous: Unicode.Scalar?
    while !rest.isEmpty {
      let plain = rest.prefix(while: Self.isPlain)
      buffer.append(contentsOf: plain)
      rest = rest[plain.endIndex...]
      if let last = plain.last {
        previous = rest.starts(with: Self.keycap) ? Unicode.Scalar(last) : nil
      }
      guard let first = rest.first else { return }
      if let (scalar, length) = Self.firstScalar(of: rest) {
        buffer.append(contentsOf: Self.shown(scalar, after: previous).utf8)
        rest = rest.dropFirst(length)
        previous = scalar
      } else {
        buffer.append(contentsOf: ("\\x" + Self.hex(first)).utf8)
        rest = rest.dropFirst()
        previous = nil
      }
    }
  }

  /// The selector and the mark that make a keycap of a digit, `#` or `*`.
  private static let keycap = Array("\u{fe0f}\u{20e3}".utf8)

  /// Whether a byte is a printable ASCII character other than the backslash.
  private static func isPlain(_ byte: UInt8) -> Bool {
    (0x20...0x7e).contains(byte) && byte != UInt8(ascii: "\\")
  }

  /// Returns the first scalar and its length in bytes, or nil if the bytes are empty or do not
  /// begin with valid UTF-8.
  public static func firstScalar(of bytes: ArraySlice<UInt8>) -> (Unicode.Scalar, Int)? {
    guard let first = bytes.first else { return nil }
    if first < 0x80 { return (Unicode.Scalar(first), 1) }
    let length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2
    guard bytes.count >= length,
      let text = String(validating: bytes.prefix(length), as: UTF8.self),
      let scalar = text.unicodeScalars.first
    else { return nil }
    return (scalar, length)
  }

  /// Returns a scalar as it is displayed.
  ///
  /// - Parameter previous: The scalar before it; nil for a plain one, except that of a keycap.
  private static func shown(_ scalar: Unicode.Scalar, after previous: Unicode.Scalar?) -> String {
    switch scalar {
    case "\n": return "\\n"
    case "\t": return "\\t"
    case "\r": return "\\r"
    case "\\": return "\\\\"
    default: break
    }
    switch scalar.properties.generalCategory {
    case .control where scalar.value < 0x80: return "\\x" + hex(UInt8(scalar.value))
    case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .unassigned:
      return escape(scalar)
    default:
      return isInvisible(scalar, after: previous) ? escape(scalar) : String(scalar)
    }
  }

  /// Whether a scalar is displayed as nothing according to Unicode, such as the Hangul fillers and
  /// the variation selectors. A selector after an emoji is visible by its effect, and common in
  /// names. Joiners are always escaped: they may have no effect, and then the name would look like
  /// another one.
  private static func isInvisible(
    _ scalar: Unicode.Scalar, after previous: Unicode.Scalar?
  ) -> Bool {
    guard scalar.properties.isDefaultIgnorableCodePoint else { return false }
    let selectsForm = scalar == "\u{fe0e}" || scalar == "\u{fe0f}"
    return !(selectsForm && previous?.properties.isEmoji == true)
  }

  private static func escape(_ scalar: Unicode.Scalar) -> String {
    "\\u{" + String(scalar.value, radix: 16) + "}"
  }

  private static func hex(_ byte: UInt8) -> String {
    (byte < 16 ? "0" : "") + String(byte, radix: 16)
  }
}

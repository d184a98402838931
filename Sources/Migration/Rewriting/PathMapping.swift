package import SystemIO

/// Old and new absolute paths of an app's places, as a running app uses them.
package struct PathMapping: Sendable, Hashable {
  /// An old path with the new one.
  package struct Pair: Sendable, Hashable {
    /// The old path.
    package let old: ByteString
    /// The new path.
    package let new: ByteString

    /// Creates a pair.
    package init(old: ByteString, new: ByteString) {
      self.old = old
      self.new = new
    }
  }

  /// The pairs, the longest old path first. Of pairs with one old path the first is kept.
  private let pairs: [Pair]

  /// Creates a mapping. Pairs whose paths are not absolute are ignored.
  package init(_ pairs: [Pair]) {
    var known: Set<ByteString> = []
    self.pairs = pairs.filter {
      $0.old.isAbsolute && $0.new.isAbsolute && known.insert($0.old).inserted
    }.sorted { ($1.old.count, $0.old) < ($0.old.count, $1.old) }
  }

  /// Returns the new path of an absolute path, or nil if it is in no old place. A path that is the
  /// same in both places is returned unchanged.
  package func newPath(of path: ByteString) -> ByteString? {
    guard path.isAbsolute, !path.components.contains("..") else { return nil }
    guard let pair = pairs.first(where: { path.isWithin($0.old) }) else { return nil }
    return pair.new.appending(path.relative(to: pair.old))
  }

  /// Returns the new form of a `file:` URL, also within a `jar:` URL, or nil if it is not one or in
  /// no old place. The path is percent-encoded (RFC 3986); a host other than `localhost` is not this
  /// machine.
  package func newURL(of text: String) -> String? {
    var (scheme, rest): (Substring, Substring) = ("", text[...])
    if rest.hasPrefix("jar:") {
      scheme = "jar:"
      rest = rest.dropFirst(4)
    }
    guard rest.hasPrefix("file://") else { return nil }
    rest = rest.dropFirst(7)
    if rest.hasPrefix("localhost/") { rest = rest.dropFirst(9) }
    var suffix: Substring = ""
    if !scheme.isEmpty, let end = rest.range(ofText: "!/") {
      (rest, suffix) = (rest[..<end], rest[end...])
    }
    guard let path = PercentEncoding.decoded(rest), let new = newPath(of: path) else { return nil }
    return scheme + "file://" + PercentEncoding.encoded(new) + suffix
  }
}

extension Substring {
  /// Returns the start of the first occurrence of a text, or nil.
  fileprivate func range(ofText text: String) -> Index? {
    let (own, wanted) = (utf8, Array(text.utf8))
    return own.indices.first { own[$0...].starts(with: wanted) }
  }
}

/// Percent-encoding of paths in URLs (RFC 3986, section 2.1).
enum PercentEncoding {
  /// Returns the bytes of an encoded path, or nil if an escape is incomplete or encodes a NUL.
  static func decoded(_ text: Substring) -> ByteString? {
    var bytes: [UInt8] = []
    var rest = text.utf8[...]
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "%") else {
        bytes.append(byte)
        continue
      }
      guard let high = rest.popFirst().flatMap(digit), let low = rest.popFirst().flatMap(digit)
      else { return nil }
      bytes.append(high << 4 | low)
    }
    return bytes.contains(0) ? nil : ByteString(bytes)
  }

  /// Returns the path with everything but unreserved characters and slashes encoded.
  static func encoded(_ path: ByteString) -> String {
    var text = ""
    for byte in path.bytes {
      if isPlain(byte) {
        text.unicodeScalars.append(Unicode.Scalar(byte))
      } else {
        let digits = String(byte, radix: 16, uppercase: true)
        text += byte < 16 ? "%0\(digits)" : "%\(digits)"
      }
    }
    return text
  }

  private static func isPlain(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"):
      true
    default: "/-._~".utf8.contains(byte)
    }
  }

  private static func digit(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
    default: nil
    }
  }
}

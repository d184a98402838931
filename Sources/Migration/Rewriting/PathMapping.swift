internal import Codecs
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
  /// no old place. The path is percent-encoded (RFC 3986); a host other than `localhost` is not
  /// this machine.
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
    guard let path = PercentEncoding.decode(rest.utf8), !path.contains(0),
      let new = newPath(of: ByteString(path))
    else { return nil }
    return scheme + "file://" + PercentEncoding.encode(new.bytes, keepsSlashes: true) + suffix
  }
}

extension Substring {
  /// Returns the start of the first occurrence of a text, or nil.
  fileprivate func range(ofText text: String) -> Index? {
    let (own, wanted) = (utf8, Array(text.utf8))
    return own.indices.first { own[$0...].starts(with: wanted) }
  }
}

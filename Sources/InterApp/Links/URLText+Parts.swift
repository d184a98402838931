package import SystemIO

extension URLText {
  /// The URL for output: with `***` in place of the password, if there is one.
  package var withoutPassword: ByteString { Self.hidingPassword(in: bytes) }

  /// The same URL with `***` as its password, if it has one, so that none of its parts contains the
  /// password.
  package var hidingPassword: URLText {
    // The structure is the same, so the text is a URL as well.
    (try? URLText(splitting: withoutPassword)) ?? self
  }

  /// Returns a text, which need not be a URL, with `***` in place of the password before the host.
  static func hidingPassword(in text: ByteString) -> ByteString {
    let bytes = text.bytes
    guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")),
      bytes[(colon + 1)...].starts(with: "//".utf8)
    else { return text }
    let authority = bytes[(colon + 3)...].prefix { !"/?#".utf8.contains($0) }
    guard let at = authority.lastIndex(of: UInt8(ascii: "@")),
      let second = authority[..<at].firstIndex(of: UInt8(ascii: ":"))
    else { return text }
    return ByteString(Array(bytes[...second]) + Array("***".utf8) + Array(bytes[at...]))
  }

  /// The parts of the URL as an app reads them from an NSURL, which follows the older RFC 1808: the
  /// path may end with parameters after `;`, and escapes in user, password, host and path are
  /// resolved.
  package struct Received: Sendable, Hashable {
    /// The text after the scheme's colon.
    package let resourceSpecifier: ByteString
    package let user: ByteString?
    package let password: ByteString?
    package let host: ByteString?
    package let port: Int?
    /// The path without parameters, with escapes resolved; nil if the URL has none.
    package let path: ByteString?
    /// The parameters after `;` (RFC 1808, section 2.4.5), or nil.
    package let parameters: ByteString?
    package let query: ByteString?
    package let fragment: ByteString?
    /// The names and values of the query, with escapes resolved; a `+` is unchanged.
    package let queryItems: [QueryItem]
  }

  /// A name and its value in a query; nil without `=`.
  package struct QueryItem: Sendable, Hashable {
    package let name: ByteString
    package let value: ByteString?
  }

  /// The parts that the app receives.
  package var received: Received {
    let credentials = userInfo.map { Self.split($0, at: ":") }
    // RFC 1808, section 2.4.5: the parameters begin at the first semicolon. Only URLs with a
    // hierarchical path have them.
    let isHierarchical = authority != nil || path.isAbsolute
    let parts = isHierarchical ? Self.split(path, at: ";") : (path, nil)
    return Received(
      resourceSpecifier: ByteString(bytes.bytes.dropFirst(scheme.count + 1)),
      user: credentials.map { Self.decoded($0.0) },
      password: credentials?.1.map { Self.decoded($0) }, host: host.map { Self.decoded($0) },
      port: port,
      path: isHierarchical && !parts.0.isEmpty ? Self.decoded(parts.0) : nil,
      parameters: parts.1, query: query, fragment: fragment, queryItems: queryItems)
  }

  private var queryItems: [QueryItem] {
    guard let query, !query.isEmpty else { return [] }
    return query.bytes.split(separator: UInt8(ascii: "&"), omittingEmptySubsequences: false).map {
      let (name, value) = Self.split(ByteString($0), at: "=")
      return QueryItem(name: Self.decoded(name), value: value.map { Self.decoded($0) })
    }
  }

  /// Returns the text before the first occurrence of a byte and the text after it.
  private static func split(
    _ text: ByteString, at byte: Unicode.Scalar
  ) -> (ByteString, ByteString?) {
    guard let index = text.bytes.firstIndex(of: UInt8(ascii: byte)) else { return (text, nil) }
    return (ByteString(text.bytes[..<index]), ByteString(text.bytes[(index + 1)...]))
  }

  /// Remarks for the receiver: values that are not UTF-8 once the escapes are resolved, and a
  /// password.
  package var remarks: [String] {
    var remarks: [String] = []
    let parts = received
    if parts.password != nil {
      remarks.append("it contains a password, which other apps and logs may see")
    }
    if Self.decoded(bytes).utf8 == nil {
      remarks.append("its escapes are not UTF-8, so the app may get no text for that part")
    }
    if Set(parts.queryItems.map(\.name)).count < parts.queryItems.count {
      remarks.append("a name occurs more than once in its query")
    }
    return remarks
  }
}

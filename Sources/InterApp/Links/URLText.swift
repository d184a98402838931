package import SystemIO

/// A URL that can be passed to an app, with its parts by RFC 3986 and by RFC 1808. URLs that a
/// receiver could read in two ways are refused.
package struct URLText: Sendable, Hashable {
  /// The URL as given.
  package let bytes: ByteString
  /// The scheme as written, without the colon.
  package let scheme: ByteString
  /// The part between `//` and the path, or nil if there is none.
  package let authority: ByteString?
  /// The user name and password before the host, as written, or nil.
  package let userInfo: ByteString?
  /// The host as written, an IPv6 address in brackets; nil without an authority.
  package let host: ByteString?
  /// The port, or nil.
  package let port: Int?
  /// The path as written; may be empty.
  package let path: ByteString
  /// The part after `?`, as written, or nil.
  package let query: ByteString?
  /// The part after `#`, as written, or nil.
  package let fragment: ByteString?

  /// The maximum length in bytes. No platform states one; RFC 9110, section 4.1, recommends support
  /// for at least 8,000 bytes.
  package static let maximumLength = 65_536

  /// Reads a URL.
  ///
  /// - Throws: `usage` if it is too long, has bytes that RFC 3986 does not allow, wrong escapes,
  ///   escaped control characters, or no scheme, and if its authority is invalid. The reason states
  ///   the byte, counted from 1.
  package init(reading bytes: ByteString) throws(OperationError) {
    if let reason = Self.fault(ofText: bytes) { throw Self.refusal(bytes, reason) }
    try self.init(splitting: bytes)
  }

  /// Splits a text that contains only bytes permitted in URLs into its parts.
  ///
  /// - Throws: `usage` if there is no scheme, or if the authority is invalid.
  init(splitting bytes: ByteString) throws(OperationError) {
    var rest = bytes.bytes
    guard let colon = rest.firstIndex(of: UInt8(ascii: ":")) else {
      throw Self.refusal(
        bytes, "it has no scheme", hint: "write the scheme and a colon first, such as https:")
    }
    let scheme = ByteString(rest[..<colon])
    if let reason = Self.fault(ofScheme: scheme) {
      throw Self.refusal(bytes, "'\(scheme)' is not a scheme: \(reason)")
    }
    rest = rest[(colon + 1)...]
    let fragment = Self.cut(&rest, from: "#")
    let query = Self.cut(&rest, from: "?")
    var authority: ByteString?
    if rest.starts(with: "//".utf8) {
      let end = rest.dropFirst(2).firstIndex(of: ByteString.slash) ?? rest.endIndex
      authority = ByteString(rest[(rest.startIndex + 2)..<end])
      rest = rest[end...]
    }
    self.bytes = bytes
    self.scheme = scheme
    self.authority = authority
    self.fragment = fragment
    self.query = query
    path = ByteString(rest)
    do throws(AuthorityFault) {
      let parts = try authority.map { text throws(AuthorityFault) in try Authority(text) }
      (userInfo, host, port) = (parts?.userInfo, parts?.host, parts?.port)
    } catch { throw Self.refusal(bytes, error.reason) }
  }

  /// Removes the part from the first occurrence of a byte and returns what follows it, or nil.
  private static func cut(_ rest: inout ArraySlice<UInt8>, from byte: Unicode.Scalar) -> ByteString?
  {
    guard let index = rest.firstIndex(of: UInt8(ascii: byte)) else { return nil }
    let part = ByteString(rest[(index + 1)...])
    rest = rest[..<index]
    return part
  }

  private static func refusal(
    _ url: ByteString, _ reason: String,
    hint: String = "other characters than those of RFC 3986 are written as escapes, for example %20"
  ) -> OperationError {
    var shown = hidingPassword(in: url)
    if shown.count > 200 { shown = ByteString(Array(shown.bytes.prefix(200)) + Array("…".utf8)) }
    return OperationError(
      .usage, code: .invalidInput, "open the URL", subject: shown, reason: reason,
      hint: hint)
  }
}

// MARK: - Rules

extension URLText {
  /// Returns the reason why bytes are not a URL scheme, or nil if they are one: a letter, then
  /// letters, digits, `+`, `-` and `.` (RFC 3986, section 3.1).
  package static func fault(ofScheme scheme: ByteString) -> String? {
    guard let first = scheme.bytes.first else { return "it is empty" }
    if scheme.count > 255 { return "it has \(scheme.count) bytes, more than the limit of 255" }
    if !first.isASCIILetter { return "it does not begin with a letter" }
    let wrong = scheme.bytes.first { !$0.isASCIIAlphanumeric && !"+-.".utf8.contains($0) }
    return wrong.map { byte in
      "it contains '\(ByteString([byte]))', and only letters, digits, '+', '-' and '.' are allowed"
    }
  }

  /// Returns the reason why a text is not safe as a URL, or nil.
  private static func fault(ofText text: ByteString) -> String? {
    if text.isEmpty { return "it is empty" }
    if text.count > maximumLength {
      return "it has \(text.count) bytes, more than the limit of \(maximumLength)"
    }
    let bytes = Array(text.bytes)
    var index = 0
    while index < bytes.count {
      let byte = bytes[index]
      if byte == UInt8(ascii: "%") {
        guard index + 2 < bytes.count, let high = bytes[index + 1].hexValue,
          let low = bytes[index + 2].hexValue
        else { return "'%' at byte \(index + 1) is not followed by two hexadecimal digits" }
        let value = high << 4 | low
        if value < 0x20 || value == 0x7f {
          return "the escape at byte \(index + 1) stands for the control character \(value)"
        }
        index += 3
        continue
      }
      if let reason = fault(of: byte) { return "byte \(index + 1) is \(reason)" }
      index += 1
    }
    return nil
  }

  /// Returns the description of a byte that a URL must not contain, or nil (RFC 3986, appendix A).
  private static func fault(of byte: UInt8) -> String? {
    if byte < 0x20 || byte == 0x7f { return "the control character \(byte)" }
    if byte >= 0x80 { return "not ASCII; it must be written as an escape" }
    if byte.isASCIIAlphanumeric || "-._~:/?#[]@!$&'()*+,;=".utf8.contains(byte) { return nil }
    return "'\(ByteString([byte]))', which must be written as an escape"
  }

  /// Returns bytes with their escapes resolved.
  package static func decoded(_ text: ByteString) -> ByteString {
    guard text.bytes.contains(UInt8(ascii: "%")) else { return text }
    var result: [UInt8] = []
    var rest = text.bytes
    while let byte = rest.popFirst() {
      if byte == UInt8(ascii: "%"), let high = rest.first?.hexValue,
        let low = rest.dropFirst().first?.hexValue
      {
        result.append(high << 4 | low)
        rest = rest.dropFirst(2)
      } else {
        result.append(byte)
      }
    }
    return ByteString(result)
  }
}

// MARK: - The authority

/// The reason why an authority is invalid.
private struct AuthorityFault: Error {
  let reason: String
}

/// The parts of an authority (RFC 3986, section 3.2).
private struct Authority {
  let userInfo: ByteString?
  let host: ByteString
  let port: Int?

  init(_ text: ByteString) throws(AuthorityFault) {
    var rest = text.bytes
    if let at = rest.lastIndex(of: UInt8(ascii: "@")) {
      let user = ByteString(rest[..<at])
      if user.bytes.contains(UInt8(ascii: "@")) {
        throw AuthorityFault(reason: "its authority has several '@', so its host is not clear")
      }
      userInfo = user
      rest = rest[(at + 1)...]
    } else {
      userInfo = nil
    }
    let digits: ArraySlice<UInt8>?
    if rest.first == UInt8(ascii: "[") {
      guard let end = rest.firstIndex(of: UInt8(ascii: "]")) else {
        throw AuthorityFault(reason: "the IPv6 address of its host has no ']'")
      }
      host = ByteString(rest[...end])
      let after = rest[(end + 1)...]
      guard after.isEmpty || after.first == UInt8(ascii: ":") else {
        throw AuthorityFault(reason: "its host has text after ']'")
      }
      digits = after.isEmpty ? nil : after.dropFirst()
    } else {
      let colon = rest.firstIndex(of: UInt8(ascii: ":"))
      host = ByteString(rest[..<(colon ?? rest.endIndex)])
      digits = colon.map { rest[($0 + 1)...] }
    }
    port = try Self.port(digits)
    let isAddress = host.bytes.first == UInt8(ascii: "[")
    let brackets = host.bytes.count { $0 == UInt8(ascii: "[") || $0 == UInt8(ascii: "]") }
    if brackets != (isAddress ? 2 : 0) {
      throw AuthorityFault(reason: "its host has brackets that enclose no IPv6 address")
    }
  }

  private static func port(_ digits: ArraySlice<UInt8>?) throws(AuthorityFault) -> Int? {
    guard let digits, !digits.isEmpty else { return nil }
    guard digits.allSatisfy(\.isASCIIDigit), digits.count <= 5,
      let port = Int(String(decoding: digits, as: UTF8.self)), port <= 65_535
    else {
      throw AuthorityFault(reason: "'\(ByteString(digits))' is not a port, 0 to 65535")
    }
    return port
  }
}

package import SystemIO

/// A directory of another host, which the user's own `ssh` reaches.
package struct SFTPLocation: Hashable, Sendable {
  /// The user to log in as; nil for the one in the ssh configuration. It contains only letters,
  /// digits and `._-+@\`, and does not begin with `-`.
  package let user: ByteString?
  /// The host: a name, an address, or a `Host` of the user's ssh configuration. An IPv6 address has
  /// no brackets. It does not begin with `-`, so that `ssh` never mistakes it for an option.
  package let host: ByteString
  /// The port, 1 to 65535; nil for the one in the ssh configuration.
  package let port: Int?
  /// The directory on the server: absolute, or relative to the directory that the server starts in
  /// (`/~/…` in the text); `.` stands for that directory itself.
  package let path: ByteString

  /// Creates a location from parts that are known to be valid.
  package init(user: ByteString?, host: ByteString, port: Int?, path: ByteString) {
    self.user = user
    self.host = host
    self.port = port
    self.path = path
  }

  /// The text that names the location: with `//` if it has a port or an IPv6 address.
  package var text: ByteString {
    let isAddress = host.bytes.contains(UInt8(ascii: ":"))
    var bytes = Array((port != nil || isAddress ? "sftp://" : "sftp:").utf8)
    if let user { bytes += user.bytes + [UInt8(ascii: "@")] }
    bytes += isAddress ? Array("[".utf8) + host.bytes + Array("]".utf8) : Array(host.bytes)
    if let port { bytes += Array(":\(port)".utf8) }
    if path == "." { return ByteString(bytes + Array("/~".utf8)) }
    if !path.isAbsolute { bytes += Array("/~/".utf8) }
    return ByteString(bytes + path.bytes)
  }
}

extension SFTPLocation {
  private static let form = "write 'sftp://user@host:22/path' or 'sftp:alias/path'"

  /// Parses the text after `sftp:`.
  init(_ location: LocationText) throws(OperationError) {
    try location.requireLowercaseScheme("sftp")
    let isURL = location.rest.starts(with: "//".utf8)
    let rest = location.rest.dropFirst(isURL ? 2 : 0)
    let authority = rest.prefix { $0 != ByteString.slash }
    let path = rest[authority.endIndex...]
    try Self.requireNoPassword(authority, before: path, location)
    let (user, address) = Self.split(authority)
    let hasPort = isURL && !address.starts(with: "[".utf8)
    try Self.requireNoColon(address, path: path, isURL: isURL, location)
    self.user = try Self.user(user, location)
    host = try Self.host(address, hasPort: hasPort, location)
    port = try Self.port(address, location)
    self.path = try Self.path(path, isURL: isURL, location)
  }

  /// Refuses a password, even one with a slash: it would appear in the list of processes and in
  /// shell histories.
  private static func requireNoPassword(
    _ authority: ArraySlice<UInt8>, before path: ArraySlice<UInt8>, _ location: LocationText
  ) throws(OperationError) {
    let at = UInt8(ascii: "@")
    guard let colon = authority.firstIndex(of: UInt8(ascii: ":")), authority.first != 0x5b else {
      return
    }
    let isBeforeHost = authority[colon...].contains(at)
    // `host:22/a@b` is a path with an `@`, not a password.
    guard isBeforeHost || (path.contains(at) && !isPort(authority[(colon + 1)...])) else { return }
    throw location.refused(
      "it contains a password", hint: "use a key with ssh-agent or in ~/.ssh/config, and \(form)")
  }

  /// Returns the bytes before and after the last `@`.
  private static func split(
    _ authority: ArraySlice<UInt8>
  ) -> (user: ArraySlice<UInt8>?, address: ArraySlice<UInt8>) {
    guard let at = authority.lastIndex(of: UInt8(ascii: "@")) else { return (nil, authority) }
    return (authority[..<at], authority[(at + 1)...])
  }

  /// Refuses a colon that does not precede a port: `sftp:host:/path` is restic's form, and an IPv6
  /// address needs brackets.
  private static func requireNoColon(
    _ address: ArraySlice<UInt8>, path: ArraySlice<UInt8>, isURL: Bool, _ location: LocationText
  ) throws(OperationError) {
    let colons = address.count { $0 == UInt8(ascii: ":") }
    if address.starts(with: "[".utf8) {
      if isURL { return }
      throw location.refused(
        "an address in brackets needs '//'", hint: "write 'sftp://\(ByteString(address))/path'")
    }
    if colons > 1 {
      throw location.refused(
        "an IPv6 address needs brackets", hint: "write 'sftp://user@[2001:db8::1]/path'")
    }
    guard colons == 1, !isURL, let colon = address.firstIndex(of: UInt8(ascii: ":")) else { return }
    let (host, after) = (ByteString(address[..<colon]), address[(colon + 1)...])
    let path = ByteString(path)
    if isPort(after) {
      throw location.refused(
        "a port needs '//'", hint: "write 'sftp://\(host):\(ByteString(after))\(path)'")
    }
    let absolute = after.isEmpty ? path.description : "/~/\(ByteString(after))\(path)"
    throw location.refused(
      "a colon separates the host from the path", hint: "write 'sftp:\(host)\(absolute)'")
  }

  private static func isPort(_ bytes: ArraySlice<UInt8>) -> Bool {
    !bytes.isEmpty && bytes.count <= 5 && bytes.allSatisfy(LocationText.isDigit)
  }

  private static func user(
    _ bytes: ArraySlice<UInt8>?, _ location: LocationText
  ) throws(OperationError) -> ByteString? {
    guard let bytes else { return nil }
    let isPlain = bytes.allSatisfy { byte in
      LocationText.isLetter(byte) || LocationText.isDigit(byte) || "._-+@\\".utf8.contains(byte)
    }
    guard isPlain, let first = bytes.first, first != UInt8(ascii: "-") else {
      throw location.refused(
        "'\(ByteString(bytes))' is not a valid user name",
        hint: "name the user in ~/.ssh/config, or \(form)")
    }
    return ByteString(bytes)
  }

  private static func host(
    _ address: ArraySlice<UInt8>, hasPort: Bool, _ location: LocationText
  ) throws(OperationError) -> ByteString {
    if address.starts(with: "[".utf8) { return try bracketed(address, location) }
    let host = hasPort ? address.prefix { $0 != UInt8(ascii: ":") } : address
    if host.isEmpty { throw location.refused("it names no host", hint: form) }
    let isPlain = host.allSatisfy { byte in
      LocationText.isLetter(byte) || LocationText.isDigit(byte) || "._-".utf8.contains(byte)
    }
    guard isPlain, host.first != UInt8(ascii: "-"), host.count <= 255 else {
      throw location.refused(
        "'\(ByteString(host))' is not a valid host name",
        hint: "name a host with letters, digits, '.', '-' and '_', or an alias of ~/.ssh/config")
    }
    return ByteString(host)
  }

  /// Returns an IPv6 address without its brackets. Only the characters of its form are checked: a
  /// zone may follow (RFC 4007, section 11).
  private static func bracketed(
    _ address: ArraySlice<UInt8>, _ location: LocationText
  ) throws(OperationError) -> ByteString {
    let inner = address.dropFirst().prefix { $0 != UInt8(ascii: "]") }
    let zone = inner.drop { $0 != UInt8(ascii: "%") }
    let isAddress = inner[..<zone.startIndex].allSatisfy { byte in
      Character(Unicode.Scalar(byte)).isHexDigit && byte < 0x80 || ":.".utf8.contains(byte)
    }
    let isZone = zone.dropFirst().allSatisfy { byte in
      LocationText.isLetter(byte) || LocationText.isDigit(byte) || "._-".utf8.contains(byte)
    }
    let after = address[inner.endIndex...].dropFirst()
    let isClosed = inner.endIndex < address.endIndex && (after.isEmpty || after.first == 0x3a)
    guard isClosed, isAddress, isZone, inner.count <= 64, inner.contains(UInt8(ascii: ":")) else {
      throw location.refused(
        "'\(ByteString(address))' is not an IPv6 address",
        hint: "write 'sftp://user@[2001:db8::1]:22/path'")
    }
    return ByteString(inner)
  }

  private static func port(
    _ address: ArraySlice<UInt8>, _ location: LocationText
  ) throws(OperationError) -> Int? {
    let tail = address.starts(with: "[".utf8) ? address.drop { $0 != UInt8(ascii: "]") } : address
    guard let colon = tail.firstIndex(of: UInt8(ascii: ":")) else { return nil }
    let digits = tail[(colon + 1)...]
    guard isPort(digits), let port = Int(String(decoding: digits, as: UTF8.self)),
      (1...65535).contains(port)
    else {
      throw location.refused(
        "'\(ByteString(digits))' is not a port", hint: "give a number from 1 to 65535, or none")
    }
    return port
  }

  /// Returns the path after the host.
  private static func path(
    _ bytes: ArraySlice<UInt8>, isURL: Bool, _ location: LocationText
  ) throws(OperationError) -> ByteString {
    guard bytes.contains(where: { $0 != ByteString.slash }) else {
      throw location.refused("it names no directory on the host", hint: form)
    }
    if isURL, isEncoded(bytes) {
      throw location.refused(
        "nothing is decoded, so '%' and two digits would be part of the path",
        hint: "write the path as it is; if it contains a '%', write 'sftp:host/path'")
    }
    let relative = bytes.dropFirst()
    if relative.elementsEqual("~".utf8) || relative.elementsEqual("~/".utf8) { return "." }
    if relative.starts(with: "~/".utf8) {
      return try location.path(relative.dropFirst(2), isAbsolute: false)
    }
    return try location.path(relative, isAbsolute: true)
  }

  /// Whether the bytes contain `%` and two hexadecimal digits (RFC 3986, section 2.1).
  private static func isEncoded(_ bytes: ArraySlice<UInt8>) -> Bool {
    bytes.indices.contains { index in
      let next = bytes[index...].prefix(3)
      return next.count == 3 && next.first == UInt8(ascii: "%")
        && next.dropFirst().allSatisfy { Character(Unicode.Scalar($0)).isHexDigit && $0 < 0x80 }
    }
  }
}

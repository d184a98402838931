internal import SystemIO

/// The text of a location while it is parsed.
struct LocationText {
  /// A hint that names all forms.
  static let forms =
    "write '/path', 'sftp://user@host/path', 'sftp:alias/path' or 's3://bucket/prefix'"

  /// Schemes and prefixes of other programs' locations (restic 0.17, "Preparing a new repository";
  /// scp, rclone, AWS), which are refused even without `//`.
  private static let foreign: Set<String> = [
    "arn", "azure", "b2", "file", "gs", "http", "https", "local", "rclone", "rest", "rsync", "scp",
    "ssh", "swift", "webdav",
  ]

  let text: ByteString

  init(_ text: ByteString) { self.text = text }

  /// The bytes before the first slash, which contain the scheme, the user and the host.
  private var head: ArraySlice<UInt8> { text.bytes.prefix { $0 != ByteString.slash } }

  /// The scheme in lower case if the text has the form of a URL or begins with the scheme of a
  /// location, or nil if it is a path.
  var scheme: String? {
    guard let colon = head.firstIndex(of: UInt8(ascii: ":")) else { return nil }
    let name = head[..<colon]
    guard let first = name.first, Self.isLetter(first), name.allSatisfy(Self.isOfScheme) else {
      return nil
    }
    let scheme = String(decoding: name, as: UTF8.self).lowercased()
    let isURL = rest.starts(with: "//".utf8)
    let isKnown = scheme == "sftp" || scheme == "s3" || Self.foreign.contains(scheme)
    return isURL || isKnown ? scheme : nil
  }

  /// The scheme as it was written.
  private var writtenScheme: String {
    String(decoding: head.prefix { $0 != UInt8(ascii: ":") }, as: UTF8.self)
  }

  /// The bytes after the first colon.
  var rest: ArraySlice<UInt8> {
    text.bytes.drop { $0 != UInt8(ascii: ":") }.dropFirst()
  }

  /// Checks that there is no white space before a scheme: `" s3://bucket"` is not a directory.
  func requireNoSpace() throws(OperationError) {
    let trimmed = text.bytes.drop { $0 == UInt8(ascii: " ") || (0x09...0x0d).contains($0) }
    guard trimmed.count < text.count, LocationText(ByteString(trimmed)).scheme != nil else {
      return
    }
    throw refused(
      "it begins with a space", hint: "omit it, or write './…' for a directory of this host")
  }

  /// Checks that the scheme is in lower case: `S3://` is more likely a slip than a directory.
  func requireLowercaseScheme(_ scheme: String) throws(OperationError) {
    guard writtenScheme != scheme else { return }
    throw refused("the scheme is in upper case", hint: "write '\(scheme):' in lower case")
  }

  /// Checks that a path does not have the form `user@host:path` or `host:/path` of scp and rsync.
  func requireNoHost() throws(OperationError) {
    guard let colon = head.lastIndex(of: UInt8(ascii: ":")), head.first != UInt8(ascii: ".") else {
      return
    }
    let host = head[..<colon]
    let isAbsolute = colon + 1 == head.endIndex && colon + 1 < text.bytes.endIndex
    let (hasUser, hasColon) = (host.contains(UInt8(ascii: "@")), host.contains(UInt8(ascii: ":")))
    guard !host.isEmpty, hasUser || (isAbsolute && !hasColon) else { return }
    if hasColon {
      throw refused("it has the form of another host's path with a password", hint: Self.forms)
    }
    let path = ByteString(text.bytes[(colon + 1)...])
    let written = ByteString(host).description + (isAbsolute ? "" : "/~/") + path.description
    throw refused(
      "it has the form of another host's path, as scp writes it",
      hint: "write 'sftp:\(written)', or './\(text)' for a directory of this host")
  }

  /// Checks that a path does not begin with the home directory as a shell writes it, or have the
  /// form `host:path`. A single letter before the colon is not a host.
  func requireUsualDirectory() throws(OperationError) {
    if head.first == UInt8(ascii: "~") {
      throw refused(
        "'~' is in quotes, so the shell has not replaced it with a home directory",
        hint: "write the path of the directory, or './\(text)' for a directory of this host")
    }
    guard let colon = head.firstIndex(of: UInt8(ascii: ":")) else { return }
    let host = head[..<colon]
    guard host.count > 1, let first = host.first, Self.isLetter(first),
      host.allSatisfy(Self.isOfScheme), !rest.isEmpty
    else { return }
    throw refused(
      "it has the form of another host's path, as scp writes it",
      hint:
        "write 'sftp:\(ByteString(host))/~/\(ByteString(rest))', or './\(text)' for a directory "
        + "of this host")
  }

  /// Returns the error for a scheme that is not supported.
  func refusedScheme(_ scheme: String) -> OperationError {
    let local = "or './…' for a directory of this host with such a name"
    switch scheme {
    case "ssh", "scp", "rsync":
      return refused(
        "'\(scheme)' is not supported", hint: "write 'sftp://user@host/path', \(local)")
    case "file", "local":
      return refused("'\(scheme)' is not supported", hint: "write the path alone, \(local)")
    case "http", "https", "arn":
      return refused(
        "'\(scheme)' is not supported",
        hint: "write 's3://bucket/prefix', with the server in '--s3-endpoint', \(local)")
    default:
      return refused("'\(scheme)' is not supported", hint: "\(Self.forms), \(local)")
    }
  }

  /// Returns the error for this text, in which a password is replaced.
  func refused(_ reason: String, hint: String) -> OperationError {
    OperationError(
      .usage, code: .invalidValue, "use the repository", subject: redacted, reason: reason,
      hint: hint)
  }

  /// The text without what may be a password: everything between the first colon after the scheme
  /// and the last `@`, which may follow slashes that were not escaped. Without a scheme everything
  /// from the first colon, because only a host's path is refused then.
  private var redacted: ByteString {
    let bytes = text.bytes
    var from = bytes.startIndex
    if scheme != nil {
      from = rest.startIndex
      from = bytes[from...].firstIndex { $0 != ByteString.slash } ?? bytes.endIndex
    }
    guard let at = bytes.lastIndex(of: UInt8(ascii: "@")), at >= from,
      let colon = bytes[from..<at].firstIndex(of: UInt8(ascii: ":"))
    else { return text }
    return ByteString(Array(bytes[...colon]) + Array("…".utf8) + Array(bytes[at...]))
  }
}

extension LocationText {
  static func isLetter(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
  }

  static func isDigit(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
  }

  /// Whether a byte may be in a scheme (RFC 3986, section 3.1).
  private static func isOfScheme(_ byte: UInt8) -> Bool {
    isLetter(byte) || isDigit(byte) || "+-.".utf8.contains(byte)
  }

  /// Checks the components of a path on another host: none is empty, `.` or `..`, and none contains
  /// a NUL or a control character.
  ///
  /// - Returns: the path without slashes at its end.
  func path(
    _ bytes: ArraySlice<UInt8>, isAbsolute: Bool
  ) throws(OperationError) -> ByteString {
    let trimmed = bytes.reversed().drop { $0 == ByteString.slash }.reversed()
    let path = ByteString(trimmed)
    if path.bytes.contains(where: { $0 < 0x20 || $0 == 0x7f }) {
      throw refused("the path contains a control character", hint: Self.forms)
    }
    for component in path.bytes.split(separator: ByteString.slash, omittingEmptySubsequences: false)
    {
      let name = ByteString(component)
      if name == "." || name == ".." {
        throw refused("the path contains '\(name)'", hint: "write the path without it")
      }
      if name.isEmpty, !path.isEmpty {
        throw refused("the path contains '//'", hint: "write one '/' between its components")
      }
    }
    return isAbsolute ? ByteString([ByteString.slash]).concatenating(path) : path
  }
}

import SystemIO

/// The properties of a tree that are the same on every machine, like the output of `find` with
/// checksums: one line for each entry, sorted by the bytes of the paths.
struct TreeListing {
  private(set) var lines: [String] = []
  private(set) var files = 0
  private(set) var bytes: UInt64 = 0
  private var links: [FileIdentity: ByteString] = [:]

  init(_ path: ByteString) throws(SystemError) {
    let root = try Directory.open(path: path)
    lines.append(Self.line(".", "folder", try root.status()))
    try add(root, "")
  }

  private mutating func add(_ directory: borrowing Directory, _ prefix: ByteString)
    throws(SystemError)
  {
    for name in try directory.names() {
      let path = prefix.appending(name)
      let status = try directory.status(name)
      var line: String
      switch status.kind {
      case .directory: line = Self.line(path, "folder", status)
      case .symlink: line = Self.line(path, "link to \(try directory.target(of: name))", status)
      case .file: line = Self.line(path, try content(name, path, in: directory, status), status)
      default: line = Self.line(path, "special", status)
      }
      if status.kind != .symlink {
        let attributes = directory.attributes(of: name)
        for key in try attributes.names() {
          let value = try attributes.value(of: key) ?? []
          line += " \(key)=\(ByteString(value))"
        }
      }
      lines.append(line)
      if status.kind == .directory { try add(try directory.directory(name), path) }
    }
  }

  private mutating func content(
    _ name: ByteString, _ path: ByteString, in directory: borrowing Directory, _ status: FileStatus
  ) throws(SystemError) -> String {
    if let first = links[status.identity] { return "same file as \(first)" }
    if status.links > 1 { links[status.identity] = path }
    files += 1
    bytes += status.size
    let content = try directory.file(name).readAll(limit: 1 << 24) ?? []
    return "\(content.count) bytes \(Self.digest(content))"
  }

  private static func line(_ path: ByteString, _ what: String, _ status: FileStatus) -> String {
    let mode = String(status.permissions, radix: 8)
    let nanoseconds = String(status.modified.nanoseconds + 1_000_000_000).dropFirst()
    return "\(path) \(mode) \(status.modified.seconds).\(nanoseconds) \(what)"
  }

  /// FNV-1a with 64 bits, which is sufficient to detect an accidental change.
  private static func digest(_ bytes: [UInt8]) -> String {
    let hash = bytes.reduce(0xcbf2_9ce4_8422_2325 as UInt64) {
      ($0 ^ UInt64($1)) &* 0x0000_0100_0000_01b3
    }
    let digits = String(hash, radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
  }
}

internal import Codecs
internal import SystemIO

/// Reads Manifest.mbdb, the manifest of backups up to iOS 9, record by record.
///
/// After the header `mbdb` 05 00 each record has five strings (domain, path, link target, SHA-1 of
/// the content, key), numbers, and pairs of strings for extended attributes. A string is a length
/// of 16 bits and its bytes; FFFF means no string. Numbers are big-endian. (The iPhone Wiki,
/// "iTunes Backup", "Manifest.mbdb".)
struct MBDBReader: ~Copyable {
  private var input: Input

  static let magic: [UInt8] = Array("mbdb".utf8) + [5, 0]

  /// Begins to read a manifest.
  ///
  /// - Throws: a fault if the header is different.
  init(_ file: consuming Descriptor) throws(ManifestFault) {
    input = Input(file)
    guard try input.bytes(Self.magic.count) == Self.magic else {
      throw ManifestFault(reason: "it does not begin with the header of version 5.0", offset: 0)
    }
  }

  /// Returns the apps that have data. Damage ends the list: the records themselves report it.
  static func apps(in file: consuming Descriptor) throws(ManifestFault) -> Set<ByteString> {
    var reader = try MBDBReader(file)
    var (apps, last): (Set<ByteString>, [UInt8]) = ([], [])
    while let domain = try? reader.nextDomain() {
      // The records of a domain are next to each other.
      if domain != last, let app = MobileSyncDomains.app(of: ByteString(domain)) {
        apps.insert(app)
      }
      last = domain
    }
    return apps
  }

  /// Returns the domain of the next record, or nil at the end.
  private mutating func nextDomain() throws(ManifestFault) -> [UInt8]? {
    guard let domain = try nextStart() else { return nil }
    _ = try input.string()
    var file = MobileFile()
    for _ in 0..<3 { _ = try input.string() }
    try readNumbers(&file)
    try readAttributes(&file)
    return domain
  }

  /// Reads the domain of the next record, or returns nil at the end.
  private mutating func nextStart() throws(ManifestFault) -> [UInt8]? {
    if try input.isAtEnd() { return nil }
    let start = input.offset
    guard let domain = try input.string(), !domain.isEmpty else {
      throw ManifestFault(reason: "a record has no domain", offset: start)
    }
    return domain
  }

  /// Returns the next record, or nil at the end.
  mutating func next() throws(ManifestFault) -> MobileRecord? {
    guard let domain = try nextStart() else { return nil }
    let path = ByteString(try input.string() ?? [])
    var file = MobileFile()
    // Some writers store no target as an empty string.
    if let target = try input.string(), !target.isEmpty { file.target = ByteString(target) }
    if let digest = try input.string(), !digest.isEmpty { file.digest = digest }
    if let key = try input.string(), !key.isEmpty {
      file.key = WrappedKey(key) ?? .damaged
    }
    try readNumbers(&file)
    try readAttributes(&file)
    let name = ByteString(domain)
    return MobileRecord(
      domain: name, relativePath: path,
      fileID: MobileRecord.fileID(domain: name, relativePath: path), flags: nil, file: file)
  }

  private mutating func readNumbers(_ file: inout MobileFile) throws(ManifestFault) {
    file.mode = UInt16(truncatingIfNeeded: try input.number(2))
    file.inode = try input.number(8)
    file.owner = UInt32(truncatingIfNeeded: try input.number(4))
    file.group = UInt32(truncatingIfNeeded: try input.number(4))
    file.modified = Int64(try input.number(4))
    // The time of the last access, which a backup does not restore.
    _ = try input.number(4)
    file.changed = Int64(try input.number(4))
    file.size = try input.number(8)
    file.protectionClass = UInt8(truncatingIfNeeded: try input.number(1))
  }

  private mutating func readAttributes(_ file: inout MobileFile) throws(ManifestFault) {
    for _ in 0..<(try input.number(1)) {
      let name = try input.string() ?? []
      let value = try input.string() ?? []
      file.attributes.append(ForeignEntry.Attribute(name: ByteString(name), value: value))
    }
  }

  /// The bytes of the manifest, read ahead in portions.
  private struct Input: ~Copyable {
    private let file: Descriptor
    private var buffer: [UInt8] = []
    private var position = 0
    private var bufferStart: UInt64 = 0
    private static let portion = 1 << 20

    init(_ file: consuming Descriptor) { self.file = file }

    /// The position in the file in bytes.
    var offset: UInt64 { bufferStart + UInt64(position) }

    mutating func isAtEnd() throws(ManifestFault) -> Bool { try !has(1) }

    /// Returns the next bytes.
    mutating func bytes(_ count: Int) throws(ManifestFault) -> [UInt8] {
      guard try has(count) else {
        throw ManifestFault(reason: "it is truncated", offset: offset)
      }
      defer { position += count }
      return Array(buffer[position..<(position + count)])
    }

    mutating func number(_ count: Int) throws(ManifestFault) -> UInt64 {
      try bytes(count).reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// Returns a string, or nil for one that is absent.
    mutating func string() throws(ManifestFault) -> [UInt8]? {
      let length = Int(try number(2))
      return length == 0xffff ? nil : try bytes(length)
    }

    /// Returns whether the file has more bytes, and reads them into the buffer.
    private mutating func has(_ count: Int) throws(ManifestFault) -> Bool {
      if buffer.count - position >= count { return true }
      buffer.removeFirst(position)
      bufferStart += UInt64(position)
      position = 0
      do throws(SystemError) {
        try file.read(
          count: max(Self.portion, count), at: bufferStart + UInt64(buffer.count),
          appendingTo: &buffer)
      } catch {
        throw ManifestFault(reason: error.reason, offset: offset, cause: error)
      }
      return buffer.count >= count
    }
  }
}

/// The reason why a manifest cannot be read, or not beyond a position.
struct ManifestFault: Error, Hashable, Sendable {
  /// A sentence about the manifest without a full stop.
  let reason: String
  /// The position in bytes, if it is known.
  var offset: UInt64?
  /// The system call that failed, if there is one.
  var cause: SystemError?
}

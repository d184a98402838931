internal import ArchiveStore
internal import Codecs
internal import SandboxModel
internal import SystemIO

/// Lines of a listing of entries, built as bytes for speed: a listing may have millions.
struct ListingLine {
  /// The names of owners and groups; nil if they are not shown.
  private let names: OwnerNames?
  private(set) var bytes: [UInt8] = []

  /// Creates lines with mode, size, time and path; with `names` also with owner and group, exact
  /// sizes and seconds.
  init(names: OwnerNames? = nil) { self.names = names }

  /// Builds the line of an entry, with a note at its end.
  mutating func set(_ entry: TreeEntry, at path: ByteString, note: String = "") {
    bytes.removeAll(keepingCapacity: true)
    appendMode(of: entry)
    if let names {
      append(names.user(entry.owner), width: 9)
      append(names.group(entry.group), width: 9)
    }
    appendSize(of: entry)
    appendBlanks(2)
    appendTime(of: entry, at: path)
    appendBlanks(2)
    path.appendShown(to: &bytes)
    switch entry.node {
    case .directory: bytes.append(UInt8(ascii: "/"))
    case .symlink(let target):
      bytes += Array(" -> ".utf8)
      target.appendShown(to: &bytes)
    default: break
    }
    bytes.append(contentsOf: note.utf8)
    if names != nil, let protection = entry.protection {
      bytes.append(contentsOf: "  protection \(protection.rawValue)".utf8)
    }
    bytes.append(UInt8(ascii: "\n"))
  }

  private mutating func appendBlanks(_ count: Int) {
    for _ in 0..<count { bytes.append(UInt8(ascii: " ")) }
  }

  private mutating func append(_ text: String, width: Int) {
    appendBlanks(2)
    bytes.append(contentsOf: text.utf8)
    appendBlanks(max(0, width - text.utf8.count))
  }

  /// Appends the size, aligned to the right.
  private mutating func appendSize(of entry: TreeEntry) {
    appendBlanks(2)
    let start = bytes.count
    switch entry.node {
    case .file(let content) where names == nil: Sizes.append(content.size, to: &bytes)
    case .file(let content): bytes.append(contentsOf: "\(content.size)".utf8)
    case .characterDevice(let number), .blockDevice(let number):
      bytes.append(contentsOf: "\(number.major),\(number.minor)".utf8)
    default: break
    }
    let end = bytes.count
    let blanks = max(0, (names == nil ? 9 : 12) - (end - start))
    appendBlanks(blanks)
    guard blanks > 0 else { return }
    for index in (start..<end).reversed() {
      bytes[index + blanks] = bytes[index]
    }
    for index in start..<(start + blanks) { bytes[index] = UInt8(ascii: " ") }
  }

  private mutating func appendTime(of entry: TreeEntry, at path: ByteString) {
    let start = bytes.count
    let width = names == nil ? 16 : 19
    if !entry.isAboveContainers(path) {
      Times.append(entry.modified, seconds: names != nil, to: &bytes)
    }
    appendBlanks(max(0, start + width - bytes.count))
  }

  private mutating func appendMode(of entry: TreeEntry) {
    let start = bytes.count
    bytes.append(entry.kindLetter)
    for shift in stride(from: UInt16(6), through: 0, by: -3) {
      let bits = entry.permissions >> shift
      bytes.append(UInt8(ascii: bits & 4 != 0 ? "r" : "-"))
      bytes.append(UInt8(ascii: bits & 2 != 0 ? "w" : "-"))
      bytes.append(UInt8(ascii: bits & 1 != 0 ? "x" : "-"))
    }
    if entry.permissions & 0o7000 == 0 { return }
    for (bit, index, letter) in [(UInt16(0o4000), 3, "s"), (0o2000, 6, "s"), (0o1000, 9, "t")]
    where entry.permissions & bit != 0 {
      let lower = letter.utf8.first ?? 0
      let canRun = bytes[start + index] == UInt8(ascii: "x")
      bytes[start + index] = canRun ? lower : lower & ~0x20
    }
  }
}

extension ListingLine {
  /// The names of owners and groups by number, at the time of the snapshot.
  struct OwnerNames {
    private let users: [UInt32: String]
    private let groups: [UInt32: String]

    init(_ snapshot: Snapshot) {
      users = Self.table(snapshot.users)
      groups = Self.table(snapshot.groups)
    }

    private static func table(_ records: [NameRecord]) -> [UInt32: String] {
      Dictionary(
        records.map { ($0.id, ByteString($0.name).description) }, uniquingKeysWith: { $1 })
    }

    /// Returns the user's name, or the number if there is none.
    func user(_ id: UInt32) -> String { users[id] ?? "\(id)" }

    /// Returns the group's name, or the number if there is none.
    func group(_ id: UInt32) -> String { groups[id] ?? "\(id)" }
  }
}

extension TreeEntry {
  /// The size of a regular file in bytes; nil for other entries.
  var contentSize: UInt64? {
    if case .file(let content) = node { return content.size }
    return nil
  }

  /// The type in JSON.
  var kindName: String { node.kind.word }

  /// Returns the entry as a line of `ls --json`.
  func json(at path: ByteString) -> JSON { .object(JSON.path(path) + jsonMembers) }

  /// The members of a line of `ls --json`, except the path.
  var jsonMembers: [JSON.Member] {
    var members = [JSON.Member("type", .string(kindName))]
    if let size = contentSize {
      members.append(JSON.Member("size", .integer(Int64(clamping: size))))
    }
    if case .symlink(let target) = node { members += JSON.path(target, named: "target") }
    members += [
      JSON.Member("mode", .integer(Int64(permissions))), JSON.Member("uid", .integer(Int64(owner))),
      JSON.Member("gid", .integer(Int64(group))),
      JSON.Member("modified", .string(modified.rfc3339)),
    ]
    if let linkGroup { members += JSON.path(linkGroup, named: "link_group") }
    if let protection { members.append(JSON.Member("protection", .string(protection.rawValue))) }
    return members
  }

  /// The class of data protection that the entry's metadata states, or nil if it states none.
  var protection: ProtectionClass? {
    for attribute in attributes where attribute.name == ProtectionClass.attribute {
      if case .inline(let value) = attribute.value { return ProtectionClass(attribute: value) }
    }
    return nil
  }
}

extension TreeEntry {
  /// The type as `ls` prints it.
  fileprivate var kindLetter: UInt8 {
    switch node {
    case .file: UInt8(ascii: "-")
    case .directory: UInt8(ascii: "d")
    case .symlink: UInt8(ascii: "l")
    case .fifo: UInt8(ascii: "p")
    case .socket: UInt8(ascii: "s")
    case .characterDevice: UInt8(ascii: "c")
    case .blockDevice: UInt8(ascii: "b")
    }
  }

  /// Whether the entry is a directory above the containers, which exists only in snapshots and has
  /// no time. An entry in a container may also have the time 0, so the path decides; it is parsed
  /// only in that case.
  fileprivate func isAboveContainers(_ path: ByteString) -> Bool {
    guard modified == Timestamp(seconds: 0), case .directory = node else { return false }
    return (try? LogicalPath(path))?.location == nil
  }
}

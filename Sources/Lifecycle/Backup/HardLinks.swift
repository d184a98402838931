internal import ArchiveStore
internal import SystemIO

/// The files of a backup that have several names in it: a group is named by the smallest logical
/// path of its members, and its content is read once.
struct HardLinks {
  private var groups: [FileIdentity: Group] = [:]

  private struct Group {
    var name: ByteString
    var members = 1
    var content: Content?
  }

  /// Finds the groups among the entries that are stored.
  init(_ scans: [ContainerScan]) {
    for scan in scans {
      for (index, entry) in scan.entries.enumerated()
      where entry.fate != .leftOut && entry.status.kind != .directory && entry.status.links > 1 {
        note(entry.status.identity, scan.logicalPath(index))
      }
    }
    groups = groups.filter { $0.value.members > 1 }
  }

  private mutating func note(_ identity: FileIdentity, _ path: ByteString) {
    guard var group = groups[identity] else {
      groups[identity] = Group(name: path)
      return
    }
    group.name = min(group.name, path)
    group.members += 1
    groups[identity] = group
  }

  /// The name of a file's group, nil when it is in none.
  func group(of status: FileStatus) -> ByteString? { groups[status.identity]?.name }

  /// The content of a file that was read under another name.
  func content(of status: FileStatus) -> Content? { groups[status.identity]?.content }

  /// Keeps the content for the other names.
  mutating func note(_ content: Content, of status: FileStatus) {
    groups[status.identity]?.content = content
  }
}

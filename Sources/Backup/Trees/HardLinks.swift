internal import ArchiveStore
internal import DeviceScan
internal import SystemIO

/// The hard-linked files of a backup. A group is named by the smallest logical path of its members.
/// One member is read; the others have the same entry except for the name.
struct HardLinks: Sendable {
  private let trees: [SelectedTree]
  private var groups: [FileIdentity: Group] = [:]
  /// The members that follow each member that is read.
  private var followers: [EntryID: [EntryID]] = [:]
  private var isFollowing: Set<EntryID> = []

  private struct Group: Sendable {
    /// The member with the smallest path. The path, which can be long, is determined when needed.
    var first: EntryID
    var members: [EntryID]
  }

  /// Finds the groups among the stored entries.
  init(_ trees: [SelectedTree]) {
    self.trees = trees
    for tree in trees {
      for (index, entry) in tree.scan.entries.enumerated()
      where entry.selection != .excluded && entry.status.kind != .directory
        && entry.status.links > 1
      {
        record(entry.status.identity, of: tree.id(index))
      }
    }
    groups = groups.filter { $0.value.members.count > 1 }
  }

  private mutating func record(_ identity: FileIdentity, of id: EntryID) {
    guard var group = groups.removeValue(forKey: identity) else {
      groups[identity] = Group(first: id, members: [id])
      return
    }
    if trees.logicalPath(of: id) < trees.logicalPath(of: group.first) { group.first = id }
    group.members.append(id)
    groups[identity] = group
  }

  /// Chooses the member of each group that is read, among those that must be. A database, its log
  /// and its journal are read under each of their names, because the names determine which files
  /// belong together.
  mutating func lead(_ trees: [SelectedTree], _ known: [UnchangedEntries]) {
    for group in groups.values {
      let read = group.members.filter { id in
        let (container, index) = (Int(id.container), Int(id.index))
        let known = known[container]
        return trees[container].isRead(index, known) && known.renamedLinks[id.index] == nil
          && known.databases[id.index] == nil && !known.companions.contains(id.index)
          && known.waiting[id.index] == nil
      }
      guard let leader = read.first, read.count > 1 else { continue }
      followers[leader] = Array(read.dropFirst())
      isFollowing.formUnion(read.dropFirst())
    }
  }

  /// Returns the name of a file's group, or nil if it is in none.
  func name(of identity: FileIdentity) -> ByteString? {
    groups[identity].map { trees.logicalPath(of: $0.first) }
  }

  /// Returns the names of a file, or none if it is in no group.
  func members(of identity: FileIdentity) -> [EntryID] { groups[identity]?.members ?? [] }

  /// Returns the members that are not read because this one is.
  func followers(of leader: EntryID) -> [EntryID] { followers[leader] ?? [] }

  /// Whether another member of the group is read instead of this one.
  func isFollower(_ id: EntryID) -> Bool { isFollowing.contains(id) }
}

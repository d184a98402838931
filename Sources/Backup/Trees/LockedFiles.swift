internal import ArchiveStore
internal import DatabaseCapture
internal import DeviceScan
package import SandboxModel
package import SystemIO

/// A file that must be read and cannot be opened while the device is locked. It waits for a backup
/// of the unlocked device (docs/data-protection.md).
struct WaitingFile: Sendable {
  /// The class of data protection: the file's own, or that of a file that must be read together
  /// with it.
  let protection: ProtectionClass
  /// The version in the last snapshot, or nil if the snapshot has none.
  var earlier: TreeEntry?
  /// The log and journal of a database that only the last snapshot has: without them its version
  /// would lack transactions.
  var companions: [TreeEntry] = []
}

/// A file that was not opened because the device is locked.
package struct LockedFile: Sendable {
  /// The logical path.
  package let path: ByteString
  /// The size of the file in bytes.
  package let bytes: UInt64
  package let protection: ProtectionClass
  /// Whether the snapshot has an earlier version of the file.
  package let hasEarlier: Bool

  /// The note in the snapshot, which makes a restore keep the file.
  package var note: PathRemark {
    let version = hasEarlier ? "this is an earlier version" : "there is no earlier version"
    return PathRemark(
      path: path,
      remark: "the device was locked, and the data protection is \(protection.rawValue); "
        + version)
  }
}

/// Finds the files that wait in a backup of a locked device.
///
/// A database waits together with its log and its journal, and a hard-linked file under all of its
/// names, so that a snapshot never has parts of two versions.
struct LockedFiles {
  private let trees: [SelectedTree]
  private let links: HardLinks
  /// The classes of the waiting files of each tree, by their indexes in its scan.
  private var waiting: [[Int32: ProtectionClass]]

  /// Determines the files among those that must be read.
  init(_ trees: [SelectedTree], _ known: [UnchangedEntries], links: HardLinks) {
    (self.trees, self.links) = (trees, links)
    waiting = zip(trees, known).map { Self.protected($0, $1) }
    if isEmpty { return }
    while addNames(known) || addDatabases(known) {}
  }

  /// Whether no file waits.
  var isEmpty: Bool { waiting.allSatisfy(\.isEmpty) }

  /// Removes the files from those to read, with their versions in the last snapshot.
  func remove(from known: inout [UnchangedEntries], keeping earlier: EarlierVersions) {
    for (tree, waiting) in zip(trees, waiting) where !waiting.isEmpty {
      let number = tree.number
      for (index, protection) in waiting {
        known[number].renamedLinks[index] = nil
        known[number].copies[index] = nil
        known[number].uncertain[index] = nil
        known[number].companions.remove(index)
        known[number].databases[index] = nil
        known[number].waiting[index] = WaitingFile(protection: protection)
      }
      earlier.fill(&known[number].waiting, of: tree, links: links)
    }
  }

  /// Returns the files of a tree that must be read and are protected by their own class.
  private static func protected(
    _ tree: SelectedTree, _ known: UnchangedEntries
  ) -> [Int32: ProtectionClass] {
    var found: [Int32: ProtectionClass] = [:]
    if tree.isEmpty || known.isWhole(0) { return found }
    var reader = ProtectionReader(tree.scan)
    for (index, entry) in tree.scan.entries.enumerated()
    where entry.status.kind == .file && entry.selection != .excluded
      && isOpened(index, of: tree, known)
    {
      guard let protection = reader.protection(of: index), !protection.isReadableWhileLocked else {
        continue
      }
      found[Int32(index)] = protection
    }
    return found
  }

  /// Whether a backup opens a file. It does not open a hard link whose content is stored.
  private static func isOpened(
    _ index: Int, of tree: SelectedTree, _ known: UnchangedEntries
  ) -> Bool {
    tree.isRead(index, known)
      && (known.renamedLinks[Int32(index)] == nil || tree.scan.entries[index].status.links == 1)
  }

  /// Adds the other names of hard-linked files; returns whether there are any.
  private mutating func addNames(_ known: [UnchangedEntries]) -> Bool {
    var hasAdded = false
    for tree in trees {
      for (index, protection) in waiting[tree.number]
      where tree.scan.entries[Int(index)].status.links > 1 {
        for name in links.members(of: tree.scan.entries[Int(index)].status.identity) {
          let number = Int(name.container)
          guard waiting[number][name.index] == nil,
            Self.isOpened(Int(name.index), of: trees[number], known[number])
          else { continue }
          waiting[number][name.index] = protection
          hasAdded = true
        }
      }
    }
    return hasAdded
  }

  /// Adds the other files of databases; returns whether there are any.
  private mutating func addDatabases(_ known: [UnchangedEntries]) -> Bool {
    var hasAdded = false
    for tree in trees where !waiting[tree.number].isEmpty {
      for (database, files) in known[tree.number].databases {
        let members = [database] + files.companions
        let classes = members.compactMap { waiting[tree.number][$0] }
        guard let protection = classes.min(by: { $0.number < $1.number }),
          classes.count < members.count
        else { continue }
        for member in members where waiting[tree.number][member] == nil {
          waiting[tree.number][member] = protection
        }
        hasAdded = true
      }
    }
    return hasAdded
  }
}

/// The versions of waiting files in earlier snapshots of a source.
final class EarlierVersions {
  /// The snapshots, the newest first.
  private let snapshots: [StoredSnapshot]
  private let reader: RepositoryReader?
  private let contents: ChangeDetector.Contents
  /// The reasons why earlier versions cannot be used.
  private(set) var remarks: [String] = []

  /// Prepares for reading.
  ///
  /// - Parameter snapshots: the snapshots that may have versions, in any order.
  init(in snapshots: [StoredSnapshot], contents: ChangeDetector.Contents) {
    self.snapshots = snapshots.sorted { $0.snapshot.sequence > $1.snapshot.sequence }
    self.contents = contents
    guard !snapshots.isEmpty else {
      reader = nil
      return
    }
    do {
      reader = try contents.session.beginReading()
    } catch {
      reader = nil
      remarks.append("the versions of the last snapshot cannot be read: \(error.reason)")
    }
  }

  /// Adds the earlier versions to the waiting files of a container. All are from one snapshot: the
  /// newest that has the container.
  func fill(
    _ waiting: inout [Int32: WaitingFile], of tree: SelectedTree, links: HardLinks
  ) {
    let container = tree.scan.container.logicalPrefix
    guard let root = snapshots.lazy.compactMap({ self.tree(at: container, in: $0) }).first else {
      return
    }
    let files = Dictionary(grouping: waiting.keys) { tree.scan.entries[Int($0)].parent }
    for (directory, files) in files {
      guard let stored = self.tree(at: tree.scan.path(Int(directory)), below: root) else {
        continue
      }
      for index in files {
        fill(&waiting[index], index, of: tree, in: stored, links: links)
      }
    }
  }

  private func fill(
    _ file: inout WaitingFile?, _ index: Int32, of tree: SelectedTree, in stored: TreeReference,
    links: HardLinks
  ) {
    let name = tree.scan.name(Int(index))
    guard var earlier = version(named: name, in: stored) else { return }
    let status = tree.scan.entries[Int(index)].status
    // Another group may now have the name of the earlier one.
    if earlier.linkGroup != links.name(of: status.identity) { earlier.linkGroup = nil }
    file?.earlier = earlier
    let children = tree.scan.entries[Int(tree.scan.entries[Int(index)].parent)].children
    file?.companions = [DatabaseMember.log, .journal].compactMap { member in
      let companion = name.concatenating(ByteString(member.suffix))
      guard var earlier = version(named: companion, in: stored),
        !children.contains(where: { tree.scan.name($0) == companion })
      else { return nil }
      earlier.linkGroup = nil
      return earlier
    }
  }

  /// Returns the tree of a container in a snapshot, or nil if it has none.
  private func tree(at path: ByteString, in snapshot: StoredSnapshot) -> TreeReference? {
    tree(at: path, below: snapshot.snapshot.tree)
  }

  private func tree(at path: ByteString, below root: TreeReference) -> TreeReference? {
    if path.isEmpty { return root }
    guard case .directory(let found)? = entry(at: path, below: root)?.node else { return nil }
    return found
  }

  /// Returns the stored version of a file, or nil unless all of its data is stored.
  private func version(named name: ByteString, in directory: TreeReference) -> TreeEntry? {
    guard let entry = entry(at: name, below: directory), case .file = entry.node,
      contents.holds(entry)
    else { return nil }
    return entry
  }

  private func entry(at path: ByteString, below root: TreeReference) -> TreeEntry? {
    do {
      return try reader?.entry(at: path, in: root)
    } catch {
      remarks.append("the earlier version of '\(path)' cannot be read: \(error.reason)")
      return nil
    }
  }
}

internal import ArchiveStore
internal import DatabaseCapture
internal import SystemIO

/// The names in a directory that can belong to a database of several files: the logs, journals and
/// indexes, and the files that these would belong to. A directory may have a million other files,
/// for which nothing has to be remembered.
struct DatabaseNames {
  /// The numbers of the snapshot's entries by name.
  private(set) var entries: [ByteString: Int] = [:]
  /// The existing names; nil if the directory cannot be listed, and each name is looked up.
  private(set) var there: Set<ByteString>?

  /// Finds the names in a directory. If names of the snapshot are lost, or the existing ones are
  /// unknown, each file can belong to a database, and all names are found.
  init(
    in directory: RestorePlanner.OpenDirectory, _ draft: borrowing PlanDraft,
    beside target: inout PresentTarget
  ) {
    let depth = draft.plan.tree.entries[directory.number].depth
    var databases = Set(directory.blocked.compactMap { DatabaseMember.owner(of: $0)?.database })
    for number in directory.files {
      let name = draft.plan.tree.name(Int(number))
      guard let database = DatabaseMember.owner(of: name)?.database else { continue }
      entries[name] = Int(number)
      databases.insert(database)
    }
    let isWhole = !directory.lost.isEmpty
    there = target.names(at: depth) { name in
      isWhole || DatabaseMember.mayBeSidecar(name)
        || !databases.isEmpty && databases.contains(ByteString(name))
    }
    for name in there ?? [] {
      if let database = DatabaseMember.owner(of: name)?.database { databases.insert(database) }
    }
    let isEach = isWhole || there == nil
    for number in directory.files where isEach || !databases.isEmpty {
      let name = draft.plan.tree.name(Int(number))
      if isEach || databases.contains(name) { entries[name] = Int(number) }
    }
  }
}

internal import DatabaseCapture
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// A database, its log and its journal are selected together: a database without its log lacks
/// transactions or is damaged, and a log without its database is useless.
extension ContainerScan {
  /// Gives the logs and journals of databases the verdicts of the databases, whose size alone
  /// counts: a log that is larger than its database is usual.
  ///
  /// Whether something is purged is decided with the verdicts of all files of a database, and so by
  /// the age of each: conditions on ages are permitted in rules for purges only.
  mutating func joinDatabases(_ options: ScanOptions) {
    if options.isForPurge { return }
    for (companion, database) in separated(options) {
      entries[companion].verdicts = joinedVerdicts(on: companion, database)
      entries[companion].selection = entries[database].selection
      databases[companion] = database
    }
  }

  /// Returns the logs and journals for which the policy's decision differs from that for their
  /// database, each with the database.
  private func separated(_ options: ScanOptions) -> [(companion: Int, database: Int)] {
    var found: [(companion: Int, database: Int)] = []
    var files = ScannedFiles(self)
    for entry in entries where entry.childCount > 0 {
      for (companion, database) in companions(in: entry.children)
      where !isDecidedAlike(companion, database) {
        // As in a backup, a log identifies a database; a file with a journal's name does not.
        let isLog = withName(companion) { $0.hasSuffix(DatabaseMember.log.suffix.span) }
        if isLog || isDatabase(database, in: &files, options) {
          found.append((companion, database))
        }
      }
    }
    return found
  }

  /// Returns the logs and journals among the entries of a directory, each with the file that it
  /// belongs to. A log has no log of its own: each file belongs to at most one database.
  private func companions(in children: Range<Int>) -> [(companion: Int, database: Int)] {
    var owned: [ByteString: [Int]] = [:]
    for index in children
    where entries[index].status.kind == .file && withName(index, Self.mayBeCompanion) {
      guard let (database, member) = DatabaseMember.owner(of: name(index)),
        member != .sharedMemory
      else { continue }
      owned[database, default: []].append(index)
    }
    if owned.isEmpty { return [] }
    let lengths = Set(owned.keys.lazy.map(\.count))
    var found: [Int: Int] = [:]
    for index in children
    where entries[index].status.kind == .file && lengths.contains(entries[index].nameRange.count) {
      for companion in owned[name(index)] ?? [] { found[companion] = index }
    }
    return found.filter { found[$0.value] == nil }.map { ($0.key, $0.value) }
  }

  /// Whether a name may be that of a log or a journal. Few others end with their last letter, so
  /// hardly any name allocates memory.
  private static func mayBeCompanion(_ name: Span<UInt8>) -> Bool {
    !name.isEmpty && name[name.count - 1] == UInt8(ascii: "l") && DatabaseMember.mayBeSidecar(name)
  }

  /// Returns the verdicts of a database for its log or journal, whose own rules decide about
  /// purges.
  private func joinedVerdicts(on companion: Int, _ database: Int) -> Verdicts {
    let own = entries[companion].verdicts
    var verdicts = entries[database].verdicts
    verdicts.keep.purge = own.keep.purge
    verdicts.platform.purge = own.platform.purge
    return verdicts
  }

  private func isDecidedAlike(_ companion: Int, _ database: Int) -> Bool {
    entries[companion].verdicts == joinedVerdicts(on: companion, database)
      && entries[companion].selection == entries[database].selection
  }

  /// Whether a file beside one with the name of a journal is a database. A file that cannot be
  /// examined counts as one if it is stored: then both are.
  private func isDatabase(
    _ index: Int, in files: inout ScannedFiles, _ options: ScanOptions
  ) -> Bool {
    let isReadable =
      !options.isLocked
      || (files.stated(on: index) ?? entries[index].verdicts.keep.protection)?
        .isReadableWhileLocked ?? true
    let found = isReadable ? files.isDatabase(index) : nil
    return found ?? (entries[index].selection != .excluded)
  }
}

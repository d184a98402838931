internal import DatabaseCapture
internal import SystemIO

/// The databases among the entries of a migration: a database, its log and its journal are copied
/// together or not at all. A database without its log lacks transactions or is damaged, and SQLite
/// applies a log that it finds beside another database to that one.
///
/// They are recognized only by their names: a file `X` beside one with the name of its journal
/// counts as a database.
struct MigratedDatabases {
  /// The result for a database.
  enum Outcome {
    /// It is copied, or already exists, or is not moved.
    case destination(MigrationRoute.Destination)
    /// It is not copied to this path, because the target has another entry.
    case conflict(ByteString)
  }

  /// A log, a journal or an index with the path of its database.
  typealias Companion = (database: ByteString, member: DatabaseMember)

  /// The logs, journals and indexes by their paths.
  private var companions: [ByteString: MigrationEntry] = [:]
  /// The files with a log, a journal or an index.
  private var owners: Set<ByteString> = []
  /// The results for the files with a log, a journal or an index, as far as they are known. Names
  /// are visited in the order of their bytes, so a database comes before its log.
  private var outcomes: [ByteString: Outcome] = [:]

  init() {}

  /// Finds the databases among the entries of the source.
  init(_ entries: [MigrationEntry]) {
    for entry in entries where entry.kind == .file {
      guard let owner = Self.companion(entry.path) else { continue }
      companions[entry.path] = entry
      owners.insert(owner.database)
    }
  }

  /// Returns the database of a path with the name of a log, a journal or an index; nil for others.
  static func companion(_ path: ByteString) -> Companion? {
    guard path.withSpan({ DatabaseMember.mayBeSidecar($0) }),
      let name = path.lastComponent, let (database, member) = DatabaseMember.owner(of: name)
    else { return nil }
    return (path.parent.appending(database), member)
  }

  /// Returns the paths that the log and the journal of a file have, unless the names are too long.
  static func logs(of path: ByteString) -> [ByteString] {
    let name = path.lastComponent ?? ""
    return [DatabaseMember.log, .journal].filter {
      name.count + $0.suffix.count <= Int(UInt8.max)
    }.map { path.concatenating(ByteString($0.suffix)) }
  }

  /// The result for the database of a log, a journal or an index; nil for other entries, and if the
  /// source has no such file.
  func outcome(besides entry: MigrationEntry) -> (Companion, Outcome)? {
    guard companions[entry.path] != nil, let owner = Self.companion(entry.path),
      let outcome = outcomes[owner.database]
    else { return nil }
    return (owner, outcome)
  }

  /// Records the result for an entry, if it is a file with a log, a journal or an index.
  mutating func record(_ outcome: Outcome, for entry: MigrationEntry) {
    guard entry.kind == .file, owners.contains(entry.path) else { return }
    outcomes[entry.path] = outcome
  }

  /// Returns why a file cannot be copied beside the files that the target has; nil if it can.
  ///
  /// - Parameter lookUp: Returns the entry at a path of the target.
  func conflict(
    of move: MigrationPlan.Move, in lookUp: (ByteString) -> MigrationEntry?
  ) -> String? {
    if let owner = Self.companion(move.destination), owner.member != .sharedMemory,
      outcome(besides: move.entry) == nil, lookUp(owner.database)?.kind == .file
    {
      return "it would become the log of another file, '\(owner.database)' in the target"
    }
    let (path, destination) = (move.entry.path, move.destination)
    for (own, log) in zip(Self.logs(of: path), Self.logs(of: destination)) {
      guard let found = lookUp(log) else { continue }
      // The source's log could not be copied there, and SQLite follows a link.
      let isFree = companions[own].map { $0.isSame(as: found) } ?? (found.kind == .directory)
      if isFree { continue }
      return "the target has the log of another one, '\(log)'"
    }
    return nil
  }
}

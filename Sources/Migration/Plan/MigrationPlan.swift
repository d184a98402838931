internal import DatabaseCapture
package import SystemIO

/// The effects of a migration, computed before anything changes.
package struct MigrationPlan: Sendable {
  /// The entries to copy, a directory before its content.
  package internal(set) var moves: [Move] = []
  /// The entries that the target has already, by type, size and time.
  package internal(set) var present: [Move] = []
  /// The entries that conflict with others in the target. They are not copied.
  package internal(set) var conflicts: [Conflict] = []
  /// The data for which the target has no place.
  package internal(set) var withoutPlace: [Group] = []
  /// The data that rules exclude.
  package internal(set) var skipped: [Group] = []
  /// The configuration files among `moves` whose paths are replaced.
  package internal(set) var rewrites: [PlannedRewrite] = []
  /// The remarks of the table for the user.
  package internal(set) var notes: [String] = []

  /// An entry with its path in the target.
  package struct Move: Sendable, Hashable {
    /// The entry in the source.
    package let entry: MigrationEntry
    /// The path in the target, relative to the target's home directory.
    package let destination: ByteString
  }

  /// An entry that cannot be copied.
  package struct Conflict: Sendable, Hashable {
    /// The entry with its path in the target.
    package let move: Move
    /// The reason.
    package let reason: String
  }

  /// Data in one directory, or one file.
  package struct Group: Sendable, Hashable {
    /// The topmost path, relative to the source's home directory.
    package let path: ByteString
    /// The reason, if a rule excludes the data.
    package let reason: String?
    /// The number of files and links.
    package internal(set) var files = 0
    /// The bytes of the files.
    package internal(set) var bytes: UInt64 = 0
  }

  /// A configuration file and the rule for it.
  package struct PlannedRewrite: Sendable, Hashable {
    /// The file with its path in the target.
    package let move: Move
    /// The rule.
    package let rule: RewriteRule
  }

  /// The bytes of the files to copy.
  package var bytes: UInt64 { moves.reduce(0) { $0 &+ $1.entry.size } }

  /// The bytes that the copies allocate: files without their holes, and each file with several
  /// names once.
  package var neededRoom: UInt64 {
    var counted: Set<FileIdentity> = []
    return moves.reduce(0) { sum, move in
      if let inode = move.entry.inode, !counted.insert(inode).inserted { return sum }
      let (total, isTooLarge) = sum.addingReportingOverflow(move.entry.allocated)
      return isTooLarge ? .max : total
    }
  }

  /// The number of files and links to copy.
  package var files: Int { moves.count { $0.entry.kind != .directory } }

  /// The entries to copy that are not below another one, in the order of the source.
  package var topmostMoves: [Move] {
    var copied: Set<ByteString> = []
    return moves.filter { move in
      if move.entry.kind == .directory { copied.insert(move.entry.path) }
      return !copied.contains(move.entry.path.parent)
    }
  }

  /// The bytes for which the target has no place.
  package var bytesWithoutPlace: UInt64 { withoutPlace.reduce(0) { $0 &+ $1.bytes } }
}

/// Computes the plan of a migration from the entries of the source.
///
/// It is pure: the caller lists the source and looks up entries of the target.
package struct MigrationPlanner {
  private let route: MigrationRoute
  /// Returns the entry at a path of the target, relative to its home directory, or nil if there is
  /// none.
  private let lookUp: (ByteString) -> MigrationEntry?
  private var plan = MigrationPlan()
  /// The destinations of entries in the plan.
  private var taken: Set<ByteString> = []
  /// The destinations of directories that are created.
  private var made: Set<ByteString> = []
  private var databases = MigratedDatabases()
  /// The directories that cannot be entered in the target.
  private var blocked: Set<ByteString> = []
  /// The index of the group of each directory that has no place or is excluded.
  private var (placeless, excluded): ([ByteString: Int], [ByteString: Int]) = ([:], [:])

  /// Creates a planner.
  ///
  /// - Parameter target: Returns the entry at a path of the target, or nil if there is none. It
  ///   follows no link except a snap's `current` above the entry.
  package init(_ route: MigrationRoute, target: @escaping (ByteString) -> MigrationEntry?) {
    self.route = route
    lookUp = target
  }

  /// Returns the plan for entries, each directory before its content.
  package consuming func plan(_ entries: some Sequence<MigrationEntry>) -> MigrationPlan {
    let entries = Array(entries)
    databases = MigratedDatabases(entries)
    for entry in entries { add(entry) }
    plan.notes = (route.table?.notes ?? []).filter { $0.targets.contains(route.to.packaging) }
      .map(\.text)
    return plan
  }

  private mutating func add(_ entry: MigrationEntry) {
    var destination = route.destination(of: entry.path, isLink: entry.kind == .symlink)
    if let (owner, outcome) = databases.outcome(besides: entry) {
      switch outcome {
      case .conflict(let own):
        let path = own.concatenating(ByteString(owner.member.suffix))
        let reason = "it belongs to '\(owner.database)', which is not copied"
        plan.conflicts.append(
          MigrationPlan.Conflict(
            move: MigrationPlan.Move(entry: entry, destination: path), reason: reason))
        return databases.record(.conflict(path), for: entry)
      case .destination(let own):
        // The index can be omitted: SQLite recreates it.
        if owner.member != .sharedMemory { destination = own.followed(by: owner.member.suffix) }
      }
    }
    add(entry, to: destination)
  }

  private mutating func add(_ entry: MigrationEntry, to destination: MigrationRoute.Destination) {
    databases.record(.destination(destination), for: entry)
    switch destination {
    case .noPlace:
      // A directory above a place is only on the path to it.
      if entry.kind == .directory, isAbovePlace(entry.path) { return }
      Self.count(entry, reason: nil, in: &plan.withoutPlace, &placeless)
    case .skipped(let why): Self.count(entry, reason: why, in: &plan.skipped, &excluded)
    case .path(let destination):
      let move = MigrationPlan.Move(entry: entry, destination: destination)
      switch entry.kind {
      case .file, .directory, .symlink: add(move)
      case .fifo, .socket, .characterDevice, .blockDevice:
        Self.count(entry, reason: Self.special, in: &plan.skipped, &excluded)
      }
    }
  }

  /// Why a FIFO, a socket or a device is not copied, as no backup stores it.
  private static let special = "an endpoint of a running program contains no data"

  private mutating func add(_ move: MigrationPlan.Move) {
    if let reason = conflict(of: move) {
      plan.conflicts.append(MigrationPlan.Conflict(move: move, reason: reason))
      databases.record(.conflict(move.destination), for: move.entry)
      if move.entry.kind == .directory { blocked.insert(move.destination) }
      return
    }
    if let found = lookUp(move.destination) {
      if move.entry.kind != .directory { plan.present.append(move) }
      taken.insert(found.path)
      return
    }
    taken.insert(move.destination)
    plan.moves.append(move)
    if move.entry.kind == .directory { made.insert(move.destination) }
    guard move.entry.kind == .file, let place = route.place(of: move.entry.path)?.place else {
      return
    }
    for rule in place.rewrites where rule.isFor(move.entry.path) {
      plan.rewrites.append(MigrationPlan.PlannedRewrite(move: move, rule: rule))
    }
  }

  /// Returns why an entry cannot be copied, or nil if it can.
  private mutating func conflict(of move: MigrationPlan.Move) -> String? {
    if let above = obstacle(above: move.destination) {
      return "'\(above)' in the target is not a directory"
    }
    if taken.contains(move.destination), move.entry.kind != .directory {
      return "another entry moves to the same path"
    }
    if let reason = missingRevision(of: move.destination) { return reason }
    guard let found = lookUp(move.destination) else {
      let isAlone = move.entry.kind != .file || made.contains(move.destination.parent)
      return isAlone ? nil : databases.conflict(of: move, in: lookUp)
    }
    if found.isSame(as: move.entry) { return nil }
    if found.kind == .symlink, isCurrentRevision(found.path) { return nil }
    return found.kind == move.entry.kind
      ? "the target has another version" : "the target has an entry of another type"
  }

  /// Returns the nearest path above a destination that is not a directory, or nil. Links are not
  /// followed: they could lead anywhere.
  private mutating func obstacle(above destination: ByteString) -> ByteString? {
    var parts = destination.components
    while parts.count > 1 {
      parts.removeLast()
      let path = ByteString(joining: parts)
      if blocked.contains(path) { return path }
      if taken.contains(path) { return nil }
      guard let found = lookUp(path) else { continue }
      if found.kind == .directory { return nil }
      if isCurrentRevision(path) { return nil }
      blocked.insert(path)
      return path
    }
    return nil
  }

  /// Whether a path is the link of a snap to its current revision, which is followed.
  private func isCurrentRevision(_ path: ByteString) -> Bool {
    route.to.packaging == .snap && path == route.to.container.appending("current")
  }

  /// Returns why nothing can move into a snap's current revision, or nil. Only snapd creates
  /// revisions.
  private func missingRevision(of destination: ByteString) -> String? {
    let current = route.to.container.appending("current")
    guard route.to.packaging == .snap, destination.isWithin(current), lookUp(current) == nil else {
      return nil
    }
    return "the snap has no current revision: start the snap once"
  }

  private func isAbovePlace(_ path: ByteString) -> Bool {
    let places = (route.table?.places ?? []) + (route.general?.places ?? [])
    return path == route.from.container
      || places.contains { place in
        place.path(in: route.from.packaging).map { $0.inHome(of: route.from).isWithin(path) }
          ?? false
      }
  }

  /// Counts an entry in the group of the directory above it, or in a new one.
  private static func count(
    _ entry: MigrationEntry, reason: String?, in groups: inout [MigrationPlan.Group],
    _ known: inout [ByteString: Int]
  ) {
    let above = known[entry.path.parent].flatMap { groups[$0].reason == reason ? $0 : nil }
    let index = above ?? groups.count
    if above == nil { groups.append(MigrationPlan.Group(path: entry.path, reason: reason)) }
    if entry.kind == .directory {
      known[entry.path] = index
    } else {
      groups[index].files += 1
      groups[index].bytes &+= entry.size
    }
  }
}

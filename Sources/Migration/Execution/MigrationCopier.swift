internal import ArchiveStore
internal import DatabaseCapture
internal import DeviceTransaction
internal import SystemIO

/// Copies the entries of a plan into a staging directory, below which they have their paths
/// relative to the base directory.
///
/// A copy shares its blocks with the source if the volume supports it. It has the source's content,
/// holes, times, modes, attributes and hard links. It belongs to the user who runs the program or,
/// if that is root, to the owner of the target's home directory. Set-user-ID and set-group-ID bits
/// and attributes of the system are not copied (`MigratedMetadata`), nor are private files of other
/// users if the copy would belong to another owner than root; a remark reports that.
final class MigrationCopier {
  /// Returns the path of an entry's copy relative to the base directory.
  private let stagedPath: (ByteString) -> ByteString
  private let source: MigrationHome
  private var staged: DirectoryCursor
  private let owner: (user: UInt32, group: UInt32)?
  private let rules: [ByteString: [RewriteRule]]
  private let relinks: [ByteString: ByteString]
  private let mapping: PathMapping
  private let counters: ProgressCounters
  private let isStopping: () -> Bool
  /// The logs, journals and indexes of the source that the plan knows.
  private let listedLogs: Set<ByteString>
  /// The status of each copied file that may be a database.
  private var copied: [ByteString: FileStatus] = [:]
  /// The first copy of each file with several names.
  private var links: [FileIdentity: ByteString] = [:]
  /// The copied directories, whose metadata is set once their content is complete.
  private var directories: [MigrationPlan.Move] = []
  /// The problems with single entries, by their destinations.
  private(set) var remarks: [PathRemark] = []
  /// The destinations of entries that were not copied.
  private(set) var failed: Set<ByteString> = []

  init(
    of migration: AppMigration, from source: MigrationHome, into tree: consuming Directory,
    owner: (user: UInt32, group: UInt32)?, counters: ProgressCounters,
    isStopping: @escaping () -> Bool, stagedPath: @escaping (ByteString) -> ByteString
  ) {
    self.source = source
    self.owner = owner
    self.counters = counters
    self.isStopping = isStopping
    self.stagedPath = stagedPath
    mapping = migration.route.mapping
    let refused = Set(migration.rewritings.filter { $0.refusal != nil }.map(\.path))
    rules = Dictionary(
      grouping: migration.plan.rewrites.filter { !refused.contains($0.move.destination) },
      by: \.move.destination
    ).mapValues { $0.map(\.rule) }
    relinks = Dictionary(
      migration.relinks.map { ($0.path, $0.after) }, uniquingKeysWith: { first, _ in first })
    let plan = migration.plan
    listedLogs = Set(
      (plan.moves + plan.present + plan.conflicts.map(\.move)).lazy.map(\.entry.path)
        .filter { MigratedDatabases.companion($0) != nil })
    staged = DirectoryCursor(root: tree)
  }

  /// Copies entries, each directory before its content.
  ///
  /// - Throws: `interrupted`; `SystemError` if the target's volume fails or is full. Problems with
  ///   single entries of the source are remarks.
  func copy(_ moves: [MigrationPlan.Move]) throws {
    for move in moves {
      try requireGoing()
      counters.begin(move.entry.path)
      switch move.entry.kind {
      case .directory: try makeDirectory(move)
      case .symlink: try copyLink(move)
      default: try copyFile(move)
      }
    }
    try withdrawPartialDatabases(among: moves)
    reportDatabasesInUse(among: moves)
    for move in directories.reversed() { try complete(move) }
  }

  /// Removes the copies of databases whose log or journal could not be copied, and of the logs and
  /// journals of databases that could not.
  private func withdrawPartialDatabases(among moves: [MigrationPlan.Move]) throws {
    if failed.isEmpty { return }
    let files = Dictionary(
      moves.filter { $0.entry.kind == .file }.map { ($0.destination, $0) },
      uniquingKeysWith: { first, _ in first })
    for lost in failed.sorted() {
      let database = MigratedDatabases.companion(lost)?.database ?? lost
      guard let move = files[database], isDatabase(move, lost: lost) else { continue }
      for name in [database] + MigratedDatabases.logs(of: database) {
        guard let copied = files[name], !failed.contains(name) else { continue }
        let path = stagedPath(name)
        try withStaged(path.parent) { directory throws(SystemError) in
          try directory.remove(path.lastComponent ?? "")
        }
        fail(copied, "it is not copied without '\(lost.lastComponent ?? lost)'")
      }
    }
  }

  /// Whether a file is a database to which a file that could not be copied belongs.
  private func isDatabase(_ move: MigrationPlan.Move, lost: ByteString) -> Bool {
    if lost == move.destination { return true }
    guard let member = MigratedDatabases.companion(lost)?.member, member != .sharedMemory else {
      return false
    }
    let (unit, path) = (Self.unit(of: move), source.real(move.entry.path).parent)
    do throws(SystemError) {
      return try source.withDirectory(path) { directory throws(SystemError) in
        try unit.isDatabase(in: directory, listed: [unit.name(of: member)])
      }
    } catch { return true }
  }

  /// Adds remarks on files that got a log or a journal after the plan was made or that changed
  /// before their log was copied, because they are databases in use: the copies may lack
  /// transactions or be damaged.
  private func reportDatabasesInUse(among moves: [MigrationPlan.Move]) {
    for move in moves {
      guard let copied = copied[move.destination], !failed.contains(move.destination) else {
        continue
      }
      let (unit, path) = (Self.unit(of: move), source.real(move.entry.path).parent)
      let now = try? source.withDirectory(path) { directory throws(SystemError) in
        (hasLog: unit.hasCompanions(in: directory), status: try directory.status(unit.name))
      }
      guard let now else { continue }
      let logs = MigratedDatabases.logs(of: move.entry.path)
      if now.hasLog && !logs.contains(where: listedLogs.contains) {
        remark(move, "it got a log while it was copied: close the app and migrate it again")
      } else if now.status.size != copied.size || now.status.modified != copied.modified {
        remark(move, "it was modified after it was copied: close the app and migrate it again")
      }
    }
  }

  private static func unit(of move: MigrationPlan.Move) -> DatabaseUnit {
    DatabaseUnit(move.entry.path.lastComponent ?? "")
  }

  private func requireGoing() throws(OperationError) {
    guard isStopping() else { return }
    throw OperationError(
      .interrupted, "the migration was interrupted: the target is unchanged", hint: "run it again")
  }

  // MARK: - Directories

  private func makeDirectory(_ move: MigrationPlan.Move) throws(SystemError) {
    try withStaged(stagedPath(move.destination)) { _ throws(SystemError) in }
    directories.append(move)
  }

  private func complete(_ move: MigrationPlan.Move) throws(SystemError) {
    let path = source.realDirectory(move.entry.path)
    let original: (status: FileStatus, attributes: [Attribute])
    do throws(SystemError) {
      original = try source.withDirectory(path) { directory throws(SystemError) in
        (try directory.status(), try directory.attributes.all())
      }
    } catch {
      return remark(move, error.reason)
    }
    try withStaged(stagedPath(move.destination)) { directory throws(SystemError) in
      set(original.status, original.attributes, on: directory, of: move)
    }
  }

  // MARK: - Links

  private func copyLink(_ move: MigrationPlan.Move) throws(SystemError) {
    let path = stagedPath(move.destination)
    let name = path.lastComponent ?? ""
    guard let before = move.entry.target, !before.isEmpty else {
      return fail(move, "its target could not be read")
    }
    let target = relinks[move.destination] ?? before
    try withStaged(path.parent) { directory throws(SystemError) in
      try directory.createLink(name, to: target)
      if let owner { try? directory.setOwner(user: owner.user, group: owner.group, of: name) }
      try? directory.setModified(move.entry.modified, of: name)
    }
    counters.didHandle(files: 1)
  }

  // MARK: - Files

  private func copyFile(_ move: MigrationPlan.Move) throws {
    let path = stagedPath(move.destination)
    guard let file = open(move) else { return }
    let status = try file.status()
    guard status.kind == .file else { return fail(move, "it is no longer a file") }
    if let owner, ![0, status.user].contains(owner.user),
      try source.isPrivateToAnother(status, at: move.entry.path)
    {
      return fail(move, MigrationHome.privateFile)
    }
    if status.links > 1, let first = links[status.identity] {
      try linkCopy(path, to: first)
      return counters.didHandle(files: 1)
    }
    let output = try withStaged(path.parent) { directory throws(SystemError) in
      try directory.create(path.lastComponent ?? "", permissions: 0o600)
    }
    let isSame: Bool
    do {
      isSame = try copyContent(of: file, status, to: output, move)
    } catch let error as SystemError where error.operation == .read {
      // Only this file of the source cannot be read.
      try withStaged(path.parent) { directory throws(SystemError) in
        try directory.remove(path.lastComponent ?? "")
      }
      return fail(move, error.reason)
    }
    try settleCommit(of: file, status, in: output, move)
    var attributes: [Attribute] = []
    do throws(SystemError) {
      attributes = try file.attributes.all()
    } catch { remark(move, error.reason) }
    set(status, attributes, on: output, of: move, keepsTime: isSame)
    try output.close()
    if status.links > 1 { links[status.identity] = path }
    counters.didHandle(files: 1)
  }

  /// Removes the super-journal's name, which is a path in the source, from the copy of a journal
  /// of an uncommitted transaction over several databases: the app may not see that path. Empties
  /// the copy if the transaction was committed.
  private func settleCommit(
    of file: borrowing Descriptor, _ status: FileStatus, in output: borrowing Descriptor,
    _ move: MigrationPlan.Move
  ) throws(SystemError) {
    guard MigratedDatabases.companion(move.entry.path)?.member == .journal else { return }
    let found: (commit: InterruptedCommit, offset: UInt64)?
    do throws(SystemError) {
      let path = source.real(move.entry.path).parent
      let directory = try source.withDirectory(path) { directory throws(SystemError) in
        try directory.duplicate()
      }
      found = try InterruptedCommit.find(in: file, size: status.size, beside: directory)
    } catch { return remark(move, error.reason) }
    guard let found else { return }
    switch found.commit {
    case .uncommitted, .committed: try output.truncate(to: found.offset)
    case .undecided(let name):
      remark(
        move,
        "it belongs to an interrupted transaction over several databases, and '\(name)' was not "
          + "found, without which SQLite takes it as committed: the database may be damaged")
    }
  }

  /// Opens a file of the source, or returns nil if it cannot be read.
  private func open(_ move: MigrationPlan.Move) -> Descriptor? {
    do throws(SystemError) {
      return try source.file(move.entry.path)
    } catch {
      fail(move, error.reason)
      return nil
    }
  }

  /// Gives the copy of a file a second name.
  private func linkCopy(_ path: ByteString, to first: ByteString) throws(SystemError) {
    let from = try withStaged(first.parent) { directory throws(SystemError) in
      try directory.duplicate()
    }
    try withStaged(path.parent) { directory throws(SystemError) in
      try directory.createHardLink(
        path.lastComponent ?? "", to: first.lastComponent ?? "", in: from)
    }
  }

  /// Copies the content, or writes that of a configuration file with its new paths. Returns whether
  /// the copy has the content of the file.
  private func copyContent(
    of file: borrowing Descriptor, _ status: FileStatus, to output: borrowing Descriptor,
    _ move: MigrationPlan.Move
  ) throws -> Bool {
    if let rules = rules[move.destination],
      let new = try rewritten(file, by: rules, move)
    {
      try output.write(new)
      counters.didHandle(bytes: UInt64(new.count))
      return false
    }
    var size = status.size
    if size > 0, try !output.clone(of: file) {
      size = try copyBytes(of: file, status, to: output)
    }
    counters.didHandle(bytes: size)
    let after = try file.status()
    if after.size != status.size || after.modified != status.modified || size != status.size {
      remark(move, "it was modified while it was copied: close the app and migrate it again")
    } else if DatabaseUnit.mayBeDatabase(size: size) {
      copied[move.destination] = status
    }
    return true
  }

  /// Copies the bytes and keeps holes. Returns the number of bytes before the file's end.
  private func copyBytes(
    of file: borrowing Descriptor, _ status: FileStatus, to output: borrowing Descriptor
  ) throws -> UInt64 {
    var at: UInt64 = 0
    let size = try file.readPieces(
      size: status.size, isSparse: status.allocated < status.size,
      data: { piece in
        try requireGoing()
        try output.write(piece, at: at)
        at += UInt64(piece.count)
      }, hole: { at += $0 })
    try output.truncate(to: size)
    return size
  }

  /// Returns the content of a configuration file with its new paths, or nil if it has to be copied
  /// unchanged.
  private func rewritten(
    _ file: borrowing Descriptor, by rules: [RewriteRule], _ move: MigrationPlan.Move
  ) throws(SystemError) -> [UInt8]? {
    let limit = rules.map(\.maximumSize).min() ?? 0
    guard var bytes = try file.readAll(limit: limit) else { return nil }
    var isChanged = false
    for rule in rules {
      do throws(RewriteRefusal) {
        let result = try rule.rewrite(bytes, by: mapping)
        isChanged = isChanged || !result.changes.isEmpty
        bytes = result.bytes
      } catch {
        remark(move, error.description)
        return nil
      }
    }
    return isChanged ? bytes : nil
  }

  // MARK: - Metadata

  private typealias Attribute = (name: ByteString, value: [UInt8])

  /// Sets the metadata in the order in which no step undoes another: owner, attributes with access
  /// control lists last, mode, time. A failed step is a remark.
  private func set<Target: MetadataTarget & ~Copyable>(
    _ status: FileStatus, _ attributes: [Attribute], on target: borrowing Target,
    of move: MigrationPlan.Move, keepsTime: Bool = true
  ) {
    do throws(SystemError) {
      if let owner { try target.setOwner(user: owner.user, group: owner.group) }
    } catch { remark(move, error.reason) }
    let lists = attributes.filter(\.name.isAccessList)
    for (name, value) in attributes.filter({ !$0.name.isAccessList }) + lists {
      switch MigratedMetadata.treatment(of: name) {
      case .copied:
        do throws(SystemError) {
          try target.attributes.set(name, to: value)
        } catch { remark(move, "attribute \(name): \(error.reason)") }
      case .omitted(let reason): remark(move, "attribute \(name) is not copied: \(reason)")
      case .ofTargetPolicy: continue
      }
    }
    do throws(SystemError) {
      let bits = try MigratedMetadata.permissions(of: status, on: target)
      try target.setPermissions(bits)
      if let lost = MigratedMetadata.remark(onSetIDBits: status.permissions & ~bits) {
        remark(move, lost)
      }
      if keepsTime { try target.setModified(status.modified) }
    } catch { remark(move, error.reason) }
  }

  // MARK: - Helpers

  private func withStaged<Result: ~Copyable>(
    _ path: ByteString, _ body: (borrowing Directory) throws(SystemError) -> Result
  ) throws(SystemError) -> Result {
    try staged.move(to: path.components, making: true)
    return try staged.withDirectory(body)
  }

  private func remark(_ move: MigrationPlan.Move, _ text: String) {
    remarks.append(PathRemark(path: move.destination, remark: text))
  }

  private func fail(_ move: MigrationPlan.Move, _ text: String) {
    remark(move, text)
    failed.insert(move.destination)
    counters.didFail()
  }
}

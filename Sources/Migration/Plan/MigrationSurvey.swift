package import SystemIO

/// Lists the entries of an app's data below a home directory.
package struct MigrationSurvey: Sendable {
  /// The entries, each directory before its content, sorted by path.
  package private(set) var entries: [MigrationEntry] = []
  /// The entries that could not be read, relative to the home directory.
  package private(set) var problems: [PathRemark] = []

  /// The maximum number of entries by default: about 1 GB of memory.
  package static let maximumEntries = 5_000_000

  /// Lists directories and files.
  ///
  /// Links are not followed, except the last component of a listed path, for a snap's `current`. If
  /// a file is a database by its name, its log and its journal are listed with it.
  ///
  /// - Parameters:
  ///   - home: The home directory, a path without links.
  ///   - paths: The entries to list, relative to it. Missing ones are ignored.
  ///   - limit: The maximum number of entries.
  /// - Throws: `failed` if the home directory cannot be opened, or for more entries than the limit.
  package init(
    of home: ByteString, paths: [ByteString], limit: Int = maximumEntries
  ) throws(OperationError) {
    let directory: Directory
    do throws(SystemError) {
      directory = try Directory.open(path: home)
    } catch { throw OperationError(error) }
    for path in paths { list(path, among: paths, in: directory, limit: limit) }
    guard entries.count <= limit else {
      throw OperationError(
        .failed, code: .limitExceeded, "list the data", subject: home,
        reason: "it has more than \(limit) entries",
        hint: "migrate one app at a time with '--app'")
    }
    entries.sort { $0.path.components.lexicographicallyPrecedes($1.path.components) }
  }

  private mutating func list(
    _ path: ByteString, among paths: [ByteString], in home: borrowing Directory, limit: Int
  ) {
    do throws(SystemError) {
      if let link = try Self.link(above: path, in: home) {
        return problems.append(PathRemark(path: path, remark: Self.remark(on: link)))
      }
      let above = try Self.open(path.parent, in: home)
      let name = path.lastComponent ?? ""
      guard let status = try above.statusIfPresent(name) else { return }
      let isRevision = status.kind == .symlink && name == "current"
      guard isRevision || status.kind == .directory else {
        entries.append(MigrationEntry(path, name: name, status, in: above))
        if status.kind == .file { try listLogs(of: path, besides: paths, in: above) }
        return
      }
      let directory = isRevision ? try Self.revision(above) : try above.directory(name)
      let own = try directory.status()
      entries.append(MigrationEntry(path, kind: .directory, modified: own.modified))
      var visitor = Visitor(base: path, limit: limit - entries.count)
      var walk = Walk(directory)
      walk.run(&visitor, state: ())
      entries += visitor.entries
      problems += visitor.problems
    } catch {
      if !error.isMissing { problems.append(PathRemark(path: path, remark: error.reason)) }
    }
  }

  private mutating func listLogs(
    of path: ByteString, besides paths: [ByteString], in directory: borrowing Directory
  ) throws(SystemError) {
    for log in MigratedDatabases.logs(of: path) where !paths.contains(log) {
      let name = log.lastComponent ?? ""
      guard let status = try directory.statusIfPresent(name), status.kind == .file else { continue }
      entries.append(MigrationEntry(log, name: name, status, in: directory))
    }
  }

  /// Returns why the entries of a directory are unknown; nil if they can be listed, or if it does
  /// not exist.
  ///
  /// - Parameter home: The home directory, a path without links.
  static func fault(ofDirectory path: ByteString, in home: ByteString) -> String? {
    // Without the right to search the directory, every name seems to be missing.
    let name: ByteString = "x"
    do throws(SystemError) {
      let home = try Directory.open(resolved: home)
      if let link = try link(above: path.appending(name), in: home) { return remark(on: link) }
      _ = try open(path, in: home).statusIfPresent(name)
      return nil
    } catch { return error.isMissing ? nil : error.reason }
  }

  private static func remark(on link: ByteString) -> String {
    "'\(link)' is a link, and links are not followed"
  }

  /// Returns the first link above a path, or nil. The kernel reports a link that must not be
  /// followed as a missing directory, and data behind it must not be omitted silently.
  private static func link(
    above path: ByteString, in home: borrowing Directory
  ) throws(SystemError) -> ByteString? {
    var directory = try home.duplicate()
    var passed: ByteString = ""
    for name in path.components.dropLast() {
      passed = passed.appending(name)
      guard let status = try directory.statusIfPresent(name) else { return nil }
      if status.kind == .symlink { return passed }
      directory = try directory.directory(name)
    }
    return nil
  }

  /// Opens a directory below another one, component by component, so that no link is followed.
  static func open(
    _ path: ByteString, in home: borrowing Directory
  ) throws(SystemError) -> Directory {
    var directory = try home.duplicate()
    for name in path.components { directory = try directory.directory(name) }
    return directory
  }

  /// Opens a snap's current revision: the link `current` must name a directory next to it; any
  /// other target is refused.
  private static func revision(_ snap: borrowing Directory) throws(SystemError) -> Directory {
    let target = try snap.target(of: "current")
    guard let name = target.lastComponent, name.nameFault == nil else {
      throw SystemError.loop(snap.path.appending("current"))
    }
    return try snap.directory(name)
  }
}

extension MigrationEntry {
  /// Creates an entry from its status; the target of a link that cannot be read is empty.
  init(
    _ path: ByteString, name: ByteString, _ status: FileStatus, in directory: borrowing Directory
  ) {
    let target = status.kind == .symlink ? (try? directory.target(of: name)) ?? "" : nil
    let isFile = status.kind == .file
    self.init(
      path, kind: status.kind, size: isFile ? status.size : 0, modified: status.modified,
      target: target, allocated: isFile ? Self.allocation(of: status) : 0,
      inode: isFile && status.links > 1 ? status.identity : nil)
  }

  /// Returns the bytes that a copy of a file allocates: holes are kept, and blocks that are
  /// reserved beyond its end are not copied.
  private static func allocation(of status: FileStatus) -> UInt64 {
    let block: UInt64 = 4096
    let (whole, isTooLarge) = status.size.addingReportingOverflow(block - 1)
    return isTooLarge ? status.allocated : min(status.allocated, whole / block * block)
  }
}

extension MigrationSurvey {
  /// Collects the entries of a walk.
  private struct Visitor: WalkVisitor {
    let base: ByteString
    let limit: Int
    var entries: [MigrationEntry] = []
    var problems: [PathRemark] = []

    mutating func visit(
      _ batch: borrowing WalkBatch, of directory: borrowing WalkDirectory, state: Void,
      descent: inout WalkDescent<Void>
    ) {
      let above = base.appending(directory.relativePath)
      for (index, entry) in batch.entries.enumerated() {
        let name = batch.name(entry)
        entries.append(
          MigrationEntry(
            above.appending(name), name: name, entry.status, in: directory.directory))
        guard entry.status.kind == .directory else { continue }
        if entry.status.isMountPoint {
          problems.append(
            PathRemark(
              path: above.appending(name),
              remark: "another volume is mounted there, and its content is not read"))
        } else {
          descent.enter(index, with: ())
        }
      }
    }

    mutating func failed(_ problem: WalkProblem, state: Void) {
      problems.append(
        PathRemark(path: base.appending(problem.path), remark: problem.error.reason))
    }

    var isDone: Bool { entries.count > limit }
  }
}

internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import SnapshotQueries
internal import SystemIO

/// `sandboxctl versions PATH`: lists the versions of a path.
struct VersionsCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "versions",
      abstract: "List the versions of a file or directory in the snapshots",
      usage: "sandboxctl versions <path> [<options>]",
      discussion: """
        Lists each distinct version of a path with the first snapshot that has it, the time of \
        that snapshot, the number of snapshots that have it, its size, its time of modification \
        and the id of its content. Equal ids mean equal content.

        With --json each version is a line with the members of 'ls --json', 'content', the \
        snapshots that have it, oldest first, and the times of the first and the last of these.

        \(Examples.text([
          "sandboxctl versions apps/org.example.notebook/data/Documents --repo repo"
        ]))
        """)
  }

  @Argument(help: "A logical path, a path in an app's data, or an absolute path of the device.")
  var path: ByteString

  @OptionGroup var repository: RepositoryOptions
  @OptionGroup var progress: ReadingOptions
  @OptionGroup var output: OutputOptions

  func run(_ console: Console) throws -> ExitStatus {
    if path.components.isEmpty {
      throw UsageError(
        .invalidPath, "no path given",
        hint: "give a logical path, for example 'apps/com.example.app/data/Documents'")
    }
    let query = try progress.open(repository, console, of: "snapshot", isQuiet: output.quiet)
    let listing = try query.heads()
    let reader = try query.beginReading()
    defer { console.warn(of: reader.remarks) }
    var unclear: OperationError?
    var last: (head: SnapshotHead, path: ByteString?)?
    let history = try PathHistory(
      of: { head in
        if let last, last.head.sharesMembers(with: head) { return last.path }
        let logical = Self.logicalPath(path, in: head, &unclear)
        last = (head, logical)
        return logical
      }, in: listing.heads, from: reader)
    let skipped = console.warn(skipping: listing.damaged)
    for (head, error) in history.damaged {
      console.warning("\(error.lossLabel): \(path)\([head.id].shortNames): \(error.reason)")
    }
    let isWhole = listing.damaged.isEmpty && history.damaged.isEmpty
    if history.versions.isEmpty, isWhole { throw unclear ?? Self.notFound(path) }
    if let unclear {
      console.warning("not all snapshots were searched: \(unclear.description)")
      if let hint = unclear.hint { console.hint(hint) }
    }
    if output.json {
      for version in history.versions { try console.result(version.json) }
    } else {
      let devices = SnapshotDevices(listing.heads)
      try console.result(Self.table(history.versions, devices))
    }
    return .together([skipped, ExitStatus(without: history.damaged.map { $0.error })])
  }

  /// Returns the path in a snapshot that has its app. If the name matches several apps, the
  /// snapshot may have the path: the first such error is kept.
  private static func logicalPath(
    _ path: ByteString, in snapshot: SnapshotHead, _ unclear: inout OperationError?
  ) -> ByteString? {
    do {
      return try snapshot.logicalPath(path)
    } catch let error as OperationError where error.kind == .unclear {
      unclear = unclear ?? error
    } catch {}
    return nil
  }

  private static func notFound(_ path: ByteString) -> OperationError {
    var hint = "'sandboxctl find' searches all snapshots for a name or a pattern"
    if let named = try? SnapshotPath(path), named.hasPath {
      hint = "all snapshots are searched: give the path without a snapshot, '\(named.path)'"
    }
    return OperationError(
      .notFound, code: .pathNotInSnapshot, "find", subject: path,
      reason: "no snapshot has it", hint: hint)
  }

  /// Returns a table with a row for each version; in a repository with several devices, for each
  /// version and device.
  private static func table(_ versions: [PathVersion], _ devices: SnapshotDevices) -> Table {
    var table = Table(
      [("snapshot", .left), ("made", .left)] + (devices.areSeveral ? [("device", .left)] : []) + [
        ("snapshots", .right), ("size", .right), ("modified", .left), ("content", .left),
      ])
    for version in versions {
      for snapshots in devices.grouped(version.snapshots) {
        let first = snapshots[0]
        table.add(
          [String(first.id.hex.prefix(8)), Times.text(first.time)]
            + (devices.areSeveral ? [devices.name(first)] : []) + [
              Sizes.count(snapshots.count), version.entry.contentSize.map(Sizes.text) ?? "",
              Times.text(version.entry.modified),
              version.contentID.map { String($0.hex.prefix(16)) } ?? version.entry.kindName,
            ])
      }
    }
    return table
  }
}

extension PathVersion {
  /// The version as a line of `versions --json`.
  var json: JSON {
    var members = JSON.path(path) + entry.jsonMembers
    if let content = contentID {
      members.append(JSON.Member("content", .string(content.hex)))
    }
    members.append(JSON.Member("snapshots", snapshots.map(\.id).json))
    members.append(JSON.Member("devices", snapshots.deviceIdentities))
    if let first = snapshots.first, let last = snapshots.last {
      members.append(JSON.Member("first_time", .string(first.time.rfc3339)))
      members.append(JSON.Member("last_time", .string(last.time.rfc3339)))
    }
    return .object(members)
  }
}

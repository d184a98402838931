internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import Mount
internal import SnapshotQueries
internal import SystemIO

/// `sandboxctl mount DIR`: shows snapshots as a read-only file system.
struct MountCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "mount",
      abstract: "Show snapshots as a read-only file system",
      usage: "sandboxctl mount <dir> [--snapshot <snap>] [--app <app>] [<options>]",
      discussion: """
        Mounts all snapshots on an empty directory, until it is unmounted or the command is \
        interrupted: snapshots/<time>, latest (a link to the newest) and apps/<id>/<time>. \
        Snapshots that are made meanwhile appear. With --snapshot, the directory has the content of \
        that snapshot, or with --app of the app in it. Needs FUSE. See sandboxctl-mount(1).

        \(Examples.text([
          "sandboxctl mount view --repo repo",
          "sandboxctl mount view --snapshot latest~2 --app notebook --repo repo",
          "cp -a view/latest/apps/org.example.notebook/data/Documents .",
          "fusermount3 -u view",
        ]))
        """)
  }

  @Argument(
    help: ArgumentHelp("The empty directory to mount on.", valueName: "dir"),
    completion: .directory)
  var directory: ByteString

  @Option(
    help: ArgumentHelp("Show the content of this snapshot.", valueName: "snap"))
  var snapshot: String?

  @Option(
    name: .customLong("app"),
    help: ArgumentHelp(
      "Show only snapshots with this app, and no other app in apps; may be repeated.",
      valueName: "app"))
  var apps: [String] = []

  @Flag(
    help: ArgumentHelp(
      "Let other users read what the permissions of the files allow (default: only this user, who "
        + "can read everything)."))
  var allowOther = false

  @Flag(help: "Show also snapshots that no trusted signer signed.")
  var allowUnsigned = false

  @OptionGroup var repository: RepositoryOptions
  @OptionGroup var output: OutputOptions

  func validate() throws {
    if snapshot != nil, apps.count > 1 {
      throw ValidationError("'--snapshot' can be used with one '--app' only.")
    }
  }

  func run(_ console: Console) throws -> ExitStatus {
    let point = try MountPoint(directory)
    try FuseSession.requireDriver(point.path)
    let opened = try repository.open(console).repository
    if let place = try? Host.realPath(ByteString(opened.location)) {
      try point.requireOutside(place, "the repository")
    }
    let lease = ReaderLease.ifPossible(opened)
    let reader = try opened.beginSharedReading(cache: opened.hostIndexCache, lease: lease)
    defer { reader.releaseLease() }
    let messages = MountMessages()
    let files = try files(reader, messages, at: point, console)
    console.warn(of: reader.remarks)
    try StopSignals.watch()
    let session = try FuseSession(
      files, on: point.path, FuseSession.Options(allowsOthers: allowOther))
    try showStart(files, point, opened, console)
    let ending = try wait(for: session, reader, messages, console)
    messages.show(on: console)
    try show(ending, files, point, console)
    return files.damageCount == 0 ? .done : .damaged
  }

  // MARK: - The file system

  private func files(
    _ reader: SharedReader, _ messages: MountMessages, at point: MountPoint, _ console: Console
  ) throws -> SnapshotFileSystem {
    let repository = reader.repository
    let report: @Sendable (String) -> Void = { messages.add($0) }
    if let snapshot {
      let finder = SnapshotFinder(repository, console)
      let stored = try finder.find(SnapshotName(snapshot), holding: apps)
      if !allowUnsigned {
        try repository.requireTrusted(stored, "mount", unless: "'--allow-unsigned'")
      }
      let head = SnapshotHead(stored)
      try requireOutsideSources(of: [head], point)
      let path = try apps.first.map { name in
        ByteString("apps").appending(ByteString(try stored.snapshot.app(ByteString(name)).identifier))
      }
      return try SnapshotFileSystem(
        reader, snapshot: head, path: path ?? "", indexCache: repository.hostIndexCache,
        report: report)
    }
    let heads = try repository.hostHeads().heads
    try requireOutsideSources(of: heads, point)
    try requireApps(in: heads)
    warn(ofRefused: heads, in: repository, console)
    return try SnapshotFileSystem(
      reader, selection(in: repository), heads: repository.hostHeadCache,
      indexCache: repository.hostIndexCache, report: report)
  }

  private func selection(in repository: Repository) -> SnapshotSelection {
    let (apps, allowUnsigned) = (apps, allowUnsigned)
    let isNamed: @Sendable (AppRecord) -> Bool = { app in
      apps.isEmpty || apps.contains { app.isCalled($0) }
    }
    return SnapshotSelection(
      isShown: { head in
        (apps.isEmpty || head.apps.contains(where: isNamed))
          && (allowUnsigned || repository.refusal(of: head) == nil)
      },
      isListed: isNamed,
      canBeLatest: { head in
        head.reason != .preRestore && (!apps.isEmpty || head.scope == .device)
      })
  }

  private func requireApps(in heads: [SnapshotHead]) throws(OperationError) {
    for name in apps where !heads.contains(where: { $0.apps.contains { $0.isCalled(name) } }) {
      throw OperationError(
        .notFound, code: .noApp, "find", subject: name, reason: "no snapshot has such an app",
        hint: "'sandboxctl snapshots show latest' lists its apps")
    }
  }

  private func warn(
    ofRefused heads: [SnapshotHead], in repository: Repository, _ console: Console
  ) {
    let count = heads.count { repository.refusal(of: $0) != nil }
    guard count > 0, !allowUnsigned else { return }
    console.warning(
      "\(Sizes.count(count, "snapshot")) not shown: no trusted signer signed \(count == 1 ? "it" : "them")")
    console.hint("'--allow-unsigned' shows them")
  }

  /// Refuses a directory in a container of this host that a snapshot has: a backup of it would meet
  /// the mount.
  private func requireOutsideSources(
    of heads: [SnapshotHead], _ point: MountPoint
  ) throws(OperationError) {
    let host = Host.name
    var last: SnapshotHead?
    for head in heads where head.host == host {
      if let last, last.sharesMembers(with: head) { continue }
      last = head
      for container in head.device.containers where point.path.isWithin(container.realPath) {
        try point.requireOutside(container.realPath, "the source")
      }
    }
  }

  // MARK: - Running

  /// How a mount ended.
  private struct Ending {
    var isBySignal = false
    var wasInUse = false
  }

  /// Waits until the file system is unmounted, and unmounts it after a signal.
  private func wait(
    for session: FuseSession, _ reader: SharedReader, _ messages: MountMessages, _ console: Console
  ) throws -> Ending {
    var ending = Ending()
    while !session.hasEnded {
      messages.show(on: console)
      // Long enough to keep the lease alive, which is due each minute (docs/power.md).
      if StopSignals.wait(milliseconds: 30_000, tolerance: 3000) == .stop {
        ending.isBySignal = true
        break
      }
      reader.keepAlive()
    }
    ending.wasInUse = try session.unmount()
    // The threads of a detached file system end with the program.
    if !ending.wasInUse { session.finish() }
    return ending
  }

  private func showStart(
    _ files: SnapshotFileSystem, _ point: MountPoint, _ opened: Repository, _ console: Console
  ) throws {
    if output.json {
      try console.result(
        JSON.object(
          [JSON.Member("event", .string("mounted"))] + JSON.path(point.path, named: "directory")
            + [JSON.Member("snapshots", .integer(Int64(files.snapshotCount)))]))
    } else if !output.quiet {
      let count = Sizes.count(files.snapshotCount, "snapshot")
      try console.result("mounted \(count) of '\(ByteString(opened.location))' on '\(directory)'")
      console.note("Ctrl-C or 'fusermount3 -u \(ShellWord.text(directory))' unmounts it")
    }
    try console.flush()
  }

  private func show(
    _ ending: Ending, _ files: SnapshotFileSystem, _ point: MountPoint, _ console: Console
  ) throws {
    if output.json {
      return try console.result(
        JSON.object(
          [JSON.Member("event", .string("unmounted"))] + JSON.path(point.path, named: "directory")
            + [
              JSON.Member("by", .string(ending.isBySignal ? "signal" : "unmount")),
              JSON.Member("was_in_use", .bool(ending.wasInUse)),
              JSON.Member("damaged", .integer(Int64(files.damageCount))),
            ]))
    }
    if ending.wasInUse {
      console.warning(
        "'\(directory)' is in use: it was detached, and programs that use it get errors from now on")
    }
    if !output.quiet { try console.result("unmounted '\(directory)'") }
  }
}

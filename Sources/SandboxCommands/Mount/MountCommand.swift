internal import ArchiveStore
internal import ArgumentParser
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
        Snapshots made in the meantime appear as well. With --snapshot, the directory shows the \
        content of that snapshot, or with --app that of the app in it. Needs FUSE. See \
        sandboxctl-mount(1).

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

  @Flag(help: "Also show snapshots that no trusted signer signed.")
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
    let files = try files(reader, at: point, console) { messages.add($0) }
    console.warn(of: reader.remarks)
    let run = MountRun(
      directory: directory, point: point, files: files, reader: reader, messages: messages,
      output: output, console: console)
    return try run.serve(FuseSession.Options(allowsOthers: allowOther))
  }

  // MARK: - The file system

  private func files(
    _ reader: SharedReader, at point: MountPoint, _ console: Console,
    report: @escaping @Sendable (String) -> Void
  ) throws -> SnapshotFileSystem {
    let repository = reader.repository
    if let snapshot {
      let finder = SnapshotFinder(repository, console)
      let stored = try finder.find(SnapshotName(snapshot), holding: apps)
      if !allowUnsigned {
        try repository.requireTrusted(stored, "mount", unless: "'--allow-unsigned'")
      }
      let head = SnapshotHead(stored)
      try requireOutsideSources(of: [head], point)
      let app = try apps.first.map { try stored.snapshot.app(ByteString($0)).identifier }
      return try SnapshotFileSystem(
        reader, snapshot: head,
        path: app.map { ByteString("apps").appending(ByteString($0)) } ?? "",
        indexCache: repository.hostIndexCache, report: report)
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
      "\(Sizes.count(count, "snapshot")) not shown, because no trusted signer signed them")
    console.hint("'--allow-unsigned' shows them")
  }

  /// Refuses a directory in a container of this host that a snapshot contains: a backup of the
  /// container would encounter the mount.
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
}

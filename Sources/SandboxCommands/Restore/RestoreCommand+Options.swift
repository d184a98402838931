internal import ArchiveStore
internal import ArgumentParser
internal import PolicyEngine
internal import Restore
internal import SnapshotQueries
internal import SystemIO

extension RestoreCommand {
  /// The part of a snapshot to restore.
  struct PartOptions: ParsableArguments {
    @Option(
      name: .customLong("app"),
      help: .app("Restore only this app", addition: "may be repeated for a device"))
    var apps: [String] = []

    @Option(
      name: .customLong("class"),
      help: ArgumentHelp(
        "Restore only data of this class, for example user-data or preferences; may be "
          + "repeated.",
        valueName: "class"),
      completion: .list(DataClass.allCases.map(\.rawValue)))
    var classes: [String] = []

    /// Returns the classes.
    ///
    /// - Throws: `UsageError` for an unknown class.
    func classNames() throws -> Set<String> {
      for name in classes where DataClass(rawValue: name) == nil {
        let all = DataClass.allCases.map(\.rawValue).joined(separator: ", ")
        throw UsageError(
          .invalidValue, "there is no data class '\(ByteString(name))'",
          hint: "choose one of \(all)")
      }
      return Set(classes)
    }

    /// Returns the logical path for a restore into a directory: that of the only app, or the path
    /// after the snapshot.
    static func path(
      _ path: ByteString, of apps: [String], in snapshot: Snapshot
    ) throws -> ByteString {
      let identifiers = try snapshot.identifiers(of: apps)
      guard let first = identifiers.first else { return path }
      guard path.isEmpty, identifiers.count == 1 else {
        throw UsageError(
          .optionsConflict, "'--to' restores one app or one path",
          hint: "restore them one at a time, or the whole snapshot")
      }
      return ByteString("apps").appending(ByteString(first))
    }
  }

  /// The treatment of existing files.
  struct MergeOptions: ParsableArguments {
    @Option(
      help: ArgumentHelp(
        "The existing files to replace: if-changed, if-newer, always or never (default: "
          + "if-changed on a device; refuse a directory that is not empty).",
        valueName: "mode"),
      completion: .list(OverwriteMode.allCases.map(\.rawValue)))
    var overwrite: String?

    @Flag(help: "Delete existing files that the snapshot lacks.")
    var delete = false

    func mode() throws -> OverwriteMode? {
      guard let overwrite else { return nil }
      guard let mode = OverwriteMode(rawValue: overwrite) else {
        let modes = OverwriteMode.allCases.map(\.rawValue).joined(separator: ", ")
        throw UsageError(
          .invalidValue, "there is no mode '\(ByteString(overwrite))'",
          hint: "choose one of \(modes)")
      }
      return mode
    }
  }

  /// The target device, and options that apply only to devices.
  struct TargetOptions: ParsableArguments {
    @Option(
      help: ArgumentHelp(
        "Restore into the containers of the device in this directory.", valueName: "root"))
    var toDevice: ByteString?

    @Flag(help: "Restore into the device that was backed up.")
    var inPlace = false

    @Flag(help: "With --delete, also delete files that are excluded from backups.")
    var deleteExcluded = false

    @Flag(help: "Include the apps' groups that other apps share.")
    var withGroups = false

    @Flag(help: "Restore even if an app is running.")
    var force = false

    @Flag(help: "Do not make a snapshot of the current state first.")
    var noSnapshot = false

    /// Refuses options that have no meaning for a plain directory.
    func requireFit(isDirectory: Bool) throws {
      guard isDirectory else { return }
      let given = [
        (withGroups, "--with-groups"), (force, "--force"), (noSnapshot, "--no-snapshot"),
      ]
      guard let first = given.first(where: \.0)?.1 else { return }
      throw UsageError(
        .optionsConflict, "'\(first)' has no meaning for a plain directory",
        hint: "use it with '--to-device' or '--in-place'")
    }
  }

  /// The treatment of snapshots that no trusted signer signed.
  struct TrustOptions: ParsableArguments {
    @Flag(help: "Restore even if no trusted signer signed the snapshot.")
    var allowUnsigned = false

    /// Refuses a snapshot that no trusted signer signed.
    func require(_ stored: StoredSnapshot, of repository: Repository) throws(StoreError) {
      if allowUnsigned { return }
      try repository.requireTrusted(stored, "restore", unless: "'--allow-unsigned'")
    }
  }

  /// The source of a restore, as specified on the command line.
  enum Source {
    case snapshot(SnapshotPath)
    /// An absolute path of the device, in the latest snapshot that has it.
    case latest(of: ByteString)

    init(_ path: ByteString) throws {
      if path.isAbsolute {
        self = .latest(of: path)
      } else if path.beginsWithDots, let absolute = path.absolute {
        self = .latest(of: absolute)
      } else {
        do {
          self = .snapshot(try SnapshotPath(path))
        } catch let error as UsageError {
          guard let hint = error.hint, let meaning = Self.meaning(of: path) else { throw error }
          throw UsageError(
            error.code, error.description,
            hint: "for \(meaning); otherwise \(hint)")
        }
      }
    }

    /// Returns the possible meanings of a word that does not name a snapshot, and how to write
    /// them: no snapshot's name has a slash.
    private static func meaning(of path: ByteString) -> String? {
      if (try? Host.realPath(path)) != nil {
        return "the existing file of that name write './\(path)'"
      }
      if path.components.count < 2 { return nil }
      let ofDevice = "a path of the device write './\(path)'"
      let hasSnapshot = path.bytes.contains(UInt8(ascii: ":"))
      return hasSnapshot ? ofDevice : ofDevice + ", for one in a snapshot 'latest:\(path)'"
    }

    /// Returns the snapshot and the logical path in it. Many trees are fetched together with the
    /// snapshot.
    func find(
      in repository: Repository, _ reader: RepositoryReader, apps: [String], _ console: Console
    ) throws -> (StoredSnapshot, ByteString) {
      switch self {
      case .snapshot(let path):
        if path.isBroad { reader.expectTrees() }
        let stored = try SnapshotFinder(repository, console).find(
          path.name, holding: apps, fitting: path.fits)
        return (stored, try path.logicalPath(in: stored.snapshot))
      case .latest(let path):
        let finder = SnapshotFinder(repository, console)
        let found = try finder.newest(with: { try? $0.logicalPath(path) }, from: reader)
        guard let found else { throw Self.notFound(path, skipped: console.skippedStatus) }
        return found
      }
    }

    private static func notFound(_ path: ByteString, skipped: ExitStatus) -> any Error {
      let hint = "'sandboxctl find' searches all snapshots for a name or a pattern"
      if skipped == .done {
        return OperationError(
          .notFound, code: .pathNotInSnapshot, "restore", subject: path,
          reason: "no snapshot has it",
          hint: hint)
      }
      return StoreError(
        skipped == .damaged ? .damaged : .system, "restore", subject: path.description,
        reason: "no readable snapshot has it",
        hint: hint)
    }
  }
}

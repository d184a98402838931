internal import ArchiveStore
internal import ArgumentParser
internal import Lifecycle
internal import PolicyEngine
internal import SystemIO

/// Which part of a snapshot comes back.
struct RestorePartOptions: ParsableArguments {
  @Option(
    name: .customLong("app"),
    help: ArgumentHelp(
      "Restore only this app: an identifier, its last component or the name that is shown; may be "
        + "repeated into a device.", valueName: "app"))
  var apps: [String] = []

  @Option(
    name: .customLong("class"),
    help: ArgumentHelp(
      "Restore only data of this class, as user-data or preferences; may be repeated.",
      valueName: "class"))
  var classes: [String] = []

  /// The classes, each of which has to be one.
  func classNames() throws -> Set<String> {
    for name in classes where DataClass(rawValue: name) == nil {
      let all = DataClass.allCases.map(\.rawValue).joined(separator: ", ")
      throw UsageError(
        "there is no data class '\(ByteString(name))'", hint: "choose one of \(all)")
    }
    return Set(classes)
  }

  /// The logical path for a restore into a folder: of the app that is named, or the one behind the
  /// snapshot.
  func path(_ path: ByteString, in snapshot: Snapshot) throws -> ByteString {
    let identifiers = try snapshot.identifiers(of: apps)
    guard let first = identifiers.first else { return path }
    guard path.isEmpty, identifiers.count == 1 else {
      throw UsageError(
        "into a directory one app or one path is restored",
        hint: "restore them one after another, or the whole snapshot")
    }
    return ByteString("apps").appending(ByteString(first))
  }
}

/// What becomes of what is there.
struct RestoreMergeOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "What gives way where something is there: if-changed, if-newer, always or never.",
      valueName: "mode"),
    completion: .list(OverwriteMode.allCases.map(\.rawValue)))
  var overwrite: String?

  @Flag(help: "Remove what is there and the snapshot lacks.")
  var delete = false

  func mode() throws -> OverwriteMode? {
    guard let overwrite else { return nil }
    guard let mode = OverwriteMode(rawValue: overwrite) else {
      let modes = OverwriteMode.allCases.map(\.rawValue).joined(separator: ", ")
      throw UsageError(
        "there is no mode '\(ByteString(overwrite))'", hint: "choose one of \(modes)")
    }
    return mode
  }
}

/// The device that is restored to, and what holds only there.
struct DeviceRestoreOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Restore into the containers of the device that lies there.", valueName: "root"))
  var toDevice: ByteString?

  @Flag(help: "Restore into the device that the snapshot came from.")
  var inPlace = false

  @Flag(help: "With --delete, remove even what is kept out of backups.")
  var deleteExcluded = false

  @Flag(help: "Restore the groups of the apps, too, that other apps share.")
  var withGroups = false

  @Flag(help: "Restore though an app runs.")
  var force = false

  @Flag(help: "Make no snapshot of what is there first.")
  var noSnapshot = false

  /// Refuses what means nothing for a plain directory.
  func requireFit(isDirectory: Bool) throws {
    guard isDirectory else { return }
    let given = [
      (withGroups, "--with-groups"), (force, "--force"), (noSnapshot, "--no-snapshot"),
    ]
    guard let first = given.first(where: \.0)?.1 else { return }
    throw UsageError(
      "'\(first)' has no meaning for a plain directory",
      hint: "it goes with '--to-device' and '--in-place'")
  }
}

/// What is to be restored, as a command line says it.
enum RestoreWhat {
  case snapshot(SnapshotPath)
  /// A path of the device, absolute, in the latest snapshot that has it.
  case latest(of: ByteString)

  init(_ path: ByteString) throws {
    if path.isAbsolute {
      self = .latest(of: path)
    } else if path.components.first.map({ $0 == "." || $0 == ".." }) ?? false {
      self = .latest(of: (Host.workingDirectory() ?? "/").appending(path).plain)
    } else {
      do {
        self = .snapshot(try SnapshotPath(path))
      } catch let error as UsageError {
        guard let hint = error.hint, (try? Host.realPath(path)) != nil else { throw error }
        throw UsageError(
          error.description, hint: "for what is there of that name write './\(path)'; else \(hint)")
      }
    }
  }

  /// The snapshot, and the logical path in it.
  func find(
    in repository: Repository, _ reader: RepositoryReader, apps: [String], _ console: Console
  ) throws -> (StoredSnapshot, ByteString) {
    switch self {
    case .snapshot(let place):
      let stored = try place.find(in: repository, holding: apps, console)
      return (stored, try place.logicalPath(in: stored.snapshot))
    case .latest(let path):
      return try Self.findNewest(of: path, in: repository, reader, console)
    }
  }

  /// Goes past snapshots in which the way to the path is damaged, as past those that cannot be read at
  /// all.
  private static func findNewest(
    of path: ByteString, in repository: Repository, _ reader: RepositoryReader,
    _ console: Console
  ) throws -> (StoredSnapshot, ByteString) {
    let heads = try repository.hostHeads()
    let skip = { (error: StoreError) in console.skipped(error.description) }
    for error in heads.damaged { skip(error) }
    for head in heads.heads.reversed() where head.reason != .preRestore {
      guard let stored = repository.snapshot(ifReadable: head.id, skip: skip),
        let logical = try? stored.snapshot.logicalPath(path), !logical.isEmpty
      else { continue }
      do throws(StoreError) {
        if try reader.entry(at: logical, in: stored.snapshot.tree) != nil {
          return (stored, logical)
        }
      } catch {
        guard error.kind == .damaged else { throw error }
        console.skipped("\(logical)\([stored.id].shortNames): \(error.reason)")
      }
    }
    throw notFound(path, isWhole: !console.hasSkipped)
  }

  private static func notFound(_ path: ByteString, isWhole: Bool) -> any Error {
    let hint = "'sandboxctl find' looks for a name or a pattern in all of them"
    if isWhole {
      return LifecycleError(
        .notFound, "cannot restore '\(path)': no snapshot has it", hint: hint)
    }
    return StoreError(
      .damaged, "restore", path.description, "no snapshot has it, of those that can be read",
      hint: hint)
  }
}

extension ByteString {
  /// An absolute path without `.` and `..`, as its letters say.
  fileprivate var plain: ByteString {
    var parts: [ByteString] = []
    for part in components where part != "." {
      if part == ".." { _ = parts.popLast() } else { parts.append(part) }
    }
    let joined = ByteString(parts.map(\.bytes).joined(separator: [UInt8(ascii: "/")]))
    return ByteString("/").appending(joined)
  }
}

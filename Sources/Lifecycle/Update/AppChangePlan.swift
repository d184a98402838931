public import ArchiveStore
public import PolicyEngine
public import SandboxModel
public import SystemIO

/// What will become of an app and its containers: made from a scan, the policy and a request, without
/// changing anything. The same three give the same plan.
public struct AppChangePlan: Sendable {
  public let request: AppChangeRequest
  /// The app as it is now; nil where the device knows nothing of it.
  public let present: App?
  /// Why the plan must not be carried out; nothing else of it holds then.
  public internal(set) var refusals: [Refusal] = []
  /// What becomes of each container of the app, of its extensions and of its groups, in the order of
  /// their logical paths.
  public internal(set) var containers: [PlannedContainer] = []
  /// What a snapshot of the app does not hold (docs/design of the lifecycle): what relies on one
  /// prints it.
  public internal(set) var notHeld: [Exclusion] = []
  /// What is worth knowing and forbids nothing.
  public internal(set) var notes: [PathRemark] = []
  /// Where the platform's own program does the work and this one only tells: its commands.
  public internal(set) var commands: [String] = []
  /// What comes back of a snapshot, of an app that goes back to an earlier version.
  public internal(set) var restore: DeviceRestorePlan?
  /// What the user made since that snapshot and would lose, by logical path.
  public internal(set) var newer: [ByteString] = []
  /// What is in the app's containers now.
  let scan: DeviceScan

  public var device: Device { scan.device }

  /// Whether the layout is one whose apps another program installs: then nothing is carried out here.
  public var isSimulated: Bool { device.layout == .flatpak || device.layout == .snap }

  /// The logical path of the app.
  public var path: ByteString { LogicalContainer.app(request.app) }

  /// The version and build that come: the package's, or those of the snapshot that a rollback goes back
  /// to; nil where none comes.
  public var arriving: (version: ByteString?, build: ByteString?)? {
    if let package = request.package { return (package.version, package.build) }
    let stored = restore?.snapshot.snapshot.apps.first {
      ByteString($0.identifier) == request.app.bytes
    }
    return stored.map { ($0.version.map { ByteString($0) }, $0.build.map { ByteString($0) }) }
  }

  /// The app, and the groups of which something changes: what is locked.
  var subjects: [ByteString] {
    let changing = containers.filter { $0.fate.isExchange || $0.fate == .restore }
    return Set([path] + changing.map(\.path.subject)).sorted()
  }

  /// What runs now of the app: a look at the system, each time it is asked for, as the directory `proc` tells.
  public func runningProcesses(in proc: ByteString = Processes.proc) -> [RunningProcess] {
    RunningApps.signs(in: scan, proc: proc).map { RunningProcess($0) }
  }

  /// What decided.
  public var policy: CompiledPolicy { scan.policy }

  /// Whether a snapshot of what is there comes first: not where nothing is, nor where a bundle that is put
  /// back takes nothing away.
  public var makesSnapshot: Bool {
    request.savesFirst && !isSimulated && !scan.containers.isEmpty
      && (request.change != .reinstall || takesAway)
  }

  /// What the snapshot that comes first stores at most, so the room that it needs where the repository has
  /// nothing of it; nothing where none is made.
  public var snapshotBound: EntryTotals? { makesSnapshot ? SpaceCheck.bound(of: scan) : nil }

  /// What a snapshot of the app does not hold, by class, those of the largest class first.
  public var notHeldTotals: [(dataClass: DataClass, totals: EntryTotals)] {
    var sums: [DataClass: EntryTotals] = [:]
    for entry in scan.containers.flatMap(\.entries) where entry.fate == .excluded {
      sums[entry.verdicts.keep.dataClass, default: EntryTotals()].add(entry.status)
    }
    return Self.sorted(sums.filter { $0.value.files > 0 })
  }

  /// Files and bytes by what becomes of them and by class, those of the largest class first.
  public func totals(_ fate: PlannedPath.Fate) -> [(dataClass: DataClass, totals: EntryTotals)] {
    var sums: [DataClass: EntryTotals] = [:]
    for path in containers.flatMap(\.paths) where path.fate == fate {
      sums[path.dataClass, default: EntryTotals()].add(path.totals)
    }
    return Self.sorted(sums)
  }

  /// What comes back from the trash of an update, by class, those of the largest class first.
  public var returnTotals: [(dataClass: DataClass, totals: EntryTotals)] {
    var sums: [DataClass: EntryTotals] = [:]
    for item in containers.flatMap(\.returns) {
      sums[item.dataClass, default: EntryTotals()].add(item.totals)
    }
    return Self.sorted(sums)
  }

  private static func sorted(
    _ sums: [DataClass: EntryTotals]
  ) -> [(dataClass: DataClass, totals: EntryTotals)] {
    sums.map { (dataClass: $0.key, totals: $0.value) }.sorted {
      ($1.totals.bytes, $0.dataClass.rawValue) < ($0.totals.bytes, $1.dataClass.rawValue)
    }
  }
}

/// Why a plan must not be carried out.
public struct Refusal: Sendable, Hashable {
  /// What forbids it, as a word for programs.
  public let code: Code
  /// The whole as a sentence, which follows "cannot update 'x': ".
  public let reason: String
  /// What to do next.
  public let hint: String?

  init(_ code: Code, _ reason: String, hint: String? = nil) {
    self.code = code
    self.reason = reason
    self.hint = hint
  }

  /// What forbids an operation.
  public enum Code: String, CaseIterable, Sendable, Hashable {
    /// The app is not installed, or the device does not know it.
    case notInstalled = "not-installed"
    /// The app is installed already.
    case installed
    /// The package is of another platform, or of another app.
    case wrongPackage = "wrong-package"
    /// The package is of an earlier version.
    case downgrade
    /// An extension has another build than its app.
    case extensions
    /// A container lies where it cannot be moved, or its place is taken.
    case place
    /// There is no state to go back to.
    case noSnapshot = "no-snapshot"
    /// What the user made since would be lost.
    case newerData = "newer-data"
    /// The layout has no apps.
    case layout
    /// A volume of the device has too little room for what comes.
    case noRoom = "no-room"
  }
}

/// What becomes of one container.
public struct PlannedContainer: Sendable {
  /// What becomes of a container as a whole.
  public enum Fate: String, CaseIterable, Sendable, Hashable {
    /// It stays where it is.
    case keep
    /// It gets another directory, and what is in it goes along by one rename.
    case move
    /// What the package brings, or a snapshot holds, takes its place; the old one goes to the trash.
    case replace
    /// It is made.
    case make
    /// It waited in the safe harbor and gets its place.
    case adopt
    /// It goes to the trash.
    case remove
    /// It is copied for another revision.
    case copy
    /// What a snapshot has of it comes back into it.
    case restore
  }

  /// The logical path.
  public let path: ByteString
  public let logical: LogicalContainer
  public let fate: Fate
  /// Its directory now, absolute; of a bundle on macOS that is the bundle's own.
  public let from: ByteString?
  /// Its directory afterwards.
  public let to: ByteString?
  /// What becomes of what is in it: the topmost paths of one fate and class, each with what lies below
  /// it but for the others.
  public internal(set) var paths: [PlannedPath] = []
  /// Absolute links that name a container which gets another directory, and where they lead to then.
  public internal(set) var links: [PlannedLink] = []
  /// Absolute links to somewhere else, which stay as they are.
  public internal(set) var foreignLinks: [PathRemark] = []
  /// What goes to the trash, of a container that does not go as a whole.
  var drops: [PlannedDrop] = []
  /// The container in the plan's scan.
  var scanned: Int?
  /// What moves into it from elsewhere when it is made.
  public internal(set) var moves: [PlannedMove] = []
  /// What does not, and why.
  public internal(set) var notMoved: [PathRemark] = []
  /// What comes back into it from the trash of the update that is undone.
  public internal(set) var returns: [PlannedReturn] = []
  /// Paths of it that become links to the same paths of the home.
  var ownLinks: [ByteString] = []
  /// The directory that gets its place by one rename: the container's own, or one above it where that is
  /// not there either.
  var top: ByteString?

  init(_ logical: LogicalContainer, _ fate: Fate, from: ByteString?, to: ByteString?) {
    path = logical.prefix
    self.logical = logical
    self.fate = fate
    self.from = from
    self.to = to
  }
}

/// A path of a container with what becomes of it, and of all below it that is not named apart.
public struct PlannedPath: Sendable, Hashable {
  /// What becomes of it.
  public enum Fate: String, CaseIterable, Sendable, Hashable {
    /// It stays with the app, as the platform promises.
    case carried
    /// It stays with the app here; the platform does not promise it.
    case atRisk = "at-risk"
    /// It goes to the trash.
    case dropped
    /// Something new takes its place.
    case replaced
    /// It comes back from a snapshot where nothing is.
    case restored
  }

  /// The logical path.
  public let path: ByteString
  public let fate: Fate
  public let dataClass: DataClass
  public internal(set) var totals = EntryTotals()
}

/// A link that is made anew because the container that it names gets another directory.
public struct PlannedLink: Sendable, Hashable {
  /// The link's logical path.
  public let path: ByteString
  public let before: ByteString
  public let after: ByteString
  /// Its path in the container.
  let inner: ByteString
  /// The link as the scan found it.
  let status: FileStatus
}

/// Something in a container that goes to the trash with all that is below it.
struct PlannedDrop: Sendable, Hashable {
  /// Its entry in the scan.
  let entry: Int
  /// Its path in the container.
  let inner: ByteString
  /// Of a directory whether an empty one takes its place.
  let leavesEmptyDirectory: Bool
}

extension PlannedContainer.Fate {
  /// Whether the container as a whole gets another place, or another container its place.
  var isExchange: Bool { self != .keep && self != .copy && self != .restore }
}

extension LogicalContainer {
  /// The logical path of an app.
  static func app(_ identifier: BundleIdentifier) -> ByteString {
    LogicalContainer.data(LogicalName(identifier.bytes)).prefix.subject
  }
}

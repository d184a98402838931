public import ArchiveStore
internal import SandboxModel
public import SystemIO

/// What a restore into a device will do, container by container.
public struct DeviceRestorePlan: Sendable {
  public let snapshot: StoredSnapshot
  public let request: DeviceRestoreRequest
  /// In the order of the logical paths.
  public internal(set) var parts: [PlannedPart] = []
  /// Groups that stay as they are, and which other apps share them.
  public internal(set) var leftGroups: [LeftGroup] = []
  /// Containers that stay as they are, each with the reason.
  public internal(set) var left: [PathRemark] = []
  /// Containers of which nothing can be read, by their logical paths: they stay as they are.
  public internal(set) var lost: [PathRemark] = []
  /// Apps whose data comes back and that are not installed, with the command that installs them,
  /// where the platform has one.
  public internal(set) var installCommands: [String] = []
  /// What the snapshot does not hold of what is asked for.
  public internal(set) var notHeld: [Exclusion] = []
  /// What is in the containers of the apps concerned now.
  var present: DeviceScan

  /// What the parts that are merged change, and so what is to be saved first.
  var mergedContainers: Set<ByteString> {
    Set(parts.filter { $0.fate == .merge && !$0.plan.isIdle }.map(\.path))
  }

  /// The apps, groups and directories that something comes back into: what is locked.
  var subjects: [ByteString] { Set(parts.map(\.path.subject)).sorted() }

  /// What runs now of the apps into whose containers something is merged: a look at the system, each
  /// time it is asked for.
  public func runningProcesses() -> [RunningProcess] {
    mergedContainers.isEmpty ? [] : RunningApps.signs(in: present).map { RunningProcess($0) }
  }

  /// What all parts do together.
  public func total(_ count: (RestorePlan) -> RestoreTotals) -> RestoreTotals {
    parts.reduce(into: RestoreTotals()) { $0.add(count($1.plan)) }
  }

  /// What the repository no longer holds whole, by logical paths.
  public var damaged: [PathRemark] { lost + remarks(\.damaged) }

  /// Remarks of all parts, by logical paths.
  public func remarks(_ list: (RestorePlan) -> [PathRemark]) -> [PathRemark] {
    parts.flatMap { part in
      list(part.plan).map { PathRemark(path: part.logical($0.path), remark: $0.remark) }
    }
  }
}

/// A process for which the restore into a device refuses.
public struct RunningProcess: Sendable, Hashable {
  /// The app or the container.
  public let app: ByteString
  public let process: Int32
  public let program: ByteString
  /// The file in use, or what the platform's register says.
  public let file: ByteString
  /// The whole as a sentence.
  public let text: String

  init(_ sign: RunningApps.Sign) {
    (app, process, program) = (sign.app, sign.process, sign.program)
    (file, text) = (sign.file, sign.text)
  }
}

/// One container that comes back.
public struct PlannedPart: Sendable {
  /// What becomes of it on the device.
  public enum Fate: String, Sendable {
    /// It is there, and what comes back is merged into it.
    case merge
    /// It is made, and appears as a whole.
    case make
    /// Its app is not there: it waits in the safe harbor.
    case harbor
  }

  /// The logical path of the container.
  public let path: ByteString
  public let fate: Fate
  /// Where it is or will be.
  public let target: ByteString
  public let plan: RestorePlan

  /// The logical path of something in it.
  func logical(_ inner: ByteString) -> ByteString { inner == "." ? path : path.appending(inner) }
}

/// A group that is left as it is.
public struct LeftGroup: Sendable, Hashable {
  /// Its logical path.
  public let path: ByteString
  /// The other apps that share it, as far as is known or guessed.
  public let sharers: [String]
}

package import ArchiveStore
package import DeviceScan
package import DeviceTransaction
internal import SandboxModel
package import SystemIO

/// The plan of a restore into a device, container by container.
package struct DeviceRestorePlan: Sendable {
  /// A group that is kept unchanged.
  package struct LeftGroup: Sendable, Hashable {
    /// Its logical path.
    package let path: ByteString
    /// The other apps that share it, as far as known or guessed.
    package let sharers: [String]
  }

  package let snapshot: StoredSnapshot
  package let request: DeviceRestoreRequest
  /// The parts, in the order of their logical paths.
  package internal(set) var parts: [PlannedPart] = []
  /// Groups that are kept unchanged, with the other apps that share them.
  package internal(set) var leftGroups: [LeftGroup] = []
  /// Containers that are kept unchanged, and mounts in which the snapshot has nothing, with the
  /// reason.
  package internal(set) var left: [PathRemark] = []
  /// Unreadable containers by their logical paths; they are kept unchanged.
  package internal(set) var lost: [PathRemark] = []
  /// Whether not all of these need an older key.
  var isLostByDamage = false
  /// The commands that install the apps whose data is restored and that are not installed, if the
  /// platform has such commands.
  package internal(set) var installCommands: [String] = []
  /// Apps for which the platform has such a command, but whose record in the snapshot is not safe
  /// to put into one.
  package internal(set) var withoutCommand: [PathRemark] = []
  /// The requested paths that the snapshot's policy excluded.
  package internal(set) var excludedData: [Exclusion] = []
  /// The data of the requested paths that the snapshot lacks although the policy keeps it, by
  /// logical paths: its backup could not read it, or damage lost it before a repair.
  package internal(set) var incompleteData: [PathRemark] = []
  /// The present contents of the affected apps' containers; if one path is restored, only what is
  /// at that path and the directories above it.
  package var present: DeviceScan

  /// The containers that the merged parts change, which are saved first.
  var mergedContainers: Set<ByteString> {
    Set(parts.filter { $0.action == .merge && !$0.plan.isIdle }.map(\.path))
  }

  /// The apps, groups and directories to restore into, which are locked.
  package var subjects: [ByteString] { Set(parts.map(\.path.subject)).sorted() }

  /// Returns the running processes of the apps whose containers are merged into, read from the
  /// system with each call.
  package func runningProcesses() -> [RunningApps.Sign] {
    mergedContainers.isEmpty ? [] : RunningApps.signs(in: present, besides: unscanned)
  }

  /// The containers of the affected apps, if only one path of one of them is scanned. In a plain
  /// directory only programs that use that path matter.
  private var unscanned: [Container] {
    guard present.options.only != nil, request.device.layout != .folder else { return [] }
    let scanned = present.containers.map(\.container)
    let apps = Set(scanned.compactMap(\.owner))
    return request.device.containers.filter { container in
      scanned.contains(container) || container.owner.map { apps.contains($0) } ?? false
    }
  }

  /// Returns the space needed and the room on the volumes, read from the system with each call.
  package func volumeNeeds(from reader: RepositoryReader) -> [VolumeNeed] {
    VolumeNeeds(of: parts.map(\.plan), from: reader).all
  }

  /// Returns the sum of a count over all parts.
  package func total(_ count: (RestorePlan) -> RestoreTotals) -> RestoreTotals {
    parts.reduce(into: RestoreTotals()) { $0.add(count($1.plan)) }
  }

  /// The data that the repository no longer holds completely, by logical paths.
  package var damaged: [PathRemark] { lost + remarks(\.damaged) }

  /// Whether the repository is damaged: not all of this data needs an older key.
  package var isDamaged: Bool { isLostByDamage || parts.contains { $0.plan.isDamaged } }

  /// Returns the remarks of all parts, by logical paths.
  package func remarks(_ list: (RestorePlan) -> [PathRemark]) -> [PathRemark] {
    parts.flatMap { part in
      list(part.plan).map { PathRemark(path: part.logical($0.path), remark: $0.remark) }
    }
  }
}

/// One container to restore.
package struct PlannedPart: Sendable {
  /// The action for the container on the device.
  package enum Action: String, Sendable {
    /// It exists and is merged into.
    case merge
    /// It is created as a whole.
    case make
    /// Its app is not installed: it waits in the safe harbor.
    case harbor
  }

  /// The logical path of the container.
  package let path: ByteString
  package let action: Action
  /// Its present or future location.
  package let target: ByteString
  package let plan: RestorePlan

  /// Returns the logical path of an entry in it.
  package func logical(_ inner: ByteString) -> ByteString {
    inner == "." ? path : path.appending(inner)
  }
}

package import SandboxModel

/// The handling of whole containers of one kind; a property is nil if no layer sets it.
package struct ContainerTerms: Sendable, Hashable {
  /// The initial backup disposition of everything in the container.
  package var backup: Settings.Backup?
  /// The handling on update.
  package var update: Update?
  /// The handling when the app is offloaded.
  package var offload: Offload?
  /// The handling when the app is removed.
  package var uninstall: Uninstall?
  /// The restore target if the app is not installed.
  package var restoreMissing: RestoreMissing?

  /// Creates empty terms.
  package init() {}

  /// The handling of a container on update.
  package enum Update: String, CaseIterable, Sendable, Hashable {
    /// The data moves to a new container.
    case newContainer = "new-container"
    /// The new version's container replaces it.
    case replace
    /// The container is kept.
    case keep
    /// The container is copied for the new revision.
    case copyRevision = "copy-revision"
  }

  /// The handling of a container when the app is offloaded.
  package enum Offload: String, CaseIterable, Sendable, Hashable {
    case keep
    case remove
  }

  /// The handling of a container when the app is removed.
  package enum Uninstall: String, CaseIterable, Sendable, Hashable {
    case keep
    case remove
    /// The container is removed with the last app known to share it.
    case removeWithLastKnownMember = "remove-with-last-known-member"
  }

  /// The restore target for data of an app that is not installed.
  package enum RestoreMissing: String, CaseIterable, Sendable, Hashable {
    /// The data is stored until the app is installed.
    case safeHarbor = "safe-harbor"
    /// The container is created.
    case create
  }

  /// Returns the terms with the values that a later layer sets.
  func overlaid(by later: ContainerTerms) -> ContainerTerms {
    var terms = self
    terms.backup = later.backup ?? backup
    terms.update = later.update ?? update
    terms.offload = later.offload ?? offload
    terms.uninstall = later.uninstall ?? uninstall
    terms.restoreMissing = later.restoreMissing ?? restoreMissing
    return terms
  }
}

/// Data that is retained for some time after an operation.
package enum RetainedItem: String, CaseIterable, Sendable, Hashable {
  case preUpdateSnapshot = "pre-update-snapshot"
  case preRestoreSnapshot = "pre-restore-snapshot"
  case preRollbackSnapshot = "pre-rollback-snapshot"
  case uninstallSnapshot = "uninstall-snapshot"
  case safeHarbor = "safe-harbor"
}

/// The actions of a purge at one pressure level.
package struct Pressure: Sendable, Hashable {
  /// The level.
  package let level: Level
  /// The amount of free space below which the level applies.
  package let whenFreeBelow: FreeSpace
  /// The amount of free space at which a purge ends.
  package let reclaimTo: FreeSpace
  /// The purge orders included at this level.
  package let orders: Set<UInt16>
  /// The time in seconds for which data must have been unused.
  package let minimumAge: Int64
  /// The position in the file.
  package let location: PolicyLocation
}

extension Pressure {
  /// The severity of a volume's shortage of space.
  package enum Level: String, CaseIterable, Sendable, Hashable, Comparable {
    case low
    case medium
    case critical

    /// Orders by severity, from the mildest.
    package static func < (left: Self, right: Self) -> Bool { left.rank < right.rank }

    private var rank: Int {
      switch self {
      case .low: 0
      case .medium: 1
      case .critical: 2
      }
    }
  }

  /// An amount of free space: a percentage of the volume with an upper limit in bytes.
  package struct FreeSpace: Sendable, Hashable {
    /// The percentage of the volume's size.
    package let percent: Int
    /// The upper limit in bytes, or nil for none.
    package let atMost: Int64?

    /// Creates an amount.
    package init(percent: Int, atMost: Int64? = nil) {
      self.percent = percent
      self.atMost = atMost
    }

    /// Returns the amount in bytes for a volume of the given size.
    package func bytes(ofVolume size: Int64) -> Int64 {
      let (share, rest) = size.quotientAndRemainder(dividingBy: 100)
      let part = share * Int64(percent) + rest * Int64(percent) / 100
      return atMost.map { min(part, $0) } ?? part
    }
  }
}

/// The amount of data that an app may keep before it is purged ahead of others.
package struct Quota: Sendable, Hashable {
  /// The pattern of the paths that count.
  package let pattern: Pattern
  /// The container kinds in which they count.
  package let kinds: Set<ContainerKind>
  /// The limit in bytes for each app.
  package let size: Int64
  /// The position in the file.
  package let location: PolicyLocation
}

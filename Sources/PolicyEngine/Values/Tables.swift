public import SandboxModel

/// The handling of whole containers of one kind; a property is nil if no layer sets it.
public struct ContainerTerms: Sendable, Hashable {
  /// The initial backup disposition of everything in the container.
  public var backup: Settings.Backup?
  /// The handling on update.
  public var update: Update?
  /// The handling when the app is offloaded.
  public var offload: Offload?
  /// The handling when the app is removed.
  public var uninstall: Uninstall?
  /// The restore target if the app is not installed.
  public var restoreMissing: RestoreMissing?

  /// Creates empty terms.
  public init() {}

  /// The handling of a container on update.
  public enum Update: String, CaseIterable, Sendable, Hashable {
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
  public enum Offload: String, CaseIterable, Sendable, Hashable {
    case keep
    case remove
  }

  /// The handling of a container when the app is removed.
  public enum Uninstall: String, CaseIterable, Sendable, Hashable {
    case keep
    case remove
    /// The container is removed with the last app known to share it.
    case removeWithLastKnownMember = "remove-with-last-known-member"
  }

  /// The restore target for data of an app that is not installed.
  public enum RestoreMissing: String, CaseIterable, Sendable, Hashable {
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
public enum RetainedItem: String, CaseIterable, Sendable, Hashable {
  case preUpdateSnapshot = "pre-update-snapshot"
  case preRestoreSnapshot = "pre-restore-snapshot"
  case preRollbackSnapshot = "pre-rollback-snapshot"
  case uninstallSnapshot = "uninstall-snapshot"
  case safeHarbor = "safe-harbor"
}

/// The actions of a purge at one pressure level.
public struct Pressure: Sendable, Hashable {
  /// The level.
  public let level: Level
  /// The amount of free space below which the level applies.
  public let whenFreeBelow: FreeSpace
  /// The amount of free space at which a purge ends.
  public let reclaimTo: FreeSpace
  /// The purge orders included at this level.
  public let orders: Set<UInt16>
  /// The time in seconds for which data must have been unused.
  public let minimumAge: Int64
  /// The position in the file.
  public let location: PolicyLocation
}

extension Pressure {
  /// The severity of a volume's shortage of space.
  public enum Level: String, CaseIterable, Sendable, Hashable, Comparable {
    case low
    case medium
    case critical

    /// Orders by severity, from the mildest.
    public static func < (left: Self, right: Self) -> Bool { left.rank < right.rank }

    private var rank: Int {
      switch self {
      case .low: 0
      case .medium: 1
      case .critical: 2
      }
    }
  }

  /// An amount of free space: a percentage of the volume with an upper limit in bytes.
  public struct FreeSpace: Sendable, Hashable {
    /// The percentage of the volume's size.
    public let percent: Int
    /// The upper limit in bytes, or nil for none.
    public let atMost: Int64?

    /// Creates an amount.
    public init(percent: Int, atMost: Int64? = nil) {
      self.percent = percent
      self.atMost = atMost
    }

    /// Returns the amount in bytes for a volume of the given size.
    public func bytes(ofVolume size: Int64) -> Int64 {
      let (share, rest) = size.quotientAndRemainder(dividingBy: 100)
      let part = share * Int64(percent) + rest * Int64(percent) / 100
      return atMost.map { min(part, $0) } ?? part
    }
  }
}

/// The amount of data that an app may keep before it is purged ahead of others.
public struct Quota: Sendable, Hashable {
  /// The pattern of the paths that count.
  public let pattern: Pattern
  /// The container kinds in which they count.
  public let kinds: Set<ContainerKind>
  /// The limit in bytes for each app.
  public let size: Int64
  /// The position in the file.
  public let location: PolicyLocation
}

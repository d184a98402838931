public import SandboxModel

/// What happens to containers of one kind as wholes; nothing where no layer says it.
public struct ContainerTerms: Sendable, Hashable {
  /// What the verdict of everything in it starts from.
  public var backup: BackupSetting?
  /// What an update does with it.
  public var update: Update?
  /// What becomes of it when the app is offloaded.
  public var offload: Offload?
  /// What becomes of it when the app is removed.
  public var uninstall: Uninstall?
  /// Where its data goes when it is restored and the app is not there.
  public var restoreMissing: RestoreMissing?

  /// Makes terms that say nothing.
  public init() {}

  /// What an update does with a container.
  public enum Update: String, CaseIterable, Sendable, Hashable {
    /// The data moves into a new one.
    case newContainer = "new-container"
    /// The new version's takes its place.
    case replace
    /// It stays.
    case keep
    /// It is copied for the new revision.
    case copyRevision = "copy-revision"
  }

  /// What becomes of a container when the app is offloaded.
  public enum Offload: String, CaseIterable, Sendable, Hashable {
    case keep
    case remove
  }

  /// What becomes of a container when the app is removed.
  public enum Uninstall: String, CaseIterable, Sendable, Hashable {
    case keep
    case remove
    /// It goes when the last app goes that is known to share it.
    case removeWithLastKnownMember = "remove-with-last-known-member"
  }

  /// Where data goes whose app is not there.
  public enum RestoreMissing: String, CaseIterable, Sendable, Hashable {
    /// It waits until the app is installed.
    case safeHarbor = "safe-harbor"
    /// The container is made.
    case create
  }

  /// The terms with what a later layer says.
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

/// What is kept for a while after an operation.
public enum RetainedItem: String, CaseIterable, Sendable, Hashable {
  case preUpdateSnapshot = "pre-update-snapshot"
  case preRestoreSnapshot = "pre-restore-snapshot"
  case preRollbackSnapshot = "pre-rollback-snapshot"
  case uninstallSnapshot = "uninstall-snapshot"
  case safeHarbor = "safe-harbor"
}

/// How short of space a volume is.
public enum PressureLevel: String, CaseIterable, Sendable, Hashable, Comparable {
  case low
  case medium
  case critical

  /// Orders by severity, the mildest first.
  public static func < (left: Self, right: Self) -> Bool { left.rank < right.rank }

  private var rank: Int {
    switch self {
    case .low: 0
    case .medium: 1
    case .critical: 2
    }
  }
}

/// An amount of free space: a part of the volume, but at most so many bytes.
public struct FreeSpace: Sendable, Hashable {
  /// Hundredths of the volume's size.
  public let percent: Int
  /// Bytes.
  public let atMost: Int64?

  /// Makes an amount.
  public init(percent: Int, atMost: Int64? = nil) {
    self.percent = percent
    self.atMost = atMost
  }

  /// The bytes, for a volume of so many.
  public func bytes(ofVolume size: Int64) -> Int64 {
    let (share, rest) = size.quotientAndRemainder(dividingBy: 100)
    let part = share * Int64(percent) + rest * Int64(percent) / 100
    return atMost.map { min(part, $0) } ?? part
  }
}

/// What a purge does at one level of pressure.
public struct Pressure: Sendable, Hashable {
  /// The level.
  public let level: PressureLevel
  /// The level holds when less than this is free.
  public let whenFreeBelow: FreeSpace
  /// A purge ends when this is free.
  public let reclaimTo: FreeSpace
  /// The purge orders that take part.
  public let orders: Set<UInt16>
  /// For how many seconds data must have been unused.
  public let minimumAge: Int64
  /// Where it stands.
  public let location: PolicyLocation
}

/// How much of some data an app may have before it is purged ahead of others.
public struct Quota: Sendable, Hashable {
  /// The paths that count.
  public let pattern: Pattern
  /// The kinds of containers in which they count.
  public let kinds: Set<ContainerKind>
  /// Bytes for each app.
  public let size: Int64
  /// Where it stands.
  public let location: PolicyLocation
}
